// SPDX-License-Identifier: Apache-2.0
#include "device/vulkan_fixture.hpp"

#if defined(__linux__)
#include <dlfcn.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tessera::device {

Faults faults;

// ---- shaders, from glslc -O --target-env=vulkan1.1 ---------------------------------------------

namespace {

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

}  // namespace

std::span<const std::uint32_t> affine_shader() { return kAffine; }
std::span<const std::uint32_t> table_shader() { return kTable; }
std::span<const std::uint32_t> subgroup_shader() { return kSubgroup; }

}  // namespace tessera::device

// ---- faults ------------------------------------------------------------------------------------

#if defined(__linux__)
using tessera::device::faults;

namespace {

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}
#define TESSERA_REAL(name) static const auto name##_real = real<PFN_##name>(#name)

}  // namespace

#pragma GCC visibility push(default)  // or the library does not find them
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
  ++faults.allocations;
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
  constexpr std::size_t kHeader = 32;
  if (data != nullptr) {
    // Where not all of it fits, NVIDIA's driver writes none of it.
    std::size_t whole = 0;
    VkResult result = vkGetPipelineCacheData_real(device, cache, &whole, nullptr);
    if (result != VK_SUCCESS) return result;
    std::vector<char> bytes(std::max(whole, kHeader));
    result = vkGetPipelineCacheData_real(device, cache, &whole, bytes.data());
    if (result != VK_SUCCESS) return result;
    std::memcpy(data, bytes.data(), kHeader);
    std::memset(static_cast<char*>(data) + kHeader, 0x77, *size - kHeader);
  }
  *size = kHeader + faults.cache_bytes;
  return VK_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
#endif
