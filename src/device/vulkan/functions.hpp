// SPDX-License-Identifier: Apache-2.0
// The functions of Vulkan that Tessera calls: of the loader that is opened at run time, or of the
// application's. Nothing links against a loader.
#pragma once

#include "device/vulkan/instance/vk.hpp"

// What an application's own vkGetInstanceProcAddr is not asked for.
#define TESSERA_VULKAN_GLOBAL_FUNCTIONS(X) \
  X(CreateInstance)                        \
  X(EnumerateInstanceExtensionProperties)  \
  X(EnumerateInstanceVersion)

#define TESSERA_VULKAN_FUNCTIONS(X)         \
  X(DestroyInstance)                        \
  X(EnumerateDeviceExtensionProperties)     \
  X(EnumeratePhysicalDevices)               \
  X(GetPhysicalDeviceFeatures2)             \
  X(GetPhysicalDeviceMemoryProperties)      \
  X(GetPhysicalDeviceProperties)            \
  X(GetPhysicalDeviceProperties2)           \
  X(GetPhysicalDeviceQueueFamilyProperties) \
  X(CreateDevice)                           \
  X(AllocateCommandBuffers)                 \
  X(AllocateDescriptorSets)                 \
  X(AllocateMemory)                         \
  X(BeginCommandBuffer)                     \
  X(BindBufferMemory)                       \
  X(CmdBindDescriptorSets)                  \
  X(CmdBindPipeline)                        \
  X(CmdCopyBuffer)                          \
  X(CmdDispatch)                            \
  X(CmdDispatchBase)                        \
  X(CmdFillBuffer)                          \
  X(CmdPipelineBarrier)                     \
  X(CmdPushConstants)                       \
  X(CmdResetQueryPool)                      \
  X(CmdWriteTimestamp)                      \
  X(CreateBuffer)                           \
  X(CreateCommandPool)                      \
  X(CreateComputePipelines)                 \
  X(CreateDescriptorPool)                   \
  X(CreateDescriptorSetLayout)              \
  X(CreateFence)                            \
  X(CreatePipelineCache)                    \
  X(CreatePipelineLayout)                   \
  X(CreateQueryPool)                        \
  X(CreateShaderModule)                     \
  X(DestroyBuffer)                          \
  X(DestroyCommandPool)                     \
  X(DestroyDescriptorPool)                  \
  X(DestroyDescriptorSetLayout)             \
  X(DestroyDevice)                          \
  X(DestroyFence)                           \
  X(DestroyPipeline)                        \
  X(DestroyPipelineCache)                   \
  X(DestroyPipelineLayout)                  \
  X(DestroyQueryPool)                       \
  X(DestroyShaderModule)                    \
  X(DeviceWaitIdle)                         \
  X(EndCommandBuffer)                       \
  X(FreeMemory)                             \
  X(GetBufferMemoryRequirements)            \
  X(GetDeviceQueue)                         \
  X(GetFenceStatus)                         \
  X(GetPipelineCacheData)                   \
  X(GetQueryPoolResults)                    \
  X(MapMemory)                              \
  X(QueueSubmit)                            \
  X(ResetCommandPool)                       \
  X(ResetDescriptorPool)                    \
  X(ResetFences)                            \
  X(UpdateDescriptorSets)                   \
  X(WaitForFences)

namespace tessera::device::vulkan {

struct Functions {
  PFN_vkGetInstanceProcAddr GetInstanceProcAddr = nullptr;
  // NOLINTBEGIN(readability-identifier-naming)
#define TESSERA_DECLARE(name) PFN_vk##name name = nullptr;
  TESSERA_VULKAN_GLOBAL_FUNCTIONS(TESSERA_DECLARE)
  TESSERA_VULKAN_FUNCTIONS(TESSERA_DECLARE)
#undef TESSERA_DECLARE
  // NOLINTEND(readability-identifier-naming)

  // Those of libvulkan.so.1; throws DeviceError where it is missing or lacks one.
  static const Functions& of_loader();
  // Those that the application's function finds for its instance; throws InvalidArgument naming
  // what it does not find.
  static Functions of_application(PFN_vkGetInstanceProcAddr find, VkInstance instance);
};

}  // namespace tessera::device::vulkan
