// SPDX-License-Identifier: Apache-2.0
#include "tessera/interop/vulkan.hpp"

#include "base/system/out_of_memory.hpp"
#include "base/tensors/byte_range.hpp"
#include "device/vulkan/memory/foreign.hpp"
#include "runtime/context_state.hpp"

namespace tessera::vulkan {
namespace {

namespace foreign = device::vulkan;
using runtime::state_of;

runtime::StreamState& state_of_stream(const Stream& stream) {
  if (!stream.state()) throw InvalidArgument("the stream is empty: vulkan::record() makes one");
  return *stream.state();
}

}  // namespace

Context open(const Device& device, const ContextOptions& options) try {
  const foreign::ForeignDevice given{.instance = device.instance,
                                     .api_version = device.api_version,
                                     .physical_device = device.physical_device,
                                     .device = device.device,
                                     .queue_family = device.queue_family,
                                     .queue = device.queue,
                                     .extensions = device.extensions,
                                     .features = device.features,
                                     .base_features = device.base_features,
                                     .lock = device.lock,
                                     .unlock = device.unlock,
                                     .find = device.get_instance_proc_addr};
  return Context(
      std::make_shared<runtime::ContextState>(foreign::find_in(given), std::nullopt, options));
} catch (...) {
  rethrow_as_error();
}

Tensor tensor(const Context& context, VkBuffer buffer, VkDeviceSize offset, VkDeviceSize bytes,
              TensorSpec spec) try {
  runtime::ContextState& state = state_of(context);
  device::BufferPtr memory = foreign::adopt_memory(state.device(), buffer, offset, bytes);
  byte_range(spec, {.call = "vulkan::tensor"}, memory->size());
  memory->set_owner(state.number());
  return {std::move(spec), std::move(memory)};
} catch (...) {
  rethrow_as_error();
}

VkBuffer buffer(const Tensor& tensor) try {
  if (!tensor) throw InvalidArgument("the tensor is empty");
  return foreign::memory_of(*tensor.buffer());
} catch (...) {
  rethrow_as_error();
}

void wait_for(const Stream& stream, VkSemaphore timeline, std::uint64_t value) try {
  state_of_stream(stream).use(
      [&](device::Stream& queue) { foreign::wait_for(queue, timeline, value); });
} catch (...) {
  rethrow_as_error();
}
void signal(const Stream& stream, VkSemaphore timeline, std::uint64_t value) try {
  state_of_stream(stream).use(
      [&](device::Stream& queue) { foreign::signal(queue, timeline, value); });
} catch (...) {
  rethrow_as_error();
}
void wait_for(const Context& context, VkSemaphore timeline, std::uint64_t value) try {
  wait_for(Stream(state_of(context).default_stream()), timeline, value);
} catch (...) {
  rethrow_as_error();
}
void signal(const Context& context, VkSemaphore timeline, std::uint64_t value) try {
  signal(Stream(state_of(context).default_stream()), timeline, value);
} catch (...) {
  rethrow_as_error();
}

Stream record(const Context& context, VkCommandBuffer commands, const Tensor& scratch) try {
  runtime::ContextState& state = state_of(context);
  const auto stream = state.adopt(foreign::record_into(state.device(), commands));
  stream->only_record();
  if (scratch) {
    if (scratch.buffer()->owner() != state.number())
      throw InvalidArgument("the scratch belongs to another context");
    const ByteRange range =
        byte_range(scratch.spec(), {.call = "vulkan::record"}, scratch.buffer()->size());
    if (range.begin != 0 || !scratch.spec().is_contiguous()) {
      throw InvalidArgument("the scratch " + scratch.spec().to_string() +
                            " has strides or an offset: a part of a VkBuffer is handed over by the "
                            "offset of vulkan::tensor()");
    }
    stream->lend_scratch(scratch.buffer(), range.end);
  }
  return Stream(stream);
} catch (...) {
  rethrow_as_error();
}

void restart(const Stream& stream, VkCommandBuffer commands) try {
  state_of_stream(stream).use([&](device::Stream& queue) { foreign::restart(queue, commands); });
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera::vulkan
