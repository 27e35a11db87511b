// SPDX-License-Identifier: Apache-2.0
// Owners of Vulkan objects. Whoever holds one also holds what it was made from: a Core for a
// device's objects, an Instance for a Core.
#pragma once

#include <utility>

#include "device/vulkan/core.hpp"

namespace tessera::device::vulkan {

template <class T, auto Destroy>
class Handle {
 public:
  Handle() = default;
  Handle(const Core& core, T handle) : core_(&core), handle_(handle) {}
  Handle(Handle&& other) noexcept
      : core_(other.core_), handle_(std::exchange(other.handle_, T{})) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(core_, other.core_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() {
    if (handle_ != T{} && driver_usable())
      (core_->vk().*Destroy)(core_->handle(), handle_, nullptr);
  }
  T get() const { return handle_; }
  explicit operator bool() const { return handle_ != T{}; }

 private:
  const Core* core_ = nullptr;
  T handle_{};
};

using BufferHandle = Handle<VkBuffer, &Functions::DestroyBuffer>;
using MemoryHandle = Handle<VkDeviceMemory, &Functions::FreeMemory>;
using ShaderModuleHandle = Handle<VkShaderModule, &Functions::DestroyShaderModule>;
using SetLayoutHandle = Handle<VkDescriptorSetLayout, &Functions::DestroyDescriptorSetLayout>;
using PipelineLayoutHandle = Handle<VkPipelineLayout, &Functions::DestroyPipelineLayout>;
using PipelineHandle = Handle<VkPipeline, &Functions::DestroyPipeline>;
using PipelineCacheHandle = Handle<VkPipelineCache, &Functions::DestroyPipelineCache>;
using CommandPoolHandle = Handle<VkCommandPool, &Functions::DestroyCommandPool>;
using DescriptorPoolHandle = Handle<VkDescriptorPool, &Functions::DestroyDescriptorPool>;
using FenceHandle = Handle<VkFence, &Functions::DestroyFence>;
using QueryPoolHandle = Handle<VkQueryPool, &Functions::DestroyQueryPool>;

}  // namespace tessera::device::vulkan
