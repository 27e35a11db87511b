// SPDX-License-Identifier: Apache-2.0
// The Vulkan platform, on the first device that there is. On Linux this program also stands between
// the library and the loader: what cannot be had from a good driver (lost devices, full memory,
// cards without mapped memory) is made up.
#include <gtest/gtest.h>

#if defined(__linux__)
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "device/vulkan/memory.hpp"
#include "device/vulkan/physical.hpp"
#include "device/vulkan/pipeline_cache.hpp"
#include "device/vulkan/spirv.hpp"
#include "device/vulkan/vk.hpp"
#include "tessera/error.hpp"

// ---- faults ------------------------------------------------------------------------------------

namespace {

// What the functions below pretend. Reset after each test.
struct Faults {
  std::atomic<bool> separate_memory{false};  // device memory that the host can't reach
  std::atomic<bool> no_clock{false};         // a queue without timestamps
  std::atomic<bool> old_loader{false};
  std::atomic<std::uint32_t> allocation_limit{0};
  std::atomic<VkResult> create_instance{VK_SUCCESS};
  std::atomic<VkResult> device_extensions{VK_SUCCESS};
  std::atomic<VkResult> allocate{VK_SUCCESS};
  std::atomic<VkResult> submit{VK_SUCCESS};
  std::atomic<VkResult> wait{VK_SUCCESS};
  std::atomic<VkResult> pipelines{VK_SUCCESS};
  std::atomic<bool> refuse_warm_cache{
      false};  // pipelines fail as long as their cache came with data
  std::atomic<std::size_t> cache_bytes{
      0};  // that the driver keeps for a program; it is none for lavapipe
  std::atomic<std::size_t> cache_loaded{0};
  std::atomic<int> submissions{0};

  void reset() {
    separate_memory = no_clock = old_loader = refuse_warm_cache = false;
    allocation_limit = 0;
    cache_bytes = cache_loaded = 0;
    for (auto* result :
         {&create_instance, &device_extensions, &allocate, &submit, &wait, &pipelines}) {
      *result = VK_SUCCESS;
    }
  }
};
Faults faults;

#if defined(__linux__)
constexpr bool kFaultsWork = true;

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
#define TESSERA_REAL(name) static const auto name##_real = real<PFN_##name>(#name)
#else
constexpr bool kFaultsWork = false;
#endif

}  // namespace

#if defined(__linux__)
extern "C" {

VKAPI_ATTR VkResult VKAPI_CALL vkEnumerateInstanceVersion(std::uint32_t* version) {
  TESSERA_REAL(vkEnumerateInstanceVersion);
  const VkResult result = vkEnumerateInstanceVersion_real(version);
  if (faults.old_loader) *version = VK_API_VERSION_1_0;
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL vkCreateInstance(const VkInstanceCreateInfo* info,
                                                const VkAllocationCallbacks* allocator,
                                                VkInstance* instance) {
  TESSERA_REAL(vkCreateInstance);
  if (faults.create_instance != VK_SUCCESS) return faults.create_instance;
  return vkCreateInstance_real(info, allocator, instance);
}

VKAPI_ATTR VkResult VKAPI_CALL vkEnumerateDeviceExtensionProperties(VkPhysicalDevice device,
                                                                    const char* layer,
                                                                    std::uint32_t* count,
                                                                    VkExtensionProperties* list) {
  TESSERA_REAL(vkEnumerateDeviceExtensionProperties);
  if (faults.device_extensions != VK_SUCCESS) return faults.device_extensions;
  return vkEnumerateDeviceExtensionProperties_real(device, layer, count, list);
}

VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceProperties2(VkPhysicalDevice device,
                                                          VkPhysicalDeviceProperties2* properties) {
  TESSERA_REAL(vkGetPhysicalDeviceProperties2);
  vkGetPhysicalDeviceProperties2_real(device, properties);
  if (faults.allocation_limit != 0) {
    properties->properties.limits.maxMemoryAllocationCount = faults.allocation_limit;
  }
}

VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceQueueFamilyProperties(VkPhysicalDevice device,
                                                                    std::uint32_t* count,
                                                                    VkQueueFamilyProperties* list) {
  TESSERA_REAL(vkGetPhysicalDeviceQueueFamilyProperties);
  vkGetPhysicalDeviceQueueFamilyProperties_real(device, count, list);
  if (list == nullptr || !faults.no_clock) return;
  for (std::uint32_t i = 0; i < *count; ++i) list[i].timestampValidBits = 0;
}

// Type 0 loses its mapping, and a type 1 for the host appears; both are lavapipe's one type.
VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceMemoryProperties(
    VkPhysicalDevice device, VkPhysicalDeviceMemoryProperties* memory) {
  TESSERA_REAL(vkGetPhysicalDeviceMemoryProperties);
  vkGetPhysicalDeviceMemoryProperties_real(device, memory);
  if (!faults.separate_memory) return;
  memory->memoryTypeCount = 2;
  memory->memoryTypes[1] = memory->memoryTypes[0];
  memory->memoryTypes[0].propertyFlags = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  memory->memoryTypes[1].propertyFlags &= ~VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
}

VKAPI_ATTR void VKAPI_CALL vkGetBufferMemoryRequirements(VkDevice device, VkBuffer buffer,
                                                         VkMemoryRequirements* needs) {
  TESSERA_REAL(vkGetBufferMemoryRequirements);
  vkGetBufferMemoryRequirements_real(device, buffer, needs);
  if (faults.separate_memory) needs->memoryTypeBits = 3;
}

VKAPI_ATTR VkResult VKAPI_CALL vkAllocateMemory(VkDevice device, const VkMemoryAllocateInfo* info,
                                                const VkAllocationCallbacks* allocator,
                                                VkDeviceMemory* memory) {
  TESSERA_REAL(vkAllocateMemory);
  if (faults.allocate != VK_SUCCESS) return faults.allocate;
  VkMemoryAllocateInfo copy = *info;
  if (faults.separate_memory) copy.memoryTypeIndex = 0;
  return vkAllocateMemory_real(device, &copy, allocator, memory);
}

VKAPI_ATTR VkResult VKAPI_CALL vkQueueSubmit(VkQueue queue, std::uint32_t count,
                                             const VkSubmitInfo* infos, VkFence fence) {
  TESSERA_REAL(vkQueueSubmit);
  if (faults.submit != VK_SUCCESS) return faults.submit;
  ++faults.submissions;
  return vkQueueSubmit_real(queue, count, infos, fence);
}

VKAPI_ATTR VkResult VKAPI_CALL vkWaitForFences(VkDevice device, std::uint32_t count,
                                               const VkFence* fences, VkBool32 all,
                                               std::uint64_t timeout) {
  TESSERA_REAL(vkWaitForFences);
  if (faults.wait != VK_SUCCESS) return faults.wait;
  return vkWaitForFences_real(device, count, fences, all, timeout);
}

VKAPI_ATTR VkResult VKAPI_CALL vkCreateComputePipelines(VkDevice device, VkPipelineCache cache,
                                                        std::uint32_t count,
                                                        const VkComputePipelineCreateInfo* infos,
                                                        const VkAllocationCallbacks* allocator,
                                                        VkPipeline* pipelines) {
  TESSERA_REAL(vkCreateComputePipelines);
  if (faults.pipelines != VK_SUCCESS) return faults.pipelines;
  if (faults.refuse_warm_cache && faults.cache_loaded != 0) return VK_ERROR_UNKNOWN;
  return vkCreateComputePipelines_real(device, cache, count, infos, allocator, pipelines);
}

VKAPI_ATTR VkResult VKAPI_CALL vkCreatePipelineCache(VkDevice device,
                                                     const VkPipelineCacheCreateInfo* info,
                                                     const VkAllocationCallbacks* allocator,
                                                     VkPipelineCache* cache) {
  TESSERA_REAL(vkCreatePipelineCache);
  faults.cache_loaded = info->initialDataSize;
  VkPipelineCacheCreateInfo copy = *info;
  if (faults.cache_bytes != 0) copy.initialDataSize = 0;  // made up below
  return vkCreatePipelineCache_real(device, &copy, allocator, cache);
}

VKAPI_ATTR VkResult VKAPI_CALL vkGetPipelineCacheData(VkDevice device, VkPipelineCache cache,
                                                      std::size_t* size, void* data) {
  TESSERA_REAL(vkGetPipelineCacheData);
  if (faults.cache_bytes == 0) return vkGetPipelineCacheData_real(device, cache, size, data);
  std::size_t header = 32;
  if (data != nullptr) {
    const VkResult result = vkGetPipelineCacheData_real(device, cache, &header, data);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE) return result;
    std::memset(static_cast<char*>(data) + header, 0x77, *size - header);
  }
  *size = header + faults.cache_bytes;
  return VK_SUCCESS;
}

}  // extern "C"
#endif

