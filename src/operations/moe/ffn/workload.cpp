// SPDX-License-Identifier: Apache-2.0
// The reference of moe_ffn and its gradients, and made-up calls of them.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "base/normal_numbers.hpp"
#include "kernel/repeated.hpp"
#include "operations/common/numerics.hpp"
#include "operations/moe/ffn/oracle.hpp"

namespace tessera::operations::moe {
namespace {

struct FfnCase {
  const char* name;
  const char* why;
  std::int64_t tokens, experts, top_k, hidden, inner;
  std::int64_t capacity = 0;  // 0: dropless
  bool transposed = false, bias = false;
  const char* activation = "silu";
  bool gated = true;
};

std::vector<FfnCase> ffn_cases() {
  return {
      {"dropless", "sizes that divide no tile", 21, 5, 2, 29, 18},
      {"vectors", "whole vectors", 24, 4, 2, 32, 16},
      {"capacity", "experts with places that no token has, dropped choices", 19, 4, 2, 20, 12, 6},
      {"transposed", "matrices as weights lie", 15, 3, 1, 24, 20, 0, true},
      {"bias", "choices by a bias", 17, 6, 3, 16, 12, 0, false, true},
      {"one", "one token, more experts than rows", 1, 8, 2, 16, 8},
      {"none", "no tokens", 0, 4, 2, 16, 8},
      {"geglu", "another gate", 9, 3, 2, 16, 12, 0, false, false, "gelu"},
      {"tanh_up", "no gate", 9, 3, 2, 14, 10, 0, false, false, "gelu_tanh", false},
      {"relu_up", "no gate, matrices as weights lie", 9, 3, 2, 16, 12, 0, true, false, "relu",
       false},
      {"bilinear", "a gate that is not activated", 5, 3, 2, 16, 12, 0, false, false, "identity"}};
}

// At the tiles of a gated product, of half as many columns of the gate as of sums.
std::vector<FfnCase> gated_edges(std::int64_t columns) {
  return {{"edge-8", "the last tile of the gate not whole, tiles that end in other groups", 150, 3,
           2, 72, columns - 8},
          {"edge", "whole tiles, one expert", 128, 1, 1, 64, columns},
          {"edge+8", "the second tile of the gate begins; turns of the ring", 90, 2, 1, 584,
           columns + 8, 0, true, false, "gelu"},
          {"edge_wide", "bands of tiles, places that no token has", 300, 2, 2, 40, 3 * columns + 48,
           2100, false, false, "gelu_tanh"},
          {"edge_rows", "experts of a row or none", 6, 24, 2, 200, columns + 40, 0, true, false,
           "relu"},
          {"edge_bilinear", "a gate that is not activated", 70, 4, 2, 24, 2 * columns, 0, false,
           false, "identity"}};
}

Case make_ffn(const FfnSlots& slots, DType dtype, const FfnCase& from) {
  Case result{.name = from.name, .why = from.why};
  const std::int64_t rows =
      from.capacity > 0 ? from.capacity * from.experts : from.tokens * from.top_k;
  result.operands.resize((slots.backward() ? slots.grad_down : slots.z) + 1);
  const auto add = [&](std::size_t slot, DType type, Shape shape) {
    result.operands[slot] = TensorSpec::contiguous(type, std::move(shape));
  };
  const Shape choices{from.tokens, from.top_k};
  const std::int64_t columns = (from.gated ? 2 : 1) * from.inner;
  const Shape gate_up = from.transposed ? Shape{from.experts, columns, from.hidden}
                                        : Shape{from.experts, from.hidden, columns};
  const Shape down = from.transposed ? Shape{from.experts, from.hidden, from.inner}
                                     : Shape{from.experts, from.inner, from.hidden};
  add(slots.input, dtype, {from.tokens, from.hidden});
  add(slots.gate_up, dtype, gate_up);
  add(slots.down, dtype, down);
  if (from.transposed) result.options["transposed"] = true;
  if (!from.gated) result.options["gated"] = false;
  if (std::string(from.activation) != "silu")
    result.options["activation"] = std::string(from.activation);
  if (!slots.backward()) {
    add(slots.logits, dtype, {from.tokens, from.experts});
    if (from.bias) add(slots.bias, DType::kF32, {from.experts});
    add(slots.balance, DType::kF32, {1});
    add(slots.z, DType::kF32, {1});
    result.options["top_k"] = from.top_k;
    if (from.capacity > 0) result.options["capacity"] = from.capacity;
    return result;
  }
  for (const std::size_t slot : {slots.ids, slots.slots}) add(slot, DType::kI32, choices);
  for (const std::size_t slot : {slots.weights, slots.grad_weights})
    add(slot, DType::kF32, choices);
  add(slots.offsets, DType::kI32, {from.experts + 1});
  for (const std::size_t slot : {slots.output, slots.grad_input})
    add(slot, dtype, {from.tokens, from.hidden});
  add(slots.grad_gate_up, dtype, gate_up);
  add(slots.grad_down, dtype, down);
  result.options["rows"] = rows;
  return result;
}

// Choices of different experts for each token, with places in order.
void fill_routes(const FfnProblem& call, std::span<HostTensor> tensors, std::mt19937_64& random) {
  const auto experts = static_cast<std::size_t>(call.experts);
  const bool dropless = call.rows == call.tokens * call.top_k;
  const double most = dropless ? 0x1p30 : static_cast<double>(call.rows / call.experts);
  std::vector<double> ids, slots, weights, counts(experts, 0), starts{0};
  for (std::int64_t token = 0; token < call.tokens; ++token) {
    const std::size_t first = random() % experts;
    for (std::size_t r = 0; r < static_cast<std::size_t>(call.top_k); ++r) {
      const std::size_t e = (first + r) % experts;
      ids.push_back(static_cast<double>(e));
      slots.push_back(counts[e] < most ? counts[e] : -1);
      counts[e] += 1;
      weights.push_back(slots.back() < 0 ? 0 : static_cast<double>(random() % 1000) / 999);
    }
  }
  for (const double count : counts) starts.push_back(starts.back() + (dropless ? count : most));
  tensors[call.slots.ids].write(ids);
  tensors[call.slots.slots].write(slots);
  tensors[call.slots.weights].write(weights);
  tensors[call.slots.offsets].write(starts);
}

void fill_ffn(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const auto& call = problem.as<FfnProblem>();
  const FfnSlots& slots = call.slots;
  std::mt19937_64 random(shape.seed * 1000003 + 31);
  const auto fill = [&](std::size_t slot, double size) {
    if (slot == kNoOperand || !problem.has(slot)) return;
    std::vector<double> values =
        normal_numbers(static_cast<std::size_t>(problem.spec(slot).elements()), random);
    for (double& value : values) value *= size;
    kernel::write_repeated(tensors[slot], values);
  };
  fill(slots.input, 1);
  fill(slots.gate_up, 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(call.hidden, 1))));
  fill(slots.down, 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(call.inner, 1))));
  fill(slots.logits, 2);
  fill(slots.bias, 0.1);
  if (!slots.backward()) return;
  fill(slots.output, 1);
  fill_routes(call, tensors, random);
}

