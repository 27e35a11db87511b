// SPDX-License-Identifier: Apache-2.0
// norms/quantised: the output in 8 bits with a scale for each row, on every device.
#include "kernel/tunable_list.hpp"
#include "operations/common/launch.hpp"
#include "operations/norms/cuts.hpp"
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

Variant quantised_variant(const std::vector<StorageTypes>& types) {
  Pass pass;
  pass.name = "quantise";
  pass.opencl = {.file = "norms/quantised/forward.cl", .entry = "norm_quantised"};
  pass.vulkan = {.file = "norms/quantised/forward.comp", .entry = "main"};
  pass.bindings = {kInput, kWeight, kBias, kResidual, kOutput, kSum, kScale};
  pass.axes = dtype_axes;
  pass.constants = line_constants;
  pass.groups = line_groups;
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(arguments(problem));
  };

  Variant variant;
  variant.name = "quantised";
  variant.idea =
      "a line of work-items keeps a row in registers until its largest magnitude is known";
  for (const StorageTypes& one : types) {
    if (is_quantised(one.of("output"))) variant.types.push_back(one.name());
  }
  variant.tunables = tunables();
  variant.passes = {std::move(pass)};
  variant.space = line_space;
  variant.local_bytes = [](const Problem&, const Config& config) {
    return 16ULL * config.get("WG_X", 1) * config.get("WG_Y", 1);
  };
  variant.rejects = [](const Problem& problem, const Config& config,
                       const DeviceProfile& profile) -> Refusal {
    if (Refusal no = rejects_lines(config, profile)) return no;
    return rejects_norm(problem, profile);
  };
  return variant;
}

}  // namespace

Way quantised_way() {
  return {.variant = quantised_variant(norm_types()),
          .rule = {.why = "the only kernel with outputs in 8 bits",
                   .when = [](const Problem& problem,
                              const DeviceProfile&) { return problem.has(kScale); },
                   .config =
                       [](const Problem& problem, const DeviceProfile& profile) {
                         return line_space(problem, profile).front();
                       }}};
}

}  // namespace tessera::operations::norms
