// SPDX-License-Identifier: Apache-2.0
// Work that is begun on other cores before anybody asks for it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace tessera {

class WorkAhead {
 public:
  // Calls work(i) for i in [0, count), in this order, on up to `threads` threads. What it throws is
  // lost: who asks for the work meets that again.
  WorkAhead(std::size_t threads, std::size_t count, std::function<void(std::size_t)> work)
      : work_(std::move(work)) {
    threads = std::min(threads, count);
    threads_.reserve(threads);
    try {
      for (std::size_t i = 0; i < threads; ++i)
        threads_.emplace_back([this, count] { run(count); });
    } catch (const std::system_error&) {  // fewer have to do
    }
  }
  WorkAhead(const WorkAhead&) = delete;
  WorkAhead& operator=(const WorkAhead&) = delete;
  ~WorkAhead() { stop(); }

  // Begins no more and waits for what has begun.
  void stop() {
    stopped_ = true;
    threads_.clear();
  }

 private:
  void run(std::size_t count) {
    for (std::size_t i = next_++; i < count && !stopped_; i = next_++) {
      try {
        work_(i);
      } catch (...) {
      }
    }
  }

  std::function<void(std::size_t)> work_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> stopped_ = false;
  std::vector<std::jthread> threads_{};
};

}  // namespace tessera