double flops_of_choice(const FfnProblem& call) {
  return 2.0 * static_cast<double>(call.hidden) *
         static_cast<double>(call.inner + ffn_columns(call));
}

// The two matrices of each gradient that is asked for, and forward again.
double ffn_flops(const Problem& problem) {
  const auto& call = problem.as<FfnProblem>();
  const double choices = static_cast<double>(call.tokens * call.top_k);
  return (call.slots.backward() ? 3 : 1) * choices * flops_of_choice(call);
}

void add_exact(std::vector<Expectation>& to, std::size_t slot, const std::vector<double>& values) {
  if (values.empty()) return;
  to.push_back({.slot = slot,
                .elements = {},
                .values = values,
                .bounds = std::vector<double>(values.size(), 0)});
}

void add_bounded(std::vector<Expectation>& to, const Problem& problem, std::size_t slot,
                 std::span<const Bounded> from, std::vector<std::size_t> elements = {}) {
  if (!problem.has(slot) || from.empty()) return;
  const DType dtype = problem.spec(slot).dtype;
  Expectation expected{.slot = slot, .elements = std::move(elements)};
  for (const auto& [value, bound] : from) {
    expected.values.push_back(value);
    expected.bounds.push_back(bound + storage_unit(dtype) * (std::fabs(value) + bound) +
                              smallest_number(dtype));
  }
  to.push_back(std::move(expected));
}

