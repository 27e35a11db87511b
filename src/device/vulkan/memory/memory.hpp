// SPDX-License-Identifier: Apache-2.0
// Buffers, each with memory of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "device/device.hpp"
#include "device/vulkan/core.hpp"
#include "device/vulkan/handles.hpp"

namespace tessera::device::vulkan {

enum class MemoryUse {
  kDevice,     // operands: the device's own memory, mapped where that costs nothing
  kStaging,    // copies: mapped, cached where possible
  kArguments,  // small data that the host writes once per launch: mapped, near the device
};

class VulkanBuffer final : public Buffer, public std::enable_shared_from_this<VulkanBuffer> {
 public:
  // Throws OutOfDeviceMemory. Checks no limits of the profile.
  static std::shared_ptr<VulkanBuffer> create(std::shared_ptr<Core> core, std::uint64_t bytes,
                                              MemoryUse use);
  // Bytes [offset, offset + bytes) of a buffer of the application, which outlives the result.
  static std::shared_ptr<VulkanBuffer> adopt(std::shared_ptr<Core> core, VkBuffer buffer,
                                             std::uint64_t offset, std::uint64_t bytes);
  ~VulkanBuffer() override;

  VkBuffer handle() const { return foreign_ != VK_NULL_HANDLE ? foreign_ : handle_.get(); }
  std::uint64_t offset() const { return foreign_offset_; }  // of its first byte, in the VkBuffer
  const Core& core() const { return *core_; }
  // size() rounded up to what fills and bindings take: multiples of 4, never 0.
  std::uint64_t capacity() const { return capacity_; }
  std::byte* mapped() const { return mapped_; }  // null = the host can't reach it
  bool fast_reads() const { return mapped_ != nullptr && cached_; }

  // How many unfinished batches use the buffer: while there are none the host may write to it.
  bool busy() const { return uses_.load(std::memory_order_acquire) != 0; }
  void begin_use() { uses_.fetch_add(1, std::memory_order_relaxed); }
  void end_use() { uses_.fetch_sub(1, std::memory_order_release); }

 private:
  VulkanBuffer(std::shared_ptr<Core> core, std::uint64_t bytes);
  VulkanBuffer(std::shared_ptr<Core> core, std::uint64_t bytes, const Shared& shared);
  void allocate(MemoryUse use);

  std::shared_ptr<Core> core_;
  std::uint64_t capacity_;
  bool counted_ = false;
  MemoryHandle memory_;
  BufferHandle handle_;
  VkBuffer foreign_ = VK_NULL_HANDLE;  // in place of handle_
  std::uint64_t foreign_offset_ = 0;
  std::byte* mapped_ = nullptr;
  bool cached_ = false;
  std::atomic<std::uint32_t> uses_{0};
};

// Memory types that serve the purpose, best first.
std::vector<std::uint32_t> choose_memory_types(const VkPhysicalDeviceMemoryProperties& memory,
                                               std::uint32_t allowed, MemoryUse use,
                                               DeviceKind kind);

}  // namespace tessera::device::vulkan
