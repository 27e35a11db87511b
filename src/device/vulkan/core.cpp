// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/core.hpp"

#include <algorithm>
#include <cstring>

#include "base/system/log.hpp"
#include "tessera/error.hpp"

namespace tessera::device::vulkan {
namespace {

// What the profile offers, and nothing else.
void choose_features(const PhysicalDevice& physical, FeatureChain& chain) {
  const auto offered = [&](Feature feature) -> VkBool32 {
    return has(physical.profile.features, feature) ? VK_TRUE : VK_FALSE;
  };
  chain.base.features.shaderFloat64 = offered(Feature::kFp64);
  chain.storage16.storageBuffer16BitAccess = offered(Feature::kStorage16);
  chain.float16.shaderFloat16 = offered(Feature::kFp16Arithmetic);
  chain.integer_dot.shaderIntegerDotProduct = offered(Feature::kIntegerDot);
  chain.cooperative_matrix.cooperativeMatrix = offered(Feature::kCooperativeMatrix);
  chain.cooperative_matrix2.cooperativeMatrixReductions = offered(Feature::kMatrixRegisters);
  chain.cooperative_matrix2.cooperativeMatrixConversions = offered(Feature::kMatrixRegisters);
  chain.cooperative_matrix2.cooperativeMatrixPerElementOperations =
      offered(Feature::kMatrixRegisters);
  chain.bfloat16.shaderBFloat16Type = offered(Feature::kBf16Matrix);
  chain.bfloat16.shaderBFloat16CooperativeMatrix = offered(Feature::kBf16Matrix);
  chain.memory_model.vulkanMemoryModel = offered(Feature::kCooperativeMatrix);
  chain.maintenance4.maintenance4 = physical.local_size_id ? VK_TRUE : VK_FALSE;
  chain.subgroup_size.subgroupSizeControl = physical.require_subgroups ? VK_TRUE : VK_FALSE;
  chain.subgroup_size.computeFullSubgroups = physical.full_subgroups ? VK_TRUE : VK_FALSE;
}

// Points as vkQueueSubmit takes them.
struct SubmittedPoints {
  explicit SubmittedPoints(std::span<const TimelinePoint> points)
      : stages(points.size(), VK_PIPELINE_STAGE_ALL_COMMANDS_BIT) {
    for (const TimelinePoint& point : points) {
      semaphores.push_back(point.semaphore);
      values.push_back(point.value);
    }
  }
  std::vector<VkSemaphore> semaphores;
  std::vector<std::uint64_t> values;
  std::vector<VkPipelineStageFlags> stages;
};

class ForeignLock {
 public:
  explicit ForeignLock(const ForeignQueue& queue) : queue_(queue) {
    if (queue_.lock) queue_.lock();
  }
  ~ForeignLock() {
    if (queue_.unlock) queue_.unlock();
  }
  ForeignLock(const ForeignLock&) = delete;
  ForeignLock& operator=(const ForeignLock&) = delete;

 private:
  const ForeignQueue& queue_;
};

}  // namespace

std::shared_ptr<Core> Core::open(std::shared_ptr<const PhysicalDevice> physical) {
  require_usable_driver();
  std::shared_ptr<Core> core(new Core(std::move(physical)));
  core->create();
  return core;
}

std::shared_ptr<Core> Core::adopt(std::shared_ptr<const PhysicalDevice> physical,
                                  ForeignQueue foreign) {
  require_usable_driver();
  std::shared_ptr<Core> core(new Core(std::move(physical)));
  core->handle_ = foreign.device;
  core->queue_ = foreign.queue;
  core->foreign_ = std::move(foreign);
  return core;
}

void Core::create() {
  FeatureChain features(physical_->known);
  choose_features(*physical_, features);
  const float priority = 1.0F;
  const VkDeviceQueueCreateInfo queue{.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                      .pNext = nullptr,
                                      .flags = 0,
                                      .queueFamilyIndex = physical_->queue_family,
                                      .queueCount = 1,
                                      .pQueuePriorities = &priority};
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features.base;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue;
  info.enabledExtensionCount = static_cast<std::uint32_t>(physical_->extensions.size());
  info.ppEnabledExtensionNames = physical_->extensions.data();
  check(vk().CreateDevice(physical_->handle, &info, nullptr, &handle_), "vkCreateDevice");
  register_device(handle_, vk().DeviceWaitIdle, queue_mutex_);
  vk().GetDeviceQueue(handle_, physical_->queue_family, 0, &queue_);

  const Instance& instance = *physical_->instance;
  if (instance.debug_utils()) {
    set_name_ = instance.function<PFN_vkSetDebugUtilsObjectNameEXT>("vkSetDebugUtilsObjectNameEXT");
    begin_label_ =
        instance.function<PFN_vkCmdBeginDebugUtilsLabelEXT>("vkCmdBeginDebugUtilsLabelEXT");
    end_label_ = instance.function<PFN_vkCmdEndDebugUtilsLabelEXT>("vkCmdEndDebugUtilsLabelEXT");
  }
  log(LogLevel::kDebug, "vulkan: opened " + profile().name + ", " + profile().driver);
}

Core::~Core() {
  if (handle_ == VK_NULL_HANDLE || foreign_.device != VK_NULL_HANDLE) return;
  unregister_device(handle_);
  if (driver_usable()) vk().DestroyDevice(handle_, nullptr);
}

void Core::check(VkResult result, const char* call) {
  if (result == VK_SUCCESS) return;
  const std::string what = std::string(call) + ": " + name_of(result) + " on " + profile().name;
  if (result == VK_ERROR_DEVICE_LOST) {
    lost_in_ = call;
    throw DeviceLost(what);
  }
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY)
    throw OutOfDeviceMemory(what, 0, profile().global_memory);
  throw DeviceError(what);
}

