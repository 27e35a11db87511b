// SPDX-License-Identifier: Apache-2.0
#include "device/opencl/fork.hpp"

#include <atomic>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define TESSERA_HAS_FORK 1
#endif

namespace tessera::device::opencl {

#if defined(TESSERA_HAS_FORK)

namespace {
std::atomic<unsigned> forks{0};
}  // namespace

unsigned fork_count() noexcept {
  // If it cannot be registered (out of memory), forks go unnoticed as they would without this file.
  [[maybe_unused]] static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  return forks.load(std::memory_order_relaxed);
}

#else

unsigned fork_count() noexcept { return 0; }

#endif

}  // namespace tessera::device::opencl
