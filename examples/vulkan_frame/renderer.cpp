// SPDX-License-Identifier: Apache-2.0
#include "renderer.hpp"

#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::uint32_t kWords[] = {
#include "wave.spv.inc"
};

struct Push {
  std::uint32_t count;
  float factor, shift;
};

}  // namespace

void check(VkResult result, const char* call) {
  if (result != VK_SUCCESS)
    throw std::runtime_error(call + (": VkResult " + std::to_string(result)));
}

Renderer::Renderer(std::uint32_t count) : elements(count) {
  create_device();
  create_buffer();
  create_pipeline();
  create_frames();
}

Renderer::~Renderer() {
  vkDeviceWaitIdle(device);
  for (const Frame& frame : frames) vkDestroyFence(device, frame.done, nullptr);
  vkDestroyCommandPool(device, commands_, nullptr);
  vkDestroyDescriptorPool(device, pool_, nullptr);
  vkDestroyPipeline(device, pipeline_, nullptr);
  vkDestroyPipelineLayout(device, layout_, nullptr);
  vkDestroyDescriptorSetLayout(device, set_layout_, nullptr);
  vkDestroyShaderModule(device, shader_, nullptr);
  vkDestroyBuffer(device, buffer, nullptr);
  vkFreeMemory(device, memory_, nullptr);
  vkDestroyDevice(device, nullptr);
  vkDestroyInstance(instance, nullptr);
}

void Renderer::create_device() {
  VkApplicationInfo application{};
  application.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO;
  application.apiVersion = VK_API_VERSION_1_2;
  VkInstanceCreateInfo instance_info{};
  instance_info.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO;
  instance_info.pApplicationInfo = &application;
  check(vkCreateInstance(&instance_info, nullptr, &instance), "vkCreateInstance");
  std::uint32_t count = 1;
  if (vkEnumeratePhysicalDevices(instance, &count, &physical_device) < 0 || count == 0)
    throw std::runtime_error("no Vulkan device");
  count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical_device, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical_device, &count, families.data());
  while ((families.at(queue_family).queueFlags & VK_QUEUE_COMPUTE_BIT) == 0) ++queue_family;

  // Enables what it needs, here 16-bit storage if there is some.
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
  VkPhysicalDeviceFeatures2 offered{};
  offered.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  offered.pNext = &features;
  vkGetPhysicalDeviceFeatures2(physical_device, &offered);
  const VkBool32 storage16 = features.storageBuffer16BitAccess;
  features = {};
  features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES;
  features.storageBuffer16BitAccess = storage16;
  const float priority = 1;
  VkDeviceQueueCreateInfo queue_info{};
  queue_info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue_info.queueFamilyIndex = queue_family;
  queue_info.queueCount = 1;
  queue_info.pQueuePriorities = &priority;
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = &features;
  info.queueCreateInfoCount = 1;
  info.pQueueCreateInfos = &queue_info;
  check(vkCreateDevice(physical_device, &info, nullptr, &device), "vkCreateDevice");
  vkGetDeviceQueue(device, queue_family, 0, &queue);
}

void Renderer::create_buffer() {
  VkBufferCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  info.size = bytes = kParts * elements * sizeof(float);
  info.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
  check(vkCreateBuffer(device, &info, nullptr, &buffer), "vkCreateBuffer");
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(device, buffer, &needs);
  VkPhysicalDeviceMemoryProperties types;
  vkGetPhysicalDeviceMemoryProperties(physical_device, &types);
  constexpr VkMemoryPropertyFlags kMapped =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  VkMemoryAllocateInfo allocation{};
  allocation.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
  allocation.allocationSize = needs.size;
  while ((needs.memoryTypeBits >> allocation.memoryTypeIndex & 1U) == 0 ||
         (types.memoryTypes[allocation.memoryTypeIndex].propertyFlags & kMapped) != kMapped)
    ++allocation.memoryTypeIndex;
  check(vkAllocateMemory(device, &allocation, nullptr, &memory_), "vkAllocateMemory");
  check(vkBindBufferMemory(device, buffer, memory_, 0), "vkBindBufferMemory");
  void* mapped = nullptr;
  check(vkMapMemory(device, memory_, 0, VK_WHOLE_SIZE, 0, &mapped), "vkMapMemory");
  values = static_cast<float*>(mapped);
}

