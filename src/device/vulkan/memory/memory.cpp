// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/memory/memory.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "tessera/error.hpp"

namespace tessera::device::vulkan {
namespace {

constexpr VkMemoryPropertyFlags kMappable =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

// Negative = doesn't serve.
int score(VkMemoryPropertyFlags flags, MemoryUse use, DeviceKind kind) {
  constexpr VkMemoryPropertyFlags kOrdinary =
      VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT | kMappable | VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  if ((flags & ~kOrdinary) != 0) return -1;  // protected, lazily allocated, or a vendor's special
  const bool local = (flags & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT) != 0;
  const bool mappable = (flags & kMappable) == kMappable;
  const bool cached = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
  switch (use) {
    case MemoryUse::kDevice:
      if (!local) return -1;
      // What a card shows the host of its memory can be a small window, and reads through it crawl.
      if (kind == DeviceKind::kDiscreteGpu) return mappable ? 0 : 1;
      return (mappable ? 2 : 0) + (mappable && cached ? 1 : 0);
    case MemoryUse::kStaging:
      return !mappable ? -1 : (cached ? 2 : 0) + (local ? 0 : 1);
    case MemoryUse::kArguments:
      return !mappable ? -1 : (local ? 1 : 0);
  }
  return -1;
}

}  // namespace

std::vector<std::uint32_t> choose_memory_types(const VkPhysicalDeviceMemoryProperties& memory,
                                               std::uint32_t allowed, MemoryUse use,
                                               DeviceKind kind) {
  std::vector<std::uint32_t> types;
  const auto rank = [&](std::uint32_t type) {
    const VkMemoryType& properties = memory.memoryTypes[type];
    return std::pair(score(properties.propertyFlags, use, kind),
                     memory.memoryHeaps[properties.heapIndex].size);
  };
  for (std::uint32_t type = 0; type < memory.memoryTypeCount; ++type) {
    if ((allowed >> type & 1) != 0 && rank(type).first >= 0) types.push_back(type);
  }
  std::ranges::stable_sort(types, std::greater<>(), rank);
  return types;
}

std::shared_ptr<VulkanBuffer> VulkanBuffer::create(std::shared_ptr<Core> core, std::uint64_t bytes,
                                                   MemoryUse use) {
  core->require_alive();
  std::shared_ptr<VulkanBuffer> buffer(new VulkanBuffer(std::move(core), bytes));
  buffer->allocate(use);
  return buffer;
}

VulkanBuffer::VulkanBuffer(std::shared_ptr<Core> core, std::uint64_t bytes)
    : Buffer(bytes),
      core_(std::move(core)),
      capacity_(std::max<std::uint64_t>((bytes + 3) & ~std::uint64_t{3}, 4)) {}

VulkanBuffer::VulkanBuffer(std::shared_ptr<Core> core, std::uint64_t bytes, const Shared& shared)
    : Buffer(bytes, shared), core_(std::move(core)), capacity_(bytes) {}

std::shared_ptr<VulkanBuffer> VulkanBuffer::adopt(std::shared_ptr<Core> core, VkBuffer buffer,
                                                  std::uint64_t offset, std::uint64_t bytes) {
  // A handle is a pointer on some machines, an integer on others: either way it tells buffers
  // apart.
  const void* storage = nullptr;
  static_assert(sizeof(buffer) >= sizeof(storage));
  std::memcpy(&storage, &buffer, sizeof storage);
  std::shared_ptr<VulkanBuffer> made(
      new VulkanBuffer(std::move(core), bytes, {.storage = storage, .origin = offset}));
  made->foreign_ = buffer;
  made->foreign_offset_ = offset;
  return made;
}

VulkanBuffer::~VulkanBuffer() {
  if (counted_) core_->uncount_allocation();
}

void VulkanBuffer::allocate(MemoryUse use) {
  const VkDevice device = core_->handle();
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = capacity_;
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
               VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  info.sharingMode = VK_SHARING_MODE_EXCLUSIVE;
  VkBuffer buffer = VK_NULL_HANDLE;
  const auto out_of_memory = [&](const char* call, VkResult result) {
    const std::uint64_t limit = core_->profile().global_memory;
    throw OutOfDeviceMemory("a buffer of " + std::to_string(size()) + " bytes on " +
                                core_->profile().name + ": " + call + " gave " + name_of(result) +
                                "; the device has " + std::to_string(limit) + " bytes in all",
                            size(), limit);
  };
  VkResult result = core_->vk().CreateBuffer(device, &info, nullptr, &buffer);
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY) {
    out_of_memory("vkCreateBuffer", result);
  }
  core_->check(result, "vkCreateBuffer");
  handle_ = BufferHandle(*core_, buffer);

  counted_ = core_->count_allocation();
  if (!counted_) {
    const std::uint32_t limit = core_->physical().limits.maxMemoryAllocationCount;
    throw OutOfDeviceMemory("a buffer of " + std::to_string(size()) + " bytes on " +
                                core_->profile().name + ": there are already " +
                                std::to_string(limit) +
                                " buffers, as many as the driver takes (maxMemoryAllocationCount)",
                            size(), limit);
  }
  VkMemoryRequirements needs;
  core_->vk().GetBufferMemoryRequirements(device, buffer, &needs);
  const PhysicalDevice& physical = core_->physical();
  const std::vector<std::uint32_t> types =
      choose_memory_types(physical.memory, needs.memoryTypeBits, use, physical.profile.kind);
  if (types.empty()) throw DeviceError("no memory type of " + core_->profile().name + " serves");
  VkMemoryAllocateInfo allocation{};
  allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocation.allocationSize = needs.size;
  for (const std::uint32_t type : types) {
    allocation.memoryTypeIndex = type;
    VkDeviceMemory memory = VK_NULL_HANDLE;
    result = core_->vk().AllocateMemory(device, &allocation, nullptr, &memory);
    if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY || result == VK_ERROR_OUT_OF_HOST_MEMORY) continue;
    core_->check(result, "vkAllocateMemory");
    memory_ = MemoryHandle(*core_, memory);
    const VkMemoryPropertyFlags flags = physical.memory.memoryTypes[type].propertyFlags;
    cached_ = (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
    // A card's window on its memory stays unused: copies are as fast, and read much faster.
    const bool map = use != MemoryUse::kDevice || physical.profile.kind != DeviceKind::kDiscreteGpu;
    core_->check(core_->vk().BindBufferMemory(device, buffer, memory, 0), "vkBindBufferMemory");
    if (map && (flags & kMappable) == kMappable) {
      void* address = nullptr;
      core_->check(core_->vk().MapMemory(device, memory, 0, VK_WHOLE_SIZE, 0, &address),
                   "vkMapMemory");
      mapped_ = static_cast<std::byte*>(address);
    }
    return;
  }
  out_of_memory("vkAllocateMemory", result);
}

}  // namespace tessera::device::vulkan
