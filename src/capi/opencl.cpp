// SPDX-License-Identifier: Apache-2.0
// The types of CL/ are pointers, which C callers hand over as such.
#include "capi/handles.hpp"

#if TESSERA_HAVE_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include "tessera/interop/opencl.hpp"
#endif

using tessera::capi::guarded;
using tessera::capi::on_either;
using tessera::capi::required;

extern "C" {

tessera_status tessera_opencl_open([[maybe_unused]] void* context, [[maybe_unused]] void* device,
                                   [[maybe_unused]] void* queue,
                                   [[maybe_unused]] const tessera_context_options* options,
                                   [[maybe_unused]] tessera_context** opened) {
  return guarded([&] {
#if TESSERA_HAVE_OPENCL
    required(opened, "context");
    *opened = tessera::capi::new_context(tessera::opencl::open(
        static_cast<cl_context>(context), static_cast<cl_device_id>(device),
        static_cast<cl_command_queue>(queue), tessera::capi::options_of(options)));
#else
    tessera::capi::throw_not_built("opencl");
#endif
  });
}

tessera_status tessera_opencl_stream([[maybe_unused]] const tessera_context* context,
                                     [[maybe_unused]] void* queue,
                                     [[maybe_unused]] tessera_stream** stream) {
  return guarded([&] {
#if TESSERA_HAVE_OPENCL
    required(stream, "stream");
    *stream = new tessera_stream{tessera::opencl::stream(required(context, "context").context,
                                                         static_cast<cl_command_queue>(queue))};
#else
    tessera::capi::throw_not_built("opencl");
#endif
  });
}

tessera_status tessera_opencl_tensor([[maybe_unused]] const tessera_context* context,
                                     [[maybe_unused]] void* memory,
                                     [[maybe_unused]] const tessera_spec* spec,
                                     [[maybe_unused]] tessera_tensor** tensor) {
  return guarded([&] {
#if TESSERA_HAVE_OPENCL
    required(tensor, "tensor");
    *tensor = new tessera_tensor{tessera::opencl::tensor(required(context, "context").context,
                                                         static_cast<cl_mem>(memory),
                                                         tessera::capi::spec_of(spec))};
#else
    tessera::capi::throw_not_built("opencl");
#endif
  });
}

tessera_status tessera_opencl_memory([[maybe_unused]] const tessera_tensor* tensor,
                                     [[maybe_unused]] void** memory) {
  return guarded([&] {
#if TESSERA_HAVE_OPENCL
    required(memory, "cl_mem") = tessera::opencl::memory(required(tensor, "tensor").tensor);
#else
    tessera::capi::throw_not_built("opencl");
#endif
  });
}

tessera_status tessera_opencl_wait_for([[maybe_unused]] const tessera_context* context,
                                       [[maybe_unused]] const tessera_stream* stream,
                                       [[maybe_unused]] void* const* events,
                                       [[maybe_unused]] size_t count) {
  return guarded([&] {
#if TESSERA_HAVE_OPENCL
    if (count > 0) required(events, "cl_events");
    std::vector<cl_event> list;
    for (std::size_t n = 0; n < count; ++n) list.push_back(static_cast<cl_event>(events[n]));
    on_either(context, stream, [&](const auto& queue) { tessera::opencl::wait_for(queue, list); });
#else
    tessera::capi::throw_not_built("opencl");
#endif
  });
}

tessera_status tessera_opencl_event_after([[maybe_unused]] const tessera_context* context,
                                          [[maybe_unused]] const tessera_stream* stream,
                                          [[maybe_unused]] void** event) {
  return guarded([&] {
#if TESSERA_HAVE_OPENCL
    required(event, "cl_event");
    *event = on_either(context, stream,
                       [](const auto& queue) { return tessera::opencl::event_after(queue); });
#else
    tessera::capi::throw_not_built("opencl");
#endif
  });
}

}  // extern "C"
