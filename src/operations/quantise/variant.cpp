// SPDX-License-Identifier: Apache-2.0
// Blocks that share a scale, each by the lanes of a work-group: every device.
#include <algorithm>
#include <string>

#include "kernel/tunable_list.inc"
#include "operations/common/lanes.hpp"
#include "operations/common/launch.hpp"
#include "operations/quantise/args.h"
#include "operations/quantise/problem.hpp"

namespace tessera::operations::quantised {
namespace {

constexpr std::int64_t kMost = std::int64_t{1} << 31;

struct MatrixSteps {
  std::int64_t offset = 0, batch = 0, row = 0;
};

// Nothing where rows are not contiguous, or batches not at equal distances.
std::optional<MatrixSteps> steps_of(const TensorSpec& spec) {
  const std::size_t rank = spec.shape.size();
  if (spec.shape.back() > 1 && spec.strides.back() != 1) return std::nullopt;
  MatrixSteps steps{.offset = spec.offset, .row = rank > 1 ? spec.strides[rank - 2] : 0};
  std::int64_t extent = 1;
  for (std::size_t axis = rank - std::min<std::size_t>(rank, 2); axis-- > 0;) {
    if (spec.shape[axis] == 1) continue;
    if (extent == 1) {
      steps.batch = spec.strides[axis];
    } else if (spec.strides[axis] != steps.batch * extent) {
      return std::nullopt;
    }
    extent *= spec.shape[axis];
  }
  return steps;
}

abi::CodesMatrix matrix_of(const Problem& problem, std::size_t slot) {
  if (!problem.has(slot)) return {};
  const MatrixSteps steps = steps_of(problem.spec(slot)).value_or(MatrixSteps{});
  const auto narrow = [](std::int64_t value) { return static_cast<abi::u32>(value); };
  return {narrow(steps.offset), narrow(steps.batch), narrow(steps.row)};
}

}  // namespace

abi::CodesArgs codes_arguments(const Problem& problem) {
  const auto& call = problem.as<CodesProblem>();
  const CodesSlots& slots = call.slots;
  const auto narrow = [](std::int64_t value) { return static_cast<abi::u32>(value); };
  abi::CodesArgs args{.blocks = narrow(call.blocks()),
                      .talls = narrow(call.talls()),
                      .groups = narrow(call.groups()),
                      .rows = narrow(call.rows),
                      .columns = narrow(call.columns),
                      .group_rows = narrow(call.group_rows),
                      .group = narrow(call.group),
                      .features = 0,
                      .type = dtype_axis(call.codes),
                      .floats_type = dtype_axis(problem.dtype),
                      .largest = static_cast<float>(largest_code(call.codes)),
                      .floats = matrix_of(problem, slots.floats),
                      .codes = matrix_of(problem, slots.codes),
                      .scale = matrix_of(problem, slots.scale),
                      .zero = matrix_of(problem, slots.zero)};
  const auto fits = [](const abi::CodesMatrix& matrix, abi::u32 step) {
    return (matrix.offset | matrix.batch | matrix.row) % step == 0;
  };
  // Blocks of codes are taken by bytes.
  if (fits(args.floats, 4) &&
      (call.layout != Layout::kPlain || fits(args.codes, is_packed(call.codes) ? 8 : 4)))
    args.features |= CODES_ALIGNED;
  if (problem.has(slots.zero)) args.features |= CODES_ZEROS;
  if (call.is_dynamic) args.features |= CODES_DYNAMIC;
  if (call.layout == Layout::kQ4_0) args.features |= CODES_HALF_BYTES;
  if (call.group_rows == 1) args.features |= CODES_FLAT;
  return args;
}

std::vector<Define> codes_constants(const Problem& problem, const Config& config) {
  if (config.at("PER_CALL") == 0) return {{"TYPE", 0}, {"FLOATS_TYPE", 0}, {"FEATURES", 0}};
  const abi::CodesArgs args = codes_arguments(problem);
  return {{"TYPE", args.type}, {"FLOATS_TYPE", args.floats_type}, {"FEATURES", args.features}};
}

bool is_large(const Problem& problem) {
  const auto& call = problem.as<CodesProblem>();
  return call.blocks() * call.group_rows * call.group >= std::int64_t{1} << 18;
}

Refusal rejects_matrices(const Problem& problem, const DeviceProfile& profile) {
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  if (Refusal no = rejects_long_operands(problem, profile, {})) return no;
  const auto& call = problem.as<CodesProblem>();
  if (std::max({call.rows, call.columns, call.blocks()}) >= kMost ||
      call.group_rows * ((call.group + 7) / 8) >= kMost)
    return "counts elements to 2^31";
  for (std::size_t slot = 0; slot < problem.operands.size(); ++slot) {
    if (!problem.has(slot)) continue;
    const TensorSpec& spec = problem.spec(slot);
    const std::string text = problem.operation->operands[slot].name + " " + spec.to_string();
    const auto steps = steps_of(spec);
    if (!steps)
      return "takes contiguous rows, and batches at equal distances, and " + text + " has none";
    if (is_packed(spec.dtype) && slot == call.slots.codes &&
        (steps->offset | steps->batch | steps->row) % 2 != 0)
      return "takes rows that begin with a byte, and those of " + text + " do not";
  }
  return std::nullopt;
}

namespace {

std::vector<Config> codes_space(const Problem& problem, const DeviceProfile& profile) {
  constexpr LaneCut kCuts[] = {{256, 2, 32}, {256, 4, 32}, {128, 2, 64}, {256, 1, 32}};
  const auto& call = problem.as<CodesProblem>();
  std::vector<Config> configs =
      lane_space(call.blocks(), call.group_rows * call.group / 8, 256, kCuts, profile);
  // Processors that check a kernel build one program for all calls.
  const bool per_call = !is_cpu(profile) || is_large(problem);
  for (Config& config : configs) {
    config.set("PER_CALL", per_call ? 1U : 0U);
    config.set("SM80", has(profile.features, Feature::kMmaSync) ? 1U : 0U);
  }
  return configs;
}

Refusal rejects_codes(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = rejects_lanes(config)) return no;
  if (Refusal no = rejects_conversions(config, profile)) return no;
  if (problem.as<CodesProblem>().layout != Layout::kPlain)
    return "takes codes whose scales lie beside them";
  return rejects_matrices(problem, profile);
}

Way codes_way(const std::string& name, std::vector<std::size_t> bindings) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "quantised/codes/" + name + ".cl", .entry = "codes_" + name};
  pass.vulkan = {.file = "quantised/codes/" + name + ".comp", .entry = "main"};
  pass.bindings = std::move(bindings);
  pass.axes = storage_axes;
  pass.constants = codes_constants;
  pass.groups = [](const Problem& problem, const Config& config) {
    return lane_groups(problem.as<CodesProblem>().blocks(), config);
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(codes_arguments(problem));
  };
  Variant variant;
  variant.name = "blocks";
  variant.idea = "lanes for each block that shares a scale, eights of elements";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/quantise/codes.def"
      {.id = 31, .name = "GROUPS", .fallback = 1, .launch_only = true}};
  variant.passes = list_of(std::move(pass));
  variant.space = codes_space;
  variant.local_bytes = [](const Problem&, const Config& config) {
    return std::uint64_t{sizeof(float)} * config.group().x;
  };
  variant.rejects = rejects_codes;
  return {
      .variant = std::move(variant),
      .rule = {.why = "runs everywhere", .when = [](const Problem& problem, const DeviceProfile&) {
                 return problem.as<CodesProblem>().layout == Layout::kPlain;
               }}};
}

}  // namespace

Way quantise_way() {
  const CodesSlots at = quantise_slots();
  return codes_way("quantise", {at.floats, at.codes, at.scale, at.zero});
}

Way dequantise_way() {
  const CodesSlots at = dequantise_slots();
  return codes_way("dequantise", {at.codes, at.scale, at.zero, at.floats});
}

}  // namespace tessera::operations::quantised
