// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "device/device.hpp"
#include "device/vulkan/core.hpp"
#include "device/vulkan/memory/memory.hpp"

namespace tessera::device::vulkan {

class VulkanDevice final : public Device {
 public:
  explicit VulkanDevice(std::shared_ptr<Core> core);
  const DeviceProfile& profile() const override { return core_->profile(); }
  BufferPtr create_buffer(std::uint64_t bytes) override;
  std::unique_ptr<Stream> create_stream() override;
  ProgramPtr build(const ProgramRequest& request, BlobStore& store) override;

  const std::shared_ptr<Core>& core() const { return core_; }
  const std::shared_ptr<VulkanBuffer>& absent() const { return absent_; }

 private:
  std::shared_ptr<Core> core_;
  std::shared_ptr<VulkanBuffer> absent_;  // stands for operands that a call does not have
};

}  // namespace tessera::device::vulkan
