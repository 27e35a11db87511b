// SPDX-License-Identifier: Apache-2.0
// norms/quantised on processors through OpenCL: whole rows in one work-item.
#include <algorithm>
#include <string>

#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/norms/launch.hpp"
#include "operations/norms/quantised/pass.hpp"

namespace tessera::operations::norms {
namespace {

constexpr std::int64_t kMostGroups = 65535;

// An item has 64 KiB of rows or more.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const std::int64_t dim = problem.as<NormProblem>().dim;
  const auto rows = static_cast<std::uint32_t>(std::clamp<std::int64_t>(16384 / dim, 1, 256));
  return {{{"ROWS", rows}, {"VECTOR_WIDTH", vector_width(profile)}}};
}

Variant quantised_cpu_variant() {
  Pass pass = quantise_pass();
  pass.opencl = {.file = "norms/quantised/cpu.cl", .entry = "norm_quantised_cpu"};
  pass.groups = [](const Problem& problem, const Config& config) {
    const std::int64_t items = ceil_div(problem.as<NormProblem>().rows, config.at("ROWS"));
    return Dim3{static_cast<std::uint32_t>(std::min(items, kMostGroups))};
  };
  Variant variant;
  variant.name = "quantised_cpu";
  variant.idea = "an item reads its rows from memory once and from its caches again";
  variant.needs = opencl_cpu();
  variant.types = quantised_types();
  variant.tunables = {
#include "operations/norms/quantised/cpu.def"
      {.id = 30, .name = "ROWS", .fallback = 4, .launch_only = true}};
  variant.passes = list_of(std::move(pass));
  variant.space = space;
  variant.rejects = [](const Problem& problem, const Config& config,
                       const DeviceProfile& profile) -> Refusal {
    if (Refusal no = rejects_vector_width(config)) return no;
    if (config.at("ROWS") == 0) return "takes at least one row an item, and ROWS is 0";
    return rejects_norm(problem, profile);
  };
  return variant;
}

}  // namespace

Way quantised_cpu_way() {
  return {.variant = quantised_cpu_variant(),
          .rule = {.why = "processors want whole vectors in one item, and no local memory",
                   .when = [](const Problem& problem, const DeviceProfile& profile) {
                     return problem.has(kScale) && is_opencl_cpu(profile);
                   }}};
}

}  // namespace tessera::operations::norms