using OfToken = std::vector<Bounded> (FfnOracle::*)(std::int64_t) const;

// Rows of tokens, at equal distances where all of them would take too long.
void add_tokens(std::vector<Expectation>& to, const Problem& problem, std::size_t slot,
                const FfnOracle& oracle, OfToken of, double max_flops) {
  const auto& call = problem.as<FfnProblem>();
  if (!problem.has(slot) || call.tokens == 0) return;
  const double share = max_flops / std::max(ffn_flops(problem), 1.0);
  const auto all = static_cast<double>(call.tokens);
  const auto count = static_cast<std::int64_t>(std::clamp(share * all, std::min(2.0, all), all));
  std::vector<Bounded> values;
  std::vector<std::size_t> elements;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t token = count == 1 ? 0 : i * (call.tokens - 1) / (count - 1);
    const std::vector<Bounded> row = (oracle.*of)(token);
    for (std::size_t column = 0; column < row.size(); ++column)
      elements.push_back(static_cast<std::size_t>(token) * row.size() + column);
    values.insert(values.end(), row.begin(), row.end());
  }
  if (count == call.tokens) elements.clear();
  add_bounded(to, problem, slot, values, std::move(elements));
}

std::vector<Expectation> expect_ffn(const Problem& problem, std::span<HostTensor> tensors,
                                    const Arithmetic&, double max_flops) {
  const FfnSlots& slots = problem.as<FfnProblem>().slots;
  const FfnOracle oracle(problem, tensors);
  std::vector<Expectation> expected;
  if (slots.backward()) {
    add_tokens(expected, problem, slots.grad_input, oracle, &FfnOracle::grad_input, max_flops);
    add_tokens(expected, problem, slots.grad_weights, oracle, &FfnOracle::grad_weights, max_flops);
    if (problem.has(slots.grad_gate_up))
      add_bounded(expected, problem, slots.grad_gate_up, oracle.grad_gate_up());
    if (problem.has(slots.grad_down))
      add_bounded(expected, problem, slots.grad_down, oracle.grad_down());
    return expected;
  }
  const Routing& routing = oracle.routing();
  add_tokens(expected, problem, slots.output, oracle, &FfnOracle::output, max_flops);
  add_exact(expected, slots.ids, routing.ids);
  add_exact(expected, slots.slots, routing.slots);
  add_exact(expected, slots.counts, routing.counts);
  add_exact(expected, slots.offsets, routing.offsets);
  add_bounded(expected, problem, slots.weights, routing.weights);
  add_bounded(expected, problem, slots.balance, std::span(&routing.balance, 1));
  add_bounded(expected, problem, slots.z, std::span(&routing.z, 1));
  return expected;
}

}  // namespace

// Every element of what is expected.
void reference_ffn(const Problem& problem, std::span<HostTensor> tensors) {
  constexpr double kAll = 1e300;
  for (const Expectation& expected : expect_ffn(problem, tensors, {}, kAll))
    tensors[expected.slot].write(expected.values);
}

Workload ffn_workload(const FfnSlots& slots) {
  Workload workload;
  workload.cases = [slots](DType dtype) {
    std::vector<Case> cases;
    for (const FfnCase& from : ffn_cases()) cases.push_back(make_ffn(slots, dtype, from));
    return cases;
  };
  workload.edge_cases = [slots](DType dtype, const Config& config) {
    std::vector<Case> cases;
    const std::int64_t columns = config.get("BLOCK_N", 0) / 2;
    if (columns == 0) return cases;
    for (const FfnCase& from : gated_edges(columns)) cases.push_back(make_ffn(slots, dtype, from));
    return cases;
  };
  workload.benchmarks = [slots](DType dtype) {
    std::vector<Case> cases{
        make_ffn(slots, dtype, {"small_8", "for processors", 512, 8, 2, 512, 384})};
    // Of gradients of matrices every element is checked: this one would take too long.
    if (!slots.backward())
      cases.push_back(
          make_ffn(slots, dtype, {"t16384_e64_k6", "a mixture", 16384, 64, 6, 4096, 1536}));
    return cases;
  };
  workload.fill = fill_ffn;
  workload.expect = expect_ffn;
  workload.flops = ffn_flops;
  return workload;
}

}  // namespace tessera::operations::moe