void Core::require_alive() const {
  if (const char* call = lost_in_.load()) {
    throw DeviceLost(profile().name + " was lost earlier: " + call + " gave VK_ERROR_DEVICE_LOST");
  }
  require_usable_driver();
}

void Core::submit(VkCommandBuffer commands, VkFence fence, const Semaphores& semaphores) {
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = commands == VK_NULL_HANDLE ? 0 : 1;
  info.pCommandBuffers = &commands;
  VkTimelineSemaphoreSubmitInfo timeline{};
  SubmittedPoints waits(semaphores.waits), signals(semaphores.signals);
  if (!semaphores.waits.empty() || !semaphores.signals.empty()) {
    timeline.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO;
    timeline.waitSemaphoreValueCount = static_cast<std::uint32_t>(waits.values.size());
    timeline.pWaitSemaphoreValues = waits.values.data();
    timeline.signalSemaphoreValueCount = static_cast<std::uint32_t>(signals.values.size());
    timeline.pSignalSemaphoreValues = signals.values.data();
    info.pNext = &timeline;
    info.waitSemaphoreCount = timeline.waitSemaphoreValueCount;
    info.pWaitSemaphores = waits.semaphores.data();
    info.pWaitDstStageMask = waits.stages.data();
    info.signalSemaphoreCount = timeline.signalSemaphoreValueCount;
    info.pSignalSemaphores = signals.semaphores.data();
  }
  const std::lock_guard lock(queue_mutex_);
  const ForeignLock foreign_lock(foreign_);
  check(vk().QueueSubmit(queue_, 1, &info, fence), "vkQueueSubmit");
}

void Core::wait(VkFence fence) {
  const VkResult result =
      vk().WaitForFences(handle_, 1, &fence, VK_TRUE, kWaitSeconds * 1'000'000'000);
  if (result == VK_TIMEOUT) {
    throw DeviceError("vkWaitForFences: VK_TIMEOUT, " + profile().name + " is not done after " +
                      std::to_string(kWaitSeconds) + " seconds");
  }
  check(result, "vkWaitForFences");
}

bool Core::count_allocation() {
  if (++allocations_ <= physical_->limits.maxMemoryAllocationCount) return true;
  --allocations_;
  return false;
}

void Core::name_pipeline(VkPipeline pipeline, const std::string& name) const {
  if (set_name_ == nullptr) return;
  VkDebugUtilsObjectNameInfoEXT info{};
  info.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT;
  info.objectType = VK_OBJECT_TYPE_PIPELINE;
  // A pointer on some machines, an integer on others.
  std::memcpy(&info.objectHandle, &pipeline,
              sizeof(pipeline));  // NOLINT(bugprone-sizeof-expression)
  info.pObjectName = name.c_str();
  set_name_(handle_, &info);
}

void Core::begin_label(VkCommandBuffer commands, const std::string& name) const {
  if (begin_label_ == nullptr) return;
  VkDebugUtilsLabelEXT label{};
  label.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT;
  label.pLabelName = name.c_str();
  begin_label_(commands, &label);
}

void Core::end_label(VkCommandBuffer commands) const {
  if (end_label_ != nullptr) end_label_(commands);
}

}  // namespace tessera::device::vulkan
