// SPDX-License-Identifier: Apache-2.0
#include "base/system/out_of_memory.hpp"

#include <new>
#include <stdexcept>

#include "tessera/error.hpp"

namespace tessera {
namespace {

// Made when the library is loaded, and never destroyed. Copies share its text.
const OutOfHostMemory& sentence = *new OutOfHostMemory("the host is out of memory");

}  // namespace

void throw_out_of_host_memory() { throw OutOfHostMemory(sentence); }

void rethrow_as_error() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    throw_out_of_host_memory();
  } catch (const std::length_error&) {
    throw_out_of_host_memory();
  }
}

}  // namespace tessera