namespace tessera::device {
namespace {

// ---- shaders, from glslc -O --target-env=vulkan1.1 ---------------------------------------------

// #version 450
// layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
// layout(constant_id = 3) const uint kAdd = 7;
// layout(push_constant) uniform Push { uint count, shift, factor, has_bias; };
// layout(std430, binding = 0) readonly buffer Source { uint source[]; };
// layout(std430, binding = 1) writeonly buffer Target { uint target[]; };
// layout(std430, binding = 2) readonly buffer Bias { uint bias[]; };
// void main() {
//   const uint i = gl_GlobalInvocationID.x;
//   if (i >= count) return;
//   target[i] = source[(i + shift) % count] * factor + kAdd + (has_bias != 0 ? bias[i] : 0);
// }
// clang-format off
constexpr std::uint32_t kAffine[] = {
    0x7230203, 0x10300, 0xd000b, 0x55, 0, 0x20011, 1, 0x6000b, 1, 0x4c534c47, 0x6474732e,
    0x3035342e, 0, 0x3000e, 0, 1, 0x6000f, 5, 4, 0x6e69616d, 0, 0xb, 0x60010, 4, 0x11, 1, 1, 1,
    0x40047, 0xb, 0xb, 0x1c, 0x50048, 0x11, 0, 0x23, 0, 0x50048, 0x11, 1, 0x23, 4, 0x50048, 0x11, 2,
    0x23, 8, 0x50048, 0x11, 3, 0x23, 0xc, 0x30047, 0x11, 2, 0x40047, 0x1e, 6, 4, 0x40048, 0x1f, 0,
    0x19, 0x50048, 0x1f, 0, 0x23, 0, 0x30047, 0x1f, 2, 0x40047, 0x21, 0x22, 0, 0x40047, 0x21, 0x21,
    1, 0x40047, 0x23, 6, 4, 0x40048, 0x24, 0, 0x18, 0x50048, 0x24, 0, 0x23, 0, 0x30047, 0x24, 2,
    0x40047, 0x26, 0x22, 0, 0x40047, 0x26, 0x21, 0, 0x40047, 0x36, 1, 3, 0x40047, 0x3f, 6, 4,
    0x40048, 0x40, 0, 0x18, 0x50048, 0x40, 0, 0x23, 0, 0x30047, 0x40, 2, 0x40047, 0x42, 0x22, 0,
    0x40047, 0x42, 0x21, 2, 0x40047, 0x4a, 1, 0, 0x40047, 0x4b, 1, 1, 0x40047, 0x4c, 1, 2, 0x40047,
    0x4d, 0xb, 0x19, 0x20013, 2, 0x30021, 3, 2, 0x40015, 6, 0x20, 0, 0x40017, 9, 6, 3, 0x40020, 0xa,
    1, 9, 0x4003b, 0xa, 0xb, 1, 0x4002b, 6, 0xc, 0, 0x40020, 0xd, 1, 6, 0x6001e, 0x11, 6, 6, 6, 6,
    0x40020, 0x12, 9, 0x11, 0x4003b, 0x12, 0x13, 9, 0x40015, 0x14, 0x20, 1, 0x4002b, 0x14, 0x15, 0,
    0x40020, 0x16, 9, 6, 0x20014, 0x19, 0x3001d, 0x1e, 6, 0x3001e, 0x1f, 0x1e, 0x40020, 0x20, 0xc,
    0x1f, 0x4003b, 0x20, 0x21, 0xc, 0x3001d, 0x23, 6, 0x3001e, 0x24, 0x23, 0x40020, 0x25, 0xc, 0x24,
    0x4003b, 0x25, 0x26, 0xc, 0x4002b, 0x14, 0x28, 1, 0x40020, 0x2f, 0xc, 6, 0x4002b, 0x14, 0x32, 2,
    0x40032, 6, 0x36, 7, 0x4002b, 0x14, 0x38, 3, 0x3001d, 0x3f, 6, 0x3001e, 0x40, 0x3f, 0x40020,
    0x41, 0xc, 0x40, 0x4003b, 0x41, 0x42, 0xc, 0x40032, 6, 0x4a, 1, 0x40032, 6, 0x4b, 1, 0x40032, 6,
    0x4c, 1, 0x60033, 9, 0x4d, 0x4a, 0x4b, 0x4c, 0x50036, 2, 4, 0, 3, 0x200f8, 5, 0x300f7, 0x4e, 0,
    0x300fb, 0xc, 0x4f, 0x200f8, 0x4f, 0x50041, 0xd, 0xe, 0xb, 0xc, 0x4003d, 6, 0xf, 0xe, 0x50041,
    0x16, 0x17, 0x13, 0x15, 0x4003d, 6, 0x18, 0x17, 0x500ae, 0x19, 0x1a, 0xf, 0x18, 0x300f7, 0x1c,
    0, 0x400fa, 0x1a, 0x1b, 0x1c, 0x200f8, 0x1b, 0x200f9, 0x4e, 0x200f8, 0x1c, 0x50041, 0x16, 0x29,
    0x13, 0x28, 0x4003d, 6, 0x2a, 0x29, 0x50080, 6, 0x2b, 0xf, 0x2a, 0x50089, 6, 0x2e, 0x2b, 0x18,
    0x60041, 0x2f, 0x30, 0x26, 0x15, 0x2e, 0x4003d, 6, 0x31, 0x30, 0x50041, 0x16, 0x33, 0x13, 0x32,
    0x4003d, 6, 0x34, 0x33, 0x50084, 6, 0x35, 0x31, 0x34, 0x50080, 6, 0x37, 0x35, 0x36, 0x50041,
    0x16, 0x39, 0x13, 0x38, 0x4003d, 6, 0x3a, 0x39, 0x500ab, 0x19, 0x3b, 0x3a, 0xc, 0x300f7, 0x3e,
    0, 0x400fa, 0x3b, 0x3d, 0x46, 0x200f8, 0x3d, 0x60041, 0x2f, 0x44, 0x42, 0x15, 0xf, 0x4003d, 6,
    0x45, 0x44, 0x200f9, 0x3e, 0x200f8, 0x46, 0x200f9, 0x3e, 0x200f8, 0x3e, 0x700f5, 6, 0x54, 0x45,
    0x3d, 0xc, 0x46, 0x50080, 6, 0x48, 0x37, 0x54, 0x60041, 0x2f, 0x49, 0x21, 0x15, 0xf, 0x3003e,
    0x49, 0x48, 0x200f9, 0x4e, 0x200f8, 0x4e, 0x100fd, 0x10038,};
// clang-format on

// #version 450
// layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
// layout(std430, binding = 0) writeonly buffer Target { uint target[]; };
// layout(std430, binding = 1) readonly buffer Args { uint count; uint table[40]; };
// void main() {
//   const uint i = gl_GlobalInvocationID.x;
//   if (i < count) target[i] = table[i % 40];
// }
// clang-format off
constexpr std::uint32_t kTable[] = {
    0x7230203, 0x10300, 0xd000b, 0x2e, 0, 0x20011, 1, 0x6000b, 1, 0x4c534c47, 0x6474732e,
    0x3035342e, 0, 0x3000e, 0, 1, 0x6000f, 5, 4, 0x6e69616d, 0, 0xb, 0x60010, 4, 0x11, 1, 1, 1,
    0x40047, 0xb, 0xb, 0x1c, 0x40047, 0x12, 6, 4, 0x40048, 0x13, 0, 0x18, 0x50048, 0x13, 0, 0x23, 0,
    0x40048, 0x13, 1, 0x18, 0x50048, 0x13, 1, 0x23, 4, 0x30047, 0x13, 2, 0x40047, 0x15, 0x22, 0,
    0x40047, 0x15, 0x21, 1, 0x40047, 0x1f, 6, 4, 0x40048, 0x20, 0, 0x19, 0x50048, 0x20, 0, 0x23, 0,
    0x30047, 0x20, 2, 0x40047, 0x22, 0x22, 0, 0x40047, 0x22, 0x21, 0, 0x40047, 0x2a, 1, 0, 0x40047,
    0x2b, 1, 1, 0x40047, 0x2c, 1, 2, 0x40047, 0x2d, 0xb, 0x19, 0x20013, 2, 0x30021, 3, 2, 0x40015,
    6, 0x20, 0, 0x40017, 9, 6, 3, 0x40020, 0xa, 1, 9, 0x4003b, 0xa, 0xb, 1, 0x4002b, 6, 0xc, 0,
    0x40020, 0xd, 1, 6, 0x4002b, 6, 0x11, 0x28, 0x4001c, 0x12, 6, 0x11, 0x4001e, 0x13, 6, 0x12,
    0x40020, 0x14, 0xc, 0x13, 0x4003b, 0x14, 0x15, 0xc, 0x40015, 0x16, 0x20, 1, 0x4002b, 0x16, 0x17,
    0, 0x40020, 0x18, 0xc, 6, 0x20014, 0x1b, 0x3001d, 0x1f, 6, 0x3001e, 0x20, 0x1f, 0x40020, 0x21,
    0xc, 0x20, 0x4003b, 0x21, 0x22, 0xc, 0x4002b, 0x16, 0x24, 1, 0x40032, 6, 0x2a, 1, 0x40032, 6,
    0x2b, 1, 0x40032, 6, 0x2c, 1, 0x60033, 9, 0x2d, 0x2a, 0x2b, 0x2c, 0x50036, 2, 4, 0, 3, 0x200f8,
    5, 0x50041, 0xd, 0xe, 0xb, 0xc, 0x4003d, 6, 0xf, 0xe, 0x50041, 0x18, 0x19, 0x15, 0x17, 0x4003d,
    6, 0x1a, 0x19, 0x500b0, 0x1b, 0x1c, 0xf, 0x1a, 0x300f7, 0x1e, 0, 0x400fa, 0x1c, 0x1d, 0x1e,
    0x200f8, 0x1d, 0x50089, 6, 0x26, 0xf, 0x11, 0x60041, 0x18, 0x27, 0x15, 0x24, 0x26, 0x4003d, 6,
    0x28, 0x27, 0x60041, 0x18, 0x29, 0x22, 0x17, 0xf, 0x3003e, 0x29, 0x28, 0x200f9, 0x1e, 0x200f8,
    0x1e, 0x100fd, 0x10038,};
// clang-format on

// #version 450
// #extension GL_KHR_shader_subgroup_arithmetic : require
// layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
// layout(std430, binding = 0) writeonly buffer Target { uint target[]; };
// void main() { target[gl_GlobalInvocationID.x] = subgroupAdd(1u) * 1000 + gl_SubgroupSize; }
// clang-format off
constexpr std::uint32_t kSubgroup[] = {
    0x7230203, 0x10300, 0xd000b, 0x22, 0, 0x20011, 1, 0x20011, 0x3d, 0x20011, 0x3f, 0x6000b, 1,
    0x4c534c47, 0x6474732e, 0x3035342e, 0, 0x3000e, 0, 1, 0x7000f, 5, 4, 0x6e69616d, 0, 0xf, 0x19,
    0x60010, 4, 0x11, 1, 1, 1, 0x40047, 7, 6, 4, 0x40048, 8, 0, 0x19, 0x50048, 8, 0, 0x23, 0,
    0x30047, 8, 2, 0x40047, 0xa, 0x22, 0, 0x40047, 0xa, 0x21, 0, 0x40047, 0xf, 0xb, 0x1c, 0x30047,
    0x18, 0, 0x30047, 0x19, 0, 0x40047, 0x19, 0xb, 0x24, 0x30047, 0x1a, 0, 0x30047, 0x1b, 0,
    0x40047, 0x1e, 1, 0, 0x40047, 0x1f, 1, 1, 0x40047, 0x20, 1, 2, 0x40047, 0x21, 0xb, 0x19,
    0x20013, 2, 0x30021, 3, 2, 0x40015, 6, 0x20, 0, 0x3001d, 7, 6, 0x3001e, 8, 7, 0x40020, 9, 0xc,
    8, 0x4003b, 9, 0xa, 0xc, 0x40015, 0xb, 0x20, 1, 0x4002b, 0xb, 0xc, 0, 0x40017, 0xd, 6, 3,
    0x40020, 0xe, 1, 0xd, 0x4003b, 0xe, 0xf, 1, 0x4002b, 6, 0x10, 0, 0x40020, 0x11, 1, 6, 0x4002b,
    6, 0x14, 1, 0x4002b, 6, 0x15, 3, 0x4002b, 6, 0x17, 0x3e8, 0x4003b, 0x11, 0x19, 1, 0x40020, 0x1c,
    0xc, 6, 0x40032, 6, 0x1e, 1, 0x40032, 6, 0x1f, 1, 0x40032, 6, 0x20, 1, 0x60033, 0xd, 0x21, 0x1e,
    0x1f, 0x20, 0x50036, 2, 4, 0, 3, 0x200f8, 5, 0x50041, 0x11, 0x12, 0xf, 0x10, 0x4003d, 6, 0x13,
    0x12, 0x6015d, 6, 0x16, 0x15, 0, 0x14, 0x50084, 6, 0x18, 0x16, 0x17, 0x4003d, 6, 0x1a, 0x19,
    0x50080, 6, 0x1b, 0x18, 0x1a, 0x60041, 0x1c, 0x1d, 0xa, 0xc, 0x13, 0x3003e, 0x1d, 0x1b, 0x100fd,
    0x10038,};
// clang-format on

// ---- helpers -----------------------------------------------------------------------------------

using Words = std::vector<std::uint32_t>;

struct MapStore final : BlobStore {
  std::vector<std::byte> get(std::string_view key) override {
    const std::lock_guard lock(mutex);
    ++gets;
    const auto found = blobs.find(std::string(key));
    return found != blobs.end() ? found->second : fallback;
  }
  void put(std::string_view key, std::span<const std::byte> blob) override {
    const std::lock_guard lock(mutex);
    blobs[std::string(key)].assign(blob.begin(), blob.end());
  }
  std::mutex mutex;
  std::map<std::string, std::vector<std::byte>> blobs;
  std::vector<std::byte> fallback;
  int gets = 0;
};

struct AffineArgs {
  std::uint32_t count = 0, shift = 0, factor = 1, has_bias = 0;
};
struct TableArgs {
  std::uint32_t count = 0;
  std::array<std::uint32_t, 40> table{};
};

ProgramRequest affine_request(Dim3 group, std::uint32_t add) {
  return {.name = "affine",
          .entry = "main",
          .source = {},
          .spirv = kAffine,
          .host = {},
          .defines = {},
          .specialization = {{3, add}},
          .group = group,
          .bindings = 3,
          .argument_bytes = sizeof(AffineArgs)};
}

ProgramRequest table_request(std::uint32_t argument_bytes = sizeof(TableArgs)) {
  ProgramRequest request = affine_request({64, 1, 1}, 0);
  request.name = "table";
  request.spirv = kTable;
  request.bindings = 1;
  request.argument_bytes = argument_bytes;
  return request;
}

template <class T>
void launch(Stream& stream, const ProgramPtr& program, const std::vector<BufferPtr>& buffers,
            const T& args, std::uint32_t groups, Dim3 group) {
  Launch launch;
  launch.program = program.get();
  launch.buffers = buffers;
  launch.arguments = std::as_bytes(std::span(&args, 1));
  launch.groups = {groups, 1, 1};
  launch.group = group;
  stream.launch(launch);
}

void upload(Stream& stream, const BufferPtr& buffer, const Words& words) {
  stream.upload(*buffer, 0, std::as_bytes(std::span(words)));
}

Words download(Stream& stream, const BufferPtr& buffer) {
  Words words(buffer->size() / sizeof(std::uint32_t));
  stream.download(*buffer, 0, std::as_writable_bytes(std::span(words)));
  return words;
}

Words iota(std::size_t count, std::uint32_t first = 0) {
  Words words(count);
  std::iota(words.begin(), words.end(), first);
  return words;
}

std::uint32_t groups_for(std::uint32_t count, std::uint32_t group) {
  return (count + group - 1) / group;
}

// The message of the Error that `work` throws.
template <class Error, class Work>
std::string message(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
    return "";
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}
#define EXPECT_SAYS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

bool has_one_memory_type(VkPhysicalDevice device) {
  VkPhysicalDeviceMemoryProperties memory;
  vkGetPhysicalDeviceMemoryProperties(device, &memory);
  return memory.memoryTypeCount == 1;
}

// The first physical device, below the interface.
std::shared_ptr<const vulkan::PhysicalDevice> first_physical() {
  const auto instance = vulkan::Instance::create();
  return vulkan::examine(instance, instance->physical_devices().at(0));
}

enum class Route { kMapped, kStaged };
[[maybe_unused]] void PrintTo(Route route, std::ostream* out) {
  *out << (route == Route::kMapped ? "mapped" : "staged");
}

class Vulkan : public ::testing::Test {
 protected:
  void SetUp() override { faults.reset(); }
  void TearDown() override {
    device_.reset();
    faults.reset();
  }
  void open() {
    const PlatformProbe probe = probe_vulkan();
    if (probe.found.empty()) {
      std::string why = "there is no Vulkan device here:";
      for (const ProbeFailure& failure : probe.failures)
        why += " " + failure.where + ": " + failure.why + ";";
      GTEST_SKIP() << why;
    }
    device_ = probe.found.front().open();
  }
  BufferPtr buffer(std::size_t words) {
    return device_->create_buffer(words * sizeof(std::uint32_t));
  }
  BufferPtr buffer(Stream& stream, const Words& words) {
    BufferPtr result = buffer(words.size());
    upload(stream, result, words);
    return result;
  }

