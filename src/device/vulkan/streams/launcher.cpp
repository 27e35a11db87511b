// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/streams/launcher.hpp"

#include <array>
#include <string>

#include "tessera/error.hpp"

namespace tessera::device::vulkan {
std::string range_text(std::uint64_t offset, std::uint64_t bytes) {
  return "[" + std::to_string(offset) + ", " + std::to_string(offset) + " + " +
         std::to_string(bytes) + ")";
}

VulkanBuffer& Launcher::own(const Buffer& buffer, std::uint64_t offset, std::uint64_t bytes,
                            const char* what) const {
  // Streams change what const buffers keep of their use, never their contents.
  auto* mine = dynamic_cast<VulkanBuffer*>(const_cast<Buffer*>(&buffer));
  if (mine == nullptr || &mine->core() != core_.get()) {
    throw InvalidArgument(std::string(what) + ": the buffer belongs to another device");
  }
  if (offset > buffer.size() || bytes > buffer.size() - offset) {
    throw InvalidArgument(std::string(what) + ": bytes " + range_text(offset, bytes) +
                          " of a buffer of " + std::to_string(buffer.size()));
  }
  return *mine;
}

const Pipeline& Launcher::check(const Launch& launch) {
  const auto* program = dynamic_cast<const VulkanProgram*>(launch.program);
  if (program == nullptr || program->pipeline()->core != core_) {
    throw InvalidArgument("launch: the program belongs to another device");
  }
  const Pipeline& pipeline = *program->pipeline();
  const auto refuse = [&](const std::string& why) {
    throw InvalidArgument("launch of '" + pipeline.name + "': " + why);
  };
  if (launch.buffers.size() != pipeline.bindings) {
    refuse(std::to_string(launch.buffers.size()) + " buffers instead of " +
           std::to_string(pipeline.bindings));
  }
  if (launch.arguments.size() != pipeline.argument_bytes) {
    refuse(std::to_string(launch.arguments.size()) + " bytes of arguments instead of " +
           std::to_string(pipeline.argument_bytes));
  }
  if (launch.group != pipeline.group) {
    refuse("its work-group size differs from the one that it was built with");
  }
  const DeviceProfile& profile = core_->profile();
  const std::array<std::uint32_t, 3> groups{launch.groups.x, launch.groups.y, launch.groups.z};
  for (std::size_t axis = 0; axis < groups.size(); ++axis) {
    if (groups[axis] == 0) refuse("no work-groups along axis " + std::to_string(axis));
    if (groups[axis] > profile.max_groups[axis]) {
      refuse(std::to_string(groups[axis]) + " work-groups along axis " + std::to_string(axis) +
             "; maxComputeWorkGroupCount of " + profile.name + " is " +
             std::to_string(profile.max_groups[axis]));
    }
  }
  bound_.clear();
  for (const BufferPtr& buffer : launch.buffers) {
    bound_.push_back(buffer ? &own(*buffer, 0, 0, "launch") : absent_.get());
    if (bound_.back()->capacity() > profile.max_binding) {
      refuse("a buffer of " + std::to_string(buffer->size()) + " bytes; maxStorageBufferRange of " +
             profile.name + " is " + std::to_string(profile.max_binding));
    }
  }
  return pipeline;
}

VkDescriptorSet Launcher::bind(const Launch& launch, const Pipeline& pipeline, Holdings& held) {
  const auto in_buffer =
      pipeline.arguments_in_buffer ? launch.arguments : std::span<const std::byte>();
  const VkDescriptorSet set = pipeline.descriptors() == 0
                                  ? VkDescriptorSet{}
                                  : held.descriptor_set(pipeline, bound_, in_buffer);
  for (VulkanBuffer* buffer : bound_) held.keep(buffer->shared_from_this());
  held.keep(static_cast<const VulkanProgram*>(launch.program)->pipeline());
  return set;
}

void Launcher::record(VkCommandBuffer commands, const Launch& launch, const Pipeline& pipeline,
                      VkDescriptorSet set) const {
  const Functions& vk = core_->vk();
  core_->begin_label(commands, pipeline.name);
  vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.handle.get());
  if (set != VkDescriptorSet{}) {
    vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout.get(), 0, 1,
                             &set, 0, nullptr);
  }
  if (!launch.arguments.empty() && !pipeline.arguments_in_buffer) {
    vk.CmdPushConstants(commands, pipeline.layout.get(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                        static_cast<std::uint32_t>(launch.arguments.size()),
                        launch.arguments.data());
  }
  const Dim3& groups = launch.groups;
  if (const Part& part = launch.part; part.count != 0) {
    std::array<std::uint32_t, 3> first{}, count{groups.x, groups.y, groups.z};
    first.at(part.axis) = part.first;
    count.at(part.axis) = part.count;
    vk.CmdDispatchBase(commands, first[0], first[1], first[2], count[0], count[1], count[2]);
  } else {
    vk.CmdDispatch(commands, groups.x, groups.y, groups.z);
  }
  core_->end_label(commands);
}

}  // namespace tessera::device::vulkan
