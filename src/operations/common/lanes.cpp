// SPDX-License-Identifier: Apache-2.0
#include "operations/common/lanes.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "kernel/gpu.hpp"
#include "kernel/option_access.hpp"
#include "operations/common/launch.hpp"

namespace tessera::operations {

std::vector<Config> lane_space(std::int64_t rows, std::int64_t vectors, std::uint32_t most_lanes,
                               std::span<const LaneCut> cuts, const DeviceProfile& profile) {
  const std::int64_t units = kernel::compute_units_of(profile);
  const auto config = [&](std::uint32_t items, std::uint32_t lanes, std::int64_t groups) {
    const std::int64_t lines = items / lanes;
    const std::int64_t most = std::max<std::int64_t>(1, (rows + lines - 1) / lines);
    return Config{
        {"WG_X", items},
        {"LANES", lanes},
        {"GROUPS", static_cast<std::uint32_t>(std::clamp<std::int64_t>(groups, 1, most))}};
  };
  if (is_cpu(profile)) {
    const bool is_vulkan = profile.backend == Backend::kVulkan;
    return {config(is_vulkan ? 32 : 1, is_vulkan ? 8 : 1, units * 16)};
  }
  const auto filled = static_cast<std::uint64_t>(std::max<std::int64_t>(vectors, 1));
  const auto lanes = static_cast<std::uint32_t>(
      std::min<std::uint64_t>(kernel::next_power_of_two(filled), most_lanes));
  std::vector<Config> configs;
  for (const LaneCut& cut : cuts) {
    if (cut.parts > 1 && lanes <= cut.parts) continue;
    const std::uint32_t items = kernel::most_items(profile, cut.items);
    Config one = config(items, std::min(lanes / cut.parts, items), units * cut.groups);
    if (std::ranges::count(configs, one) == 0) configs.push_back(std::move(one));
  }
  return configs;
}

Dim3 lane_groups(std::int64_t rows, const Config& config) {
  const std::int64_t lines = config.group().x / std::max(config.at("LANES"), 1U);
  const std::int64_t groups = (rows + lines - 1) / std::max<std::int64_t>(lines, 1);
  return {static_cast<std::uint32_t>(std::min<std::int64_t>(groups, config.at("GROUPS")))};
}

Refusal rejects_lanes(const Config& config) {
  const std::uint32_t items = config.group().x, lanes = config.at("LANES");
  if (lanes != 0 && (lanes & (lanes - 1)) == 0 && items % lanes == 0) return std::nullopt;
  return "takes work-groups of whole rows of a power of two of items, and LANES is " +
         std::to_string(lanes);
}

}  // namespace tessera::operations
