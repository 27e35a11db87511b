// SPDX-License-Identifier: Apache-2.0
// Everything that recorded commands use until they are done: descriptor sets, arguments, and what
// must not go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/vulkan/core.hpp"
#include "device/vulkan/handles.hpp"
#include "device/vulkan/memory/memory.hpp"
#include "device/vulkan/programs/program.hpp"

namespace tessera::device::vulkan {

// Keeps its memory when it is released, so that the next commands allocate none. Not thread-safe.
class Holdings {
 public:
  explicit Holdings(std::shared_ptr<Core> core) : core_(std::move(core)) {}
  Holdings(Holdings&&) = default;
  Holdings& operator=(Holdings&&) = delete;
  ~Holdings() { release(); }

  void keep(std::shared_ptr<VulkanBuffer> buffer);
  void keep(std::shared_ptr<const Pipeline> pipeline);
  // A set for these buffers. With arguments, they are copied and bound after the buffers.
  VkDescriptorSet descriptor_set(const Pipeline& pipeline, std::span<VulkanBuffer* const> buffers,
                                 std::span<const std::byte> arguments);
  void release() noexcept;  // when the commands are done, or will never run

 private:
  struct ArgumentSlot {
    VkBuffer buffer;
    std::uint64_t offset;
  };

  VkDescriptorSet allocate_set(const Pipeline& pipeline);
  void add_pool(std::uint32_t descriptors);
  ArgumentSlot store_arguments(std::span<const std::byte> arguments);

  std::shared_ptr<Core> core_;  // first, so that it goes last
  std::vector<DescriptorPoolHandle> pools_;
  std::size_t pool_ = 0;  // in use; those before it are full
  std::vector<std::shared_ptr<VulkanBuffer>> arguments_;
  std::size_t argument_ = 0;  // in use, as pool_
  std::uint64_t arguments_used_ = 0;
  std::vector<std::shared_ptr<VulkanBuffer>> buffers_;
  std::vector<std::shared_ptr<const Pipeline>> pipelines_;
  std::vector<VkDescriptorBufferInfo> buffer_infos_;  // kept for their memory
  std::vector<VkWriteDescriptorSet> writes_;
};

}  // namespace tessera::device::vulkan
