// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan/programs/program.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "base/system/log.hpp"
#include "device/vulkan/programs/loops.hpp"
#include "device/vulkan/programs/pipeline_cache.hpp"
#include "device/vulkan/programs/spirv.hpp"
#include "tessera/error.hpp"

namespace tessera::device::vulkan {
namespace {

using Constants = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

std::string feature_list(Feature features) {
  std::string text;
  for (const FeatureName& known : feature_names()) {
    if (has(features, known.feature)) text += (text.empty() ? "" : ", ") + std::string(known.name);
  }
  return text;
}

std::uint32_t newest_spirv(std::uint32_t api_version) {
  if (api_version >= VK_API_VERSION_1_3) return 0x00010600;
  return api_version >= VK_API_VERSION_1_2 ? 0x00010500 : 0x00010300;
}

bool takes_argument_buffer(const PhysicalDevice& device, const ProgramRequest& request) {
  return request.argument_bytes > std::min(kMaxPushBytes, device.limits.maxPushConstantsSize);
}

// Why the driver must not see this request; empty = it may.
std::string refusal(const PhysicalDevice& device, const ProgramRequest& request,
                    const ModuleFacts& facts) {
  if (!facts.fault.empty()) return facts.fault;
  const DeviceProfile& profile = device.profile;
  if (facts.version > newest_spirv(device.api_version)) {
    return "its SPIR-V is newer than Vulkan " + version_text(device.api_version) + " takes";
  }
  if (!facts.unsupported.empty()) {
    return "it needs the SPIR-V capability " + facts.unsupported +
           ", which Tessera does not enable";
  }
  if (!has(profile.features, facts.needs)) {
    return "it needs " + feature_list(without(facts.needs, profile.features)) + ", which " +
           profile.name + " lacks";
  }
  if ((facts.subgroup_operations & ~device.subgroup_operations) != 0) {
    return "it needs sub-group operations that " + profile.name + " lacks";
  }
  const VkPhysicalDeviceLimits& limits = device.limits;
  const std::array<std::uint32_t, 3> group{request.group.x, request.group.y, request.group.z};
  std::uint64_t invocations = 1;
  for (std::size_t axis = 0; axis < group.size(); ++axis) {
    const std::uint32_t limit = limits.maxComputeWorkGroupSize[axis];
    if (group[axis] == 0 || group[axis] > limit) {
      return "a work-group of " + std::to_string(group[axis]) + " along axis " +
             std::to_string(axis) + "; maxComputeWorkGroupSize is " + std::to_string(limit);
    }
    invocations *= group[axis];
  }
  if (invocations > limits.maxComputeWorkGroupInvocations) {
    return "a work-group of " + std::to_string(invocations) +
           " work-items; maxComputeWorkGroupInvocations is " +
           std::to_string(limits.maxComputeWorkGroupInvocations);
  }
  if (request.argument_bytes % 4 != 0) {
    return "an argument struct of " + std::to_string(request.argument_bytes) +
           " bytes, which is no multiple of 4";
  }
  const bool argument_buffer = takes_argument_buffer(device, request);
  if (argument_buffer && facts.takes_push_constants) {
    return "an argument struct of " + std::to_string(request.argument_bytes) +
           " bytes, which lies in a buffer, and its shader takes push constants";
  }
  const std::uint32_t buffers = request.bindings + (argument_buffer ? 1 : 0);
  const std::uint32_t most =
      std::min({limits.maxPerStageDescriptorStorageBuffers, limits.maxDescriptorSetStorageBuffers,
                limits.maxPerStageResources});
  if (buffers > most) {
    return std::to_string(buffers) + " buffers; maxPerStageDescriptorStorageBuffers is " +
           std::to_string(most);
  }
  return "";
}

void create_layouts(Core& core, Pipeline& pipeline) {
  const VkDevice device = core.handle();
  std::vector<VkDescriptorSetLayoutBinding> bindings(pipeline.descriptors());
  for (std::uint32_t i = 0; i < bindings.size(); ++i) {
    bindings[i] = {.binding = i,
                   .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                   .descriptorCount = 1,
                   .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                   .pImmutableSamplers = nullptr};
  }
  VkDescriptorSetLayoutCreateInfo set_info{};
  set_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set_info.bindingCount = static_cast<std::uint32_t>(bindings.size());
  set_info.pBindings = bindings.data();
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  core.check(core.vk().CreateDescriptorSetLayout(device, &set_info, nullptr, &set_layout),
             "vkCreateDescriptorSetLayout");
  pipeline.set_layout = SetLayoutHandle(core, set_layout);

  const bool push = pipeline.argument_bytes != 0 && !pipeline.arguments_in_buffer;
  const VkPushConstantRange range{
      .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .offset = 0, .size = pipeline.argument_bytes};
  VkPipelineLayoutCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  info.setLayoutCount = 1;
  info.pSetLayouts = &set_layout;
  info.pushConstantRangeCount = push ? 1 : 0;
  info.pPushConstantRanges = &range;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  core.check(core.vk().CreatePipelineLayout(device, &info, nullptr, &layout),
             "vkCreatePipelineLayout");
  pipeline.layout = PipelineLayoutHandle(core, layout);
}

// Ids 0 to 2 are the work-group size, whatever the request says of them.
Constants all_constants(const ProgramRequest& request) {
  Constants constants{{0, request.group.x}, {1, request.group.y}, {2, request.group.z}};
  for (const auto& constant : request.specialization) {
    if (std::ranges::find(constants, constant.first, &Constants::value_type::first) ==
        constants.end()) {
      constants.push_back(constant);
    }
  }
  return constants;
}

// Kernels that exchange values in a sub-group index it by the profile's size: they get that size,
// without holes where rows of the work-group allow it. For the others the driver chooses.
VkPipelineShaderStageCreateFlags subgroup_flags(const PhysicalDevice& device, const Dim3& group) {
  const bool whole_rows = group.x % device.profile.subgroup_size == 0;
  if (!device.full_subgroups || !whole_rows) return 0;
  return VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT;
}

bool may_require_subgroups(const PhysicalDevice& device, const Dim3& group) {
  const std::uint64_t invocations = std::uint64_t{group.x} * group.y * group.z;
  return device.require_subgroups &&
         invocations <= std::uint64_t{device.profile.subgroup_size} * device.max_subgroups;
}

void create_pipeline(Core& core, Pipeline& pipeline, const ProgramRequest& request,
                     const ModuleFacts& facts, PipelineCache& cache) {
  const VkDevice device = core.handle();
  VkShaderModuleCreateInfo module_info{};
  module_info.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module_info.codeSize = request.spirv.size_bytes();
  module_info.pCode = request.spirv.data();
  VkShaderModule module_handle = VK_NULL_HANDLE;
  core.check(core.vk().CreateShaderModule(device, &module_info, nullptr, &module_handle),
             "vkCreateShaderModule");
  const ShaderModuleHandle module(core, module_handle);

  const Constants constants = all_constants(request);
  std::vector<VkSpecializationMapEntry> entries;
  std::vector<std::uint32_t> values;
  for (const auto& [id, value] : constants) {
    entries.push_back({.constantID = id,
                       .offset = static_cast<std::uint32_t>(values.size() * sizeof(value)),
                       .size = sizeof(value)});
    values.push_back(value);
  }
  const VkSpecializationInfo specialization{
      .mapEntryCount = static_cast<std::uint32_t>(entries.size()),
      .pMapEntries = entries.data(),
      .dataSize = values.size() * sizeof(std::uint32_t),
      .pData = values.data()};
  VkPipelineShaderStageRequiredSubgroupSizeCreateInfo subgroup{};
  subgroup.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO;
  subgroup.requiredSubgroupSize = core.profile().subgroup_size;
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = module.get();
  info.stage.pName = request.entry.c_str();
  info.stage.pSpecializationInfo = &specialization;
  if (facts.subgroup_operations != 0 && may_require_subgroups(core.physical(), request.group)) {
    info.stage.pNext = &subgroup;
    info.stage.flags = subgroup_flags(core.physical(), request.group);
  }
  if (request.grid) info.flags |= VK_PIPELINE_CREATE_DISPATCH_BASE;
  info.layout = pipeline.layout.get();
  VkPipeline handle = VK_NULL_HANDLE;
  VkResult result =
      core.vk().CreateComputePipelines(device, cache.get(), 1, &info, nullptr, &handle);
  if (result != VK_SUCCESS && result != VK_ERROR_DEVICE_LOST && cache.warm()) {
    cache.forget();
    result = core.vk().CreateComputePipelines(device, cache.get(), 1, &info, nullptr, &handle);
  }
  core.check(result, "vkCreateComputePipelines");
  pipeline.handle = PipelineHandle(core, handle);
}

}  // namespace

std::shared_ptr<const Pipeline> build_pipeline(const std::shared_ptr<Core>& core,
                                               const ProgramRequest& given, BlobStore& store) {
  core->require_alive();
  ProgramRequest request = given;
  const ModuleFacts facts = examine_module(request.spirv, request.entry);
  const std::string refused = refusal(core->physical(), request, facts);
  if (!refused.empty()) throw BuildError("program '" + request.name + "': " + refused);

  std::vector<std::uint32_t> words;
  if (request.grid) {
    words = with_group_counts(request.spirv, *request.grid);
    request.spirv = words;
  }
  if (core->profile().kind == DeviceKind::kCpu) {
    words = with_loops_kept(request.spirv);
    request.spirv = words;
  }
  auto pipeline = std::make_shared<Pipeline>();
  pipeline->core = core;
  pipeline->name = request.name;
  pipeline->bindings = request.bindings;
  pipeline->argument_bytes = request.argument_bytes;
  pipeline->arguments_in_buffer = takes_argument_buffer(core->physical(), request);
  pipeline->group = request.group;
  try {
    create_layouts(*core, *pipeline);
    PipelineCache cache(*core, cache_key(core->physical(), request), store);
    create_pipeline(*core, *pipeline, request, facts, cache);
    log(LogLevel::kDebug,
        "vulkan: built '" + request.name + "'" + (cache.warm() ? " from the cache" : ""));
    cache.save();
  } catch (const DeviceLost&) {
    throw;
  } catch (const Error& error) {
    throw BuildError("program '" + request.name + "': " + error.what());
  }
  core->name_pipeline(pipeline->handle.get(), request.name);
  return pipeline;
}

}  // namespace tessera::device::vulkan
