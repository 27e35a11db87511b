// SPDX-License-Identifier: Apache-2.0
// One command buffer with its fence and everything that its commands use until the fence signals.
#pragma once

#include <cstdint>
#include <memory>

#include "device/vulkan/core.hpp"
#include "device/vulkan/handles.hpp"
#include "device/vulkan/memory/holdings.hpp"

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
  void submit(const Semaphores& semaphores = {});
  void wait();            // until the commands are done
  bool retire_if_done();  // true = it is no longer pending
  // On a lost device: gives it a moment before its objects go.
  void abandon() noexcept;

  VkCommandBuffer commands() const { return commands_; }
  void count_command() { ++recorded_; }
  Holdings& held() { return held_; }  // until the commands are done

 private:
  enum class State { kIdle, kRecording, kPending };
  void retire() noexcept;

  std::shared_ptr<Core> core_;  // first, so that it goes last
  CommandPoolHandle command_pool_;
  VkCommandBuffer commands_ = VK_NULL_HANDLE;  // freed with its pool
  FenceHandle fence_;
  Holdings held_;
  std::uint32_t recorded_ = 0;
  State state_ = State::kIdle;
};

// After one command and before the next, whatever both are.
void record_barrier(const Core& core, VkCommandBuffer commands);

}  // namespace tessera::device::vulkan
