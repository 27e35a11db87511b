// SPDX-License-Identifier: Apache-2.0
// What the tables of a call say, as a definition.
#include <algorithm>
#include <map>

#include "operations/kv_cache/problem.hpp"
#include "operations/kv_cache/tables_args.h"

namespace tessera::operations::kv_cache {
namespace {

std::vector<std::int64_t> integers(const Problem& problem, std::span<HostTensor> tensors,
                                   std::size_t slot) {
  std::vector<std::int64_t> result;
  if (!problem.has(slot)) return result;
  for (const double value : tensors[slot].read()) result.push_back(std::int64_t(value));
  return result;
}

void raise(Places& places, std::uint32_t error, std::size_t index) {
  places.raised.push_back({.error = error, .index = static_cast<std::uint32_t>(index)});
}

// Of places that are equal the last one stays.
void keep_last(std::vector<std::int64_t>& slots) {
  std::map<std::int64_t, std::size_t> last;
  for (std::size_t n = 0; n < slots.size(); ++n) {
    if (slots[n] == kNowhere) continue;
    const auto [at, is_new] = last.emplace(slots[n], n);
    if (is_new) continue;
    slots[at->second] = kNowhere;
    at->second = n;
  }
}

void follow_mapping(const std::vector<std::int64_t>& mapping, const PoolShape& pool,
                    Places& places) {
  for (std::size_t n = 0; n < mapping.size(); ++n) {
    if (mapping[n] >= 0 && mapping[n] < pool.slots()) {
      places.slots[n] = mapping[n];
    } else if (mapping[n] != kNowhere) {
      raise(places, CACHE_BAD_SLOT, n);
    }
  }
}

void follow_tables(const Problem& problem, std::span<HostTensor> tensors, Places& places) {
  const auto& call = problem.as<AppendProblem>();
  const auto tables = integers(problem, tensors, kBlockTables);
  const auto lengths = integers(problem, tensors, kKvLens);
  const auto starts = integers(problem, tensors, kQueryStartLoc);
  const auto counted = integers(problem, tensors, kNumSeqs);
  const std::int64_t size = call.keys.page_size, room = call.per_sequence * size;
  std::int64_t count = call.sequences;
  if (!counted.empty()) {
    count = std::clamp<std::int64_t>(counted[0], 0, call.sequences);
    if (count != counted[0]) raise(places, CACHE_BAD_COUNT, 0);
  }
  std::int64_t begin = 0;
  for (std::int64_t sequence = -1; sequence < count; ++sequence) {
    const auto next = static_cast<std::size_t>(sequence + 1);
    const std::int64_t end = std::clamp<std::int64_t>(starts[next], begin, call.tokens);
    if (end != starts[next]) raise(places, CACHE_BAD_START, next);
    if (sequence >= 0) {
      const auto at = static_cast<std::size_t>(sequence);
      if (lengths[at] < end - begin || lengths[at] > room) raise(places, CACHE_BAD_LENGTH, at);
      const std::int64_t length = std::clamp<std::int64_t>(lengths[at], 0, room);
      for (std::int64_t token = begin; token < end; ++token) {
        const std::int64_t position = length - end + token;
        if (position < 0) continue;
        const auto entry = static_cast<std::size_t>(sequence * call.per_sequence + position / size);
        const std::int64_t page = tables[entry];
        if (page < 0 || page >= call.keys.pages) {
          raise(places, CACHE_BAD_PAGE, entry);
        } else {
          places.slots[static_cast<std::size_t>(token)] = page * size + position % size;
        }
      }
    }
    begin = end;
  }
}

}  // namespace

Places places_of(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<AppendProblem>();
  Places places{.slots =
                    std::vector<std::int64_t>(static_cast<std::size_t>(call.tokens), kNowhere)};
  if (call.mapped) {
    follow_mapping(integers(problem, tensors, kSlotMapping), call.keys, places);
  } else {
    follow_tables(problem, tensors, places);
  }
  keep_last(places.slots);
  return places;
}

Places pages_of(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<CopyProblem>();
  Places places{
      .slots = std::vector<std::int64_t>(static_cast<std::size_t>(call.target_pages), kNowhere)};
  const auto sources = integers(problem, tensors, kSourcePages);
  const auto targets = integers(problem, tensors, kTargetPages);
  for (std::size_t n = 0; n < sources.size(); ++n) {
    if (sources[n] == kNowhere || targets[n] == kNowhere) continue;
    const bool has_source = sources[n] >= 0 && sources[n] < call.source_pages;
    const bool has_target = targets[n] >= 0 && targets[n] < call.target_pages;
    if (!has_source) raise(places, CACHE_BAD_SOURCE, n);
    if (!has_target) raise(places, CACHE_BAD_TARGET, n);
    if (has_source && has_target) places.slots[static_cast<std::size_t>(targets[n])] = sources[n];
  }
  return places;
}

}  // namespace tessera::operations::kv_cache
