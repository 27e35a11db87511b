// SPDX-License-Identifier: Apache-2.0
// Rows between floats and codes, whole ones by an item: processors through OpenCL.
#include <algorithm>
#include <string>
#include <utility>

#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/kv_cache/coding.hpp"

namespace tessera::operations::kv_cache {
namespace {

const CodingKernels kKernels{
    .folder = "cpu", .suffix = "_cpu", .groups = [](std::int64_t rows, const Config& config) {
      return Dim3{static_cast<std::uint32_t>(std::min<std::int64_t>(rows, config.at("GROUPS")))};
    }};

// Work-groups for each core, so that the last ones end together.
constexpr std::uint32_t kGroups = 16;

Way cpu_way(std::string name, CodingPasses passes) {
  const Coded main = passes.main;
  Variant variant;
  variant.name = std::move(name);
  variant.idea = "an item owns consecutive rows, a vector at a time";
  variant.needs = opencl_cpu();
  variant.tunables = {
#include "operations/kv_cache/cpu/codes.def"
      {.id = 31, .name = "GROUPS", .fallback = 1, .launch_only = true}};
  variant.passes = std::move(passes.passes);
  if (passes.scratch_bytes != nullptr) variant.scratch_bytes = passes.scratch_bytes;
  const auto space = [](const Problem&, const DeviceProfile& profile) -> std::vector<Config> {
    const auto units = static_cast<std::uint32_t>(kernel::compute_units_of(profile));
    return {{{"VECTOR_WIDTH", vector_width(profile)}, {"GROUPS", units * kGroups}}};
  };
  variant.space = space;
  variant.rejects = [main](const Problem& problem, const Config& config,
                           const DeviceProfile& profile) -> Refusal {
    if (Refusal no = rejects_vector_width(config)) return no;
    if (config.at("GROUPS") == 0) return "takes at least one work-group, and GROUPS is 0";
    return rejects_row_count(problem, main(problem)->rows(), profile);
  };
  return {.variant = std::move(variant),
          .rule = {.why = "processors want whole vectors in one item",
                   .when = [](const Problem&, const DeviceProfile& profile) {
                     return is_opencl_cpu(profile);
                   }}};
}

}  // namespace

Way append_codes_cpu_way() {
  Way way = cpu_way("cpu", append_codes_passes(kKernels));
  limit_to_codes(way);
  return way;
}

Way quantise_cpu_way() { return cpu_way("cpu", quantise_passes(kKernels)); }

Way dequantise_cpu_way() { return cpu_way("cpu", dequantise_passes(kKernels)); }

}  // namespace tessera::operations::kv_cache
