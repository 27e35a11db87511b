// SPDX-License-Identifier: Apache-2.0
// The VkDevice and its queue: what buffers, programs and streams share and keep alive.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "device/vulkan/instance/physical.hpp"
#include "device/vulkan/instance/vk.hpp"

namespace tessera::device::vulkan {

struct TimelinePoint {
  VkSemaphore semaphore = VK_NULL_HANDLE;
  std::uint64_t value = 0;
};
// What a submission waits for, and what it signals when it is done.
struct Semaphores {
  std::span<const TimelinePoint> waits{}, signals{};
};

// A device and a queue of the application, which outlive what is made on them.
struct ForeignQueue {
  VkDevice device = VK_NULL_HANDLE;
  VkQueue queue = VK_NULL_HANDLE;
  std::function<void()> lock{}, unlock{};  // around each submission; may be empty
};

class Core {
 public:
  static std::shared_ptr<Core> open(std::shared_ptr<const PhysicalDevice> physical);
  static std::shared_ptr<Core> adopt(std::shared_ptr<const PhysicalDevice> physical,
                                     ForeignQueue foreign);
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;
  ~Core();

  VkDevice handle() const { return handle_; }
  const Functions& vk() const { return physical_->instance->vk(); }
  const PhysicalDevice& physical() const { return *physical_; }
  const DeviceProfile& profile() const { return physical_->profile; }

  // Throws what a failure means: DeviceLost (and remembers it), OutOfDeviceMemory, DeviceError.
  void check(VkResult result, const char* call);
  // Throws DeviceLost once the device was lost, DeviceError when drivers can't be called any more.
  void require_alive() const;
  bool lost() const { return lost_in_.load() != nullptr; }

  // `commands` may be null.
  void submit(VkCommandBuffer commands, VkFence fence, const Semaphores& semaphores = {});
  // Throws DeviceError after kWaitSeconds: a hang must not become an endless wait.
  void wait(VkFence fence);
  static constexpr std::uint64_t kWaitSeconds = 600;

  // Counts a vkAllocateMemory against maxMemoryAllocationCount; false = there are too many already.
  bool count_allocation();
  void uncount_allocation() noexcept { --allocations_; }

  // Nothing unless a tool listens.
  void name_pipeline(VkPipeline pipeline, const std::string& name) const;
  void begin_label(VkCommandBuffer commands, const std::string& name) const;
  void end_label(VkCommandBuffer commands) const;

 private:
  explicit Core(std::shared_ptr<const PhysicalDevice> physical) : physical_(std::move(physical)) {}
  void create();

  std::shared_ptr<const PhysicalDevice> physical_;  // holds the instance, which must go last
  VkDevice handle_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  ForeignQueue foreign_;  // none: the device is ours
  std::mutex queue_mutex_;
  std::atomic<const char*> lost_in_{nullptr};  // the call that said so
  std::atomic<std::uint32_t> allocations_{0};
  PFN_vkSetDebugUtilsObjectNameEXT set_name_ = nullptr;
  PFN_vkCmdBeginDebugUtilsLabelEXT begin_label_ = nullptr;
  PFN_vkCmdEndDebugUtilsLabelEXT end_label_ = nullptr;
};

}  // namespace tessera::device::vulkan
