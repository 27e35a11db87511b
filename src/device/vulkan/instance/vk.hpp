// SPDX-License-Identifier: Apache-2.0
// The one door to the vendor's header, and what older copies of it lack. Functions of Vulkan are
// called through functions.hpp.
#pragma once

#if !defined(VULKAN_H_) && !defined(VK_NO_PROTOTYPES)
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan.h>

#include <cstdint>
#include <string>
#include <vector>

// NOLINTBEGIN(readability-identifier-naming)
#ifndef VK_KHR_cooperative_matrix  // came with 1.3.255
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME "VK_KHR_cooperative_matrix"
constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR =
    static_cast<VkStructureType>(1000506000);
constexpr auto VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR =
    static_cast<VkStructureType>(1000506001);
struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix;
  VkBool32 cooperativeMatrixRobustBufferAccess;
};
using VkComponentTypeKHR = std::uint32_t;
constexpr VkComponentTypeKHR VK_COMPONENT_TYPE_FLOAT16_KHR = 0;
constexpr VkComponentTypeKHR VK_COMPONENT_TYPE_FLOAT32_KHR = 1;
using VkScopeKHR = std::uint32_t;
constexpr VkScopeKHR VK_SCOPE_SUBGROUP_KHR = 3;
struct VkCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void* pNext;
  std::uint32_t MSize;
  std::uint32_t NSize;
  std::uint32_t KSize;
  VkComponentTypeKHR AType;
  VkComponentTypeKHR BType;
  VkComponentTypeKHR CType;
  VkComponentTypeKHR ResultType;
  VkBool32 saturatingAccumulation;
  VkScopeKHR scope;
};
using PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR =
    VkResult(VKAPI_PTR*)(VkPhysicalDevice, std::uint32_t*, VkCooperativeMatrixPropertiesKHR*);
#endif
#ifndef VK_KHR_shader_bfloat16  // 1.4.311
#define VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME "VK_KHR_shader_bfloat16"
constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR =
    static_cast<VkStructureType>(1000141000);
constexpr auto VK_COMPONENT_TYPE_BFLOAT16_KHR = static_cast<VkComponentTypeKHR>(1000141000);
struct VkPhysicalDeviceShaderBfloat16FeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 shaderBFloat16Type;
  VkBool32 shaderBFloat16DotProduct;
  VkBool32 shaderBFloat16CooperativeMatrix;
};
#endif
#ifndef VK_NV_cooperative_matrix2  // 1.3.300
#define VK_NV_COOPERATIVE_MATRIX_2_EXTENSION_NAME "VK_NV_cooperative_matrix2"
constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_2_FEATURES_NV =
    static_cast<VkStructureType>(1000593000);
struct VkPhysicalDeviceCooperativeMatrix2FeaturesNV {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrixWorkgroupScope;
  VkBool32 cooperativeMatrixFlexibleDimensions;
  VkBool32 cooperativeMatrixReductions;
  VkBool32 cooperativeMatrixConversions;
  VkBool32 cooperativeMatrixPerElementOperations;
  VkBool32 cooperativeMatrixTensorAddressing;
  VkBool32 cooperativeMatrixBlockLoads;
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
