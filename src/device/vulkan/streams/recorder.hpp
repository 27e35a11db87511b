// SPDX-License-Identifier: Apache-2.0
// Launches that are recorded into a command buffer of the application.
#pragma once

#include <memory>

#include "device/device.hpp"
#include "device/vulkan/streams/launcher.hpp"

namespace tessera::device::vulkan {

// What the commands use lives until restart(), or as long as the recorder. It submits nothing and
// waits for nothing: what would have to is refused with InvalidArgument.
class Recorder final : public Stream {
 public:
  Recorder(std::shared_ptr<Core> core, std::shared_ptr<VulkanBuffer> absent,
           VkCommandBuffer commands);

  void upload(Buffer& target, std::uint64_t offset, std::span<const std::byte> bytes) override;
  void download(const Buffer& source, std::uint64_t offset, std::span<std::byte> bytes) override;
  void copy(const Buffer& source, std::uint64_t source_offset, Buffer& target,
            std::uint64_t target_offset, std::uint64_t bytes) override;
  void fill(Buffer& target, std::uint64_t offset, std::uint64_t bytes, std::uint8_t value) override;
  void launch(const Launch& launch) override;
  void flush() override {}
  void synchronize() override;
  double time(const std::function<void()>& work) override;

  // When what was recorded is done: lets go of what it used, and records there from now on.
  void restart(VkCommandBuffer commands);

 private:
  std::shared_ptr<Core> core_;  // first, so that it goes last
  Launcher launcher_;
  Holdings held_;
  VkCommandBuffer commands_;
};

}  // namespace tessera::device::vulkan
