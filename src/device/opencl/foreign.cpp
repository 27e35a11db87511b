// SPDX-License-Identifier: Apache-2.0
#include "device/opencl/foreign.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "device/opencl/device.hpp"
#include "device/opencl/errors.hpp"
#include "device/opencl/profile.hpp"
#include "device/opencl/stream.hpp"
#include "device/platforms.hpp"
#include "tessera/error.hpp"

namespace tessera::device::opencl {
namespace {

void require(const void* handle, const char* what) {
  if (handle == nullptr) throw InvalidArgument(std::string(what) + " is null");
}

// Asks the object itself: what the driver does not know is the application's mistake.
template <class T, class Query, class Handle, class What>
T ask(Query query, Handle handle, What what, const char* call) {
  T value{};
  const cl_int code = query(handle, what, sizeof(T), &value, nullptr);
  if (code != CL_SUCCESS) throw InvalidArgument(describe(call, code));
  return value;
}

ClDevice& own(Device& device) {
  auto* mine = dynamic_cast<ClDevice*>(&device);
  if (mine == nullptr) throw InvalidArgument("the context is on no OpenCL device");
  mine->require_usable();
  return *mine;
}

ClStream& own(Stream& stream) {
  auto* mine = dynamic_cast<ClStream*>(&stream);
  if (mine == nullptr) throw InvalidArgument("the stream is on no OpenCL device");
  return *mine;
}

std::vector<cl_device_id> devices_of(cl_context context) {
  std::size_t bytes = 0;
  cl_int code = clGetContextInfo(context, CL_CONTEXT_DEVICES, 0, nullptr, &bytes);
  std::vector<cl_device_id> devices(bytes / sizeof(cl_device_id));
  if (code == CL_SUCCESS)
    code = clGetContextInfo(context, CL_CONTEXT_DEVICES, bytes, devices.data(), nullptr);
  if (code != CL_SUCCESS)
    throw InvalidArgument(describe("clGetContextInfo(CL_CONTEXT_DEVICES)", code));
  return devices;
}

}  // namespace

Found find_in(cl_context context, cl_device_id device) {
  require(context, "the cl_context");
  require(device, "the cl_device_id");
  const std::vector<cl_device_id> devices = devices_of(context);
  if (std::ranges::count(devices, device) == 0)
    throw InvalidArgument("the cl_device_id is not one of the cl_context");
  // Its programs are built and kept for one device.
  if (devices.size() > 1) {
    throw Unsupported("the cl_context has " + std::to_string(devices.size()) +
                      " devices; Tessera takes one of a single device");
  }
  const auto platform = ask<cl_platform_id>(clGetDeviceInfo, device, CL_DEVICE_PLATFORM,
                                            "clGetDeviceInfo(CL_DEVICE_PLATFORM)");
  Found found;
  try {
    found.profile = read_profile(platform, device);
  } catch (const Unusable& why) {
    throw Unsupported("the OpenCL device of the application " + std::string(why.what()));
  }
  settle(found.profile);
  found.open = [kept = cl::Context(context, true), device, profile = found.profile] {
    return open_cl_device(kept, device, profile);
  };
  return found;
}

std::unique_ptr<Stream> adopt_queue(Device& device, cl_command_queue queue) {
  ClDevice& mine = own(device);
  require(queue, "the cl_command_queue");
  if (ask<cl_context>(clGetCommandQueueInfo, queue, CL_QUEUE_CONTEXT,
                      "clGetCommandQueueInfo(CL_QUEUE_CONTEXT)") != mine.context())
    throw InvalidArgument("the cl_command_queue belongs to another cl_context");
  if (ask<cl_device_id>(clGetCommandQueueInfo, queue, CL_QUEUE_DEVICE,
                        "clGetCommandQueueInfo(CL_QUEUE_DEVICE)") != mine.id())
    throw InvalidArgument("the cl_command_queue belongs to another cl_device_id");
  const auto properties =
      ask<cl_command_queue_properties>(clGetCommandQueueInfo, queue, CL_QUEUE_PROPERTIES,
                                       "clGetCommandQueueInfo(CL_QUEUE_PROPERTIES)");
  constexpr cl_command_queue_properties kOnDevice = 1 << 2;  // CL_QUEUE_ON_DEVICE of 2.0
  if ((properties & kOnDevice) != 0)
    throw InvalidArgument("the cl_command_queue is one of the device, which the host can't fill");
  const bool in_order = (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
  return std::make_unique<ClStream>(mine.shared_from_this(), cl::CommandQueue(queue, true),
                                    in_order);
}

BufferPtr adopt_memory(Device& device, cl_mem memory) {
  ClDevice& mine = own(device);
  require(memory, "the cl_mem");
  const auto get = [&]<class T>(T /*like*/, cl_mem_info what, const char* call) {
    return ask<T>(clGetMemObjectInfo, memory, what, call);
  };
  if (get(cl_context{}, CL_MEM_CONTEXT, "clGetMemObjectInfo(CL_MEM_CONTEXT)") != mine.context())
    throw InvalidArgument("the cl_mem belongs to another cl_context");
  if (get(cl_mem_object_type{}, CL_MEM_TYPE, "clGetMemObjectInfo(CL_MEM_TYPE)") !=
      CL_MEM_OBJECT_BUFFER)
    throw InvalidArgument("the cl_mem is no buffer");
  const auto size = get(std::size_t{}, CL_MEM_SIZE, "clGetMemObjectInfo(CL_MEM_SIZE)");
  const auto flags = get(cl_mem_flags{}, CL_MEM_FLAGS, "clGetMemObjectInfo(CL_MEM_FLAGS)");
  const auto parent =
      get(cl_mem{}, CL_MEM_ASSOCIATED_MEMOBJECT, "clGetMemObjectInfo(CL_MEM_ASSOCIATED_MEMOBJECT)");
  const auto origin = parent == nullptr
                          ? 0
                          : get(std::size_t{}, CL_MEM_OFFSET, "clGetMemObjectInfo(CL_MEM_OFFSET)");
  return std::make_shared<ClBuffer>(mine.shared_from_this(), cl::Buffer(memory, true), size,
                                    parent == nullptr ? memory : parent, origin, flags);
}

cl_mem memory_of(const Buffer& buffer) {
  const auto* mine = dynamic_cast<const ClBuffer*>(&buffer);
  if (mine == nullptr) throw InvalidArgument("the tensor is on no OpenCL device");
  return mine->memory();
}

void wait_for(Stream& stream, std::span<const cl_event> events) {
  ClStream& mine = own(stream);
  for (cl_event event : events) {
    require(event, "a cl_event to wait for");
    if (ask<cl_context>(clGetEventInfo, event, CL_EVENT_CONTEXT,
                        "clGetEventInfo(CL_EVENT_CONTEXT)") != mine.device().context())
      throw InvalidArgument("a cl_event to wait for belongs to another cl_context");
  }
  mine.wait_for(events);
}

cl_event event_after(Stream& stream) {
  cl::Event event = own(stream).event_after();
  cl_event given = event();
  abandon(event);  // counted for the caller
  return given;
}

}  // namespace tessera::device::opencl
