// SPDX-License-Identifier: Apache-2.0
// The gradient of the input: weights as floats in scratch, then a product of any way of matmul.
#include <algorithm>
#include <string>
#include <utility>

#include "kernel/tunable_list.hpp"
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

std::vector<Step> steps(const Problem& problem, const Config&) {
  const auto& call = problem.as<QuantisedProblem>();
  const Place weights{kScratch, TensorSpec::contiguous(DType::kF32, {call.n, call.k})};
  return {LaunchStep{.pass = "weights"},
          CallStep{.operation = "matmul",
                   .operands = {{"a", matrix(problem, kGradOutput)},
                                {"b", weights},
                                {"output", matrix(problem, kGradInput)}}}};
}

Pass expand_pass() {
  Pass pass;
  pass.name = "weights";
  pass.opencl = {.file = "quantised/weights/expand.cl", .entry = "quantised_expand"};
  pass.vulkan = {.file = "quantised/weights/expand.comp", .entry = "main"};
  pass.bindings = {kWeight, kScale, kZero, kScratch};
  pass.axes = storage_axes;
  pass.constants = [](const Problem& problem, const Config&) {
    return std::vector<Define>{{"FORMAT", format_of(problem)}};
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    constexpr std::int64_t kMostGroups = 16384;
    const auto& call = problem.as<QuantisedProblem>();
    const std::int64_t units = call.n * ((call.k + QUANT_CHUNK - 1) / QUANT_CHUNK);
    const std::int64_t items = config.group().x;
    return Dim3{static_cast<std::uint32_t>(std::min((units + items - 1) / items, kMostGroups))};
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(weight_arguments(problem));
  };
  return pass;
}

Refusal rejects(const Problem& problem, const Config&, const DeviceProfile& profile) {
  if (Refusal no = rejects_long_operands(problem, profile, {})) return no;
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  constexpr std::size_t kSlots[] = {kGradOutput, kWeight, kScale, kZero, kGradInput};
  if (Refusal no = rejects_rows_apart(problem, kSlots)) return no;
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const auto& call = problem.as<QuantisedProblem>();
  if (call.k > 0 && call.n >= kMost / call.k) return "counts weights to 2^31";
  return std::nullopt;
}

std::vector<Config> space(const Problem&, const DeviceProfile&) { return {{{"WG_X", 64}}}; }

}  // namespace

Way weights_way() {
  Variant variant;
  variant.name = "weights";
  variant.idea = "weights as floats in scratch, then matmul";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/quantised_core/weights/weights.def"
  };
  variant.passes = {expand_pass()};
  variant.steps = steps;
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    const auto& call = problem.as<QuantisedProblem>();
    return 4 * static_cast<std::uint64_t>(std::max<std::int64_t>(call.n * call.k, 4));
  };
  variant.space = space;
  variant.rejects = rejects;
  return {.variant = std::move(variant),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; },
                   .config =
                       [](const Problem& problem, const DeviceProfile& profile) {
                         return space(problem, profile).front();
                       }}};
}

}  // namespace tessera::operations::quantised
