// SPDX-License-Identifier: Apache-2.0
#define CL_TARGET_OPENCL_VERSION 120
#include "tessera/interop/opencl.hpp"

#include "base/system/out_of_memory.hpp"
#include "base/tensors/byte_range.hpp"
#include "device/opencl/foreign.hpp"
#include "runtime/context_state.hpp"

namespace tessera::opencl {
namespace {

using device::opencl::adopt_memory;
using device::opencl::adopt_queue;
using runtime::state_of;

runtime::StreamState& state_of_stream(const Stream& stream) {
  if (!stream.state()) throw InvalidArgument("the stream is empty: opencl::stream() makes one");
  return *stream.state();
}

void wait(runtime::StreamState& state, std::span<const cl_event> events) {
  state.use([&](device::Stream& stream) { device::opencl::wait_for(stream, events); });
}

cl_event event_of(runtime::StreamState& state) {
  return state.use([](device::Stream& stream) { return device::opencl::event_after(stream); });
}

}  // namespace

Context open(cl_context context, cl_device_id device, cl_command_queue queue,
             const ContextOptions& options) try {
  return Context(std::make_shared<runtime::ContextState>(
      device::opencl::find_in(context, device), std::nullopt, options,
      [queue](device::Device& opened) { return adopt_queue(opened, queue); }));
} catch (...) {
  rethrow_as_error();
}

Stream stream(const Context& context, cl_command_queue queue) try {
  runtime::ContextState& state = state_of(context);
  return Stream(state.adopt(adopt_queue(state.device(), queue)));
} catch (...) {
  rethrow_as_error();
}

Tensor tensor(const Context& context, cl_mem memory, TensorSpec spec) try {
  runtime::ContextState& state = state_of(context);
  device::BufferPtr buffer = adopt_memory(state.device(), memory);
  byte_range(spec, {.call = "opencl::tensor"}, buffer->size());
  buffer->set_owner(state.number());
  return {std::move(spec), std::move(buffer)};
} catch (...) {
  rethrow_as_error();
}

cl_mem memory(const Tensor& tensor) try {
  if (!tensor) throw InvalidArgument("the tensor is empty");
  return device::opencl::memory_of(*tensor.buffer());
} catch (...) {
  rethrow_as_error();
}

void wait_for(const Stream& stream, std::span<const cl_event> events) try {
  wait(state_of_stream(stream), events);
} catch (...) {
  rethrow_as_error();
}
void wait_for(const Context& context, std::span<const cl_event> events) try {
  wait(*state_of(context).default_stream(), events);
} catch (...) {
  rethrow_as_error();
}

cl_event event_after(const Stream& stream) try {
  return event_of(state_of_stream(stream));
} catch (...) {
  rethrow_as_error();
}
cl_event event_after(const Context& context) try {
  return event_of(*state_of(context).default_stream());
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera::opencl
