// SPDX-License-Identifier: Apache-2.0
// What stands for a renderer: a device, a buffer, a compute pipeline, and frames in flight. Nothing
// here knows of Tessera.
#pragma once

#include <vulkan/vulkan.h>

#include <array>
#include <cstdint>

void check(VkResult result, const char* call);  // throws std::runtime_error

struct Frame {
  VkCommandBuffer commands = VK_NULL_HANDLE;
  VkFence done = VK_NULL_HANDLE;
};

struct Renderer {
  static constexpr VkDeviceSize kParts = 4;  // of the buffer: input, query, output, picture
  static constexpr std::uint32_t kFrames = 2;

  explicit Renderer(std::uint32_t elements);  // floats of each part
  ~Renderer();
  Renderer(const Renderer&) = delete;
  Renderer& operator=(const Renderer&) = delete;

  // Records a dispatch from one part to another, with a barrier for the parts it reads if asked.
  void dispatch(VkCommandBuffer commands, std::uint32_t from, std::uint32_t to, float factor,
                float shift) const;
  Frame& next_frame();  // done on the device, and recording again
  void submit(Frame& frame);
  float* part(std::uint32_t number) const { return values + std::size_t{elements} * number; }

  std::uint32_t elements;
  VkInstance instance = VK_NULL_HANDLE;
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  VkPhysicalDevice16BitStorageFeatures features{};  // enabled
  std::uint32_t queue_family = 0;
  VkQueue queue = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  VkDeviceSize bytes = 0;
  float* values = nullptr;  // of the buffer, for the host
  std::array<Frame, kFrames> frames{};

 private:
  void create_device();
  void create_buffer();
  void create_pipeline();
  void create_frames();

  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  VkShaderModule shader_ = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout_ = VK_NULL_HANDLE;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  VkPipeline pipeline_ = VK_NULL_HANDLE;
  VkDescriptorPool pool_ = VK_NULL_HANDLE;
  std::array<std::array<VkDescriptorSet, kParts>, kParts> sets_{};
  VkCommandPool commands_ = VK_NULL_HANDLE;
  std::uint32_t frame_ = 0;
};
