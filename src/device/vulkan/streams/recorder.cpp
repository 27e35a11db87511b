// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/streams/recorder.hpp"

#include <string>

#include "device/vulkan/streams/batch.hpp"
#include "tessera/error.hpp"

namespace tessera::device::vulkan {
namespace {

[[noreturn]] void refuse(const char* what) {
  throw InvalidArgument(std::string("a stream that records into a command buffer of the "
                                    "application can't ") +
                        what);
}

VkCommandBuffer checked(VkCommandBuffer commands) {
  if (commands == VK_NULL_HANDLE) throw InvalidArgument("the VkCommandBuffer is null");
  return commands;
}

}  // namespace

Recorder::Recorder(std::shared_ptr<Core> core, std::shared_ptr<VulkanBuffer> absent,
                   VkCommandBuffer commands)
    : core_(std::move(core)),
      launcher_(core_, std::move(absent)),
      held_(core_),
      commands_(checked(commands)) {}

void Recorder::upload(Buffer&, std::uint64_t, std::span<const std::byte>) { refuse("upload"); }
void Recorder::download(const Buffer&, std::uint64_t, std::span<std::byte>) { refuse("download"); }
void Recorder::copy(const Buffer&, std::uint64_t, Buffer&, std::uint64_t, std::uint64_t) {
  refuse("copy");
}
void Recorder::fill(Buffer&, std::uint64_t, std::uint64_t, std::uint8_t) {
  refuse(
      "keep error words of its own: hand it an error log (Executor::with_errors, "
      "tessera_stream_set_error_log)");
}
void Recorder::synchronize() { refuse("wait: whoever submits the command buffer does"); }
double Recorder::time(const std::function<void()>&) { refuse("measure time"); }

void Recorder::launch(const Launch& launch) {
  core_->require_alive();
  const Pipeline& pipeline = launcher_.check(launch);
  const VkDescriptorSet set = launcher_.bind(launch, pipeline, held_);
  record_barrier(*core_, commands_);
  launcher_.record(commands_, launch, pipeline, set);
}

void Recorder::restart(VkCommandBuffer commands) {
  core_->require_alive();
  commands_ = checked(commands);
  held_.release();
}

}  // namespace tessera::device::vulkan