  DevicePtr device_;
  MapStore store_;
};

class VulkanWork : public Vulkan, public ::testing::WithParamInterface<Route> {
 protected:
  void SetUp() override {
    Vulkan::SetUp();
    if (GetParam() == Route::kStaged) {
      if (!kFaultsWork) GTEST_SKIP() << "staging can be forced on Linux only";
      try {
        if (!has_one_memory_type(first_physical()->handle)) {
          GTEST_SKIP() << "the device has its own choice of memory types";
        }
      } catch (const std::exception&) {
        GTEST_SKIP() << "there is no Vulkan device here";
      }
      faults.separate_memory = true;
    }
    open();
  }
};
INSTANTIATE_TEST_SUITE_P(Routes, VulkanWork, ::testing::Values(Route::kMapped, Route::kStaged),
                         [](const auto& info) {
                           return info.param == Route::kMapped ? "Mapped" : "Staged";
                         });

// ---- probing -----------------------------------------------------------------------------------

class VulkanProbe : public Vulkan {};

TEST_F(VulkanProbe, FillsTheProfile) {
  open();
  if (!device_) return;
  const DeviceProfile& profile = device_->profile();
  EXPECT_EQ(profile.backend, Backend::kVulkan);
  EXPECT_FALSE(profile.name.empty());
  EXPECT_FALSE(profile.vendor.empty());
  EXPECT_FALSE(profile.driver.empty());
  EXPECT_EQ(profile.api_version.substr(0, 9), "Vulkan 1.");
  EXPECT_EQ(profile.uuid.size(), 32U);
  EXPECT_GT(profile.subgroup_size, 0U);
  EXPECT_GE(profile.max_group_size, 128U);
  EXPECT_GE(profile.max_groups[0], 65535U);
  EXPECT_GE(profile.local_memory, 16384U);
  EXPECT_GE(profile.max_binding, std::uint64_t{1} << 27);
  EXPECT_GE(profile.max_allocation, std::uint64_t{1} << 30);
  EXPECT_GE(profile.max_push_constants, 128U);
  EXPECT_GT(profile.global_memory, 0U);
  if (profile.name.find("llvmpipe") != std::string::npos) {
    EXPECT_EQ(profile.kind, DeviceKind::kCpu);
    EXPECT_EQ(profile.vendor, "Mesa");
    EXPECT_EQ(profile.native_float_width, profile.subgroup_size);
    EXPECT_EQ(profile.compiler.substr(0, 4), "LLVM");
    EXPECT_TRUE(has(profile.features, Feature::kStorage16 | Feature::kSubgroupArithmetic));
  }
}

TEST_F(VulkanProbe, TellsWhyThereIsNothing) {
  if (!kFaultsWork) GTEST_SKIP() << "faults can be made on Linux only";
  faults.create_instance = VK_ERROR_INCOMPATIBLE_DRIVER;
  PlatformProbe probe = probe_vulkan();
  EXPECT_TRUE(probe.found.empty());
  ASSERT_EQ(probe.failures.size(), 1U);
  EXPECT_EQ(probe.failures[0].where, "vulkan");
  EXPECT_SAYS(probe.failures[0].why, "vkCreateInstance: VK_ERROR_INCOMPATIBLE_DRIVER");

  faults.reset();
  faults.old_loader = true;
  probe = probe_vulkan();
  ASSERT_EQ(probe.failures.size(), 1U);
  EXPECT_SAYS(probe.failures[0].why, "offers version 1.0.0; at least 1.1 is needed");
}

TEST_F(VulkanProbe, ReportsABrokenDeviceByName) {
  open();
  if (!device_) return;
  if (!kFaultsWork) GTEST_SKIP() << "faults can be made on Linux only";
  faults.device_extensions = VK_ERROR_INITIALIZATION_FAILED;
  const PlatformProbe probe = probe_vulkan();
  EXPECT_TRUE(probe.found.empty());
  ASSERT_FALSE(probe.failures.empty());
  EXPECT_SAYS(probe.failures[0].where, device_->profile().name);
  EXPECT_SAYS(probe.failures[0].why,
              "vkEnumerateDeviceExtensionProperties: VK_ERROR_INITIALIZATION_FAILED");
}

// ---- copies ------------------------------------------------------------------------------------

TEST_P(VulkanWork, CopiesBytesAtAnyOffset) {
  const auto stream = device_->create_stream();
  const BufferPtr a = device_->create_buffer(1001);
  const BufferPtr b = device_->create_buffer(1001);
  std::vector<std::byte> sent(1001), got(1001);
  for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::byte>(i * 37 + 11);
  stream->upload(*a, 0, sent);
  stream->fill(*b, 0, 1001, 0);
  stream->copy(*a, 3, *b, 501, 499);
  stream->upload(*b, 7, std::span(sent).subspan(900, 13));
  stream->download(*b, 0, got);
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::byte wanted = i >= 501 && i < 1000 ? sent[i - 498]
                             : i >= 7 && i < 20   ? sent[i + 893]
                                                  : std::byte{0};
    ASSERT_EQ(got[i], wanted) << "byte " << i;
  }
  std::vector<std::byte> part(5);
  stream->download(*a, 996, part);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), sent.begin() + 996));
}

