// SPDX-License-Identifier: Apache-2.0
// What an application has: a device with few features, a queue, a mapped buffer, command buffers.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "support/messages.hpp"
#include "tessera/interop/vulkan.hpp"
#include "tessera/tessera.hpp"

namespace tessera::testing {

inline constexpr VkDeviceSize kBytes = 4096;

// A loader without a function that Tessera needs.
inline VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL find_no_dispatch(VkInstance instance,
                                                                 const char* name) {
  return std::string_view(name) == "vkCmdDispatch" ? nullptr
                                                   : vkGetInstanceProcAddr(instance, name);
}

class VulkanInterop : public ::testing::Test {
 protected:
  void SetUp() override {
    VkApplicationInfo application{};
    application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
    application.apiVersion = VK_API_VERSION_1_2;
    VkInstanceCreateInfo instance{};
    instance.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
    instance.pApplicationInfo = &application;
    std::uint32_t count = 1;
    if (vkCreateInstance(&instance, nullptr, &instance_) != VK_SUCCESS ||
        vkEnumeratePhysicalDevices(instance_, &count, &physical_) < VK_SUCCESS || count == 0)
      GTEST_SKIP() << "no Vulkan device here";
    std::vector<VkQueueFamilyProperties> families(16);
    count = static_cast<std::uint32_t>(families.size());
    vkGetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
    while ((families.at(family_).queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) ++family_;

    const float priority = 1;
    VkDeviceQueueCreateInfo queue{};
    queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    queue.queueFamilyIndex = family_;
    queue.queueCount = 1;
    queue.pQueuePriorities = &priority;
    enabled_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
    enabled_.timelineSemaphore = VK_TRUE;
    VkDeviceCreateInfo device{};
    device.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
    device.pNext = &enabled_;
    device.queueCreateInfoCount = 1;
    device.pQueueCreateInfos = &queue;
    ASSERT_EQ(vkCreateDevice(physical_, &device, nullptr, &device_), VK_SUCCESS);
    vkGetDeviceQueue(device_, family_, 0, &queue_);

    VkBufferCreateInfo buffer{};
    buffer.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
    buffer.size = kBytes;
    buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                   VK_BUFFER_USAGE_TRANSFER_SRC_BIT;
    ASSERT_EQ(vkCreateBuffer(device_, &buffer, nullptr, &buffer_), VK_SUCCESS);
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(device_, buffer_, &needs);
    VkPhysicalDeviceMemoryProperties types;
    vkGetPhysicalDeviceMemoryProperties(physical_, &types);
    constexpr VkMemoryPropertyFlags kMapped =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkMemoryAllocateInfo memory{};
    memory.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    memory.allocationSize = needs.size;
    while ((needs.memoryTypeBits >> memory.memoryTypeIndex & 1U) == 0 ||
           (types.memoryTypes[memory.memoryTypeIndex].propertyFlags & kMapped) != kMapped)
      ++memory.memoryTypeIndex;
    ASSERT_EQ(vkAllocateMemory(device_, &memory, nullptr, &memory_), VK_SUCCESS);
    vkBindBufferMemory(device_, buffer_, memory_, 0);
    void* mapped = nullptr;
    vkMapMemory(device_, memory_, 0, VK_WHOLE_SIZE, 0, &mapped);
    values_ = static_cast<float*>(mapped);
    std::fill_n(values_, kBytes / sizeof(float), -1.0F);

    VkCommandPoolCreateInfo pool{};
    pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
    pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
    pool.queueFamilyIndex = family_;
    vkCreateCommandPool(device_, &pool, nullptr, &pool_);
  }
  void TearDown() override {
    if (device_ != VK_NULL_HANDLE) {
      vkDeviceWaitIdle(device_);
      vkDestroyCommandPool(device_, pool_, nullptr);
      vkDestroyBuffer(device_, buffer_, nullptr);
      vkFreeMemory(device_, memory_, nullptr);
      vkDestroyDevice(device_, nullptr);
    }
    if (instance_ != VK_NULL_HANDLE) vkDestroyInstance(instance_, nullptr);
  }

  vulkan::Device given() {
    return {.instance = instance_,
            .api_version = VK_API_VERSION_1_2,
            .physical_device = physical_,
            .device = device_,
            .queue_family = family_,
            .queue = queue_,
            .features = &enabled_};
  }
  Context open() { return vulkan::open(given(), {.cache_directory = ""}); }
  // From float `first` of the buffer on.
  Tensor tensor(const Context& context, std::int64_t first, Shape shape) const {
    TensorSpec spec = TensorSpec::contiguous(DType::kF32, std::move(shape));
    spec.offset = first;
    return vulkan::tensor(context, buffer_, 0, kBytes, std::move(spec));
  }
  void put(std::size_t first, std::initializer_list<float> values) {
    std::copy(values.begin(), values.end(), values_ + first);
  }
  std::vector<float> get(std::size_t first, std::size_t count) const {
    return {values_ + first, values_ + first + count};
  }
  VkCommandBuffer begin() const {
    VkCommandBufferAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = pool_;
    info.commandBufferCount = 1;
    VkCommandBuffer commands = VK_NULL_HANDLE;
    vkAllocateCommandBuffers(device_, &info, &commands);
    begin(commands);
    return commands;
  }
  static void begin(VkCommandBuffer commands) {
    VkCommandBufferBeginInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
    vkBeginCommandBuffer(commands, &info);
  }
  // Shows results to the host, and submits.
  void submit(VkCommandBuffer commands) const {
    VkMemoryBarrier barrier{};
    barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
    barrier.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_HOST_BIT,
                         0, 1, &barrier, 0, nullptr, 0, nullptr);
    vkEndCommandBuffer(commands);
    VkSubmitInfo info{};
    info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
    info.commandBufferCount = 1;
    info.pCommandBuffers = &commands;
    EXPECT_EQ(vkQueueSubmit(queue_, 1, &info, VK_NULL_HANDLE), VK_SUCCESS);
  }

  VkInstance instance_ = VK_NULL_HANDLE;
  VkPhysicalDevice physical_ = VK_NULL_HANDLE;
  VkDevice device_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  std::uint32_t family_ = 0;
  VkPhysicalDeviceVulkan12Features enabled_{};
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  float* values_ = nullptr;
};

inline const std::vector<float> kMean{3, 4, 5};  // of the values that the tests put

}  // namespace tessera::testing
