// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/oracle/pages.hpp"

#include <algorithm>

#include "operations/attention_core/core/pages_args.h"

namespace tessera::operations::attention {
namespace {

using Errors = std::vector<Raised>;

void raise(Errors* errors, std::size_t error, std::int64_t index, bool if_true = true) {
  if (errors != nullptr && if_true)
    errors->push_back({.error = error, .index = static_cast<std::uint32_t>(index)});
}

std::vector<std::int64_t> read_integers(const HostTensor& tensor) {
  const std::vector<double> values = tensor.read();
  return {values.begin(), values.end()};
}

// Rows of each sequence; returns how many sequences there are.
std::int64_t read_rows(const AttentionProblem& call, std::span<const HostTensor> tensors,
                       std::vector<PagedSequence>& sequences, Errors* errors) {
  const std::int64_t most = call.paged.sequences;
  if (!call.packed) {
    for (std::size_t n = 0; n < sequences.size(); ++n)
      sequences[n] = {.first_row = static_cast<std::int64_t>(n), .rows = 1};
    return most;
  }
  const std::int64_t wanted = read_integers(tensors[call.slots.num_seqs]).front();
  const std::int64_t count = std::clamp<std::int64_t>(wanted, 0, most);
  raise(errors, PAGES_BAD_COUNT, 0, wanted != count);
  const std::vector<std::int64_t> starts = read_integers(tensors[call.slots.query_start_loc]);
  std::int64_t before = 0;
  for (std::size_t n = 0; n <= static_cast<std::size_t>(count); ++n) {
    const std::int64_t start = std::max(before, std::min(starts[n], call.q_len));
    raise(errors, PAGES_BAD_START, static_cast<std::int64_t>(n), start != starts[n]);
    if (n > 0) sequences[n - 1].rows = start - before;
    if (n < sequences.size()) sequences[n].first_row = start;
    before = start;
  }
  return count;
}

// The ends of sequences that decode, are prefilled, and do either.
void check_distribution(const AttentionProblem& call, std::span<const HostTensor> tensors,
                        const std::vector<PagedSequence>& sequences, Errors* errors) {
  const std::vector<std::int64_t> ends = read_integers(tensors[call.slots.distribution]);
  const std::int64_t most = call.paged.sequences;
  for (std::size_t n = 0; n < ends.size(); ++n) {
    raise(errors, PAGES_BAD_END, static_cast<std::int64_t>(n),
          ends[n] < (n > 0 ? ends[n - 1] : 0) || ends[n] > most);
  }
  for (std::int64_t n = 0; n < std::min(ends[0], most); ++n)
    raise(errors, PAGES_NOT_ONE_ROW, n, sequences[static_cast<std::size_t>(n)].rows != 1);
}

std::vector<PagedSequence> read_sequences(const Problem& problem,
                                          std::span<const HostTensor> tensors, Errors* errors) {
  const auto& call = problem.as<AttentionProblem>();
  std::vector<PagedSequence> sequences(static_cast<std::size_t>(call.paged.sequences));
  const std::int64_t count = read_rows(call, tensors, sequences, errors);
  if (problem.has(call.slots.distribution)) check_distribution(call, tensors, sequences, errors);
  const std::vector<std::int64_t> lengths = read_integers(tensors[call.slots.context_lens]);
  const std::vector<std::int64_t> table = read_integers(tensors[call.slots.block_tables]);
  for (std::int64_t n = 0; n < count; ++n) {
    PagedSequence& sequence = sequences[static_cast<std::size_t>(n)];
    const std::int64_t length = lengths[static_cast<std::size_t>(n)];
    sequence.keys = std::clamp<std::int64_t>(length, 0, call.kv_len);
    raise(errors, PAGES_BAD_LENGTH, n, sequence.keys != length);
    raise(errors, PAGES_MORE_ROWS, n, call.packed && sequence.rows > sequence.keys);
    // Pages in front of the window of the first row may have been given to others.
    const std::int64_t first_seen =
        std::max<std::int64_t>(0, sequence.keys - sequence.rows - call.window_left);
    for (std::int64_t token = 0; token < sequence.keys; token += call.paged.size) {
      const std::int64_t at = n * call.paged.per_sequence + token / call.paged.size;
      const std::int64_t page = table[static_cast<std::size_t>(at)];
      const bool there = page >= 0 && page < call.paged.pages;
      const bool is_seen = token / call.paged.size >= first_seen / call.paged.size;
      raise(errors, PAGES_OUTSIDE_POOL, at, !there && is_seen);
      sequence.pages.push_back(there ? page : -1);
    }
  }
  return sequences;
}

}  // namespace

std::vector<PagedSequence> paged_sequences(const Problem& problem,
                                           std::span<const HostTensor> tensors) {
  return read_sequences(problem, tensors, nullptr);
}

std::vector<Raised> raises_of_pages(const Problem& problem, std::span<HostTensor> tensors) {
  Errors errors;
  read_sequences(problem, tensors, &errors);
  return errors;
}

}  // namespace tessera::operations::attention
