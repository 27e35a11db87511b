// SPDX-License-Identifier: Apache-2.0
// What a renderer has: a device, and a buffer whose memory other APIs may use.
#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>

// The driver does not offer what it takes.
struct NotShared : std::runtime_error {
  using runtime_error::runtime_error;
};

class VulkanSide {
 public:
  // Throws NotShared.
  explicit VulkanSide(VkDeviceSize bytes);
  ~VulkanSide();
  VulkanSide(const VulkanSide&) = delete;
  VulkanSide& operator=(const VulkanSide&) = delete;

  // A file descriptor of the buffer's memory. Whoever imports it owns it.
  int export_memory() const;

  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  std::uint32_t family = 0;
  VkQueue queue = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceSize memory_bytes = 0;
  std::array<std::uint8_t, VK_UUID_SIZE> uuid{};  // OpenCL has the same for this device

 private:
  void choose_device();
  void create_device();
  void create_buffer(VkDeviceSize bytes);
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
};
