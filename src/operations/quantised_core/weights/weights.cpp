// SPDX-License-Identifier: Apache-2.0
// Weights as floats in scratch, then a product of any way of matmul or of grouped_matmul.
#include <algorithm>
#include <string>
#include <utility>

#include "operations/common/launch.hpp"
#include "operations/quantised_core/problem.hpp"

namespace tessera::operations::quantised {
namespace {

// [rows, columns] of an operand whose rows are at equal distances.
Place matrix(const Problem& problem, std::size_t slot) {
  const TensorSpec& spec = problem.spec(slot);
  const std::int64_t rows = problem.as<QuantisedProblem>().m;
  return {
      slot,
      {.dtype = spec.dtype,
       .shape = {rows, spec.shape.back()},
       .strides = {rows == 1 ? std::max<std::int64_t>(spec.shape.back(), 1) : row_step(spec), 1},
       .offset = spec.offset}};
}

std::int64_t weights_of(const QuantisedProblem& call) { return call.matrices * call.n * call.k; }

bool has_codes_of_input(const Problem& problem, bool backward) {
  return !backward && problem.has(kInputScale);
}

// input weight^T, or grad_output weight, of all rows or of each group of them.
std::vector<Step> steps(const Problem& problem, bool backward) {
  const auto& call = problem.as<QuantisedProblem>();
  std::vector<Step> steps{LaunchStep{.pass = "weights"}};
  Place rows = backward || !problem.has(kInputScale)
                   ? matrix(problem, kInput)
                   : Place{kScratch, TensorSpec::contiguous(DType::kF32, {call.m, call.k})};
  if (has_codes_of_input(problem, backward)) {
    steps.emplace_back(LaunchStep{.pass = "input"});
    rows.spec.offset = weights_of(call);
  }
  const Place output = matrix(problem, backward ? std::size_t{kGradInput} : std::size_t{kOutput});
  const std::string dtype(to_string(output.spec.dtype));
  CallStep product{.operation = call.is_grouped ? "grouped_matmul" : "matmul",
                   .operands = {{"output", output}},
                   .options = {{"output_dtype", dtype}}};
  Shape weights{call.n, call.k};
  if (call.is_grouped) {
    weights.insert(weights.begin(), call.matrices);
    product.operands.emplace_back("group_sizes", Place{kSizes, problem.spec(kSizes)});
    product.options["group_offset"] = call.first;
  }
  product.options[call.is_grouped ? "transpose_rhs" : "transpose_b"] = !backward;
  product.operands.emplace_back(call.is_grouped ? "lhs" : "a", rows);
  product.operands.emplace_back(call.is_grouped ? "rhs" : "b",
                                Place{kScratch, TensorSpec::contiguous(DType::kF32, weights)});
  steps.emplace_back(std::move(product));
  return steps;
}

Pass expand_pass(const std::string& name, std::vector<std::size_t> bindings) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "quantised/weights/expand.cl", .entry = "quantised_expand"};
  pass.vulkan = {.file = "quantised/weights/expand.comp", .entry = "main"};
  pass.bindings = std::move(bindings);
  pass.axes = storage_axes;
  return pass;
}

Dim3 groups_of(std::int64_t rows, std::int64_t k, const Config& config) {
  constexpr std::int64_t kMostGroups = 16384;
  const std::int64_t units = rows * ((k + QUANT_CHUNK - 1) / QUANT_CHUNK);
  const std::int64_t items = config.group().x;
  return Dim3{static_cast<std::uint32_t>(std::min((units + items - 1) / items, kMostGroups))};
}

Pass weights_pass() {
  Pass pass = expand_pass("weights", {kWeight, kScale, kZero, kScratch});
  pass.groups = [](const Problem& problem, const Config& config) {
    const auto& call = problem.as<QuantisedProblem>();
    return groups_of(call.matrices * call.n, call.k, config);
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(weight_arguments(problem));
  };
  return pass;
}

// Codes of input, which are rows of bytes as weights are.
Pass input_pass() {
  Pass pass = expand_pass("input", {kInput, kInputScale, kNoOperand, kScratch});
  pass.groups = [](const Problem& problem, const Config& config) {
    const auto& call = problem.as<QuantisedProblem>();
    return groups_of(call.m, call.k, config);
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(input_arguments(problem));
  };
  return pass;
}

Refusal rejects(const Problem& problem, bool backward, const DeviceProfile& profile) {
  if (Refusal no = rejects_long_operands(problem, profile, {})) return no;
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  std::vector<std::size_t> slots{kInput, kWeight, kScale, kZero};
  if (backward) {
    slots.push_back(kGradInput);
  } else {
    slots.insert(slots.end(), {kInputScale, kOutput});
  }
  if (Refusal no = rejects_rows_apart(problem, slots)) return no;
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const auto& call = problem.as<QuantisedProblem>();
  // Of no terms or no rows nothing is left to overflow.
  std::int64_t floats = 1;
  for (const std::int64_t extent : {call.k, call.matrices * call.n + call.m}) {
    if (extent > 0 && floats >= kMost / extent) return "counts weights and input to 2^31";
    floats *= std::max<std::int64_t>(extent, 1);
  }
  return std::nullopt;
}

std::vector<Config> space(const Problem&, const DeviceProfile&) { return {{{"WG_X", 64}}}; }

}  // namespace

Way weights_way(bool backward) {
  Variant variant;
  variant.name = "weights";
  variant.idea = "weights as floats in scratch, then a product of all rows, or of groups of them";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  if (!backward) variant.dtypes.push_back(DType::kI8);
  variant.passes = list_of(weights_pass());
  if (!backward) variant.passes.push_back(input_pass());
  variant.steps = [backward](const Problem& problem, const Config&) {
    return steps(problem, backward);
  };
  variant.scratch_bytes = [backward](const Problem& problem, const Config&) {
    const auto& call = problem.as<QuantisedProblem>();
    const std::int64_t input = has_codes_of_input(problem, backward) ? call.m * call.k : 0;
    return 4 * static_cast<std::uint64_t>(std::max<std::int64_t>(weights_of(call) + input, 4));
  };
  variant.space = space;
  variant.rejects = [backward](const Problem& problem, const Config&,
                               const DeviceProfile& profile) {
    return rejects(problem, backward, profile);
  };
  return {
      .variant = std::move(variant),
      .rule = {.why = backward ? "runs everywhere" : "rows in groups have matrices of their own",
               .when = [backward](const Problem& problem, const DeviceProfile&) {
                 return backward || problem.as<QuantisedProblem>().is_grouped;
               }}};
}

}  // namespace tessera::operations::quantised
