// SPDX-License-Identifier: Apache-2.0
// Compute pipelines.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "device/device.hpp"
#include "device/vulkan/core.hpp"
#include "device/vulkan/handles.hpp"

namespace tessera::device::vulkan {

// Held by its program and by the batches that run it: a program may go while its launches run.
struct Pipeline {
  std::shared_ptr<Core> core;  // first, so that it goes last
  std::string name;
  std::uint32_t bindings = 0;
  std::uint32_t argument_bytes = 0;
  bool arguments_in_buffer = false;  // at binding `bindings`; otherwise push constants
  Dim3 group;
  SetLayoutHandle set_layout;
  PipelineLayoutHandle layout;
  PipelineHandle handle;

  std::uint32_t descriptors() const { return bindings + (arguments_in_buffer ? 1 : 0); }
};

class VulkanProgram final : public Program {
 public:
  explicit VulkanProgram(std::shared_ptr<const Pipeline> pipeline)
      : pipeline_(std::move(pipeline)) {}
  const std::shared_ptr<const Pipeline>& pipeline() const { return pipeline_; }

 private:
  std::shared_ptr<const Pipeline> pipeline_;
};

// Throws BuildError, or DeviceLost.
std::shared_ptr<const Pipeline> build_pipeline(const std::shared_ptr<Core>& core,
                                               const ProgramRequest& request, BlobStore& store);

// Longer arguments go through a buffer: every device takes 128 bytes of push constants, few more.
inline constexpr std::uint32_t kMaxPushBytes = 128;

}  // namespace tessera::device::vulkan
