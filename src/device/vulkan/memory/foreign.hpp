// SPDX-License-Identifier: Apache-2.0
// Objects of the application in place of our own. Nothing of them is destroyed.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "device/device.hpp"
#include "device/vulkan/instance/vk.hpp"

namespace tessera::device::vulkan {

struct ForeignDevice {
  VkInstance instance = VK_NULL_HANDLE;
  std::uint32_t api_version = 0;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;
  VkQueue queue = VK_NULL_HANDLE;
  std::span<const char* const> extensions{};
  const void* features = nullptr;  // a chain, as of VkDeviceCreateInfo::pNext
  const VkPhysicalDeviceFeatures* base_features = nullptr;
  std::function<void()> lock{}, unlock{};
  PFN_vkGetInstanceProcAddr find = nullptr;  // null: the process' loader
};

// Throws InvalidArgument for handles that are null or no part of each other, as far as that can be
// told, and for claims of what the device lacks; DeviceError where it can't be used.
Found find_in(const ForeignDevice& given);
BufferPtr adopt_memory(Device& device, VkBuffer buffer, std::uint64_t offset, std::uint64_t bytes);
VkBuffer memory_of(const Buffer& buffer);
std::unique_ptr<Stream> record_into(Device& device, VkCommandBuffer commands);
void restart(Stream& stream, VkCommandBuffer commands);
void wait_for(Stream& stream, VkSemaphore semaphore, std::uint64_t value);
void signal(Stream& stream, VkSemaphore semaphore, std::uint64_t value);

}  // namespace tessera::device::vulkan
