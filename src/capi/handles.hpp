// SPDX-License-Identifier: Apache-2.0
// What the opaque handles of tessera.h hold, and the wall that no exception passes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "tessera/context.hpp"
#include "tessera/error.hpp"
#include "tessera/tensor.hpp"
#include "tessera/tessera.h"

struct tessera_context {
  tessera::Context context;
  std::string summary;
};
struct tessera_error_log {
  tessera::ErrorLog log;
};
struct tessera_stream {
  tessera::Stream stream;
  std::optional<tessera::ErrorLog> errors{};
};
struct tessera_tensor {
  tessera::Tensor tensor;
};

namespace tessera::capi {

// Notes the exception that is being handled, and says what it is.
tessera_status status_of_exception() noexcept;

template <class Work>
tessera_status guarded(Work work) noexcept {
  try {
    work();
    return TESSERA_SUCCESS;
  } catch (...) {
    return status_of_exception();
  }
}

template <class T>
T& required(T* pointer, const char* name) {
  if (pointer == nullptr) throw InvalidArgument(std::string(name) + " is null");
  return *pointer;
}

// `call` on the stream, or on the context where there is none.
template <class Call>
auto on_either(const tessera_context* context, const tessera_stream* stream, Call call) {
  return stream != nullptr ? call(stream->stream) : call(required(context, "context").context);
}

// Bytes up to the end of the last field of a struct's first version. They never change: fields that
// come later are behind them.
template <class T>
inline constexpr std::size_t kFirstVersion = 0;
template <>
inline constexpr std::size_t kFirstVersion<tessera_spec> = offsetof(tessera_spec, offset) +
                                                           sizeof(tessera_spec::offset);
template <>
inline constexpr std::size_t kFirstVersion<tessera_context_options> =
    offsetof(tessera_context_options, ignore_environment) +
    sizeof(tessera_context_options::ignore_environment);
template <>
inline constexpr std::size_t kFirstVersion<tessera_call> = offsetof(tessera_call, stream) +
                                                           sizeof(tessera_call::stream);
template <>
inline constexpr std::size_t kFirstVersion<tessera_vulkan_device> =
    offsetof(tessera_vulkan_device, user_data) + sizeof(tessera_vulkan_device::user_data);

// What the caller's version of a struct holds; the rest is zero.
template <class T>
T known_part(const T* given, const char* name) {
  static_assert(kFirstVersion<T> > 0);
  const std::size_t size = required(given, name).struct_size;
  if (size < kFirstVersion<T>) {
    throw InvalidArgument(std::string(name) + ".struct_size is " + std::to_string(size) +
                          ", less than the first version's " + std::to_string(kFirstVersion<T>));
  }
  T whole{};
  std::memcpy(&whole, given, std::min(size, sizeof(T)));
  return whole;
}

ContextOptions options_of(const tessera_context_options* given);
TensorSpec spec_of(const tessera_spec* given);
tessera_context* new_context(Context context);
// "this build lacks it" of what a build may leave out.
[[noreturn]] void throw_not_built(const char* what);

}  // namespace tessera::capi
