// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/batch.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "tessera/error.hpp"

namespace tessera::device::vulkan {
namespace {

constexpr std::uint32_t kSetsPerPool = 32;
constexpr std::uint32_t kDescriptorsPerPool = 512;
constexpr std::uint64_t kArgumentBytes = std::uint64_t{1} << 14;

constexpr VkPipelineStageFlags kWorkStages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kReads = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

void record_memory_barrier(VkCommandBuffer commands, VkPipelineStageFlags next,
                           VkAccessFlags access) {
  VkMemoryBarrier barrier{};
  barrier.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  barrier.srcAccessMask = kWrites;
  barrier.dstAccessMask = access;
  vkCmdPipelineBarrier(commands, kWorkStages, next, 0, 1, &barrier, 0, nullptr, 0, nullptr);
}

}  // namespace

void record_barrier(VkCommandBuffer commands) {
  record_memory_barrier(commands, kWorkStages, kReads | kWrites);
}

Batch::Batch(std::shared_ptr<Core> core) : core_(std::move(core)) {
  const VkDevice device = core_->handle();
  VkCommandPoolCreateInfo pool_info{};
  pool_info.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool_info.flags = VK_COMMAND_POOL_CREATE_TRANSIENT_BIT;
  pool_info.queueFamilyIndex = core_->physical().queue_family;
  VkCommandPool pool = VK_NULL_HANDLE;
  core_->check(vkCreateCommandPool(device, &pool_info, nullptr, &pool), "vkCreateCommandPool");
  command_pool_ = CommandPoolHandle(device, pool);
  VkCommandBufferAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  info.commandPool = pool;
  info.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  info.commandBufferCount = 1;
  core_->check(vkAllocateCommandBuffers(device, &info, &commands_), "vkAllocateCommandBuffers");
  VkFenceCreateInfo fence_info{};
  fence_info.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
  VkFence fence = VK_NULL_HANDLE;
  core_->check(vkCreateFence(device, &fence_info, nullptr, &fence), "vkCreateFence");
  fence_ = FenceHandle(device, fence);
}

void Batch::begin() {
  core_->check(vkResetCommandPool(core_->handle(), command_pool_.get(), 0), "vkResetCommandPool");
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  info.flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  core_->check(vkBeginCommandBuffer(commands_, &info), "vkBeginCommandBuffer");
  state_ = State::kRecording;
}

void Batch::submit() {
  try {
    // The fence says that the writes are done; only a barrier shows them to the mapped host.
    record_memory_barrier(commands_, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    core_->check(vkEndCommandBuffer(commands_), "vkEndCommandBuffer");
    const VkFence fence = fence_.get();
    core_->check(vkResetFences(core_->handle(), 1, &fence), "vkResetFences");
    core_->submit(commands_, fence);
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
  const VkResult result = vkGetFenceStatus(core_->handle(), fence_.get());
  if (result == VK_NOT_READY) return false;
  core_->check(result, "vkGetFenceStatus");
  retire();
  return true;
}

void Batch::abandon() noexcept {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const VkFence fence = fence_.get();
  if (pending()) vkWaitForFences(core_->handle(), 1, &fence, VK_TRUE, kSecond);
  retire();
}

void Batch::retire() noexcept {
  for (const auto& buffer : buffers_) buffer->end_use();
  buffers_.clear();
  pipelines_.clear();
  if (driver_usable()) {
    for (const DescriptorPoolHandle& pool : pools_) {
      vkResetDescriptorPool(core_->handle(), pool.get(), 0);  // never fails
    }
  }
  pool_ = 0;
  arguments_used_ = 0;
  recorded_ = 0;
  state_ = State::kIdle;
}

void Batch::keep(std::shared_ptr<VulkanBuffer> buffer) {
  buffers_.push_back(std::move(buffer));
  buffers_.back()->begin_use();
}

void Batch::keep(std::shared_ptr<const Pipeline> pipeline) {
  if (!pipelines_.empty() && pipelines_.back() == pipeline) return;
  pipelines_.push_back(std::move(pipeline));
}

VkDescriptorSet Batch::descriptor_set(const Pipeline& pipeline,
                                      std::span<VulkanBuffer* const> buffers,
                                      std::span<const std::byte> arguments) {
  buffer_infos_.clear();
  for (const VulkanBuffer* buffer : buffers) {
    buffer_infos_.push_back({buffer->handle(), 0, buffer->capacity()});
  }
  if (!arguments.empty()) {
    const ArgumentSlot slot = store_arguments(arguments);
    buffer_infos_.push_back({slot.buffer, slot.offset, arguments.size()});
  }
  const VkDescriptorSet set = allocate_set(pipeline);
  writes_.assign(1, VkWriteDescriptorSet{});
  writes_.resize(buffer_infos_.size());
  for (std::size_t i = 0; i < writes_.size(); ++i) {
    writes_[i] = {};
    writes_[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
    writes_[i].dstSet = set;
    writes_[i].dstBinding = static_cast<std::uint32_t>(i);
    writes_[i].descriptorCount = 1;
    writes_[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
    writes_[i].pBufferInfo = &buffer_infos_[i];
  }
  vkUpdateDescriptorSets(core_->handle(), static_cast<std::uint32_t>(writes_.size()),
                         writes_.data(), 0, nullptr);
  return set;
}

VkDescriptorSet Batch::allocate_set(const Pipeline& pipeline) {
  const VkDescriptorSetLayout layout = pipeline.set_layout.get();
  VkDescriptorSetAllocateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  info.descriptorSetCount = 1;
  info.pSetLayouts = &layout;
  for (;; ++pool_) {
    const bool fresh = pool_ == pools_.size();
    if (fresh) add_pool(std::max(kDescriptorsPerPool, pipeline.descriptors()));
    info.descriptorPool = pools_[pool_].get();
    VkDescriptorSet set = VK_NULL_HANDLE;
    const VkResult result = vkAllocateDescriptorSets(core_->handle(), &info, &set);
    if (result == VK_SUCCESS) return set;
    const bool full = result == VK_ERROR_OUT_OF_POOL_MEMORY || result == VK_ERROR_FRAGMENTED_POOL;
    if (!full || fresh) core_->check(result, "vkAllocateDescriptorSets");
  }
}

void Batch::add_pool(std::uint32_t descriptors) {
  const VkDescriptorPoolSize size{.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                  .descriptorCount = descriptors};
  VkDescriptorPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  info.maxSets = kSetsPerPool;
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  VkDescriptorPool pool = VK_NULL_HANDLE;
  core_->check(vkCreateDescriptorPool(core_->handle(), &info, nullptr, &pool),
               "vkCreateDescriptorPool");
  pools_.emplace_back(core_->handle(), pool);
}

Batch::ArgumentSlot Batch::store_arguments(std::span<const std::byte> arguments) {
  const std::uint64_t alignment =
      std::max<std::uint64_t>(core_->physical().limits.minStorageBufferOffsetAlignment, 16);
  std::uint64_t offset = (arguments_used_ + alignment - 1) / alignment * alignment;
  if (!arguments_ || offset + arguments.size() > arguments_->size()) {
    // A full one stays with the launches that read it, in buffers_.
    const std::uint64_t grown = arguments_ ? 2 * arguments_->size() : kArgumentBytes;
    arguments_ = VulkanBuffer::create(core_, std::max<std::uint64_t>(grown, arguments.size()),
                                      MemoryUse::kArguments);
    offset = 0;
  }
  keep(arguments_);
  std::memcpy(arguments_->mapped() + offset, arguments.data(), arguments.size());
  arguments_used_ = offset + arguments.size();
  return {arguments_->handle(), offset};
}

}  // namespace tessera::device::vulkan
