// SPDX-License-Identifier: Apache-2.0
// Output as codes: floats in scratch by any way of the same operation, then rows of them by
// quantise.
#include <algorithm>
#include <string>
#include <utility>

#include "operations/matmul_core/problem.hpp"

namespace tessera::operations::matmul {
namespace {

TensorSpec floats_of(const Problem& problem) {
  const std::size_t output = problem.as<MatmulProblem>().slots.output;
  return TensorSpec::contiguous(DType::kF32, problem.spec(output).shape);
}

std::vector<Step> steps(const Problem& problem, const Config& /*config*/) {
  const MatmulSlots& slots = problem.as<MatmulProblem>().slots;
  const auto place = [&](std::size_t slot) { return Place{slot, problem.spec(slot)}; };
  const Place floats{kScratch, floats_of(problem)};
  CallStep product{.operation = problem.operation->name, .options = problem.options};
  product.options["quantise"] = std::string("none");
  product.options["output_dtype"] = std::string("f32");
  for (std::size_t slot = 0; slot < problem.operands.size(); ++slot) {
    const Operand& operand = problem.operation->operands[slot];
    if (operand.role == Role::kInput && problem.has(slot))
      product.operands.emplace_back(operand.name, place(slot));
  }
  product.operands.emplace_back("output", floats);
  return {std::move(product), CallStep{.operation = "quantise",
                                       .operands = {{"input", floats},
                                                    {"codes", place(slots.output)},
                                                    {"scale", place(slots.scale)}},
                                       .options = {{"dtype", problem.option("quantise")}}}};
}

bool writes_codes(const Problem& problem) { return problem.as<MatmulProblem>().quantised; }

}  // namespace

Way codes_way(const MatmulSlots& /*slots*/) {
  Variant variant;
  variant.name = "codes";
  variant.idea = "floats in scratch, then codes of their rows: two calls";
  variant.needs.backends = {Backend::kOpenCL, Backend::kVulkan};
  variant.steps = steps;
  variant.space = [](const Problem&, const DeviceProfile&) { return std::vector<Config>{{}}; };
  variant.rejects = [](const Problem& problem, const Config&, const DeviceProfile&) -> Refusal {
    if (!writes_codes(problem)) return "writes codes, and output is not quantised";
    return std::nullopt;
  };
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    constexpr std::uint64_t kLeast = 16;
    return std::max(4 * static_cast<std::uint64_t>(floats_of(problem).elements()), kLeast);
  };
  return {.variant = std::move(variant),
          .rule = {.why = "output is quantised",
                   .when = [](const Problem& problem,
                              const DeviceProfile&) { return writes_codes(problem); },
                   .config = [](const Problem&, const DeviceProfile&) { return Config{}; }}};
}

}  // namespace tessera::operations::matmul
