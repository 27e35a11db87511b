// SPDX-License-Identifier: Apache-2.0
// Owners of Vulkan objects. Whoever holds one also holds what it was made from: a Core for a
// device's objects, an Instance for a Core.
#pragma once

#include <utility>

#include "device/vulkan/instance.hpp"
#include "device/vulkan/vk.hpp"

namespace tessera::device::vulkan {

template <class T, auto Destroy>
class Handle {
 public:
  Handle() = default;
  Handle(VkDevice device, T handle) : device_(device), handle_(handle) {}
  Handle(Handle&& other) noexcept
      : device_(other.device_), handle_(std::exchange(other.handle_, T{})) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() {
    if (handle_ != T{} && driver_usable()) Destroy(device_, handle_, nullptr);
  }
  T get() const { return handle_; }
  explicit operator bool() const { return handle_ != T{}; }

 private:
  VkDevice device_ = VK_NULL_HANDLE;
  T handle_{};
};

using BufferHandle = Handle<VkBuffer, &vkDestroyBuffer>;
using MemoryHandle = Handle<VkDeviceMemory, &vkFreeMemory>;
using ShaderModuleHandle = Handle<VkShaderModule, &vkDestroyShaderModule>;
using SetLayoutHandle = Handle<VkDescriptorSetLayout, &vkDestroyDescriptorSetLayout>;
using PipelineLayoutHandle = Handle<VkPipelineLayout, &vkDestroyPipelineLayout>;
using PipelineHandle = Handle<VkPipeline, &vkDestroyPipeline>;
using PipelineCacheHandle = Handle<VkPipelineCache, &vkDestroyPipelineCache>;
using CommandPoolHandle = Handle<VkCommandPool, &vkDestroyCommandPool>;
using DescriptorPoolHandle = Handle<VkDescriptorPool, &vkDestroyDescriptorPool>;
using FenceHandle = Handle<VkFence, &vkDestroyFence>;
using QueryPoolHandle = Handle<VkQueryPool, &vkDestroyQueryPool>;

}  // namespace tessera::device::vulkan
