// SPDX-License-Identifier: Apache-2.0
// An in-order queue of the device's one VkQueue.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "device/device.hpp"
#include "device/vulkan/core.hpp"
#include "device/vulkan/memory/memory.hpp"
#include "device/vulkan/streams/batch.hpp"
#include "device/vulkan/streams/launcher.hpp"

namespace tessera::device::vulkan {

class VulkanStream final : public Stream {
 public:
  // `absent` is bound where a launch has no buffer.
  VulkanStream(std::shared_ptr<Core> core, std::shared_ptr<VulkanBuffer> absent);
  ~VulkanStream() override;

  void upload(Buffer& target, std::uint64_t offset, std::span<const std::byte> bytes) override;
  void download(const Buffer& source, std::uint64_t offset, std::span<std::byte> bytes) override;
  void copy(const Buffer& source, std::uint64_t source_offset, Buffer& target,
            std::uint64_t target_offset, std::uint64_t bytes) override;
  void fill(Buffer& target, std::uint64_t offset, std::uint64_t bytes, std::uint8_t value) override;
  void launch(const Launch& launch) override;
  void flush() override;
  void synchronize() override;
  double time(const std::function<void()>& work) override;

  // What comes waits for the semaphore to reach the value. Does not block.
  void wait_for(VkSemaphore semaphore, std::uint64_t value);
  // The semaphore gets the value when all so far is done.
  void signal(VkSemaphore semaphore, std::uint64_t value);
  const Core& core() const { return *core_; }

 private:
  // While time() runs: has a launch started, and has the end of the last one been noted?
  enum class Clock { kOff, kArmed, kRunning, kStopped };
  struct StagingSlot {
    std::shared_ptr<VulkanBuffer> buffer;
    std::uint64_t offset;
    std::byte* data;
  };

  // Commands are recorded between these two, each after a barrier.
  VkCommandBuffer begin_command(bool launch);
  void end_command();
  void record_copy(VulkanBuffer& source, std::uint64_t source_offset, VulkanBuffer& target,
                   std::uint64_t target_offset, std::uint64_t bytes);
  Batch& recording_batch();
  void submit();
  void retire_finished();
  void wait_for_oldest();
  StagingSlot stage(std::uint64_t bytes);
  void start_clock(VkCommandBuffer commands);
  void stop_clock(VkCommandBuffer commands);
  double read_clock();

  std::shared_ptr<Core> core_;  // first, so that it goes last
  Launcher launcher_;
  std::vector<TimelinePoint> waits_;  // of the next submission
  std::vector<Batch> batches_;        // a ring; next_ is recording or the oldest
  std::size_t next_ = 0;
  std::array<std::shared_ptr<VulkanBuffer>, 2>
      staging_;  // one is filled while the device reads the other
  std::uint64_t staging_used_ = 0;
  QueryPoolHandle queries_;
  Clock clock_ = Clock::kOff;
  bool end_written_ = false;
};

}  // namespace tessera::device::vulkan
