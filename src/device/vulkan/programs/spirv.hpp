// SPDX-License-Identifier: Apache-2.0
// What has to be known of a module before a driver sees it: drivers crash on what they can't take.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/device.hpp"
#include "tessera/record.hpp"

namespace tessera::device::vulkan {

struct ModuleFacts {
  std::string fault;          // why this is no module with that entry; empty = none
  std::uint32_t version = 0;  // 0x00010300 is 1.3
  Feature needs = Feature::kNone;
  std::uint32_t subgroup_operations = 0;  // as VkSubgroupFeatureFlags
  bool takes_push_constants = false;
  std::string unsupported;  // a capability that no device is opened with; empty = none
};

ModuleFacts examine_module(std::span<const std::uint32_t> words, std::string_view entry);

// A sound module in which gl_NumWorkGroups is this: a dispatch of a part of a grid has fewer.
std::vector<std::uint32_t> with_group_counts(std::span<const std::uint32_t> words,
                                             const Dim3& counts);

}  // namespace tessera::device::vulkan
