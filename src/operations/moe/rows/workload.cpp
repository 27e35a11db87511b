// SPDX-License-Identifier: Apache-2.0
// What dispatch and combine must give, and made-up calls of them.
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "base/normal_numbers.hpp"
#include "kernel/repeated.hpp"
#include "operations/common/cases.hpp"
#include "operations/common/numerics.hpp"
#include "operations/moe/rows/oracle.hpp"

namespace tessera::operations::moe {
namespace {

constexpr double kUnit = kUnitF32;

// Rows of experts from rows of tokens; of several choices for one row the last counts.
BoundedRows spread(const RowsProblem& call, const std::vector<std::int64_t>& places,
                   const std::vector<double>& tokens, const std::vector<double>& weights) {
  const auto dim = static_cast<std::size_t>(call.dim);
  BoundedRows result{std::vector<double>(static_cast<std::size_t>(call.rows) * dim),
                     std::vector<double>(static_cast<std::size_t>(call.rows) * dim)};
  for (std::size_t n = 0; n < places.size(); ++n) {
    if (places[n] < 0) continue;
    const std::size_t token = n / static_cast<std::size_t>(call.top_k);
    for (std::size_t i = 0; i < dim; ++i) {
      const std::size_t to = static_cast<std::size_t>(places[n]) * dim + i;
      result.values[to] = (weights.empty() ? 1 : weights[n]) * tokens[token * dim + i];
      result.bounds[to] = weights.empty() ? 0 : kUnit * std::fabs(result.values[to]) + 0x1p-126;
    }
  }
  return result;
}

BoundedRows gather(const RowsProblem& call, const std::vector<std::int64_t>& places,
                   const std::vector<double>& rows, const std::vector<double>& weights) {
  const auto dim = static_cast<std::size_t>(call.dim);
  BoundedRows result{std::vector<double>(static_cast<std::size_t>(call.tokens) * dim),
                     std::vector<double>(static_cast<std::size_t>(call.tokens) * dim)};
  for (std::size_t n = 0; n < places.size(); ++n) {
    const double weight = weights.empty() ? 1 : weights[n];
    if (places[n] < 0 || weight == 0) continue;
    const std::size_t token = n / static_cast<std::size_t>(call.top_k);
    for (std::size_t i = 0; i < dim; ++i) {
      const double term = weight * rows[static_cast<std::size_t>(places[n]) * dim + i];
      result.values[token * dim + i] += term;
      result.bounds[token * dim + i] +=
          kUnit * static_cast<double>(call.top_k + 2) * std::fabs(term) + 0x1p-126;
    }
  }
  return result;
}

struct RowsCase {
  const char* name;
  const char* why;
  std::int64_t tokens, top_k, experts, capacity, dim;  // capacity 0: dropless
  bool weights = true;
  const char* data = "normal";
};

Case make(Moves moves, DType dtype, const RowsCase& from) {
  Case result{.name = from.name, .why = from.why, .data = from.data};
  const std::int64_t rows =
      from.capacity > 0 ? from.capacity * from.experts : from.tokens * from.top_k;
  result.operands.resize(moves == Moves::kCombineBackward ? kGradChoiceWeights + 1 : kTo + 1);
  const auto add = [&](std::size_t slot, DType type, Shape shape) {
    result.operands[slot] = TensorSpec::contiguous(type, std::move(shape));
  };
  const bool dispatch = moves == Moves::kDispatch;
  add(kFrom, dtype, {dispatch ? from.tokens : rows, from.dim});
  add(kExpertIds, DType::kI32, {from.tokens, from.top_k});
  add(kExpertSlots, DType::kI32, {from.tokens, from.top_k});
  add(kStarts, DType::kI32, {from.experts + 1});
  if (from.weights) add(kChoiceWeights, DType::kF32, {from.tokens, from.top_k});
  if (dispatch) result.options["rows"] = rows;
  if (moves == Moves::kCombineBackward) {
    add(kTo, dtype, {from.tokens, from.dim});
    if (from.weights) add(kGradChoiceWeights, DType::kF32, {from.tokens, from.top_k});
  }
  return result;
}

std::vector<Case> cases(Moves moves, DType dtype) {
  std::vector<Case> result;
  for (const RowsCase& from : std::vector<RowsCase>{
           {"dropless", "rows that no vector divides", 19, 2, 5, 0, 21},
           {"capacity", "experts with places that no token has, dropped choices", 33, 3, 8, 16, 64},
           {"plain", "no weights", 24, 2, 4, 0, 40, false},
           {"one", "one token", 1, 1, 3, 0, 8},
           {"many", "more rows than work-groups", 300, 4, 16, 0, 12},
           {"several", "more choices than an item has at a time", 21, 11, 16, 12, 24},
           {"hostile", "experts and slots that are not there", 40, 2, 6, 8, 16, true, "hostile"},
           {"none", "no tokens", 0, 2, 4, 3, 16}})
    result.push_back(make(moves, dtype, from));
  result.push_back(make(moves, dtype, {"strided", "gaps between rows", 9, 2, 3, 0, 10}));
  const std::int64_t first = result.back().operands[kFrom]->shape[0];
  result.back().operands[kFrom] = strided_view(dtype, {first, 10}, {0}, 3, 5);
  return result;
}

// Choices of different experts for each token, with places in order.
void fill_choices(const Problem& problem, const Case& shape, std::span<HostTensor> tensors,
                  std::mt19937_64& random) {
  const auto& call = problem.as<RowsProblem>();
  const auto experts = static_cast<std::size_t>(call.experts);
  const bool dropless = call.rows == call.choices();
  const double most =
      dropless ? 0x1p30 : static_cast<double>(call.rows / std::max<std::int64_t>(call.experts, 1));
  std::vector<double> ids, slots, counts(experts, 0), starts{0};
  for (std::int64_t token = 0; token < call.tokens; ++token) {
    const std::size_t first = random() % experts;
    for (std::size_t r = 0; r < static_cast<std::size_t>(call.top_k); ++r) {
      const std::size_t e = (first + r) % experts;
      ids.push_back(static_cast<double>(e));
      slots.push_back(counts[e] < most ? counts[e] : -1);
      counts[e] += 1;
    }
  }
  for (const double count : counts) starts.push_back(starts.back() + (dropless ? count : most));
  const double numbers[] = {
      -1, -2, 1e9, 2147483647.0, -2147483648.0, static_cast<double>(call.experts)};
  for (std::size_t n = 0; shape.data == "hostile" && n < ids.size(); ++n) {
    if (n % 5 == 1) ids[n] = numbers[random() % 6];
    if (n % 5 == 3) slots[n] = numbers[random() % 5];
    if (n % 5 == 4) slots[n] = static_cast<double>(random() % 3);  // one that others may have
  }
  if (shape.data == "hostile") starts[2] = 1e9;
  tensors[kExpertIds].write(ids);
  tensors[kExpertSlots].write(slots);
  tensors[kStarts].write(starts);
}

void fill(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  std::mt19937_64 random(shape.seed * 1000003 + 29);
  fill_choices(problem, shape, tensors, random);
  for (const std::size_t slot : {kFrom, kChoiceWeights, kTo}) {
    if (!problem.has(slot) || !is_read(problem.operation->operands[slot].role)) continue;
    std::vector<double> values =
        normal_numbers(static_cast<std::size_t>(problem.spec(slot).elements()), random);
    if (slot == kChoiceWeights) {
      for (std::size_t n = 0; n < values.size(); n += 6) values[n] = 0;
    }
    kernel::write_repeated(tensors[slot], values);
  }
}

void add(std::vector<Expectation>& to, const Problem& problem, std::size_t slot, BoundedRows from) {
  if (!problem.has(slot) || from.values.empty()) return;
  const DType dtype = problem.spec(slot).dtype;
  for (std::size_t i = 0; i < from.values.size(); ++i) {
    if (from.bounds[i] == 0) continue;  // copied
    from.bounds[i] +=
        storage_unit(dtype) * (std::fabs(from.values[i]) + from.bounds[i]) + smallest_number(dtype);
  }
  to.push_back({.slot = slot, .values = std::move(from.values), .bounds = std::move(from.bounds)});
}

}  // namespace

MovedRows moved_rows(const Problem& problem, std::span<const HostTensor> tensors) {
  const auto& call = problem.as<RowsProblem>();
  const std::vector<std::int64_t> places = choice_rows(problem, tensors).rows;
  const std::vector<double> from = tensors[kFrom].read();
  std::vector<double> weights;
  if (problem.has(kChoiceWeights)) weights = tensors[kChoiceWeights].read();
  if (call.moves == Moves::kDispatch) return {.rows = spread(call, places, from, weights)};
  if (call.moves == Moves::kCombine) return {.rows = gather(call, places, from, weights)};
  const std::vector<double> gradient = tensors[kTo].read();
  MovedRows result{.rows = spread(call, places, gradient, weights)};
  const auto dim = static_cast<std::size_t>(call.dim);
  for (std::size_t n = 0; n < places.size(); ++n) {
    double value = 0, size = 0;
    for (std::size_t i = 0; places[n] >= 0 && i < dim; ++i) {
      const double term = gradient[n / static_cast<std::size_t>(call.top_k) * dim + i] *
                          from[static_cast<std::size_t>(places[n]) * dim + i];
      value += term;
      size += std::fabs(term);
    }
    result.grad_weights.values.push_back(value);
    result.grad_weights.bounds.push_back(kUnit * static_cast<double>(dim + 2) * size);
  }
  return result;
}

Workload rows_workload(Moves moves) {
  Workload workload;
  workload.cases = [moves](const StorageTypes& types) { return cases(moves, types); };
  workload.benchmarks = [moves](const StorageTypes& types) {
    return std::vector<Case>{make(moves, types,
                                  {"t4096_k6_e64_d4096", "a batch of a small mixture", 4096, 6, 64,
                                   0, 4096, moves != Moves::kDispatch})};
  };
  workload.fill = fill;
  workload.expect = [](const Problem& problem, std::span<HostTensor> tensors, const Arithmetic&,
                       double /*max_flops*/) {
    MovedRows result = moved_rows(problem, tensors);
    const bool backward = problem.as<RowsProblem>().moves == Moves::kCombineBackward;
    std::vector<Expectation> expected;
    add(expected, problem, backward ? kGradRows : kTo, std::move(result.rows));
    add(expected, problem, kGradChoiceWeights, std::move(result.grad_weights));
    return expected;
  };
  return workload;
}

}  // namespace tessera::operations::moe
