// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/streams/batch.hpp"

#include <utility>

#include "tessera/error.hpp"

namespace tessera::device::vulkan {
namespace {

constexpr VkPipelineStageFlags kWorkStages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kReads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

void record_memory_barrier(const Core& core, VkCommandBuffer commands, VkPipelineStageFlags next,
                           VkAccessFlags access) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = kWrites;
  barrier.dstAccessMask = access;
  core.vk().CmdPipelineBarrier(commands, kWorkStages, next, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

}  // namespace

void record_barrier(const Core& core, VkCommandBuffer commands) {
  record_memory_barrier(core, commands, kWorkStages, kReads | kWrites);
}

Batch::Batch(std::shared_ptr<Core> core) : core_(std::move(core)), held_(core_) {
  const VkDevice device = core_->handle();
  VkCommandPoolCreateInfo pool_info{};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool_info.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
  pool_info.queueFamilyIndex = core_->physical().queue_family;
  VkCommandPool pool = VK_NULL_HANDLE;
  core_->check(core_->vk().CreateCommandPool(device, &pool_info, nullptr, &pool),
               "vkCreateCommandPool");
  command_pool_ = CommandPoolHandle(*core_, pool);
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  core_->check(core_->vk().AllocateCommandBuffers(device, &info, &commands_),
               "vkAllocateCommandBuffers");
  VkFenceCreateInfo fence_info{};
  fence_info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  VkFence fence = VK_NULL_HANDLE;
  core_->check(core_->vk().CreateFence(device, &fence_info, nullptr, &fence), "vkCreateFence");
  fence_ = FenceHandle(*core_, fence);
}

void Batch::begin() {
  core_->check(core_->vk().ResetCommandPool(core_->handle(), command_pool_.get(), 0),
               "vkResetCommandPool");
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  core_->check(core_->vk().BeginCommandBuffer(commands_, &info), "vkBeginCommandBuffer");
  state_ = State::kRecording;
}

void Batch::submit(const Semaphores& semaphores) {
  try {
    // The fence says that the writes are done; only a barrier shows them to the mapped host.
    record_memory_barrier(*core_, commands_, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    core_->check(core_->vk().EndCommandBuffer(commands_), "vkEndCommandBuffer");
    const VkFence fence = fence_.get();
    core_->check(core_->vk().ResetFences(core_->handle(), 1, &fence), "vkResetFences");
    core_->submit(commands_, fence, semaphores);
  } catch (...) {
    retire();
    throw;
  }
  state_ = State::kPending;
}

void Batch::wait() {
  if (!pending()) return;
  core_->wait(fence_.get());
  retire();
}

bool Batch::retire_if_done() {
  if (!pending()) return true;
  const VkResult result = core_->vk().GetFenceStatus(core_->handle(), fence_.get());
  if (result == VK_NOT_READY) return false;
  core_->check(result, "vkGetFenceStatus");
  retire();
  return true;
}

void Batch::abandon() noexcept {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const VkFence fence = fence_.get();
  if (pending()) core_->vk().WaitForFences(core_->handle(), 1, &fence, VK_TRUE, kSecond);
  retire();
}

void Batch::retire() noexcept {
  held_.release();
  recorded_ = 0;
  state_ = State::kIdle;
}

}  // namespace tessera::device::vulkan
