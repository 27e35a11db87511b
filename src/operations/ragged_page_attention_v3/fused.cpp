// SPDX-License-Identifier: Apache-2.0
#include "operations/ragged_page_attention_v3/fused.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "kernel/option_access.hpp"
#include "kernel/steps.hpp"
#include "operations/attention_core/records.hpp"
#include "operations/ragged_page_attention_v3/scales.hpp"

namespace tessera::operations::attention {
namespace {

// A cache as [pages, page_size, heads, features]: of five axes, heads are counted over two of them,
// and what fills up rows and heads is left out.
TensorSpec heads_of_cache(const Problem& problem, std::size_t cache) {
  TensorSpec spec = problem.spec(cache);
  if (spec.shape.size() == 5) {
    spec.shape.erase(spec.shape.begin() + 2);
    spec.strides.erase(spec.strides.begin() + 2);
  }
  const Shape& keys = problem.spec(kKeys).shape;
  spec.shape[2] = (problem.has(kValueCache) ? 1 : 2) * keys[1];
  spec.shape[3] = cache == kValueCache ? problem.spec(kValues).shape[2] : keys[2];
  return spec;
}

// The heads of keys or of values, as [pages, heads, page_size, ...].
TensorSpec heads_of_side(const Problem& problem, TensorSpec spec, bool values) {
  if (side_of(problem, values).by_turns && spec.shape[2] > 1) {
    if (values) spec.offset += spec.strides[2];
    spec.shape[2] /= 2;
    spec.strides[2] *= 2;
  }
  std::swap(spec.shape[1], spec.shape[2]);
  std::swap(spec.strides[1], spec.strides[2]);
  return spec;
}

// Of codes without scales of their own: one for all keys or values.
Place scale_of_side(const Problem& problem, bool values) {
  Place place = scale_pairs(problem);
  if (values) ++place.spec.offset;
  place.spec.shape[2] = 1;
  return place;
}

TensorSpec tables_by_sequence(const Problem& problem) {
  TensorSpec spec = problem.spec(kTables);
  if (spec.shape.size() == 2) return spec;
  const std::int64_t sequences = problem.spec(kLengths).shape[0];
  const std::int64_t pages = spec.shape[0] / std::max<std::int64_t>(sequences, 1);
  spec.strides = {pages * spec.strides[0], spec.strides[0]};
  spec.shape = {sequences, pages};
  return spec;
}

// The last of the three ends.
Place count_of(const Problem& problem) {
  TensorSpec spec = problem.spec(kDistribution);
  spec.offset += 2 * spec.strides[0];
  spec.shape = {1};
  return {kDistribution, spec};
}

Place whole(const Problem& problem, std::size_t slot) { return {slot, problem.spec(slot)}; }

}  // namespace

CacheSide side_of(const Problem& problem, bool values) {
  if (!problem.has(kValueCache)) return {.cache = kCache, .scale = kScale, .by_turns = true};
  return {.cache = values ? kValueCache : kCache,
          .scale = values ? kValueScale : kScale,
          .by_turns = false};
}

CallStep append_step(const Problem& problem) {
  CallStep step{.operation = "append_to_cache"};
  step.operands = {{"keys", whole(problem, kKeys)},
                   {"values", whole(problem, kValues)},
                   {"block_tables", {kTables, tables_by_sequence(problem)}},
                   {"kv_lens", whole(problem, kLengths)},
                   {"query_start_loc", whole(problem, kStarts)},
                   {"num_seqs", count_of(problem)}};
  for (const bool values : {false, true}) {
    const CacheSide side = side_of(problem, values);
    const char* scale = values ? "value_scale" : "key_scale";
    step.operands.emplace_back(
        values ? "value_cache" : "key_cache",
        Place{side.cache, heads_of_side(problem, heads_of_cache(problem, side.cache), values)});
    if (problem.has(side.scale)) {
      // One of keys and values together is no head's own, though a side with one head looks so.
      if (side.by_turns && problem.spec(side.scale).shape[2] == 1)
        step.options["read_scales"] = true;
      step.operands.emplace_back(
          scale, Place{side.scale, heads_of_side(problem, problem.spec(side.scale), values)});
    } else if (scales_of(problem).of_codes) {
      step.operands.emplace_back(scale, scale_of_side(problem, values));
    }
  }
  return step;
}

CallStep attend_step(const Problem& problem) {
  const FusedScales scales = scales_of(problem);
  CallStep step{.operation = "ragged_page_attention", .options = problem.options};
  for (const char* name : {"q_scale", "k_scale", "v_scale"}) step.options.erase(name);
  if (scales.of_logits() != 1) {
    const auto dim = static_cast<double>(problem.spec(kQueries).shape[2]);
    step.options["softmax_scale"] =
        kernel::number_option(problem, "softmax_scale").value_or(1 / std::sqrt(dim)) *
        scales.of_logits();
  }
  step.operands = {{"queries", scales.query ? scaled_queries(problem) : whole(problem, kQueries)},
                   {"kv_pages", {kCache, heads_of_cache(problem, kCache)}},
                   {"context_lens", whole(problem, kLengths)},
                   {"block_tables", {kTables, tables_by_sequence(problem)}},
                   {"query_start_loc", whole(problem, kStarts)},
                   {"num_seqs", count_of(problem)},
                   {"distribution", whole(problem, kDistribution)},
                   {"output", whole(problem, kOutput)}};
  const auto add = [&](const char* name, std::size_t slot) {
    if (problem.has(slot)) step.operands.emplace_back(name, whole(problem, slot));
  };
  add("log_sum_exp", kLogSumExp);
  add("softmax_aux", kSinks);
  add("kv_scale", kScale);
  add("value_scale", kValueScale);
  const bool apart = problem.has(kValueCache);
  if (apart)
    step.operands.emplace_back("value_pages",
                               Place{kValueCache, heads_of_cache(problem, kValueCache)});
  if (scales.of_codes) {
    step.operands.emplace_back("kv_scale",
                               apart ? scale_of_side(problem, false) : scale_pairs(problem));
    if (apart) step.operands.emplace_back("value_scale", scale_of_side(problem, true));
  }
  return step;
}

FusedCall fused_call(const CallStep& step, const Problem& problem, std::span<HostTensor> tensors,
                     std::byte* scratch) {
  FusedCall call{.problem = kernel::problem_of(step, problem), .tensors = {}};
  call.tensors.resize(call.problem.operands.size());
  for (const auto& [name, place] : step.operands)
    call.tensors[call.problem.operation->slot(name)] = {
        .spec = place.spec, .data = place.slot == kScratch ? scratch : tensors[place.slot].data};
  return call;
}

void reference_fused(const Problem& problem, std::span<HostTensor> tensors) {
  std::vector<std::byte> scratch = scaled_reference(problem, tensors);
  for (const CallStep& step : {append_step(problem), attend_step(problem)}) {
    FusedCall call = fused_call(step, problem, tensors, scratch.data());
    call.problem.operation->reference(call.problem, call.tensors);
  }
  scale_outputs(problem, tensors);
}

std::vector<ErrorKind> attend_errors() {
  std::vector<ErrorKind> errors = table_errors(true);
  for (ErrorKind& error : errors) {
    if (error.operand == "context_lens") error.operand = "kv_lens";
    if (error.operand == "num_seqs") error.operand = "distribution";
  }
  return errors;
}

std::vector<Raised> raises_of_fused(const Problem& problem, std::span<HostTensor> tensors) {
  FusedCall attend = fused_call(attend_step(problem), problem, tensors);
  return attend.problem.operation->raises(attend.problem, attend.tensors);
}

// An element of a side is one of the whole.
std::vector<std::size_t> written_by_fused(const Problem& problem, std::span<HostTensor> tensors,
                                          std::size_t slot) {
  FusedCall append = fused_call(append_step(problem), problem, tensors);
  const Operation& operation = *append.problem.operation;
  const Shape& whole = problem.spec(slot).shape;
  const bool five = whole.size() == 5;
  const auto rows = static_cast<std::size_t>(whole[1]);
  const auto heads = static_cast<std::size_t>(five ? whole[2] * whole[3] : whole[2]);
  std::vector<std::size_t> written;
  for (const bool values : {false, true}) {
    const CacheSide side = side_of(problem, values);
    if (slot != side.cache && slot != side.scale) continue;
    const bool scales = slot == side.scale;
    const std::size_t width = scales ? 1 : static_cast<std::size_t>(whole.back());
    const char* names[2][2] = {{"key_cache", "value_cache"}, {"key_scale", "value_scale"}};
    const std::size_t at = operation.slot(names[scales ? 1 : 0][values ? 1 : 0]);
    const std::size_t kv_heads = static_cast<std::size_t>(append.problem.spec(at).shape[1]);
    const std::size_t dim =
        scales ? 1 : static_cast<std::size_t>(append.problem.spec(at).shape.back());
    for (const std::size_t n : operation.writes(append.problem, append.tensors, at)) {
      const std::size_t row = n / dim % rows, head = n / dim / rows % kv_heads,
                        page = n / dim / rows / kv_heads;
      const std::size_t own = side.by_turns ? 2 * head + (values ? 1 : 0) : head;
      written.push_back(((page * rows + row) * heads + own) * width + n % dim);
    }
  }
  return written;
}

}  // namespace tessera::operations::attention
