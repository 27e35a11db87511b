// SPDX-License-Identifier: Apache-2.0
// What is learnt of a physical device before it is opened.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "device/vulkan/instance/instance.hpp"
#include "device/vulkan/instance/vk.hpp"
#include "tessera/device.hpp"

namespace tessera::device::vulkan {

// Which of the optional structures the device knows, by its version or its extensions.
struct KnownStructures {
  bool float16 = false;
  bool integer_dot = false;
  bool memory_model = false;
  bool subgroup_size = false;
  bool maintenance4 = false;
  bool cooperative_matrix = false;
  bool cooperative_matrix2 = false;
  bool bfloat16 = false;
  bool timeline = false;  // only asked for a device of the application
};

// The optional features, chained for a query and again for vkCreateDevice; only known structures
// are in the chain.
struct FeatureChain {
  explicit FeatureChain(const KnownStructures& known);
  FeatureChain(const FeatureChain&) = delete;
  FeatureChain& operator=(const FeatureChain&) = delete;

  VkPhysicalDeviceFeatures2 base{};
  VkPhysicalDevice16BitStorageFeatures storage16{};
  VkPhysicalDeviceShaderFloat16Int8Features float16{};
  VkPhysicalDeviceShaderIntegerDotProductFeatures integer_dot{};
  VkPhysicalDeviceVulkanMemoryModelFeatures memory_model{};
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size{};
  VkPhysicalDeviceMaintenance4Features maintenance4{};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR cooperative_matrix{};
  VkPhysicalDeviceCooperativeMatrix2FeaturesNV cooperative_matrix2{};
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16{};
  VkPhysicalDeviceTimelineSemaphoreFeatures timeline{};
};

struct PhysicalDevice {
  std::shared_ptr<const Instance> instance;
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  std::uint32_t api_version = 0;  // usable: the device's or the instance's, whichever is lower
  DeviceProfile profile;
  VkPhysicalDeviceLimits limits{};
  VkPhysicalDeviceMemoryProperties memory{};
  std::array<std::uint8_t, VK_UUID_SIZE> cache_uuid{};
  std::uint32_t queue_family = 0;
  std::uint32_t timestamp_bits = 0;
  KnownStructures known;
  std::vector<const char*> extensions;  // to enable
  VkSubgroupFeatureFlags subgroup_operations = 0;
  // Beyond the profile's features.
  bool local_size_id =
      false;  // work-group size of SPIR-V 1.6 modules by constant id (maintenance4)
  bool require_subgroups = false;       // a pipeline may ask for profile.subgroup_size
  bool full_subgroups = false;          // and for sub-groups without holes
  std::uint32_t min_subgroup_size = 0;  // that a pipeline may ask for
  std::uint32_t max_subgroups = 0;      // in one work-group, when asked for
  bool timeline_semaphores = false;     // the application enabled them
};

// What an application says that it enabled when it created its device: nothing else is used.
struct Claims {
  std::uint32_t queue_family = 0;
  std::set<std::string, std::less<>> extensions{};
  FeatureChain features{KnownStructures{}};  // by the structures' own members
};

// Throws DeviceError saying why the device can't be used; InvalidArgument for claims of what the
// device does not offer.
std::shared_ptr<const PhysicalDevice> examine(std::shared_ptr<const Instance> instance,
                                              VkPhysicalDevice handle,
                                              const Claims* claims = nullptr);

}  // namespace tessera::device::vulkan
