// SPDX-License-Identifier: Apache-2.0
// norms/quantised: the output in 8 bits with a scale for each row, on every device.
#include "kernel/gpu.hpp"
#include "kernel/tunable_list.hpp"
#include "operations/common/launch.hpp"
#include "operations/norms/launch.hpp"
#include "operations/norms/quantised/args.h"

namespace tessera::operations::norms {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/norms/quantised/tunables.def"
      {.id = 31, .name = "GROUPS", .fallback = 1, .launch_only = true}};
}

abi::NormQuantisedArgs arguments(const Problem& problem) {
  const RowAxes axes = *row_axes(problem);
  const auto narrow = [](std::int64_t value) { return static_cast<abi::u32>(value); };
  const auto& strides = axes.strides[kScale];
  const DType type = problem.spec(kOutput).dtype;
  return {.norm = forward_arguments(problem),
          .scale = {narrow(problem.spec(kScale).offset), narrow(strides[0]), narrow(strides[1]),
                    narrow(strides[2])},
          .type = dtype_axis(type),
          .largest = static_cast<float>(largest_code(type))};
}

// Processors run the items of a group one after the other.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const std::int64_t rows = problem.as<NormProblem>().rows;
  std::vector<Config> configs;
  const std::vector<std::uint32_t> items =
      is_cpu(profile) ? std::vector<std::uint32_t>{16, 64} : std::vector<std::uint32_t>{256, 64};
  for (const std::uint32_t each : items) {
    const std::int64_t groups = std::int64_t{kernel::compute_units_of(profile)} *
                                (is_cpu(profile) ? 4 : 2048 / static_cast<std::int64_t>(each));
    configs.push_back(
        {{"WG_X", each},
         {"GROUPS", static_cast<std::uint32_t>(std::clamp<std::int64_t>(rows, 1, groups))}});
  }
  return configs;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t items = config.group().x;
  if ((items & (items - 1)) != 0)
    return "has " + std::to_string(items) + " items in a work-group, no power of two";
  return rejects_norm(problem, profile);
}

Variant quantised_variant(const std::vector<StorageTypes>& types) {
  Pass pass;
  pass.name = "quantise";
  pass.opencl = {.file = "norms/quantised/forward.cl", .entry = "norm_quantised"};
  pass.vulkan = {.file = "norms/quantised/forward.comp", .entry = "main"};
  pass.bindings = {kInput, kWeight, kBias, kResidual, kOutput, kSum, kScale};
  pass.axes = dtype_axes;
  pass.constants = [](const Problem& problem, const Config&) -> std::vector<Define> {
    return {{"CENTERED", problem.as<NormProblem>().centered ? 1U : 0U}};
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    const std::int64_t rows = problem.as<NormProblem>().rows;
    return Dim3{static_cast<std::uint32_t>(std::min<std::int64_t>(rows, config.at("GROUPS"))), 1,
                1};
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(arguments(problem));
  };

  Variant variant;
  variant.name = "quantised";
  variant.idea = "a work-group for each row; the largest magnitude, then codes from a cache";
  for (const StorageTypes& one : types) {
    if (is_quantised(one.of("output"))) variant.types.push_back(one.name());
  }
  variant.tunables = tunables();
  variant.passes = {std::move(pass)};
  variant.space = space;
  variant.local_bytes = [](const Problem&, const Config& config) {
    return std::uint64_t{sizeof(float)} * config.group().x;
  };
  variant.rejects = rejects;
  return variant;
}

}  // namespace

Way quantised_way() {
  return {
      .variant = quantised_variant(norm_types()),
      .rule = {
          .why = "the only kernel with outputs in 8 bits",
          .when = [](const Problem& problem, const DeviceProfile&) { return problem.has(kScale); },
          .config = [](const Problem& problem,
                       const DeviceProfile& profile) { return space(problem, profile).front(); }}};
}

}  // namespace tessera::operations::norms