TEST_P(VulkanWork, FillsAnyRange) {
  const auto stream = device_->create_stream();
  const BufferPtr buffer = device_->create_buffer(23);
  std::vector<std::byte> model(23), got(23);
  stream->fill(*buffer, 0, 23, 0);
  std::uint8_t value = 1;
  for (std::uint64_t offset = 0; offset <= 23; ++offset) {
    for (std::uint64_t bytes = 0; offset + bytes <= 23; bytes += 1 + bytes / 5, ++value) {
      stream->fill(*buffer, offset, bytes, value);
      std::memset(model.data() + offset, value, bytes);
      stream->download(*buffer, 0, got);
      ASSERT_EQ(got, model) << offset << " + " << bytes;
    }
  }
}

TEST_P(VulkanWork, TakesBuffersWithoutBytes) {
  const auto stream = device_->create_stream();
  const BufferPtr empty = device_->create_buffer(0);
  EXPECT_EQ(empty->size(), 0U);
  stream->upload(*empty, 0, {});
  stream->fill(*empty, 0, 0, 1);
  stream->copy(*empty, 0, *empty, 0, 0);
  stream->download(*empty, 0, {});
  const ProgramPtr program = device_->build(affine_request({1, 1, 1}, 0), store_);
  launch(*stream, program, {empty, empty, nullptr}, AffineArgs{}, 1, {1, 1, 1});
  stream->synchronize();
}

