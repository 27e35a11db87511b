// SPDX-License-Identifier: Apache-2.0
// What the opaque handles of tessera.h hold, and the wall that no exception passes.
#pragma once

#include <algorithm>
#include <cstring>
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
struct tessera_stream {
  tessera::Stream stream;
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

// What the caller's version of a struct holds; the rest is zero. `first`: the size of the struct in
// its first version.
template <class T>
T known_part(const T* given, std::size_t first, const char* name) {
  const std::size_t size = required(given, name).struct_size;
  if (size < first) {
    throw InvalidArgument(std::string(name) + ".struct_size is " + std::to_string(size) +
                          ", less than the first version's " + std::to_string(first));
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
