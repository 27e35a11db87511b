// SPDX-License-Identifier: Apache-2.0
// Made-up operands, and the workload.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "base/normal_numbers.hpp"
#include "kernel/repeated.hpp"
#include "operations/recurrence_core/oracle.hpp"
#include "operations/recurrence_core/workload.hpp"

namespace tessera::operations::recurrence {
namespace {

using Generator = std::mt19937_64;

std::vector<double> made_up_boundaries(const RecurrenceProblem& call, const std::string& data,
                                       Generator& generator) {
  const std::int64_t first = data == "gap" ? call.tokens / 5 : 0;
  const std::int64_t last = data == "gap" ? call.tokens - call.tokens / 7 : call.tokens;
  std::vector<double> boundaries(static_cast<std::size_t>(call.sequences) + 1);
  for (double& boundary : boundaries) {
    const auto span = static_cast<std::uint64_t>(last - first + 1);
    boundary = static_cast<double>(first + static_cast<std::int64_t>(generator() % span));
  }
  std::ranges::sort(boundaries);
  boundaries.front() = static_cast<double>(first);
  if (boundaries.size() < 6) return boundaries;
  boundaries.back() = static_cast<double>(last);
  boundaries[1] = boundaries[0];  // empty sequences at the start and between
  boundaries[3] = boundaries[2];
  if (data == "out_of_range") {
    boundaries[0] = std::numeric_limits<std::int32_t>::min();
    boundaries[1] = -3;
    boundaries[boundaries.size() - 2] = static_cast<double>(call.tokens + 1);
    boundaries.back() = std::numeric_limits<std::int32_t>::max();
  }
  if (data == "decreasing") std::ranges::reverse(boundaries.begin() + 2, boundaries.end());
  return boundaries;
}

double made_up_decay(const std::string& data, Generator& generator) {
  std::normal_distribution<double> normal;
  const double x = normal(generator);
  const double gate = -std::log1p(std::exp(-2 * x)) / 8;
  const std::uint64_t kind = generator() % 8;
  if (data == "strong") return kind == 0 ? 0 : kind < 4 ? -80 : 8 * gate;
  if (data == "reset" && kind == 0) return -std::numeric_limits<double>::infinity();
  if (data == "growing") return 0.05 * std::fabs(x);
  return gate;
}

// Delta rules keep what they hold where keys have a norm of about 1 and beta is below 2.
double made_up_number(const RecurrenceProblem& call, const std::string& data, std::size_t slot,
                      Generator& generator) {
  std::normal_distribution<double> normal;
  const double x = normal(generator);
  if (slot == call.slots.beta) return 1 / (1 + std::exp(-2 * x));
  const bool large = data == "large", is_delta = call.slots.delta();
  if (large && !is_delta && slot == call.slots.key) return 30 * x;
  if (large && is_delta && (slot == call.slots.grad_output || slot == call.slots.grad_final_state))
    return x / 1024;
  const bool is_key = slot == call.slots.key && call.slots.delta();
  return is_key ? x / std::sqrt(static_cast<double>(call.key_dim)) : x;
}

// Large decays that cancel out: the sum of those of a call is 0, and that of some of them is not.
double opposed_decay(const RecurrenceSlots& slots, const Problem& problem, std::size_t slot) {
  if (slot == slots.g) return 100;
  if (slot == slots.gk) return -100;
  if (slot == slots.gv) return (problem.has(slots.gk) ? 100 : 0) - (problem.has(slots.g) ? 100 : 0);
  return 0;
}

// Ten tokens without a key, through which nothing grows beyond what a float holds.
void grow_nothing(const RecurrenceProblem& call, std::span<HostTensor> tensors, std::size_t slot) {
  constexpr std::size_t kTokens = 10;
  std::vector<double> values = tensors[slot].read();
  const std::size_t row = values.size() / static_cast<std::size_t>(call.batch * call.tokens);
  const double value = slot == call.slots.key ? 0 : 50;
  std::fill_n(values.begin(), std::min(kTokens * row, values.size()), value);
  tensors[slot].write(values);
}

// Decays of more than a float has a factor for, where the state is empty: before the first token,
// and, forward, after one without a key that empties it.
void leap(const RecurrenceProblem& call, std::span<HostTensor> tensors, std::size_t slot) {
  constexpr double kDecay = 300;
  std::vector<double> values = tensors[slot].read();
  const std::size_t row = values.size() / static_cast<std::size_t>(call.batch * call.tokens);
  const bool is_key = slot == call.slots.key;
  if (!is_key) std::fill_n(values.begin(), row, kDecay);
  if (!call.slots.backward()) {
    const auto at = values.begin() +
                    static_cast<std::ptrdiff_t>(static_cast<std::size_t>(call.tokens / 2) * row);
    std::fill_n(at, row, is_key ? 0 : -std::numeric_limits<double>::infinity());
    if (!is_key) std::fill_n(at + static_cast<std::ptrdiff_t>(row), row, kDecay);
  }
  tensors[slot].write(values);
}

// NaN or infinity in one element of a token behind the middle.
void spoil(const RecurrenceProblem& call, std::span<HostTensor> tensors, std::size_t slot) {
  std::vector<double> values = tensors[slot].read();
  const std::size_t row = values.size() / static_cast<std::size_t>(call.tokens);
  const std::size_t token = static_cast<std::size_t>(call.tokens) / 2 + slot;
  values[token * row + row / 2] =
      slot % 2 == 0 ? std::nan("") : std::numeric_limits<double>::infinity();
  tensors[slot].write(values);
}

// Values of the first tokens near the largest f16, so that what these change is larger.
void enlarge(const RecurrenceProblem& call, std::span<HostTensor> tensors, std::size_t slot) {
  constexpr std::size_t kTokens = 32;
  std::vector<double> values = tensors[slot].read();
  const std::size_t row = values.size() / static_cast<std::size_t>(call.batch * call.tokens);
  for (std::size_t i = 0; i < std::min(kTokens * row, values.size()); ++i)
    values[i] = std::copysign(6e4, values[i]);
  tensors[slot].write(values);
}

// NaN in rows that belong to no sequence.
void hide_rows(const RecurrenceProblem& call, std::span<HostTensor> tensors, std::size_t slot) {
  const std::vector<std::int64_t> boundaries = boundaries_of(call, tensors);
  std::vector<double> values = tensors[slot].read();
  const std::int64_t row =
      static_cast<std::int64_t>(values.size()) / std::max<std::int64_t>(call.tokens, 1);
  for (std::int64_t token = 0; token < call.tokens; ++token) {
    if (token >= boundaries.front() && token < boundaries.back()) continue;
    std::fill_n(values.begin() + token * row, row, std::nan(""));
  }
  tensors[slot].write(values);
}

}  // namespace

// Kinds of data: "normal"; "gap", sequences begin after the first row and end before the last, and
// rows outside are NaN; "out_of_range", boundaries beyond the tokens; "decreasing", boundaries that
// do not ascend; "strong", "reset" and "growing" decays; "opposed" ones, which cancel out; "burst",
// large growth before there is a key; "leap", growth beyond a float of an empty state;
// "not_finite", NaN and infinity in some tokens; "large", keys of another order than queries, or of
// delta rules some values near the largest f16.
void fill_recurrence(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const auto& call = problem.as<RecurrenceProblem>();
  const RecurrenceSlots& slots = call.slots;
  Generator generator(shape.seed * 1000003);
  if (call.packed) tensors[slots.cu_seqlens].write(made_up_boundaries(call, shape.data, generator));
  for (std::size_t slot = 0; slot < problem.operands.size(); ++slot) {
    const bool is_input =
        is_read(problem.operation->operands[slot].role) && slot != slots.cu_seqlens;
    if (!is_input || !problem.has(slot)) continue;
    const bool is_decay =
        slot == slots.g || slot == slots.gamma || slot == slots.gk || slot == slots.gv;
    const auto count = static_cast<std::size_t>(problem.spec(slot).elements());
    const auto draw = [&] {
      return !is_decay                 ? made_up_number(call, shape.data, slot, generator)
             : shape.data == "opposed" ? opposed_decay(slots, problem, slot)
                                       : made_up_decay(shape.data, generator);
    };
    kernel::write_repeated(tensors[slot], drawn_numbers(count, draw));
    const bool has_rows =
        slot != slots.gamma && slot != slots.initial_state && slot != slots.grad_final_state;
    if (call.packed && shape.data == "gap" && has_rows) hide_rows(call, tensors, slot);
    if (shape.data == "burst" && (slot == slots.key || slot == slots.g))
      grow_nothing(call, tensors, slot);
    if (shape.data == "leap" && (slot == slots.key || slot == slots.g)) leap(call, tensors, slot);
    if (shape.data == "large" && slots.delta() && slot == slots.value) enlarge(call, tensors, slot);
    if (shape.data == "not_finite" && has_rows) spoil(call, tensors, slot);
  }
}

Workload recurrence_workload(const RecurrenceSlots& slots) {
  Workload workload;
  workload.cases = [slots](DType dtype) { return conformance_cases(slots, dtype); };
  workload.edge_cases = [slots](DType dtype, const Config& config) {
    return edge_cases(slots, dtype, config);
  };
  workload.benchmarks = [slots](DType dtype) { return benchmark_cases(slots, dtype); };
  workload.fill = fill_recurrence;
  workload.expect = [](const Problem& problem, std::span<HostTensor> tensors,
                       const Arithmetic& arithmetic, double max_flops) {
    return expect_recurrence(problem, tensors, arithmetic.rounds_factors, max_flops);
  };
  workload.flops = recurrence_flops;
  return workload;
}

}  // namespace tessera::operations::recurrence