TEST_P(VulkanWork, RefusesRangesOutsideTheBuffer) {
  const auto stream = device_->create_stream();
  const BufferPtr a = device_->create_buffer(16);
  std::vector<std::byte> bytes(8);
  EXPECT_SAYS(message<InvalidArgument>([&] { stream->upload(*a, 9, bytes); }),
              "[9, 9 + 8) of a buffer of 16");
  EXPECT_THROW(stream->download(*a, 17, std::span(bytes).first(0)), InvalidArgument);
  EXPECT_THROW(stream->fill(*a, ~std::uint64_t{0}, 2, 0), InvalidArgument);
  EXPECT_THROW(stream->copy(*a, 8, *a, 0, 9), InvalidArgument);
  EXPECT_SAYS(message<InvalidArgument>([&] { stream->copy(*a, 0, *a, 4, 8); }), "overlap");
  stream->copy(*a, 0, *a, 8, 8);
  stream->synchronize();
}

TEST_P(VulkanWork, MovesMoreThanOneStagingBufferHolds) {
  const auto stream = device_->create_stream();
  const Words sent = iota((std::size_t{70} << 20) / 4);
  const BufferPtr a = buffer(*stream, sent);
  const BufferPtr b = buffer(sent.size());
  stream->copy(*a, 0, *b, 0, a->size());
  upload(*stream, a, Words(sent.size(), 5));  // while the copy may be under way
  EXPECT_EQ(download(*stream, b), sent);
  EXPECT_EQ(download(*stream, a), Words(sent.size(), 5));
}

TEST_P(VulkanWork, ManySmallUploadsShareTheStaging) {
  const auto stream = device_->create_stream();
  const BufferPtr target = buffer(1 << 20);
  stream->fill(*target, 0, target->size(),
               0);  // makes the buffer busy: none of the uploads can be direct
  const Words row = iota(1 << 12);
  for (std::uint64_t i = 0; i < 256; ++i) {
    stream->upload(*target, i * row.size() * 4, std::as_bytes(std::span(row)));
  }
  const Words got = download(*stream, target);
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], i % row.size());
}

// ---- launches ----------------------------------------------------------------------------------

TEST_P(VulkanWork, RunsWithConstantsAndPushedArguments) {
  const auto stream = device_->create_stream();
  const std::uint32_t count = 1000;
  const BufferPtr source = buffer(*stream, iota(count));
  const BufferPtr bias = buffer(*stream, iota(count, 7));
  for (const Dim3 group : {Dim3{1, 1, 1}, Dim3{64, 1, 1}, Dim3{16, 4, 2}}) {
    // Work-groups lie along x, so only lanes along x add up to the index.
    for (const std::uint32_t add : {0U, 123456U}) {
      for (const bool with_bias : {false, true}) {
        const BufferPtr target = buffer(count);
        stream->fill(*target, 0, target->size(), 0xee);
        const ProgramPtr program = device_->build(affine_request(group, add), store_);
        const AffineArgs args{
            .count = count, .shift = 13, .factor = 3, .has_bias = with_bias ? 1U : 0U};
        launch(*stream, program, {source, target, with_bias ? bias : nullptr}, args,
               groups_for(count, group.x), group);
        const Words got = download(*stream, target);
        for (std::uint32_t i = 0; i < count; ++i) {
          ASSERT_EQ(got[i], (i + 13) % count * 3 + add + (with_bias ? i + 7 : 0)) << i;
        }
      }
    }
  }
}

