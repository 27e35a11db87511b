// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/memory/holdings.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tessera::device::vulkan {
namespace {

constexpr std::uint32_t kSetsPerPool = 32;
constexpr std::uint32_t kDescriptorsPerPool = 512;
constexpr std::uint64_t kArgumentBytes = std::uint64_t{1} << 14;

}  // namespace

void Holdings::release() noexcept {
  for (const auto& buffer : buffers_) buffer->end_use();
  buffers_.clear();
  pipelines_.clear();
  if (driver_usable()) {
    for (const DescriptorPoolHandle& pool : pools_) {
      core_->vk().ResetDescriptorPool(core_->handle(), pool.get(), 0);  // never fails
    }
  }
  pool_ = 0;
  argument_ = 0;
  arguments_used_ = 0;
}

void Holdings::keep(std::shared_ptr<VulkanBuffer> buffer) {
  buffers_.push_back(std::move(buffer));
  buffers_.back()->begin_use();
}

void Holdings::keep(std::shared_ptr<const Pipeline> pipeline) {
  if (!pipelines_.empty() && pipelines_.back() == pipeline) return;
  pipelines_.push_back(std::move(pipeline));
}

VkDescriptorSet Holdings::descriptor_set(const Pipeline& pipeline,
                                         std::span<VulkanBuffer* const> buffers,
                                         std::span<const std::byte> arguments) {
  buffer_infos_.clear();
  for (const VulkanBuffer* buffer : buffers) {
    buffer_infos_.push_back({buffer->handle(), buffer->offset(), buffer->capacity()});
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
  core_->vk().UpdateDescriptorSets(core_->handle(), static_cast<std::uint32_t>(writes_.size()),
                                   writes_.data(), 0, nullptr);
  return set;
}

VkDescriptorSet Holdings::allocate_set(const Pipeline& pipeline) {
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
    const VkResult result = core_->vk().AllocateDescriptorSets(core_->handle(), &info, &set);
    if (result == VK_SUCCESS) return set;
    const bool full = result == VK_ERROR_OUT_OF_POOL_MEMORY || result == VK_ERROR_FRAGMENTED_POOL;
    if (!full || fresh) core_->check(result, "vkAllocateDescriptorSets");
  }
}

void Holdings::add_pool(std::uint32_t descriptors) {
  const VkDescriptorPoolSize size{.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                  .descriptorCount = descriptors};
  VkDescriptorPoolCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  info.maxSets = kSetsPerPool;
  info.poolSizeCount = 1;
  info.pPoolSizes = &size;
  VkDescriptorPool pool = VK_NULL_HANDLE;
  core_->check(core_->vk().CreateDescriptorPool(core_->handle(), &info, nullptr, &pool),
               "vkCreateDescriptorPool");
  pools_.emplace_back(*core_, pool);
}

Holdings::ArgumentSlot Holdings::store_arguments(std::span<const std::byte> arguments) {
  const std::uint64_t alignment =
      std::max<std::uint64_t>(core_->physical().limits.minStorageBufferOffsetAlignment, 16);
  std::uint64_t offset = (arguments_used_ + alignment - 1) / alignment * alignment;
  while (argument_ < arguments_.size() &&
         offset + arguments.size() > arguments_[argument_]->size()) {
    ++argument_;
    offset = 0;
  }
  if (argument_ == arguments_.size()) {
    const std::uint64_t grown = arguments_.empty() ? kArgumentBytes : 2 * arguments_.back()->size();
    arguments_.push_back(VulkanBuffer::create(
        core_, std::max<std::uint64_t>(grown, arguments.size()), MemoryUse::kArguments));
    offset = 0;
  }
  const std::shared_ptr<VulkanBuffer>& buffer = arguments_[argument_];
  keep(buffer);
  std::memcpy(buffer->mapped() + offset, arguments.data(), arguments.size());
  arguments_used_ = offset + arguments.size();
  return {buffer->handle(), offset};
}

}  // namespace tessera::device::vulkan
