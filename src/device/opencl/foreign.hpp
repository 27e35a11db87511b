// SPDX-License-Identifier: Apache-2.0
// Objects of the application in place of our own. What is no object of the kind, or belongs
// elsewhere, is refused with InvalidArgument as far as the driver can tell.
#pragma once

#include <CL/cl.h>

#include <memory>
#include <span>

#include "device/device.hpp"

namespace tessera::device::opencl {

// The device of this context; opening it retains the context.
Found find_in(cl_context context, cl_device_id device);
// Retains the queue, or the memory, for as long as the result lives. `device` is one of find_in().
std::unique_ptr<Stream> adopt_queue(Device& device, cl_command_queue queue);
BufferPtr adopt_memory(Device& device, cl_mem memory);

cl_mem memory_of(const Buffer& buffer);
void wait_for(Stream& stream, std::span<const cl_event> events);
cl_event event_after(Stream& stream);  // the caller releases it

}  // namespace tessera::device::opencl