TEST_P(VulkanWork, PassesLargeArgumentsInABuffer) {
  const auto stream = device_->create_stream();
  constexpr std::uint32_t kRows = 150;
  constexpr std::uint32_t kCount = 128;
  struct Large : TableArgs {
    std::array<std::uint32_t, 512> rest{};
  };
  const ProgramPtr small = device_->build(table_request(), store_);
  const ProgramPtr large = device_->build(table_request(sizeof(Large)), store_);
  const BufferPtr target = buffer(kCount);
  const BufferPtr rows = buffer(kRows * kCount);
  for (std::uint32_t row = 0; row < kRows; ++row) {
    Large args;
    args.count = kCount;
    for (std::uint32_t i = 0; i < args.table.size(); ++i) args.table[i] = row * 1000 + i;
    if (row % 3 == 0) {
      launch(*stream, small, {target}, static_cast<const TableArgs&>(args), 2, {64, 1, 1});
    } else {
      launch(*stream, large, {target}, args, 2, {64, 1, 1});
    }
    stream->copy(*target, 0, *rows, row * target->size(), target->size());
  }
  const Words got = download(*stream, rows);
  for (std::uint32_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(got[i], i / kCount * 1000 + i % kCount % 40);
}

TEST_P(VulkanWork, RunsDependentLaunchesInOrder) {
  const auto stream = device_->create_stream();
  constexpr std::uint32_t kCount = 1 << 16;
  Words model = iota(kCount);
  BufferPtr from = buffer(*stream, model);
  BufferPtr to = buffer(kCount);
  const ProgramPtr program = device_->build(affine_request({64, 1, 1}, 1), store_);
  for (std::uint32_t step = 0; step < 100; ++step) {
    // Each element comes from the far end: without a barrier half of them would be stale.
    launch(*stream, program, {from, to, nullptr}, AffineArgs{kCount, kCount / 2 + step, 3, 0},
           kCount / 64, {64, 1, 1});
    Words next(kCount);
    for (std::uint32_t i = 0; i < kCount; ++i)
      next[i] = model[(i + kCount / 2 + step) % kCount] * 3 + 1;
    model.swap(next);
    std::swap(from, to);
    if (step % 41 == 0) stream->flush();
  }
  EXPECT_EQ(download(*stream, from), model);
}

TEST_P(VulkanWork, UploadsDoNotOvertakeLaunches) {
  const auto stream = device_->create_stream();
  constexpr std::uint32_t kCount = 1 << 18;
  const BufferPtr source = buffer(*stream, iota(kCount));
  const BufferPtr first = buffer(kCount), second = buffer(kCount);
  const ProgramPtr program = device_->build(affine_request({64, 1, 1}, 0), store_);
  const AffineArgs args{.count = kCount};
  launch(*stream, program, {source, first, nullptr}, args, kCount / 64, {64, 1, 1});
  upload(*stream, source, Words(kCount, 4));
  launch(*stream, program, {source, second, nullptr}, args, kCount / 64, {64, 1, 1});
  stream->flush();
  upload(*stream, source, Words(kCount, 9));
  stream->fill(*source, 0, 4, 0);
  EXPECT_EQ(download(*stream, first), iota(kCount));
  EXPECT_EQ(download(*stream, second), Words(kCount, 4));
  EXPECT_EQ(download(*stream, source)[0], 0U);
  EXPECT_EQ(download(*stream, source)[1], 9U);
}

TEST_P(VulkanWork, KeepsAliveWhatTheDeviceStillUses) {
  auto stream = device_->create_stream();
  constexpr std::uint32_t kCount = 1 << 18;
  const BufferPtr target = buffer(kCount);
  {
    const BufferPtr source = buffer(*stream, iota(kCount));
    const ProgramPtr program = device_->build(affine_request({64, 1, 1}, 5), store_);
    launch(*stream, program, {source, target, nullptr}, AffineArgs{.count = kCount}, kCount / 64,
           {64, 1, 1});
  }
  device_.reset();
  EXPECT_EQ(download(*stream, target), iota(kCount, 5));
  stream.reset();  // the buffer is now all that holds the device
}

TEST_P(VulkanWork, DestroyingAStreamFinishesItsWork) {
  constexpr std::uint32_t kCount = 1 << 18;
  const BufferPtr target = buffer(kCount);
  {
    const auto stream = device_->create_stream();
    const BufferPtr source = buffer(*stream, iota(kCount));
    const ProgramPtr program = device_->build(affine_request({64, 1, 1}, 2), store_);
    launch(*stream, program, {source, target, nullptr}, AffineArgs{.count = kCount}, kCount / 64,
           {64, 1, 1});
  }
  EXPECT_EQ(download(*device_->create_stream(), target), iota(kCount, 2));
}

TEST_P(VulkanWork, StreamsOfTwoThreadsDoNotMix) {
  const ProgramPtr affine = device_->build(affine_request({32, 1, 1}, 1), store_);
  const auto run = [&](std::uint32_t seed, Words& result) {
    const auto stream = device_->create_stream();
    const ProgramPtr own = device_->build(affine_request({64, 1, 1}, seed), store_);
    constexpr std::uint32_t kCount = 5000;
    BufferPtr from = buffer(*stream, iota(kCount, seed));
    BufferPtr to = buffer(kCount);
    for (std::uint32_t step = 0; step < 60; ++step) {
      launch(*stream, affine, {from, to, nullptr}, AffineArgs{kCount, 1, 1, 0},
             groups_for(kCount, 32), {32, 1, 1});
      launch(*stream, own, {to, from, nullptr}, AffineArgs{kCount, 0, 1, 0}, groups_for(kCount, 64),
             {64, 1, 1});
      if (step % 7 == 0) stream->synchronize();
    }
    result = download(*stream, from);
  };
  std::array<Words, 2> results;
  std::thread other([&] { run(1000, results[1]); });
  run(10, results[0]);
  other.join();
  for (std::uint32_t t = 0; t < 2; ++t) {
    const std::uint32_t seed = t == 0 ? 10 : 1000;
    ASSERT_EQ(results[t].size(), 5000U);
    for (std::uint32_t i = 0; i < 5000; ++i) {
      ASSERT_EQ(results[t][i], (i + 60) % 5000 + seed + 60 * (1 + seed));
    }
  }
}

TEST_P(VulkanWork, SubgroupsHaveTheProfilesSize) {
  const DeviceProfile& profile = device_->profile();
  if (!has(profile.features, Feature::kSubgroupArithmetic))
    GTEST_SKIP() << "the device has no sub-group arithmetic";
  const auto stream = device_->create_stream();
  ProgramRequest request = affine_request({profile.subgroup_size * 2, 1, 1}, 0);
  request.name = "subgroup";
  request.spirv = kSubgroup;
  request.bindings = 1;
  request.argument_bytes = 0;
  const ProgramPtr program = device_->build(request, store_);
  const BufferPtr target = buffer(profile.subgroup_size * 6);
  const std::vector<BufferPtr> buffers{target};
  Launch three;
  three.program = program.get();
  three.buffers = buffers;
  three.groups = {3, 1, 1};
  three.group = request.group;
  stream->launch(three);
  EXPECT_EQ(download(*stream, target),
            Words(profile.subgroup_size * 6, profile.subgroup_size * 1001));
  request.group = {profile.max_group_size, 1,
                   1};  // more sub-groups than a required size allows on lavapipe
  EXPECT_NE(device_->build(request, store_), nullptr);
}

// ---- time --------------------------------------------------------------------------------------

TEST_P(VulkanWork, TimesTheLaunches) {
  const auto stream = device_->create_stream();
  constexpr std::uint32_t kCount = 1 << 16;
  const BufferPtr a = buffer(*stream, iota(kCount));
  const BufferPtr b = buffer(kCount);
  const ProgramPtr program = device_->build(affine_request({64, 1, 1}, 0), store_);
  const auto work = [&](int launches) {
    for (int i = 0; i < launches; ++i) {
      launch(*stream, program, {a, b, nullptr}, AffineArgs{.count = kCount}, kCount / 64,
             {64, 1, 1});
    }
  };
  work(1);
  const auto start = std::chrono::steady_clock::now();
  double few = stream->time([&] { work(2); });
  for (int i = 0; i < 4; ++i)
    few = std::min(few, stream->time([&] { work(2); }));  // on a busy machine
  const double many = stream->time([&] { work(100); });
  const double wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GT(few, 0);
  EXPECT_GT(many, few);
  EXPECT_LT(few + many, wall);
  EXPECT_EQ(stream->time([] {}), 0);
  // Neither what comes before the first launch nor what follows the last one counts.
  const Words large = iota(std::size_t{4} << 20);
  const BufferPtr c = buffer(large.size());
  const double framed = stream->time([&] {
    stream->fill(*c, 0, c->size(), 1);
    upload(*stream, c, large);
    work(2);
    stream->fill(*c, 0, c->size(), 2);
    work(1);
    download(*stream, c);
    upload(*stream, c, large);
  });
  EXPECT_GT(framed, 0);
  EXPECT_THROW(stream->time([] { throw InvalidArgument("from within"); }), InvalidArgument);
  EXPECT_GT(stream->time([&] { work(1); }), 0);
  EXPECT_THROW(stream->time([&] { stream->time([] {}); }), InvalidArgument);
}

TEST_F(Vulkan, TimesByTheHostsClockWhereTheQueueHasNone) {
  faults.no_clock = true;
  open();
  if (!device_ || !kFaultsWork) return;
  const auto stream = device_->create_stream();
  const BufferPtr a = buffer(64);
  const ProgramPtr program = device_->build(affine_request({64, 1, 1}, 0), store_);
  EXPECT_GT(stream->time([&] {
    launch(*stream, program, {nullptr, a, nullptr}, AffineArgs{.count = 0}, 1, {64, 1, 1});
  }),
            0);
}

// ---- refusals ----------------------------------------------------------------------------------

TEST_F(Vulkan, NamesTheLimitThatABufferExceeds) {
  open();
  if (!device_) return;
  const DeviceProfile& profile = device_->profile();
  const std::uint64_t limit = std::min(profile.max_allocation, profile.max_binding);
  try {
    device_->create_buffer(limit + 1);
    FAIL() << "a buffer above the limit";
  } catch (const OutOfDeviceMemory& error) {
    EXPECT_EQ(error.asked(), limit + 1);
    EXPECT_EQ(error.limit(), limit);
    if (profile.max_binding < profile.max_allocation) {
      EXPECT_SAYS(std::string(error.what()), "maxStorageBufferRange");
    }
  }
}

TEST_F(Vulkan, RefusesLaunchesThatDoNotFitTheProgram) {
  open();
  if (!device_) return;
  const auto stream = device_->create_stream();
  const BufferPtr a = buffer(64);
  const ProgramPtr program = device_->build(affine_request({64, 1, 1}, 0), store_);
  const std::vector<BufferPtr> buffers{a, a, a};
  const AffineArgs args{};
  const auto bytes = std::as_bytes(std::span(&args, 1));
  Launch good;
  good.program = program.get();
  good.buffers = buffers;
  good.arguments = bytes;
  good.group = {64, 1, 1};
  Launch bad = good;
  bad.buffers = bad.buffers.first(2);
  EXPECT_SAYS(message<InvalidArgument>([&] { stream->launch(bad); }),
              "'affine': 2 buffers instead of 3");
  bad = good;
  bad.arguments = bytes.first(4);
  EXPECT_SAYS(message<InvalidArgument>([&] { stream->launch(bad); }),
              "4 bytes of arguments instead of 16");
  bad = good;
  bad.group.x = 32;
  EXPECT_SAYS(message<InvalidArgument>([&] { stream->launch(bad); }), "work-group size");
  bad = good;
  bad.program = nullptr;
  EXPECT_THROW(stream->launch(bad), InvalidArgument);
  const std::uint32_t most = device_->profile().max_groups[1];
  if (most != ~std::uint32_t{0}) {
    bad = good;
    bad.groups.y = most + 1;
    EXPECT_SAYS(message<InvalidArgument>([&] { stream->launch(bad); }), "maxComputeWorkGroupCount");
  }
  const DevicePtr other = probe_vulkan().found.front().open();
  EXPECT_SAYS(message<InvalidArgument>([&] { other->create_stream()->launch(good); }),
              "another device");
  const BufferPtr foreign = other->create_buffer(4);
  EXPECT_THROW(stream->fill(*foreign, 0, 4, 0), InvalidArgument);

  const int before = faults.submissions;
  bad = good;
  bad.groups.z = 0;
  stream->launch(bad);
  stream->synchronize();
  EXPECT_EQ(faults.submissions, before) << "an empty grid was launched";
}

TEST_F(Vulkan, RefusesWhatADriverWouldChokeOn) {
  open();
  if (!device_) return;
  const auto why = [&](const ProgramRequest& request) {
    return message<BuildError>([&] { device_->build(request, store_); });
  };
  const ProgramRequest good = affine_request({64, 1, 1}, 0);
  ProgramRequest bad = good;
  bad.spirv = {};
  EXPECT_SAYS(why(bad), "program 'affine': this is not SPIR-V");
  bad.spirv = std::span(kAffine).first(std::size(kAffine) - 1);
  EXPECT_SAYS(why(bad), "cut off or damaged");
  bad = good;
  bad.entry = "mai";
  EXPECT_SAYS(why(bad), "no compute entry point 'mai'");
  bad = good;
  bad.group = {64, 64, 64};
  EXPECT_SAYS(why(bad), "maxComputeWorkGroupInvocations");
  bad.group = {64, 0, 1};
  EXPECT_SAYS(why(bad), "maxComputeWorkGroupSize");
  bad = good;
  bad.bindings = 1U << 30;
  EXPECT_SAYS(why(bad), "maxPerStageDescriptorStorageBuffers");
  bad = good;
  bad.argument_bytes = 6;
  EXPECT_SAYS(why(bad), "multiple of 4");
  Words with_int64(std::begin(kAffine), std::end(kAffine));
  with_int64.insert(with_int64.begin() + 5, {2U << 16 | 17U, 11U});  // OpCapability Int64
  bad = good;
  bad.spirv = with_int64;
  EXPECT_SAYS(why(bad), "capability Int64");
  if (kFaultsWork) {
    faults.pipelines = VK_ERROR_UNKNOWN;
    EXPECT_SAYS(why(good), "program 'affine': vkCreateComputePipelines: VK_ERROR_UNKNOWN");
  }
}

TEST(VulkanSpirv, ReadsWhatAModuleNeeds) {
  const vulkan::ModuleFacts affine = vulkan::examine_module(kAffine, "main");
  EXPECT_EQ(affine.fault, "");
  EXPECT_EQ(affine.version, 0x00010300U);
  EXPECT_EQ(affine.needs, Feature::kNone);
  EXPECT_EQ(affine.subgroup_operations, 0U);
  const vulkan::ModuleFacts subgroup = vulkan::examine_module(kSubgroup, "main");
  EXPECT_EQ(subgroup.needs, Feature::kSubgroupArithmetic);
  EXPECT_EQ(subgroup.subgroup_operations,
            std::uint32_t{VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT});
}

// ---- the pipeline cache ------------------------------------------------------------------------

TEST_F(Vulkan, ForeignPipelineCachesNeverReachTheDriver) {
  open();
  if (!device_) return;
  const auto physical = first_physical();
  std::vector<std::byte> blob(48);
  const std::array<std::uint32_t, 4> header{32, 1, physical->profile.vendor_id,
                                            physical->profile.device_id};
  std::memcpy(blob.data(), header.data(), 16);
  std::memcpy(blob.data() + 16, physical->cache_uuid.data(), 16);
  EXPECT_TRUE(vulkan::blob_fits(*physical, blob));
  EXPECT_FALSE(vulkan::blob_fits(*physical, std::span(blob).first(31)));
  for (const std::size_t byte : {0, 3, 4, 8, 12, 16, 31}) {
    std::vector<std::byte> damaged = blob;
    damaged[byte] ^= std::byte{0x40};
    EXPECT_FALSE(vulkan::blob_fits(*physical, damaged)) << byte;
  }
  MapStore store;
  store.fallback.assign(100, std::byte{0x5a});
  EXPECT_NE(device_->build(affine_request({64, 1, 1}, 0), store), nullptr);
  EXPECT_EQ(store.gets, 1);
}

TEST_F(Vulkan, ProgramsHaveKeysOfTheirOwn) {
  open();
  if (!device_) return;
  const auto physical = first_physical();
  const ProgramRequest base = affine_request({64, 1, 1}, 0);
  const std::string key = vulkan::cache_key(*physical, base);
  EXPECT_EQ(key.substr(0, 7), "vulkan|");
  EXPECT_EQ(key, vulkan::cache_key(*physical, affine_request({64, 1, 1}, 0)));
  EXPECT_NE(key, vulkan::cache_key(*physical, affine_request({64, 1, 1}, 1)));
  EXPECT_NE(key, vulkan::cache_key(*physical, affine_request({32, 2, 1}, 0)));
  ProgramRequest other = base;
  other.spirv = kTable;
  EXPECT_NE(key, vulkan::cache_key(*physical, other));
  // Twice through one store: what the first build left, if anything, serves the second.
  MapStore store;
  EXPECT_NE(device_->build(base, store), nullptr);
  EXPECT_NE(device_->build(base, store), nullptr);
  EXPECT_EQ(store.gets, 2);
}

// ---- memory ------------------------------------------------------------------------------------

TEST(VulkanMemory, TakesTheTypeThatFitsThePurpose) {
  using vulkan::MemoryUse;
  constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  constexpr VkMemoryPropertyFlags kMapped =
      VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  using Types = std::vector<std::uint32_t>;

  VkPhysicalDeviceMemoryProperties card{};  // as NVIDIA's and AMD's cards have it
  card.memoryHeapCount = 3;
  card.memoryHeaps[0].size = std::uint64_t{24} << 30;
  card.memoryHeaps[1].size = std::uint64_t{64} << 30;
  card.memoryHeaps[2].size = std::uint64_t{256} << 20;
  card.memoryTypeCount = 6;
  card.memoryTypes[0] = {0, 1};
  card.memoryTypes[1] = {kLocal, 0};
  card.memoryTypes[2] = {kMapped, 1};
  card.memoryTypes[3] = {kMapped | kCached, 1};
  card.memoryTypes[4] = {kLocal | kMapped, 2};
  card.memoryTypes[5] = {kLocal | kMapped | VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD, 0};
  const auto of_card = [&](MemoryUse use, std::uint32_t allowed = ~0U) {
    return vulkan::choose_memory_types(card, allowed, use, DeviceKind::kDiscreteGpu);
  };
  EXPECT_EQ(of_card(MemoryUse::kDevice), (Types{1, 4}));
  EXPECT_EQ(of_card(MemoryUse::kDevice, 0b10000), (Types{4}));
  EXPECT_EQ(of_card(MemoryUse::kStaging), (Types{3, 2, 4}));
  EXPECT_EQ(of_card(MemoryUse::kArguments), (Types{4, 2, 3}));
  EXPECT_EQ(of_card(MemoryUse::kArguments, 0b10), (Types{}));

  VkPhysicalDeviceMemoryProperties shared{};  // as integrated GPUs have it
  shared.memoryHeapCount = 1;
  shared.memoryHeaps[0].size = std::uint64_t{16} << 30;
  shared.memoryTypeCount = 3;
  shared.memoryTypes[0] = {kLocal, 0};
  shared.memoryTypes[1] = {kLocal | kMapped, 0};
  shared.memoryTypes[2] = {kLocal | kMapped | kCached, 0};
  EXPECT_EQ(
      vulkan::choose_memory_types(shared, ~0U, MemoryUse::kDevice, DeviceKind::kIntegratedGpu),
      (Types{2, 1, 0}));
}

class VulkanFaults : public Vulkan {
 protected:
  void SetUp() override {
    Vulkan::SetUp();
    if (!kFaultsWork) GTEST_SKIP() << "faults can be made on Linux only";
  }
};

TEST_F(VulkanFaults, FullMemoryIsAnErrorThatPasses) {
  open();
  if (!device_) return;
  for (const VkResult full : {VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_OUT_OF_HOST_MEMORY}) {
    faults.allocate = full;
    try {
      device_->create_buffer(4096);
      FAIL() << "memory out of nowhere";
    } catch (const OutOfDeviceMemory& error) {
      EXPECT_EQ(error.asked(), 4096U);
      EXPECT_EQ(error.limit(), device_->profile().global_memory);
      EXPECT_SAYS(std::string(error.what()), "vkAllocateMemory gave VK_ERROR_OUT_OF_");
    }
  }
  faults.allocate = VK_SUCCESS;
  EXPECT_EQ(device_->create_buffer(4096)->size(), 4096U);
}

TEST_F(VulkanFaults, CountsAllocations) {
  faults.allocation_limit = 5;
  open();
  if (!device_) return;
  std::vector<BufferPtr> buffers;
  const std::string text = message<OutOfDeviceMemory>([&] {
    for (int i = 0; i < 10; ++i) buffers.push_back(device_->create_buffer(16));
  });
  EXPECT_SAYS(text, "maxMemoryAllocationCount");
  EXPECT_EQ(buffers.size(), 4U) << "one belongs to the device itself";
  buffers.pop_back();
  buffers.push_back(device_->create_buffer(16));
}

TEST_F(VulkanFaults, PipelineCachesGoThroughTheStore) {
  faults.cache_bytes = 100;
  open();
  if (!device_) return;
  const ProgramRequest request = affine_request({64, 1, 1}, 0);
  EXPECT_NE(device_->build(request, store_), nullptr);
  EXPECT_EQ(faults.cache_loaded, 0U);
  ASSERT_EQ(store_.blobs.size(), 1U);
  EXPECT_EQ(store_.blobs.begin()->second.size(), 132U);
  EXPECT_TRUE(vulkan::blob_fits(*first_physical(), store_.blobs.begin()->second));
  EXPECT_NE(device_->build(request, store_), nullptr);
  EXPECT_EQ(faults.cache_loaded, 132U);
  EXPECT_NE(device_->build(affine_request({32, 1, 1}, 0), store_), nullptr);
  EXPECT_EQ(faults.cache_loaded, 0U);
  EXPECT_EQ(store_.blobs.size(), 2U);

  faults.refuse_warm_cache = true;
  EXPECT_NE(device_->build(request, store_), nullptr) << "the driver can't use what it kept";
  EXPECT_EQ(faults.cache_loaded, 0U);
}

// ---- lost devices ------------------------------------------------------------------------------

TEST_F(VulkanFaults, ALostDeviceStaysLost) {
  open();
  if (!device_) return;
  for (const bool at_submit : {true, false}) {
    const DevicePtr device = probe_vulkan().found.front().open();
    const auto stream = device->create_stream();
    const auto second = device->create_stream();
    const ProgramPtr program = device->build(affine_request({64, 1, 1}, 0), store_);
    const BufferPtr a = device->create_buffer(256);
    launch(*stream, program, {nullptr, a, nullptr}, AffineArgs{.count = 0}, 1, {64, 1, 1});
    stream->synchronize();
    launch(*stream, program, {nullptr, a, nullptr}, AffineArgs{.count = 0}, 1, {64, 1, 1});
    (at_submit ? faults.submit : faults.wait) = VK_ERROR_DEVICE_LOST;
    const std::string call = at_submit ? "vkQueueSubmit" : "vkWaitForFences";
    EXPECT_SAYS(message<DeviceLost>([&] { stream->synchronize(); }),
                call + ": VK_ERROR_DEVICE_LOST");
    faults.reset();
    std::vector<std::byte> bytes(4);
    EXPECT_SAYS(message<DeviceLost>([&] { stream->synchronize(); }), "was lost earlier: " + call);
    EXPECT_THROW(stream->flush(), DeviceLost);
    EXPECT_THROW(second->upload(*a, 0, bytes), DeviceLost);
    EXPECT_THROW(second->download(*a, 0, bytes), DeviceLost);
    EXPECT_THROW(second->fill(*a, 0, 4, 0), DeviceLost);
    EXPECT_THROW(second->copy(*a, 0, *a, 8, 4), DeviceLost);
    EXPECT_THROW(second->time([] {}), DeviceLost);
    EXPECT_THROW(launch(*second, program, {nullptr, a, nullptr}, AffineArgs{}, 1, {64, 1, 1}),
                 DeviceLost);
    EXPECT_THROW(device->create_buffer(4), DeviceLost);
    EXPECT_THROW(device->create_stream(), DeviceLost);
    EXPECT_THROW(device->build(affine_request({64, 1, 1}, 0), store_), DeviceLost);
  }
  // Another device on the same driver is not concerned.
  EXPECT_EQ(device_->create_buffer(4)->size(), 4U);
  device_->create_stream()->synchronize();
}

TEST_F(VulkanFaults, AFailedSubmissionLosesItsOwnWorkOnly) {
  open();
  if (!device_) return;
  const auto stream = device_->create_stream();
  const BufferPtr a = buffer(*stream, iota(8));
  faults.submit = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  stream->fill(*a, 0, 4, 1);
  EXPECT_SAYS(message<OutOfDeviceMemory>([&] { stream->flush(); }),
              "vkQueueSubmit: VK_ERROR_OUT_OF_DEVICE_MEMORY");
  faults.submit = VK_SUCCESS;
  stream->fill(*a, 4, 4, 0);
  EXPECT_EQ(download(*stream, a), (Words{0, 0, 2, 3, 4, 5, 6, 7}));
}

TEST_F(VulkanFaults, AHangIsAnError) {
  open();
  if (!device_) return;
  auto stream = device_->create_stream();
  const BufferPtr a = buffer(8);
  stream->fill(*a, 0, 32, 3);
  faults.wait = VK_TIMEOUT;
  EXPECT_SAYS(message<DeviceError>([&] { stream->synchronize(); }), "VK_TIMEOUT");
  faults.wait = VK_SUCCESS;
  EXPECT_EQ(download(*stream, a), Words(8, 0x03030303));
}

// ---- the process -------------------------------------------------------------------------------

#if defined(__linux__)
TEST_F(VulkanFaults, AForkedChildIsToldSo) {
  open();
  if (!device_) return;
  const auto stream = device_->create_stream();
  const BufferPtr a = buffer(*stream, iota(8));
  const pid_t child = fork();
  if (child == 0) {
    int told = 0;
    for (const std::function<void()>& call : std::initializer_list<std::function<void()>>{
             [&] { stream->synchronize(); }, [&] { device_->create_buffer(4); },
             [&] { buffer(*stream, iota(8)); }}) {
      try {
        call();
      } catch (const DeviceError& error) {
        if (std::string(error.what()).find("forked") != std::string::npos) ++told;
      }
    }
    device_.reset();
    _exit(told == 3 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(download(*stream, a), iota(8));
}
#endif

// Older than the driver's statics, so destroyed after them, with work under way.
struct Leftover {
  DevicePtr device;
  BufferPtr buffer;
  ProgramPtr program;
  std::unique_ptr<Stream> stream;
};
Leftover leftover;

TEST_F(Vulkan, StaticsMayHoldADeviceToTheEnd) {
  open();
  if (!device_) return;
  leftover.device = device_;
  leftover.stream = device_->create_stream();
  leftover.buffer = buffer(1 << 18);
  leftover.program = device_->build(affine_request({64, 1, 1}, 0), store_);
  launch(*leftover.stream, leftover.program, {nullptr, leftover.buffer, nullptr},
         AffineArgs{.count = 0}, 1 << 12, {64, 1, 1});
  leftover.stream->flush();
  launch(*leftover.stream, leftover.program, {nullptr, leftover.buffer, nullptr},
         AffineArgs{.count = 0}, 1, {64, 1, 1});
}

TEST_F(Vulkan, OpensAndClosesOften) {
  for (int i = 0; i < 20; ++i) {
    open();
    if (!device_) return;
    const auto stream = device_->create_stream();
    const BufferPtr a = buffer(*stream, iota(16));
    EXPECT_EQ(download(*stream, a), iota(16));
  }
}

}  // namespace
}  // namespace tessera::device
