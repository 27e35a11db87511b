// SPDX-License-Identifier: Apache-2.0
// The one door to the vendor's header, and what older copies of it lack.
#pragma once

#include <vulkan/vulkan.h>

#include <cstdint>
#include <string>
#include <vector>

// NOLINTBEGIN(readability-identifier-naming)
#ifndef VK_KHR_cooperative_matrix  // came with 1.3.255
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME "VK_KHR_cooperative_matrix"
constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR =
    static_cast<VkStructureType>(1000506000);
struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix;
  VkBool32 cooperativeMatrixRobustBufferAccess;
};
#endif
#ifndef VK_KHR_portability_enumeration  // 1.3.208
#define VK_KHR_PORTABILITY_ENUMERATION_EXTENSION_NAME "VK_KHR_portability_enumeration"
constexpr VkFlags VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR = 1;
#endif
// NOLINTEND(readability-identifier-naming)

namespace tessera::device::vulkan {

std::string name_of(VkResult result);             // "VK_ERROR_DEVICE_LOST"
std::string version_text(std::uint32_t version);  // "1.3.230"

// Throws DeviceError naming the call, unless the result is VK_SUCCESS. For calls without a device;
// with one, Core::check also knows a lost device.
void check_call(VkResult result, const char* call);

// The two-call protocol of Vulkan's lists, repeated while the list grows in between.
template <class T, class Call>
std::vector<T> enumerate(const char* name, const Call& call) {
  std::vector<T> items;
  VkResult result = VK_INCOMPLETE;
  while (result == VK_INCOMPLETE) {
    std::uint32_t count = 0;
    check_call(call(&count, nullptr), name);
    items.resize(count);
    result = call(&count, items.data());
    items.resize(count);
  }
  check_call(result, name);
  return items;
}

}  // namespace tessera::device::vulkan
