// SPDX-License-Identifier: Apache-2.0
// Dispatchable handles of Vulkan are pointers; the others are pointers or 64-bit integers, so they
// travel as the latter.
#include "capi/handles.hpp"

#if TESSERA_HAVE_VULKAN
#include "tessera/interop/vulkan.hpp"
#endif

using tessera::capi::guarded;
using tessera::capi::on_either;
using tessera::capi::required;

#if TESSERA_HAVE_VULKAN
namespace {

template <class Handle>
Handle handle_of(uint64_t number) {
  Handle handle{};
  static_assert(sizeof handle <= sizeof number);
  std::memcpy(&handle, &number, sizeof handle);
  return handle;
}

template <class Handle>
uint64_t number_of(Handle handle) {
  uint64_t number = 0;
  std::memcpy(&number, &handle, sizeof handle);
  return number;
}

tessera::vulkan::Device device_of(const tessera_vulkan_device* given) {
  const auto known = tessera::capi::known_part(given, "device");
  if (known.extension_count > 0) required(known.extensions, "device.extensions");
  tessera::vulkan::Device device;
  device.instance = static_cast<VkInstance>(known.instance);
  device.api_version = known.api_version;
  device.physical_device = static_cast<VkPhysicalDevice>(known.physical_device);
  device.device = static_cast<VkDevice>(known.device);
  device.queue_family = known.queue_family;
  device.queue = static_cast<VkQueue>(known.queue);
  device.extensions = {known.extensions, known.extension_count};
  device.features = known.features;
  device.base_features = static_cast<const VkPhysicalDeviceFeatures*>(known.base_features);
  if (known.lock != nullptr) device.lock = [known] { known.lock(known.user_data); };
  if (known.unlock != nullptr) device.unlock = [known] { known.unlock(known.user_data); };
  device.get_instance_proc_addr =
      reinterpret_cast<PFN_vkGetInstanceProcAddr>(known.get_instance_proc_addr);
  return device;
}

tessera::Tensor scratch_of(const tessera_tensor* scratch) {
  return scratch == nullptr ? tessera::Tensor() : scratch->tensor;
}

}  // namespace
#endif

extern "C" {

tessera_status tessera_vulkan_open([[maybe_unused]] const tessera_vulkan_device* device,
                                   [[maybe_unused]] const tessera_context_options* options,
                                   [[maybe_unused]] tessera_context** context) {
  return guarded([&] {
#if TESSERA_HAVE_VULKAN
    required(context, "context");
    *context = tessera::capi::new_context(
        tessera::vulkan::open(device_of(device), tessera::capi::options_of(options)));
#else
    tessera::capi::throw_not_built("vulkan");
#endif
  });
}

tessera_status tessera_vulkan_tensor([[maybe_unused]] const tessera_context* context,
                                     [[maybe_unused]] uint64_t buffer,
                                     [[maybe_unused]] uint64_t offset,
                                     [[maybe_unused]] uint64_t bytes,
                                     [[maybe_unused]] const tessera_spec* spec,
                                     [[maybe_unused]] tessera_tensor** tensor) {
  return guarded([&] {
#if TESSERA_HAVE_VULKAN
    required(tensor, "tensor");
    *tensor = new tessera_tensor{tessera::vulkan::tensor(required(context, "context").context,
                                                         handle_of<VkBuffer>(buffer), offset, bytes,
                                                         tessera::capi::spec_of(spec))};
#else
    tessera::capi::throw_not_built("vulkan");
#endif
  });
}

tessera_status tessera_vulkan_buffer([[maybe_unused]] const tessera_tensor* tensor,
                                     [[maybe_unused]] uint64_t* buffer) {
  return guarded([&] {
#if TESSERA_HAVE_VULKAN
    required(buffer, "vk_buffer") =
        number_of(tessera::vulkan::buffer(required(tensor, "tensor").tensor));
#else
    tessera::capi::throw_not_built("vulkan");
#endif
  });
}

tessera_status tessera_vulkan_wait_for([[maybe_unused]] const tessera_context* context,
                                       [[maybe_unused]] const tessera_stream* stream,
                                       [[maybe_unused]] uint64_t semaphore,
                                       [[maybe_unused]] uint64_t value) {
  return guarded([&] {
#if TESSERA_HAVE_VULKAN
    on_either(context, stream, [&](const auto& queue) {
      tessera::vulkan::wait_for(queue, handle_of<VkSemaphore>(semaphore), value);
    });
#else
    tessera::capi::throw_not_built("vulkan");
#endif
  });
}

tessera_status tessera_vulkan_signal([[maybe_unused]] const tessera_context* context,
                                     [[maybe_unused]] const tessera_stream* stream,
                                     [[maybe_unused]] uint64_t semaphore,
                                     [[maybe_unused]] uint64_t value) {
  return guarded([&] {
#if TESSERA_HAVE_VULKAN
    on_either(context, stream, [&](const auto& queue) {
      tessera::vulkan::signal(queue, handle_of<VkSemaphore>(semaphore), value);
    });
#else
    tessera::capi::throw_not_built("vulkan");
#endif
  });
}

tessera_status tessera_vulkan_record([[maybe_unused]] const tessera_context* context,
                                     [[maybe_unused]] void* commands,
                                     [[maybe_unused]] const tessera_tensor* scratch,
                                     [[maybe_unused]] tessera_stream** stream) {
  return guarded([&] {
#if TESSERA_HAVE_VULKAN
    required(stream, "stream");
    *stream = new tessera_stream{tessera::vulkan::record(required(context, "context").context,
                                                         static_cast<VkCommandBuffer>(commands),
                                                         scratch_of(scratch))};
#else
    tessera::capi::throw_not_built("vulkan");
#endif
  });
}

tessera_status tessera_vulkan_restart([[maybe_unused]] const tessera_stream* stream,
                                      [[maybe_unused]] void* commands) {
  return guarded([&] {
#if TESSERA_HAVE_VULKAN
    tessera::vulkan::restart(required(stream, "stream").stream,
                             static_cast<VkCommandBuffer>(commands));
#else
    tessera::capi::throw_not_built("vulkan");
#endif
  });
}

}  // extern "C"
