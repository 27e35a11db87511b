// SPDX-License-Identifier: Apache-2.0
// Tessera on the application's own Vulkan: its device and queue, its buffers, its command buffers.
//
// A context opened here works like any other, and at three levels:
//
//   calls                 submitted to the queue; synchronize() and downloads wait
//   wait_for(), signal()  the same, ordered with the application's work by timeline semaphores
//   record()              nothing is submitted: calls on that stream become commands in a command
//                         buffer of the application
//
// Lifetimes. Nothing of the application is destroyed. Instance, device and queue outlive the
// context and everything made on it (tensors, streams); a VkBuffer outlives the tensors on it and
// the work that uses them. What Tessera makes on the device goes with its last handle.
//
// Recording. Calls go to the command buffer in the order in which they are made. It is a primary or
// secondary one of the context's queue family, in the recording state and outside of render passes:
// Vulkan cannot be asked for that, the validation layers say what is wrong. Before each dispatch
// stands a barrier
//
//   COMPUTE_SHADER | TRANSFER  SHADER_WRITE | TRANSFER_WRITE      of all that was recorded before
//   COMPUTE_SHADER | TRANSFER  SHADER_ and TRANSFER_ READ | WRITE
//
// so compute shaders and transfers of the application that come before need no barrier of their
// own; other stages do. Behind the last dispatch there is none: what reads results waits for
// COMPUTE_SHADER, SHADER_WRITE, and what overwrites operands for COMPUTE_SHADER. The compute
// pipeline, descriptor set 0 and push constants of the compute bind point are not what they were.
// Descriptors, arguments, scratch and the buffers of operands live as long as the stream, or until
// restart(): keep it until the commands are done. Any number of recordings may be in flight; each
// has scratch of its own, which grows as calls need (scratch_bytes() says how far), or is handed
// over. After the first recording of the same calls, restart() and recording allocate nothing on
// the device where the outputs are handed in, too.
//
// Threads: as Context, Stream and Executor; vkQueueSubmit is called between lock() and unlock() of
// the application, if there are any.
//
// Errors that kernels raise (see ErrorLog) go to words that the stream reads when it waits; a call
// that finds its 16384 words full waits, too, and with an ErrorLog none does. A
// recording never waits, so an operation that raises some is run with an ErrorLog of the context,
// Executor::with_errors(), and without one is refused with InvalidArgument.
//
// Loader. Tessera links none: it opens libvulkan.so.1 when it is first needed, which is the one
// that an application links, too. An application that has its handles from elsewhere hands over its
// vkGetInstanceProcAddr, and every function comes from there.
//
// What is not there: a recorded call times no candidates, whatever the policy: Executor::tune(), or
// prewarm() with autotuning, does.
//
// Errors: InvalidArgument for null handles, claims of what the device lacks, ranges beyond their
// buffer's memory; DeviceError, DeviceLost as elsewhere.
#pragma once

#include <vulkan/vulkan.h>

#include <cstdint>
#include <functional>
#include <span>

#include "tessera/context.hpp"
#include "tessera/export.hpp"
#include "tessera/tensor.hpp"

namespace tessera::vulkan {

struct Device {
  VkInstance instance = VK_NULL_HANDLE;
  std::uint32_t api_version = VK_API_VERSION_1_1;  // VkApplicationInfo::apiVersion
  VkPhysicalDevice physical_device = VK_NULL_HANDLE;
  VkDevice device = VK_NULL_HANDLE;
  std::uint32_t queue_family = 0;  // that computes
  VkQueue queue = VK_NULL_HANDLE;
  // As VkDeviceCreateInfo had them; what is not here is not used. Read by open() only.
  std::span<const char* const> extensions{};
  const void* features = nullptr;                           // pNext
  const VkPhysicalDeviceFeatures* base_features = nullptr;  // pEnabledFeatures
  // Around each submission to the queue, where the application submits from other threads.
  std::function<void()> lock{}, unlock{};
  // Of the loader that made the handles; null: the process'.
  PFN_vkGetInstanceProcAddr get_instance_proc_addr = nullptr;
};

// Useful features: storageBuffer16BitAccess, without which 16-bit tensors are refused;
// subgroupSizeControl and computeFullSubgroups, shaderFloat16, maintenance4, timelineSemaphore;
// VK_KHR_cooperative_matrix with vulkanMemoryModel. Of the options, `device` is not looked at.
TESSERA_API Context open(const Device& device, const ContextOptions& options = {});

// Elements in bytes [offset, offset + bytes) of a buffer, from the first of which spec.offset
// counts. `offset` is a multiple of minStorageBufferOffsetAlignment, `bytes` of 4. The buffer has
// STORAGE_BUFFER usage; for Context::download() TRANSFER_SRC, too. It is of the context's queue
// family, or concurrent. Tensors on one VkBuffer are told apart by their bytes; other aliasing of
// memory is not seen.
TESSERA_API Tensor tensor(const Context& context, VkBuffer buffer, VkDeviceSize offset,
                          VkDeviceSize bytes, TensorSpec spec);

// The buffer in which a tensor's elements lie. It lives as long as the tensor.
TESSERA_API VkBuffer buffer(const Tensor& tensor);

// Later calls of the context, or stream, wait on the device until the semaphore has the value; it
// gets the value when all calls so far are done. They need timelineSemaphore.
TESSERA_API void wait_for(const Context& context, VkSemaphore timeline, std::uint64_t value);
TESSERA_API void wait_for(const Stream& stream, VkSemaphore timeline, std::uint64_t value);
TESSERA_API void signal(const Context& context, VkSemaphore timeline, std::uint64_t value);
TESSERA_API void signal(const Stream& stream, VkSemaphore timeline, std::uint64_t value);

// A stream whose calls are recorded: Executor(context).on(stream). It can neither wait nor copy.
// `scratch`: memory for its calls in place of the stream's own, such as a part of a buffer that
// several recordings use one after the other: a tensor without strides or offset. A call that needs
// more is refused with InvalidArgument, and so is one with an operand in the bytes that it needs.
TESSERA_API Stream record(const Context& context, VkCommandBuffer commands,
                          const Tensor& scratch = {});
// When the commands are done, or will not be submitted: lets go of what they used, and records
// there from now on.
TESSERA_API void restart(const Stream& stream, VkCommandBuffer commands);

}  // namespace tessera::vulkan
