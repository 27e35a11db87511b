// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/device.hpp"

#include <cstring>

#include "device/vulkan/programs/program.hpp"
#include "device/vulkan/streams/stream.hpp"

namespace tessera::device::vulkan {
namespace {

constexpr std::uint64_t kAbsentBytes = 64;

}  // namespace

VulkanDevice::VulkanDevice(std::shared_ptr<Core> core)
    : core_(std::move(core)),
      absent_(VulkanBuffer::create(core_, kAbsentBytes, MemoryUse::kArguments)) {
  std::memset(absent_->mapped(), 0, kAbsentBytes);
}

BufferPtr VulkanDevice::create_buffer(std::uint64_t bytes) {
  core_->require_alive();
  check_allocation(core_->profile(), bytes);
  return VulkanBuffer::create(core_, bytes, MemoryUse::kDevice);
}

std::unique_ptr<Stream> VulkanDevice::create_stream() {
  return std::make_unique<VulkanStream>(core_, absent_);
}

ProgramPtr VulkanDevice::build(const ProgramRequest& request, BlobStore& store) {
  return std::make_shared<VulkanProgram>(build_pipeline(core_, request, store));
}

}  // namespace tessera::device::vulkan
