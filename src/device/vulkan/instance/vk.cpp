// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/instance/vk.hpp"

#include "tessera/error.hpp"

namespace tessera::device::vulkan {

std::string name_of(VkResult result) {
#define TESSERA_NAME(code) \
  case code:               \
    return #code;
  switch (result) {
    TESSERA_NAME(VK_SUCCESS)
    TESSERA_NAME(VK_NOT_READY)
    TESSERA_NAME(VK_TIMEOUT)
    TESSERA_NAME(VK_INCOMPLETE)
    TESSERA_NAME(VK_ERROR_OUT_OF_HOST_MEMORY)
    TESSERA_NAME(VK_ERROR_OUT_OF_DEVICE_MEMORY)
    TESSERA_NAME(VK_ERROR_INITIALIZATION_FAILED)
    TESSERA_NAME(VK_ERROR_DEVICE_LOST)
    TESSERA_NAME(VK_ERROR_MEMORY_MAP_FAILED)
    TESSERA_NAME(VK_ERROR_LAYER_NOT_PRESENT)
    TESSERA_NAME(VK_ERROR_EXTENSION_NOT_PRESENT)
    TESSERA_NAME(VK_ERROR_FEATURE_NOT_PRESENT)
    TESSERA_NAME(VK_ERROR_INCOMPATIBLE_DRIVER)
    TESSERA_NAME(VK_ERROR_TOO_MANY_OBJECTS)
    TESSERA_NAME(VK_ERROR_FRAGMENTED_POOL)
    TESSERA_NAME(VK_ERROR_UNKNOWN)
    TESSERA_NAME(VK_ERROR_OUT_OF_POOL_MEMORY)
    TESSERA_NAME(VK_ERROR_INVALID_EXTERNAL_HANDLE)
    TESSERA_NAME(VK_ERROR_FRAGMENTATION)
    TESSERA_NAME(VK_ERROR_VALIDATION_FAILED_EXT)
    TESSERA_NAME(VK_ERROR_INVALID_SHADER_NV)
    TESSERA_NAME(VK_ERROR_NOT_PERMITTED_KHR)
    TESSERA_NAME(VK_PIPELINE_COMPILE_REQUIRED)
    default:
      return "VkResult " + std::to_string(static_cast<int>(result));
  }
#undef TESSERA_NAME
}

std::string version_text(std::uint32_t version) {
  return std::to_string(VK_API_VERSION_MAJOR(version)) + "." +
         std::to_string(VK_API_VERSION_MINOR(version)) + "." +
         std::to_string(VK_API_VERSION_PATCH(version));
}

void check_call(VkResult result, const char* call) {
  if (result != VK_SUCCESS) throw DeviceError(std::string(call) + ": " + name_of(result));
}

}  // namespace tessera::device::vulkan
