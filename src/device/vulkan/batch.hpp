// SPDX-License-Identifier: Apache-2.0
// One command buffer with its fence and everything that its commands use until the fence signals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "device/vulkan/core.hpp"
#include "device/vulkan/handles.hpp"
#include "device/vulkan/memory.hpp"
#include "device/vulkan/program.hpp"

namespace tessera::device::vulkan {

// idle, begin(), recording, submit(), pending, wait(), idle again. Not thread-safe.
class Batch {
 public:
  explicit Batch(std::shared_ptr<Core> core);
  Batch(Batch&&) = default;
  Batch& operator=(Batch&&) = delete;
  ~Batch() { retire(); }

  bool recording() const { return state_ == State::kRecording; }
  bool pending() const { return state_ == State::kPending; }
  std::uint32_t recorded() const { return recorded_; }

  void begin();
  // Hands the commands to the queue. When that throws, they are dropped.
  void submit();
  void wait();            // until the commands are done
  bool retire_if_done();  // true = it is no longer pending
  // On a lost device: gives it a moment before its objects go.
  void abandon() noexcept;

  VkCommandBuffer commands() const { return commands_; }
  void count_command() { ++recorded_; }
  void keep(std::shared_ptr<VulkanBuffer> buffer);
  void keep(std::shared_ptr<const Pipeline> pipeline);
  // A set for these buffers. With arguments, they are copied and bound after the buffers.
  VkDescriptorSet descriptor_set(const Pipeline& pipeline, std::span<VulkanBuffer* const> buffers,
                                 std::span<const std::byte> arguments);

 private:
  enum class State { kIdle, kRecording, kPending };
  struct ArgumentSlot {
    VkBuffer buffer;
    std::uint64_t offset;
  };

  VkDescriptorSet allocate_set(const Pipeline& pipeline);
  void add_pool(std::uint32_t descriptors);
  ArgumentSlot store_arguments(std::span<const std::byte> arguments);
  void retire() noexcept;

  std::shared_ptr<Core> core_;  // first, so that it goes last
  CommandPoolHandle command_pool_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;  // freed with its pool
  FenceHandle fence_;
  std::vector<DescriptorPoolHandle> pools_;
  std::size_t pool_ = 0;  // in use; those before it are full
  std::shared_ptr<VulkanBuffer> arguments_;
  std::uint64_t arguments_used_ = 0;
  std::vector<std::shared_ptr<VulkanBuffer>> buffers_;
  std::vector<std::shared_ptr<const Pipeline>> pipelines_;
  std::vector<VkDescriptorBufferInfo> buffer_infos_;  // kept for their memory
  std::vector<VkWriteDescriptorSet> writes_;
  std::uint32_t recorded_ = 0;
  State state_ = State::kIdle;
};

// After one command and before the next, whatever both are.
void record_barrier(VkCommandBuffer commands);

}  // namespace tessera::device::vulkan
