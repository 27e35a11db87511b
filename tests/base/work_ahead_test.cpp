// SPDX-License-Identifier: Apache-2.0
#include "base/system/work_ahead.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <latch>
#include <mutex>
#include <set>
#include <stdexcept>

namespace tessera {
namespace {

TEST(WorkAhead, DoesAllAlsoBesideWhatThrows) {
  std::mutex mutex;
  std::set<std::size_t> done;
  std::latch all(8);
  WorkAhead ahead(3, 9, [&](std::size_t i) {
    if (i == 4) throw std::runtime_error("refused");
    {
      const std::lock_guard lock(mutex);
      done.insert(i);
    }
    all.count_down();
  });
  all.wait();
  ahead.stop();
  EXPECT_EQ(done, (std::set<std::size_t>{0, 1, 2, 3, 5, 6, 7, 8}));
}

TEST(WorkAhead, StopsBehindWhatHasBegun) {
  std::latch begun(1), may_end(1);
  std::atomic<int> ended = 0;
  WorkAhead ahead(1, 100, [&](std::size_t i) {
    if (i != 0) return;
    begun.count_down();
    may_end.wait();
    ++ended;
  });
  begun.wait();
  std::jthread stopper([&] { ahead.stop(); });
  may_end.count_down();
  stopper.join();
  EXPECT_EQ(ended, 1);
}

TEST(WorkAhead, NothingToDoTakesNoThread) {
  WorkAhead ahead(4, 0, [](std::size_t) { FAIL(); });
  ahead.stop();
}

}  // namespace
}  // namespace tessera
