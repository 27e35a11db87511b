// SPDX-License-Identifier: Apache-2.0
#include "vendors/pipelines.hpp"

#include <dlfcn.h>
#include <vulkan/vulkan.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tessera::vendors {
namespace {

nlohmann::ordered_json g_statistics = nlohmann::ordered_json::object();
bool g_offered = false;

// The names that drivers give to the same thing. RADV's and NVK's numbers of cycles are estimates
// of one wave on one unit, ANV's of one work-group.
const std::map<std::string, std::string, std::less<>> kNames{
    {"VGPRs", "registers"},
    {"Number of GPRs", "registers"},
    {"Max live registers", "live"},
    {"Pre-Sched VGPRs", "live"},
    {"Spilled VGPRs", "spills"},
    {"Spills", "spills"},
    {"Spills to memory", "spills"},
    {"Spilled SGPRs", "scalar_spills"},
    {"Scratch size", "scratch"},
    {"Scratch Memory Size", "scratch"},
    {"SLM size", "scratch"},
    {"LDS size", "local"},
    {"Workgroup Memory Size", "local"},
    {"Subgroups per SIMD", "waves"},
    {"Max warps/SM", "waves"},
    {"Inverse Throughput", "cycles"},
    {"Cycles", "cycles"},
    {"Static cycle count", "cycles"},
    {"Instructions", "instructions"},
    {"Instruction Count", "instructions"},
    {"Instruction count", "instructions"},
    {"Loop count", "loops"},
};

nlohmann::ordered_json number(const VkPipelineExecutableStatisticKHR& statistic) {
  switch (statistic.format) {
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR:
      return statistic.value.b32 != 0;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR:
      return statistic.value.i64;
    case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR:
      return statistic.value.u64;
    default:
      return statistic.value.f64;
  }
}

void read_statistics(VkDevice device, VkPipeline pipeline) {
  const auto get_executables = reinterpret_cast<PFN_vkGetPipelineExecutablePropertiesKHR>(
      vkGetDeviceProcAddr(device, "vkGetPipelineExecutablePropertiesKHR"));
  const auto get_statistics = reinterpret_cast<PFN_vkGetPipelineExecutableStatisticsKHR>(
      vkGetDeviceProcAddr(device, "vkGetPipelineExecutableStatisticsKHR"));
  const VkPipelineInfoKHR which{VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, nullptr, pipeline};
  std::uint32_t count = 0;
  get_executables(device, &which, &count, nullptr);
  VkPipelineExecutablePropertiesKHR executable{};
  executable.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR;
  std::vector<VkPipelineExecutablePropertiesKHR> executables(count, executable);
  get_executables(device, &which, &count, executables.data());
  for (std::uint32_t i = 0; i < count; ++i) {
    const VkPipelineExecutableInfoKHR one{VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, nullptr,
                                          pipeline, i};
    std::uint32_t found = 0;
    get_statistics(device, &one, &found, nullptr);
    VkPipelineExecutableStatisticKHR blank{};
    blank.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR;
    std::vector<VkPipelineExecutableStatisticKHR> list(found, blank);
    get_statistics(device, &one, &found, list.data());
    g_statistics = {{"subgroup", executables[i].subgroupSize}};
    for (const VkPipelineExecutableStatisticKHR& statistic : list) {
      const auto name = kNames.find(statistic.name);
      if (name != kNames.end()) g_statistics[name->second] = number(statistic);
    }
  }
}

}  // namespace

nlohmann::ordered_json take_statistics() {
  return std::exchange(g_statistics, nlohmann::ordered_json::object());
}

// What the wrappers below do, with `create` as the driver's function.
template <class Create>
VkResult create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo& given, Create create) {
  const char* const wanted = VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME;
  std::uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> offered(count);
  vkEnumerateDeviceExtensionProperties(physical, nullptr, &count, offered.data());
  g_offered = false;
  for (const VkExtensionProperties& extension : offered)
    g_offered = g_offered || std::strcmp(extension.extensionName, wanted) == 0;
  if (!g_offered) return create(given);
  VkDeviceCreateInfo info = given;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR features{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR,
      const_cast<void*>(info.pNext), VK_TRUE};
  info.pNext = &features;
  std::vector<const char*> names(info.ppEnabledExtensionNames,
                                 info.ppEnabledExtensionNames + info.enabledExtensionCount);
  names.push_back(wanted);
  info.enabledExtensionCount = static_cast<std::uint32_t>(names.size());
  info.ppEnabledExtensionNames = names.data();
  return create(info);
}

template <class Create>
VkResult create_pipeline(VkDevice device, const VkComputePipelineCreateInfo& given,
                         const VkPipeline* pipeline, Create create) {
  VkComputePipelineCreateInfo info = given;
  if (g_offered) info.flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR;
  const VkResult result = create(info);
  if (result == VK_SUCCESS && g_offered) read_statistics(device, *pipeline);
  return result;
}

}  // namespace tessera::vendors

namespace {

template <class Function>
Function driver(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// The library finds these before the loader's.
#pragma GCC visibility push(default)
extern "C" {

VKAPI_ATTR VkResult VKAPI_CALL vkCreateDevice(VkPhysicalDevice physical,
                                              const VkDeviceCreateInfo* given,
                                              const VkAllocationCallbacks* allocator,
                                              VkDevice* device) {
  static const auto real = driver<PFN_vkCreateDevice>("vkCreateDevice");
  return tessera::vendors::create_device(physical, *given, [&](const VkDeviceCreateInfo& info) {
    return real(physical, &info, allocator, device);
  });
}

// The library creates one at a time. Without its cache, so that everything is compiled.
VKAPI_ATTR VkResult VKAPI_CALL vkCreateComputePipelines(VkDevice device, VkPipelineCache /*cache*/,
                                                        std::uint32_t count,
                                                        const VkComputePipelineCreateInfo* given,
                                                        const VkAllocationCallbacks* allocator,
                                                        VkPipeline* pipeline) {
  static const auto real = driver<PFN_vkCreateComputePipelines>("vkCreateComputePipelines");
  return tessera::vendors::create_pipeline(
      device, *given, pipeline, [&](const VkComputePipelineCreateInfo& info) {
        return real(device, VK_NULL_HANDLE, count, &info, allocator, pipeline);
      });
}

}  // extern "C"
#pragma GCC visibility pop
