// SPDX-License-Identifier: Apache-2.0
// Blocks that are parts of one row, whole ones by an item: processors through OpenCL.
#include <algorithm>
#include <string>

#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/quantise/args.h"
#include "operations/quantise/problem.hpp"

namespace tessera::operations::quantised {
namespace {

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  constexpr std::uint32_t kGroups = 16;  // for each core, so that the last ones end together
  const auto units = static_cast<std::uint32_t>(kernel::compute_units_of(profile));
  return {{{"VECTOR_WIDTH", vector_width(profile)},
           {"PER_CALL", is_large(problem) ? 1U : 0U},
           {"GROUPS", units * kGroups}}};
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = rejects_vector_width(config)) return no;
  if (config.at("GROUPS") == 0) return "takes at least one work-group, and GROUPS is 0";
  const auto& call = problem.as<CodesProblem>();
  if (call.layout != Layout::kPlain) return "takes codes whose scales lie beside them";
  if (call.group_rows != 1) return "takes blocks of one row";
  return rejects_matrices(problem, profile);
}

Way cpu_way(const std::string& name, std::vector<std::size_t> bindings) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "quantised/codes_cpu/" + name + ".cl", .entry = "codes_" + name + "_cpu"};
  pass.bindings = std::move(bindings);
  pass.axes = storage_axes;
  pass.constants = codes_constants;
  pass.groups = [](const Problem& problem, const Config& config) {
    const std::int64_t blocks = problem.as<CodesProblem>().blocks();
    return Dim3{static_cast<std::uint32_t>(std::min<std::int64_t>(blocks, config.at("GROUPS")))};
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(codes_arguments(problem));
  };
  Variant variant;
  variant.name = "cpu";
  variant.idea = "an item owns consecutive blocks, a vector at a time";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.needs = opencl_cpu();
  variant.tunables = {
#include "operations/quantise/cpu/codes.def"
      {.id = 31, .name = "GROUPS", .fallback = 1, .launch_only = true}};
  variant.passes = list_of(std::move(pass));
  variant.space = space;
  variant.rejects = rejects;
  return {.variant = std::move(variant),
          .rule = {.why = "processors want whole vectors in one item",
                   .when = [](const Problem& problem, const DeviceProfile& profile) {
                     const auto& call = problem.as<CodesProblem>();
                     return is_opencl_cpu(profile) && call.layout == Layout::kPlain &&
                            call.group_rows == 1;
                   }}};
}

}  // namespace

Way quantise_cpu_way() {
  const CodesSlots at = quantise_slots();
  return cpu_way("quantise", {at.floats, at.codes, at.scale, at.zero});
}

Way dequantise_cpu_way() {
  const CodesSlots at = dequantise_slots();
  return cpu_way("dequantise", {at.codes, at.scale, at.zero, at.floats});
}

}  // namespace tessera::operations::quantised