void Renderer::create_pipeline() {
  VkShaderModuleCreateInfo module{};
  module.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO;
  module.codeSize = sizeof(kWords);
  module.pCode = kWords;
  check(vkCreateShaderModule(device, &module, nullptr, &shader_), "vkCreateShaderModule");
  std::array<VkDescriptorSetLayoutBinding, 2> bindings{};
  for (std::uint32_t i = 0; i < bindings.size(); ++i)
    bindings[i] = {i, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, nullptr};
  VkDescriptorSetLayoutCreateInfo set_info{};
  set_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO;
  set_info.bindingCount = bindings.size();
  set_info.pBindings = bindings.data();
  check(vkCreateDescriptorSetLayout(device, &set_info, nullptr, &set_layout_),
        "vkCreateDescriptorSetLayout");
  const VkPushConstantRange range{VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(Push)};
  VkPipelineLayoutCreateInfo layout_info{};
  layout_info.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO;
  layout_info.setLayoutCount = 1;
  layout_info.pSetLayouts = &set_layout_;
  layout_info.pushConstantRangeCount = 1;
  layout_info.pPushConstantRanges = &range;
  check(vkCreatePipelineLayout(device, &layout_info, nullptr, &layout_), "vkCreatePipelineLayout");
  VkComputePipelineCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO;
  info.stage.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO;
  info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
  info.stage.module = shader_;
  info.stage.pName = "main";
  info.layout = layout_;
  check(vkCreateComputePipelines(device, VK_NULL_HANDLE, 1, &info, nullptr, &pipeline_),
        "vkCreateComputePipelines");

  constexpr std::uint32_t kSets = kParts * kParts;
  const VkDescriptorPoolSize size{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2 * kSets};
  VkDescriptorPoolCreateInfo pool_info{};
  pool_info.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
  pool_info.maxSets = kSets;
  pool_info.poolSizeCount = 1;
  pool_info.pPoolSizes = &size;
  check(vkCreateDescriptorPool(device, &pool_info, nullptr, &pool_), "vkCreateDescriptorPool");
  const VkDeviceSize part_bytes = bytes / kParts;
  for (std::uint32_t from = 0; from < kParts; ++from) {
    for (std::uint32_t to = 0; to < kParts; ++to) {
      VkDescriptorSetAllocateInfo allocate{};
      allocate.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
      allocate.descriptorPool = pool_;
      allocate.descriptorSetCount = 1;
      allocate.pSetLayouts = &set_layout_;
      check(vkAllocateDescriptorSets(device, &allocate, &sets_[from][to]),
            "vkAllocateDescriptorSets");
      const std::array<VkDescriptorBufferInfo, 2> places{{
          {buffer, from * part_bytes, part_bytes},
          {buffer, to * part_bytes, part_bytes},
      }};
      VkWriteDescriptorSet write{};
      write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
      write.dstSet = sets_[from][to];
      write.descriptorCount = places.size();
      write.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
      write.pBufferInfo = places.data();
      vkUpdateDescriptorSets(device, 1, &write, 0, nullptr);
    }
  }
}

void Renderer::create_frames() {
  VkCommandPoolCreateInfo pool{};
  pool.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  pool.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT;
  pool.queueFamilyIndex = queue_family;
  check(vkCreateCommandPool(device, &pool, nullptr, &commands_), "vkCreateCommandPool");
  for (Frame& frame : frames) {
    VkCommandBufferAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
    info.commandPool = commands_;
    info.commandBufferCount = 1;
    check(vkAllocateCommandBuffers(device, &info, &frame.commands), "vkAllocateCommandBuffers");
    VkFenceCreateInfo fence{};
    fence.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    fence.flags = VK_FENCE_CREATE_SIGNALED_BIT;
    check(vkCreateFence(device, &fence, nullptr, &frame.done), "vkCreateFence");
  }
}

void Renderer::dispatch(VkCommandBuffer commands, std::uint32_t from, std::uint32_t to,
                        float factor, float shift) const {
  const Push push{elements, factor, shift};
  vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline_);
  vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout_, 0, 1, &sets_[from][to],
                          0, nullptr);
  vkCmdPushConstants(commands, layout_, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
  vkCmdDispatch(commands, (elements + 63) / 64, 1, 1);
}

Frame& Renderer::next_frame() {
  Frame& frame = frames[frame_++ % kFrames];
  check(vkWaitForFences(device, 1, &frame.done, VK_TRUE, UINT64_MAX), "vkWaitForFences");
  check(vkResetFences(device, 1, &frame.done), "vkResetFences");
  VkCommandBufferBeginInfo info{};
  info.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  check(vkBeginCommandBuffer(frame.commands, &info), "vkBeginCommandBuffer");
  return frame;
}

void Renderer::submit(Frame& frame) {
  check(vkEndCommandBuffer(frame.commands), "vkEndCommandBuffer");
  VkSubmitInfo info{};
  info.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  info.commandBufferCount = 1;
  info.pCommandBuffers = &frame.commands;
  check(vkQueueSubmit(queue, 1, &info, frame.done), "vkQueueSubmit");
}
