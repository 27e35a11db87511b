// SPDX-License-Identifier: Apache-2.0
// One buffer for Vulkan and OpenCL: the application exports the memory of a VkBuffer, OpenCL
// imports it as a cl_mem, and Tessera computes on it in both. Nothing is copied. Where the drivers
// have no such memory, it says so and ends with 0.
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <tessera/interop/opencl.hpp>
#include <tessera/interop/vulkan.hpp>
#include <tessera/tessera.hpp>
#include <vector>

#include "vulkan_side.hpp"

namespace {

namespace ts = tessera;

constexpr VkDeviceSize kBytes = 1 << 16;

struct ClDevice {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
};

bool has_extension(cl_device_id device, const std::string& name) {
  std::size_t bytes = 0;
  clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 0, nullptr, &bytes);
  std::string text(bytes, '\0');
  clGetDeviceInfo(device, CL_DEVICE_EXTENSIONS, bytes, text.data(), nullptr);
  return text.find(name) != std::string::npos;
}

// The same device as Vulkan's, by its UUID: names are not enough where there are two of a kind.
ClDevice find_device(const std::array<std::uint8_t, VK_UUID_SIZE>& uuid) {
  std::array<cl_platform_id, 16> platforms{};
  cl_uint count = 0;
  clGetPlatformIDs(platforms.size(), platforms.data(), &count);
  for (cl_uint p = 0; p < std::min<cl_uint>(count, platforms.size()); ++p) {
    std::array<cl_device_id, 16> devices{};
    cl_uint found = 0;
    clGetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, devices.size(), devices.data(), &found);
    for (cl_uint d = 0; d < std::min<cl_uint>(found, devices.size()); ++d) {
      std::array<std::uint8_t, CL_UUID_SIZE_KHR> theirs{};
      if (!has_extension(devices[d], "cl_khr_device_uuid") ||
          clGetDeviceInfo(devices[d], CL_DEVICE_UUID_KHR, theirs.size(), theirs.data(), nullptr) !=
              CL_SUCCESS ||
          !std::equal(theirs.begin(), theirs.end(), uuid.begin()))
        continue;
      if (!has_extension(devices[d], "cl_khr_external_memory_opaque_fd"))
        throw NotShared(
            "OpenCL on this device imports no memory "
            "(cl_khr_external_memory_opaque_fd)");
      return {platforms[p], devices[d]};
    }
  }
  throw NotShared("no OpenCL device has the UUID of the Vulkan device that exports memory");
}

cl_mem import_memory(cl_context context, cl_device_id device, int descriptor, std::size_t bytes) {
  const std::array<cl_mem_properties, 6> properties{CL_EXTERNAL_MEMORY_HANDLE_OPAQUE_FD_KHR,
                                                    static_cast<cl_mem_properties>(descriptor),
                                                    CL_DEVICE_HANDLE_LIST_KHR,
                                                    reinterpret_cast<cl_mem_properties>(device),
                                                    CL_DEVICE_HANDLE_LIST_END_KHR,
                                                    0};
  cl_int code = CL_SUCCESS;
  cl_mem memory = clCreateBufferWithProperties(context, properties.data(), CL_MEM_READ_WRITE, bytes,
                                               nullptr, &code);
  if (code != CL_SUCCESS) {
    throw std::runtime_error("clCreateBufferWithProperties of external memory gave " +
                             std::to_string(code));
  }
  return memory;
}

// Elements of the shared buffer, from float `first` on.
ts::TensorSpec floats(ts::Shape shape, std::int64_t first) {
  ts::TensorSpec spec = ts::TensorSpec::contiguous(ts::DType::kF32, std::move(shape));
  spec.offset = first;
  return spec;
}

using Hand = cl_int (*)(cl_command_queue, cl_uint, const cl_mem*, cl_uint, const cl_event*,
                        cl_event*);

bool compute(const VulkanSide& vulkan, const ClDevice& device, cl_context context,
             cl_command_queue queue, cl_mem memory) {
  const auto function = [&](const char* name) {
    return reinterpret_cast<Hand>(clGetExtensionFunctionAddressForPlatform(device.platform, name));
  };
  const Hand acquire = function("clEnqueueAcquireExternalMemObjectsKHR"),
             release = function("clEnqueueReleaseExternalMemObjectsKHR");
  const std::array extensions{VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME};
  const ts::Context on_vulkan = ts::vulkan::open({.instance = vulkan.instance,
                                                  .api_version = VK_API_VERSION_1_1,
                                                  .physical_device = vulkan.physical,
                                                  .device = vulkan.device,
                                                  .queue_family = vulkan.family,
                                                  .queue = vulkan.queue,
                                                  .extensions = extensions});
  const ts::Context on_opencl = ts::opencl::open(context, device.id, queue);
  const auto in_vulkan = [&](ts::TensorSpec spec) {
    return ts::vulkan::tensor(on_vulkan, vulkan.buffer, 0, kBytes, std::move(spec));
  };
  const auto in_opencl = [&](ts::TensorSpec spec) {
    return ts::opencl::tensor(on_opencl, memory, std::move(spec));
  };
  // Vulkan writes three means, OpenCL their mean, and Vulkan reads it. Whoever hands the memory
  // over waits first; semaphores of both APIs would spare the host.
  const ts::Tensor tokens = on_vulkan.upload(std::vector<float>{1, 2, 3, 5, 6, 7}, {1, 2, 3});
  ts::Executor(on_vulkan).run("sequence_mean",
                              {{"input", tokens}, {"output", in_vulkan(floats({1, 3}, 0))}});
  on_vulkan.synchronize();
  acquire(queue, 1, &memory, 0, nullptr, nullptr);
  ts::Executor(on_opencl).run("sequence_mean", {{"input", in_opencl(floats({1, 3, 1}, 0))},
                                                {"output", in_opencl(floats({1, 1}, 64))}});
  release(queue, 1, &memory, 0, nullptr, nullptr);
  on_opencl.synchronize();
  clFinish(queue);
  const auto means = on_vulkan.download<float>(in_vulkan(floats({1, 3}, 0)));
  const auto mean = on_vulkan.download<float>(in_vulkan(floats({1, 1}, 64)));
  std::printf("%s: Vulkan wrote %g %g %g, OpenCL made %g of them in the same memory\n",
              on_opencl.device().name.c_str(), means[0], means[1], means[2], mean[0]);
  return means == std::vector<float>{3, 4, 5} && mean == std::vector<float>{4};
}

}  // namespace

int main() try {
  const VulkanSide vulkan(kBytes);
  const ClDevice device = find_device(vulkan.uuid);
  cl_context context = clCreateContext(nullptr, 1, &device.id, nullptr, nullptr, nullptr);
  cl_command_queue queue = clCreateCommandQueueWithProperties(context, device.id, nullptr, nullptr);
  cl_mem memory = import_memory(context, device.id, vulkan.export_memory(), vulkan.memory_bytes);
  const bool right = compute(vulkan, device, context, queue, memory);
  clReleaseMemObject(memory);
  clReleaseCommandQueue(queue);
  clReleaseContext(context);
  return right ? 0 : 1;
} catch (const NotShared& why) {
  std::printf("not shared: %s\n", why.what());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
