// SPDX-License-Identifier: Apache-2.0
#include <new>

#include "capi/handles.hpp"
#include "tessera/device.hpp"
#include "tessera/version.hpp"

namespace tessera::capi {
namespace {

std::string& last_error() noexcept {
  thread_local std::string text;
  return text;
}

tessera_status note(tessera_status status, const char* what) noexcept {
  try {
    last_error() = what;
  } catch (...) {
    last_error().clear();  // no memory for it
  }
  return status;
}

}  // namespace

tessera_status status_of_exception() noexcept {
  try {
    throw;
  } catch (const InvalidArgument& e) {
    return note(TESSERA_INVALID_ARGUMENT, e.what());
  } catch (const Unsupported& e) {
    return note(TESSERA_UNSUPPORTED, e.what());
  } catch (const NoDevice& e) {
    return note(TESSERA_NO_DEVICE, e.what());
  } catch (const DeviceError& e) {
    return note(TESSERA_DEVICE_ERROR, e.what());
  } catch (const BuildError& e) {
    return note(TESSERA_BUILD_ERROR, e.what());
  } catch (const OutOfDeviceMemory& e) {
    return note(TESSERA_OUT_OF_DEVICE_MEMORY, e.what());
  } catch (const OutOfHostMemory& e) {
    return note(TESSERA_OUT_OF_HOST_MEMORY, e.what());
  } catch (const std::bad_alloc& e) {
    return note(TESSERA_OUT_OF_HOST_MEMORY, e.what());
  } catch (const DataError& e) {
    return note(TESSERA_DATA_ERROR, e.what());
  } catch (const DeviceLost& e) {
    return note(TESSERA_DEVICE_LOST, e.what());
  } catch (const CacheError& e) {
    return note(TESSERA_CACHE_ERROR, e.what());
  } catch (const std::exception& e) {
    return note(TESSERA_INTERNAL_ERROR, e.what());
  } catch (...) {
    return note(TESSERA_INTERNAL_ERROR, "something that is no std::exception was thrown");
  }
}

ContextOptions options_of(const tessera_context_options* given) {
  ContextOptions options;
  if (given == nullptr) return options;
  const auto known = known_part(given, "options");
  if (known.device != nullptr) options.device = known.device;
  if (known.cache_directory != nullptr) options.cache_directory = known.cache_directory;
  options.use_environment = known.ignore_environment == 0;
  return options;
}

TensorSpec spec_of(const tessera_spec* given) {
  const auto known = known_part(given, "spec");
  if (static_cast<unsigned>(known.dtype) > TESSERA_E5M2)
    throw InvalidArgument("spec.dtype " + std::to_string(known.dtype) + " is no dtype");
  if (known.rank > 0) required(known.shape, "spec.shape");
  TensorSpec spec = TensorSpec::contiguous(static_cast<DType>(known.dtype),
                                           Shape(known.shape, known.shape + known.rank));
  if (known.strides != nullptr) spec.strides.assign(known.strides, known.strides + known.rank);
  spec.offset = known.offset;
  return spec;
}

tessera_context* new_context(Context context) {
  std::string text = summary(context.device());
  return new tessera_context{std::move(context), std::move(text)};
}

void throw_not_built(const char* what) {
  throw Unsupported(std::string(what) + ": this build of Tessera lacks it");
}

static_assert(static_cast<int>(DType::kE5M2) == TESSERA_E5M2 &&
              static_cast<int>(DType::kF64) == TESSERA_F64);

}  // namespace tessera::capi

using tessera::capi::guarded;
using tessera::capi::required;

namespace {

// A new tensor of the context has neither strides nor an offset of its own.
tessera::TensorSpec contiguous_spec(const tessera_spec* given) {
  tessera::TensorSpec spec = tessera::capi::spec_of(given);
  if (!spec.is_contiguous() || spec.offset != 0)
    throw tessera::InvalidArgument("the spec of a new tensor has strides or an offset: " +
                                   spec.to_string());
  return spec;
}

}  // namespace

