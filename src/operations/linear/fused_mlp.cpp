// SPDX-License-Identifier: Apache-2.0
// The record of a perceptron of two layers: two calls of matmul, with the hidden layer in scratch.
#include "operations/linear/fused_mlp.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/tensors/checked.hpp"
#include "kernel/steps.hpp"
#include "operations/common/numerics.hpp"
#include "operations/common/validate.hpp"
#include "operations/matmul_core/oracle.hpp"
#include "operations/matmul_core/records.hpp"

namespace tessera::operations::matmul {
namespace {

enum Slot : std::size_t { kInput, kW1, kB1, kW2, kB2, kOutput };

struct MlpProblem {
  std::int64_t rows = 1, in = 0, hidden = 0, out = 0;
  Shape hidden_shape{};
};

bool is_paired(const Problem& problem) {
  return std::get<std::string>(problem.option("activation")).ends_with("glu");
}

void validate(Problem& problem) {
  MlpProblem call;
  const Shape& input = problem.spec(kInput).shape;
  require(problem, input.size() >= 2, operand_text(problem, kInput) + " must be a matrix");
  for (const Slot slot : {kW1, kW2})
    require(problem, problem.spec(slot).shape.size() == 2,
            operand_text(problem, slot) + " must be a matrix");
  const Shape &w1 = problem.spec(kW1).shape, &w2 = problem.spec(kW2).shape;
  call.in = input.back();
  call.hidden = w2[0];
  call.out = w2[1];
  for (std::size_t i = 0; i + 1 < input.size(); ++i)
    call.rows = saturating_mul(call.rows, input[i]);
  const std::int64_t columns = saturating_mul(call.hidden, is_paired(problem) ? 2 : 1);
  require(problem, w1[0] == call.in && w1[1] == columns,
          operand_text(problem, kW1) + " is not [" + std::to_string(call.in) + ", " +
              std::to_string(columns) + "] as " + operand_text(problem, kInput) + " and " +
              operand_text(problem, kW2) + " want it");
  if (problem.has(kB1)) require_shape(problem, kB1, {columns});
  if (problem.has(kB2)) require_shape(problem, kB2, {call.out});
  problem.dtype = problem.spec(kInput).dtype;
  call.hidden_shape = input;
  call.hidden_shape.back() = call.hidden;
  Shape output = input;
  output.back() = call.out;
  problem.infer_output(kOutput, problem.dtype, output);
  problem.key = "rows=" + bucket(call.rows) + ";in=" + bucket(call.in) +
                ";hidden=" + bucket(call.hidden) + ";out=" + bucket(call.out) +
                ";activation=" + std::get<std::string>(problem.option("activation"));
  problem.set_details(std::move(call));
}

TensorSpec hidden_spec(const Problem& problem) {
  return TensorSpec::contiguous(problem.dtype, problem.as<MlpProblem>().hidden_shape);
}

std::vector<Step> steps(const Problem& problem, const Config& /*config*/) {
  const auto place = [&](std::size_t slot) { return Place{slot, problem.spec(slot)}; };
  const Place hidden{kScratch, hidden_spec(problem)};
  CallStep first{.operation = "matmul",
                 .operands = {{"a", place(kInput)}, {"b", place(kW1)}, {"output", hidden}},
                 .options = {{"activation", problem.option("activation")}}};
  CallStep second{.operation = "matmul",
                  .operands = {{"a", hidden}, {"b", place(kW2)}, {"output", place(kOutput)}}};
  if (problem.has(kB1)) first.operands.emplace_back("bias", place(kB1));
  if (problem.has(kB2)) second.operands.emplace_back("bias", place(kB2));
  return {std::move(first), std::move(second)};
}

// The hidden layer as a call of matmul, and its operands.
struct Hidden {
  Problem problem{};
  std::vector<HostTensor> tensors{};
};

Hidden hidden_of(const Problem& problem, std::span<HostTensor> tensors) {
  const auto first = std::get<CallStep>(steps(problem, {}).front());
  Hidden hidden{.problem = kernel::problem_of(first, problem)};
  hidden.tensors.resize(hidden.problem.operands.size());
  for (const auto& [name, place] : first.operands) {
    if (place.slot != kScratch)
      hidden.tensors[hidden.problem.operation->slot(name)] = tensors[place.slot];
  }
  return hidden;
}

// Row by row, of which each needs one of the hidden layer. `max_rows` of them, at equal distances.
Expectation expect_rows(const Problem& problem, std::span<HostTensor> tensors,
                        std::int64_t max_rows) {
  const auto& call = problem.as<MlpProblem>();
  const Hidden hidden = hidden_of(problem, tensors);
  const MatmulOracle oracle(hidden.problem, hidden.tensors, false);
  const std::vector<double> w2 = tensors[kW2].read();
  const std::vector<double> b2 = problem.has(kB2) ? tensors[kB2].read() : std::vector<double>{};
  const double rounding = storage_unit(problem.dtype);
  const auto columns = static_cast<std::size_t>(call.out);
  Expectation expected{.slot = kOutput};
  const std::int64_t count = std::min(max_rows, call.rows);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = count <= 1 ? 0 : i * (call.rows - 1) / (count - 1);
    const Bounded layer = oracle.output_row(row);
    std::vector<double> values(columns), bounds(columns), magnitude(columns);
    for (std::size_t k = 0; k < layer.values.size(); ++k) {
      const double value = layer.values[k];
      const double error = layer.bounds[k] + rounding * (std::fabs(value) + layer.bounds[k]) +
                           smallest_number(problem.dtype);
      for (std::size_t n = 0; n < columns; ++n) {
        const double weight = w2[k * columns + n];
        values[n] += value * weight;
        magnitude[n] += std::fabs(value * weight);
        bounds[n] += error * std::fabs(weight);
      }
    }
    for (std::size_t n = 0; n < columns; ++n) {
      values[n] += b2.empty() ? 0 : b2[n];
      bounds[n] += sum_error(static_cast<double>(call.hidden)) * (magnitude[n] + bounds[n]) +
                   kUnitF32 * std::fabs(values[n]);
      bounds[n] += rounding * (std::fabs(values[n]) + bounds[n]) + smallest_number(problem.dtype);
      if (count < call.rows)
        expected.elements.push_back(static_cast<std::size_t>(row) * columns + n);
    }
    expected.values.insert(expected.values.end(), values.begin(), values.end());
    expected.bounds.insert(expected.bounds.end(), bounds.begin(), bounds.end());
  }
  return expected;
}

double flops(const Problem& problem) {
  const auto& call = problem.as<MlpProblem>();
  const double columns = static_cast<double>(call.hidden) * (is_paired(problem) ? 2 : 1);
  return 2.0 * static_cast<double>(call.rows) *
         (static_cast<double>(call.in) * columns +
          static_cast<double>(call.hidden) * static_cast<double>(call.out));
}

Case make_case(DType dtype, const char* name, const char* why, const Shape& input,
               std::int64_t hidden, std::int64_t out, const char* activation, bool biases) {
  const bool paired = std::string(activation).ends_with("glu");
  const std::int64_t columns = paired ? 2 * hidden : hidden;
  const auto spec = [&](Shape shape) { return TensorSpec::contiguous(dtype, std::move(shape)); };
  Case result{
      .name = name,
      .why = why,
      .operands = {spec(input), spec({input.back(), columns}), std::nullopt, spec({hidden, out})},
      .options = {{"activation", std::string(activation)}}};
  if (!biases) return result;
  result.operands[kB1] = spec({columns});
  result.operands.emplace_back(spec({out}));
  return result;
}

std::vector<Case> cases(DType dtype) {
  return {make_case(dtype, "mlp", "sizes that divide no tile", {37, 29}, 53, 31, "gelu_tanh", true),
          make_case(dtype, "mlp_pairs", "a gated layer without biases, leading axes", {2, 3, 24},
                    40, 24, "swiglu", false),
          make_case(dtype, "mlp_no_terms", "an empty hidden layer leaves the bias", {5, 6}, 0, 7,
                    "relu", true)};
}

std::vector<Case> benchmarks(DType dtype) {
  return {make_case(dtype, "mlp_1024", "a small layer", {512, 1024}, 4096, 1024, "gelu_tanh", true),
          make_case(dtype, "mlp_4096", "a layer of a large model", {4096, 4096}, 14336, 4096,
                    "swiglu", false)};
}

}  // namespace

