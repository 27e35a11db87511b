// SPDX-License-Identifier: Apache-2.0
// Rows between floats and codes, a few items to each.
#include <algorithm>
#include <string>
#include <utility>

#include "kernel/tunable_list.inc"
#include "operations/common/lanes.hpp"
#include "operations/common/launch.hpp"
#include "operations/kv_cache/coding.hpp"

namespace tessera::operations::kv_cache {
namespace {

// Two chunks an item, or four, and the rows' addresses for each of them.
constexpr LaneCut kCuts[] = {{256, 2, 32}, {256, 4, 32}, {128, 2, 64}, {256, 1, 32}};

const CodingKernels kKernels{.folder = "rows", .by_vectors = true, .groups = lane_groups};

Way coding_way(std::string name, std::string idea, CodingPasses passes) {
  const Coded main = passes.main;
  Variant variant;
  variant.name = std::move(name);
  variant.idea = std::move(idea);
  variant.passes = std::move(passes.passes);
  if (passes.scratch_bytes != nullptr) variant.scratch_bytes = passes.scratch_bytes;
  variant.tunables = {
#include "operations/kv_cache/rows/codes.def"
      {.id = 31, .name = "GROUPS", .fallback = 1, .launch_only = true}};
  const auto space = [main](const Problem& problem, const DeviceProfile& profile) {
    const Coding coding = *main(problem);
    const std::int64_t chunks = coding.pool.dim / (is_aligned(coding) ? 8 : 2);
    std::vector<Config> configs = lane_space(coding.rows(), chunks, 32, kCuts, profile);
    for (Config& config : configs) set_conversions(config, profile);
    return configs;
  };
  variant.space = space;
  variant.local_bytes = [](const Problem&, const Config& config) {
    return std::uint64_t{sizeof(float)} * std::max(config.group().x, 64U);
  };
  variant.rejects = [main](const Problem& problem, const Config& config,
                           const DeviceProfile& profile) -> Refusal {
    if (Refusal no = rejects_storage16(problem, profile)) return no;
    if (Refusal no = rejects_conversions(config, profile)) return no;
    return rejects_rows(problem, main(problem)->rows(), config, profile);
  };
  return {.variant = std::move(variant),
          .rule = {.why = "the only kernels with codes on GPUs",
                   .when = [](const Problem&, const DeviceProfile&) { return true; }}};
}

}  // namespace

Way append_codes_way() {
  Way way =
      coding_way("codes", "places of tokens, then rows to codes", append_codes_passes(kKernels));
  limit_to_codes(way);
  return way;
}

Way quantise_way() {
  return coding_way("rows", "largest magnitudes of rows, then codes", quantise_passes(kKernels));
}

Way dequantise_way() { return coding_way("rows", "codes by words", dequantise_passes(kKernels)); }

}  // namespace tessera::operations::kv_cache
