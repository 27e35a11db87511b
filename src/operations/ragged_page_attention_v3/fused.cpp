// SPDX-License-Identifier: Apache-2.0
#include "operations/ragged_page_attention_v3/fused.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "kernel/steps.hpp"
#include "operations/attention_core/distribution_args.h"
#include "operations/attention_core/records.hpp"

namespace tessera::operations::attention {
namespace {

// The heads of keys and values by turns as [pages, page_size, heads, head_dim]: of five axes, heads
// are counted over two of them, and what fills up rows and heads is left out.
TensorSpec heads_of_cache(const Problem& problem) {
  TensorSpec spec = problem.spec(kCache);
  if (spec.shape.size() == 5) {
    spec.shape.erase(spec.shape.begin() + 2);
    spec.strides.erase(spec.strides.begin() + 2);
  }
  spec.shape[2] = 2 * problem.spec(kKeys).shape[1];
  spec.shape[3] = problem.spec(kKeys).shape[2];
  return spec;
}

// Those of keys or of values, as [pages, heads, page_size, ...].
TensorSpec side_of(TensorSpec spec, std::int64_t first) {
  if (spec.shape[2] > 1) {
    spec.offset += first * spec.strides[2];
    spec.shape[2] /= 2;
    spec.strides[2] *= 2;
  }
  std::swap(spec.shape[1], spec.shape[2]);
  std::swap(spec.strides[1], spec.strides[2]);
  return spec;
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

CallStep append_step(const Problem& problem) {
  CallStep step{.operation = "append_to_cache"};
  step.operands = {{"keys", whole(problem, kKeys)},
                   {"values", whole(problem, kValues)},
                   {"block_tables", {kTables, tables_by_sequence(problem)}},
                   {"kv_lens", whole(problem, kLengths)},
                   {"query_start_loc", whole(problem, kStarts)},
                   {"num_seqs", count_of(problem)},
                   {"key_cache", {kCache, side_of(heads_of_cache(problem), 0)}},
                   {"value_cache", {kCache, side_of(heads_of_cache(problem), 1)}}};
  if (problem.has(kScale)) {
    step.operands.push_back({"key_scale", {kScale, side_of(problem.spec(kScale), 0)}});
    step.operands.push_back({"value_scale", {kScale, side_of(problem.spec(kScale), 1)}});
  }
  return step;
}

CallStep attend_step(const Problem& problem) {
  CallStep step{.operation = "ragged_page_attention", .options = problem.options};
  step.operands = {{"queries", whole(problem, kQueries)},
                   {"kv_pages", {kCache, heads_of_cache(problem)}},
                   {"context_lens", whole(problem, kLengths)},
                   {"block_tables", {kTables, tables_by_sequence(problem)}},
                   {"query_start_loc", whole(problem, kStarts)},
                   {"num_seqs", count_of(problem)},
                   {"output", whole(problem, kOutput)}};
  const auto add = [&](const char* name, std::size_t slot) {
    if (problem.has(slot)) step.operands.emplace_back(name, whole(problem, slot));
  };
  add("log_sum_exp", kLogSumExp);
  add("softmax_aux", kSinks);
  add("kv_scale", kScale);
  return step;
}

FusedCall fused_call(const CallStep& step, const Problem& problem, std::span<HostTensor> tensors) {
  FusedCall call{.problem = kernel::problem_of(step, problem), .tensors = {}};
  call.tensors.resize(call.problem.operands.size());
  for (const auto& [name, place] : step.operands)
    call.tensors[call.problem.operation->slot(name)] = {.spec = place.spec,
                                                        .data = tensors[place.slot].data};
  return call;
}

void reference_fused(const Problem& problem, std::span<HostTensor> tensors) {
  for (const CallStep& step : {append_step(problem), attend_step(problem)}) {
    FusedCall call = fused_call(step, problem, tensors);
    call.problem.operation->reference(call.problem, call.tensors);
  }
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
  const std::vector<double> ends = tensors[kDistribution].read(), starts = tensors[kStarts].read();
  const auto most = static_cast<double>(problem.spec(kLengths).shape[0]);
  std::vector<Raised> raised;
  for (std::uint32_t n = 0; n < 3; ++n) {
    if (ends[n] < (n > 0 ? ends[n - 1] : 0) || ends[n] > most)
      raised.push_back({.error = DISTRIBUTION_OUT_OF_ORDER, .index = n});
  }
  for (std::uint32_t n = 0; n < std::min(ends[0], most); ++n) {
    if (starts[n + 1] - starts[n] != 1)
      raised.push_back({.error = DISTRIBUTION_NOT_ONE_ROW, .index = n});
  }
  const FusedCall attend = fused_call(attend_step(problem), problem, tensors);
  std::vector<HostTensor> views = attend.tensors;
  for (Raised each : attend.problem.operation->raises(attend.problem, views)) {
    each.error += DISTRIBUTION_ERRORS;
    raised.push_back(each);
  }
  return raised;
}

// An element of a side is one of the whole.
std::vector<std::size_t> written_by_fused(const Problem& problem, std::span<HostTensor> tensors,
                                          std::size_t slot) {
  const bool scales = slot == kScale;
  FusedCall append = fused_call(append_step(problem), problem, tensors);
  const Operation& operation = *append.problem.operation;
  const Shape& whole = problem.spec(slot).shape;
  const bool five = whole.size() == 5;
  const auto rows = static_cast<std::size_t>(whole[1]);
  const auto heads = static_cast<std::size_t>(five ? whole[2] * whole[3] : whole[2]);
  const std::size_t width = scales ? 1 : static_cast<std::size_t>(whole.back());
  std::vector<std::size_t> written;
  for (const std::size_t side : {std::size_t{0}, std::size_t{1}}) {
    const char* names[2][2] = {{"key_cache", "value_cache"}, {"key_scale", "value_scale"}};
    const std::size_t at = operation.slot(names[scales ? 1 : 0][side]);
    const std::size_t kv_heads = static_cast<std::size_t>(append.problem.spec(at).shape[1]);
    const std::size_t dim =
        scales ? 1 : static_cast<std::size_t>(append.problem.spec(at).shape.back());
    for (const std::size_t n : operation.writes(append.problem, append.tensors, at)) {
      const std::size_t row = n / dim % rows, head = n / dim / rows % kv_heads,
                        page = n / dim / rows / kv_heads;
      written.push_back(((page * rows + row) * heads + 2 * head + side) * width + n % dim);
    }
  }
  return written;
}

}  // namespace tessera::operations::attention