Operation fused_mlp_record() {
  Operation operation;
  operation.name = "fused_mlp";
  operation.summary = "a perceptron of two layers";
  operation.formula = "output = act(input w1 + b1) w2 + b2; the hidden layer has input's dtype";
  operation.operands = {
      operand("input", Role::kInput, false, "[..., in]", ""),
      operand("w1", Role::kInput, false, "[in, hidden]", "2 hidden columns where they are paired"),
      operand("b1", Role::kInput, true, "[hidden]", "2 hidden elements where they are paired"),
      operand("w2", Role::kInput, false, "[hidden, out]", ""),
      operand("b2", Role::kInput, true, "[out]", ""),
      operand("output", Role::kOutput, false, "[..., out]", "in the dtype of input")};
  operation.options = {activation_option("gelu_tanh")};
  operation.validate = validate;
  operation.reference = [](const Problem& problem, std::span<HostTensor> tensors) {
    tensors[kOutput].write(expect_rows(problem, tensors, problem.as<MlpProblem>().rows).values);
  };
  Variant variant;
  variant.name = "layers";
  variant.idea = "two calls of matmul, the hidden layer in scratch";
  variant.needs.backends = {Backend::kOpenCL, Backend::kVulkan};
  variant.steps = steps;
  variant.space = [](const Problem&, const DeviceProfile&) { return std::vector<Config>{{}}; };
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    return static_cast<std::uint64_t>(hidden_spec(problem).elements()) * size_of(problem.dtype);
  };
  add_ways(operation,
           list_of(Way{
               .variant = std::move(variant),
               .rule = {.why = "two products",
                        .when = [](const Problem&, const DeviceProfile&) { return true; },
                        .config = [](const Problem&, const DeviceProfile&) { return Config{}; }}}));
  operation.workload = {
      .cases = cases,
      .edge_cases = {},
      .benchmarks = benchmarks,
      .expect =
          [](const Problem& problem, std::span<HostTensor> tensors, const Arithmetic&,
             double max_flops) {
            const double share = max_flops / std::max(flops(problem), 1.0);
            const auto rows = static_cast<double>(problem.as<MlpProblem>().rows);
            constexpr double kLeast = 8;
            return std::vector{expect_rows(
                problem, tensors,
                static_cast<std::int64_t>(std::clamp(share * rows, std::min(kLeast, rows), rows)))};
          },
      .flops = flops};
  return operation;
}

}  // namespace tessera::operations::matmul
