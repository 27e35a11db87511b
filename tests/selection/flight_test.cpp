// SPDX-License-Identifier: Apache-2.0
// Concurrent misses of one key tune once, whatever becomes of the thread that tunes.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "selection/cache/cache.hpp"
#include "selection/selector.hpp"
#include "support/fake_operation.hpp"
#include "support/profiles.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

class SingleFlightTest : public ::testing::Test {
 protected:
  selection::Request request(const Problem& problem) const {
    return {.problem = &problem, .profile = &profile};
  }

  // Starts `count` threads at once that all choose the same thing.
  std::vector<Choice> storm(selection::Selector& selector, const selection::Request& call,
                            int count) {
    std::vector<Choice> choices(static_cast<std::size_t>(count));
    std::atomic<int> ready = 0;
    std::vector<std::thread> threads;
    for (Choice& choice : choices) {
      threads.emplace_back([&] {
        ++ready;
        while (ready < count) std::this_thread::yield();
        choice = selector.choose(call);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return choices;
  }

  Problem problem = testing::fake_problem(4096);
  DeviceProfile profile = testing::load_profile("rdna3_vulkan");
  selection::MemoryCache shared_memory;
  std::atomic<int> tunings = 0;
};

TEST_F(SingleFlightTest, SixtyFourThreadsTuneOnce) {
  selection::Selector selector({.memory = &shared_memory,
                                .tune =
                                    [&](const Problem& p, const Policy&) {
                                      ++tunings;
                                      std::this_thread::sleep_for(std::chrono::milliseconds(30));
                                      return testing::won(p, "plain", {{"UNROLL", 4}, {"WG_X", 8}});
                                    }},
                               {});
  for (int round = 0; round < 5; ++round) {
    shared_memory.clear();
    tunings = 0;
    selection::Request call = request(problem);
    call.policy.autotune = true;
    for (const Choice& choice : storm(selector, call, 64)) {
      EXPECT_EQ(choice.config.to_string(), "UNROLL=4,WG_X=8");
      EXPECT_EQ(choice.origin, Tier::kAutotune);
    }
    EXPECT_EQ(tunings, 1);
  }
}

TEST_F(SingleFlightTest, AFailedLeaderWakesTheOthers) {
  selection::Selector selector({.memory = &shared_memory,
                                .tune = [&](const Problem&, const Policy&) -> TuneReport {
                                  ++tunings;
                                  std::this_thread::sleep_for(std::chrono::milliseconds(30));
                                  throw DeviceError("lost its way");
                                }},
                               {});
  selection::Request call = request(problem);
  call.policy.autotune = true;
  for (const Choice& choice : storm(selector, call, 16)) {
    EXPECT_EQ(choice.origin, Tier::kHeuristics);
    EXPECT_EQ(choice.variant, "blocked");
  }
  EXPECT_EQ(tunings, 1);
}

TEST_F(SingleFlightTest, DifferentKeysDoNotWaitForEachOther) {
  const Problem other = testing::fake_problem(64);
  std::atomic<int> inside = 0;
  std::atomic<bool> met = false;
  selection::Selector selector({.memory = &shared_memory,
                                .tune =
                                    [&](const Problem& p, const Policy&) {
                                      ++inside;
                                      for (int i = 0; i < 2000 && inside < 2; ++i) {
                                        std::this_thread::sleep_for(std::chrono::milliseconds(1));
                                      }
                                      met = met || inside == 2;
                                      return testing::won(p, "plain", {{"WG_X", 8}});
                                    }},
                               {});
  selection::Request first = request(problem), second = request(other);
  first.policy.autotune = second.policy.autotune = true;
  std::thread thread([&] { selector.choose(first); });
  selector.choose(second);
  thread.join();
  EXPECT_TRUE(met);
}

// The event sink may call back into the selector: no lock may be held.
TEST_F(SingleFlightTest, EventSinkMayChoose) {
  selection::Selector* inner = nullptr;
  bool nested = false;
  int seen = 0;
  selection::Request call = request(problem);
  call.policy.autotune = true;
  selection::Selector selector({.memory = &shared_memory,
                                .tune =
                                    [&](const Problem& p, const Policy&) {
                                      return testing::won(p, "plain", {{"WG_X", 8}});
                                    }},
                               [&](const Event&) {
                                 ++seen;
                                 if (nested) return;
                                 nested = true;
                                 inner->choose(call);
                                 nested = false;
                               });
  inner = &selector;
  EXPECT_EQ(selector.choose(call).origin, Tier::kAutotune);
  EXPECT_GT(seen, 3);
}

TEST_F(SingleFlightTest, AThrowingSinkLeavesNobodyWaiting) {
  bool throwing = true;
  selection::Selector selector({.memory = &shared_memory,
                                .tune =
                                    [&](const Problem& p, const Policy&) {
                                      return testing::won(p, "plain", {{"WG_X", 8}});
                                    }},
                               [&](const Event&) {
                                 if (throwing) throw std::runtime_error("sink");
                               });
  selection::Request call = request(problem);
  call.policy.autotune = true;
  EXPECT_THROW(selector.choose(call), std::runtime_error);
  throwing = false;
  EXPECT_EQ(selector.choose(call).tier, Tier::kAutotune);
}

}  // namespace
}  // namespace tessera