extern "C" {

const char* tessera_last_error(void) { return tessera::capi::last_error().c_str(); }

const char* tessera_status_name(tessera_status status) {
  switch (status) {
    case TESSERA_SUCCESS:
      return "success";
    case TESSERA_INVALID_ARGUMENT:
      return "invalid argument";
    case TESSERA_UNSUPPORTED:
      return "unsupported";
    case TESSERA_NO_DEVICE:
      return "no device";
    case TESSERA_DEVICE_ERROR:
      return "device error";
    case TESSERA_BUILD_ERROR:
      return "build error";
    case TESSERA_OUT_OF_DEVICE_MEMORY:
      return "out of device memory";
    case TESSERA_OUT_OF_HOST_MEMORY:
      return "out of host memory";
    case TESSERA_DATA_ERROR:
      return "data error";
    case TESSERA_DEVICE_LOST:
      return "device lost";
    case TESSERA_CACHE_ERROR:
      return "cache error";
    case TESSERA_INTERNAL_ERROR:
      return "internal error";
  }
  return "unknown status";
}

const char* tessera_version(void) { return tessera::kVersion; }

tessera_status tessera_open(const tessera_context_options* options, tessera_context** context) {
  return guarded([&] {
    required(context, "context");
    *context =
        tessera::capi::new_context(tessera::Context::open(tessera::capi::options_of(options)));
  });
}
void tessera_context_destroy(tessera_context* context) { delete context; }
const char* tessera_device_summary(const tessera_context* context) {
  return context == nullptr ? nullptr : context->summary.c_str();
}
tessera_status tessera_synchronize(const tessera_context* context) {
  return guarded([&] { required(context, "context").context.synchronize(); });
}
tessera_status tessera_release_memory(const tessera_context* context, uint64_t* bytes) {
  return guarded([&] {
    const std::uint64_t freed = required(context, "context").context.release_memory();
    if (bytes != nullptr) *bytes = freed;
  });
}

tessera_status tessera_stream_create(const tessera_context* context, tessera_stream** stream) {
  return guarded([&] {
    required(stream, "stream");
    *stream = new tessera_stream{required(context, "context").context.create_stream()};
  });
}
tessera_status tessera_stream_synchronize(tessera_stream* stream) {
  return guarded([&] { required(stream, "stream").stream.synchronize(); });
}
void tessera_stream_destroy(tessera_stream* stream) { delete stream; }

tessera_status tessera_tensor_create(const tessera_context* context, const tessera_spec* spec,
                                     tessera_tensor** tensor) {
  return guarded([&] {
    required(tensor, "tensor");
    tessera::TensorSpec wanted = contiguous_spec(spec);
    *tensor = new tessera_tensor{
        required(context, "context").context.empty(wanted.dtype, std::move(wanted.shape))};
  });
}

tessera_status tessera_upload(const tessera_context* context, const tessera_spec* spec,
                              const void* data, size_t bytes, tessera_tensor** tensor) {
  return guarded([&] {
    required(tensor, "tensor");
    if (bytes > 0) required(static_cast<const char*>(data), "data");
    tessera::TensorSpec wanted = contiguous_spec(spec);
    *tensor =
        new tessera_tensor{required(context, "context")
                               .context.upload_bytes({static_cast<const std::byte*>(data), bytes},
                                                     wanted.dtype, std::move(wanted.shape))};
  });
}

tessera_status tessera_download(const tessera_context* context, const tessera_tensor* tensor,
                                void* data, size_t bytes) {
  return guarded([&] {
    const std::vector<std::byte> elements =
        required(context, "context").context.download_bytes(required(tensor, "tensor").tensor);
    if (elements.size() != bytes) {
      throw tessera::InvalidArgument("download: the elements take " +
                                     std::to_string(elements.size()) + " bytes, not " +
                                     std::to_string(bytes));
    }
    if (bytes > 0) std::memcpy(&required(static_cast<char*>(data), "data"), elements.data(), bytes);
  });
}

tessera_status tessera_tensor_view(const tessera_tensor* tensor, const tessera_spec* spec,
                                   tessera_tensor** view) {
  return guarded([&] {
    required(view, "view");
    *view = new tessera_tensor{
        tessera::Tensor(tessera::capi::spec_of(spec), required(tensor, "tensor").tensor.buffer())};
  });
}

tessera_status tessera_tensor_spec(const tessera_tensor* tensor, tessera_spec* spec) {
  return guarded([&] {
    tessera::capi::known_part(spec, "spec");
    const tessera::TensorSpec& known = required(tensor, "tensor").tensor.spec();
    const tessera_spec filled{std::min(spec->struct_size, sizeof(tessera_spec)),
                              static_cast<tessera_dtype>(known.dtype),
                              static_cast<uint32_t>(known.shape.size()),
                              known.shape.data(),
                              known.strides.data(),
                              known.offset};
    std::memcpy(spec, &filled, filled.struct_size);
  });
}

void tessera_tensor_destroy(tessera_tensor* tensor) { delete tensor; }

}  // extern "C"
