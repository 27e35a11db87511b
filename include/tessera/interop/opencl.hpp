// SPDX-License-Identifier: Apache-2.0
// Tessera on the application's own OpenCL: its context, its queues, its memory.
//
// A context opened here works like any other; tensors that it allocates itself (outputs, uploads)
// are cl_mem objects of the application's cl_context. Nothing of the application is released or
// destroyed, and what Tessera retains it releases with the handle that stands for it:
//
//   handle           retains
//   Context          the cl_context, the cl_command_queue
//   Stream           the cl_command_queue
//   Tensor           its cl_mem; copies and views of the tensor share one reference
//   wait_for()       out-of-order queues: the events, until the stream's next command
//
// Queues. Commands of a stream run in the order of its calls, on queues that are out of order, too:
// there they wait for each other by events, and for nothing else in the queue. In-order queues get
// plain commands without events. Other threads may enqueue to the same queue at the same time. The
// application's queue is never finished and, as after clEnqueueNDRangeKernel, not flushed: clFlush
// is the application's, where another queue or a user event waits. What waits, as synchronize() and
// downloads do, waits for the stream's commands by an event.
// One call waits that is no such call: of an operation whose kernels raise errors, when 16384 words
// of the stream's are full of them; with an ErrorLog (Executor::with_errors) none does.
//
// Loader. Tessera links none: it opens libOpenCL.so.1 when it is first needed, which is the one that
// an application links, too.
//
// Threads: as Context, Stream and Executor. The context and what belongs to it must live in the
// process that made them: after fork() every call in the child throws DeviceLost.
//
// Errors: InvalidArgument for handles that are null, no objects of their kind as far as the driver
// knows, or of another context or device, and for specs that reach beyond their memory. DeviceError
// from what waits, where a command failed because an event that it waits for did: once, later calls
// do not.
//
// What is not there: launches are not cut to a longest time; a call is as many of them as its
// kernels make.
#pragma once

#include <CL/cl.h>

#include <span>

#include "tessera/context.hpp"
#include "tessera/export.hpp"
#include "tessera/tensor.hpp"

namespace tessera::opencl {

// Opens the device of a context of one device, also a sub-device. Calls on the Context itself go to
// `queue`. Of the options, `device` is not looked at. Throws Unsupported for a device that is too
// old or has no compiler, and for contexts of several devices.
TESSERA_API Context open(cl_context context, cl_device_id device, cl_command_queue queue,
                         const ContextOptions& options = {});

// A stream on one more queue of the same context and device: Executor(context).on(stream). Streams
// of Context::create_stream() have queues of their own.
TESSERA_API Stream stream(const Context& context, cl_command_queue queue);

// Elements of a buffer, or sub-buffer, that the application made. `spec.offset` counts elements
// from its beginning and needs no alignment. Where two tensors share bytes, also through
// sub-buffers of one buffer, an operation that writes to one of them refuses the other. A buffer
// made as CL_MEM_READ_ONLY can be no output, one made as CL_MEM_WRITE_ONLY no input.
TESSERA_API Tensor tensor(const Context& context, cl_mem memory, TensorSpec spec);

// The memory in which a tensor's elements lie, `spec().offset` elements from its beginning. Not
// retained: it lives as long as the tensor.
TESSERA_API cl_mem memory(const Tensor& tensor);

// Later calls of the stream, or of the context's own queue, wait for these events. Does not block.
// On an in-order queue it enqueues a barrier, for which other commands of the queue wait, too.
TESSERA_API void wait_for(const Stream& stream, std::span<const cl_event> events);
TESSERA_API void wait_for(const Context& context, std::span<const cl_event> events);

// An event that completes with all calls of the stream so far; the caller releases it. A queue of
// Tessera's own, as of Context::create_stream(), is flushed behind it; the application's is not.
// Errors that kernels raise do not show in it: see ErrorLog.
[[nodiscard]] TESSERA_API cl_event event_after(const Stream& stream);
[[nodiscard]] TESSERA_API cl_event event_after(const Context& context);

}  // namespace tessera::opencl
