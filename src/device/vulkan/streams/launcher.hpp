// SPDX-License-Identifier: Apache-2.0
// One launch, from its check to its commands: the same on Tessera's queues and in command buffers
// of the application.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "device/vulkan/core.hpp"
#include "device/vulkan/memory/holdings.hpp"
#include "device/vulkan/memory/memory.hpp"

namespace tessera::device::vulkan {

// "[64, 64 + 16)"
std::string range_text(std::uint64_t offset, std::uint64_t bytes);

// Not thread-safe.
class Launcher {
 public:
  // `absent` is bound where a launch has no buffer.
  Launcher(std::shared_ptr<Core> core, std::shared_ptr<VulkanBuffer> absent)
      : core_(std::move(core)), absent_(std::move(absent)) {}

  // Throws InvalidArgument for what is another device's, or does not fit.
  VulkanBuffer& own(const Buffer& buffer, std::uint64_t offset, std::uint64_t bytes,
                    const char* what) const;
  const Pipeline& check(const Launch& launch);  // and notes its buffers for bind()
  VkDescriptorSet bind(const Launch& launch, const Pipeline& pipeline, Holdings& held);
  void record(VkCommandBuffer commands, const Launch& launch, const Pipeline& pipeline,
              VkDescriptorSet set) const;

 private:
  std::shared_ptr<Core> core_;
  std::shared_ptr<VulkanBuffer> absent_;
  std::vector<VulkanBuffer*> bound_;  // kept for its memory
};

}  // namespace tessera::device::vulkan
