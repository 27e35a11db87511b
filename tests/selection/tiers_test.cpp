// SPDX-License-Identifier: Apache-2.0
// The truth table of the tiers: every combination of what each of them may hold, against a model of
// the chain that is written down separately here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "selection/selector.hpp"
#include "support/fake_operation.hpp"
#include "support/profiles.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using selection::Entry;
using testing::FakeStore;

// n = 100 divides by no block.
constexpr std::int64_t kLength = 100;

enum class Holds { kNothing, kValid, kBadForProblem, kBadForDevice };
constexpr Holds kAll[] = {Holds::kNothing, Holds::kValid, Holds::kBadForProblem,
                          Holds::kBadForDevice};

enum class Tunes { kNotAllowed, kFinds, kFindsNothing, kThrows, kBestIsRefused };
constexpr Tunes kTunings[] = {Tunes::kNotAllowed, Tunes::kFinds, Tunes::kFindsNothing,
                              Tunes::kThrows, Tunes::kBestIsRefused};

// Each tier has a work-group size of its own, so an answer tells where it is from.
Config config_for(Holds holds, std::uint32_t group) {
  switch (holds) {
    case Holds::kBadForProblem:
      return {{"BLOCK", 32}, {"WG_X", group}};
    case Holds::kBadForDevice:
      return {{"WG_X", 2048 + group}};
    default:
      return {{"UNROLL", 4}, {"WG_X", group}};
  }
}
std::string variant_for(Holds holds) {
  return holds == Holds::kBadForProblem ? "blocked" : "plain";
}

struct World {
  Holds override_choice = Holds::kNothing, overlay = Holds::kNothing, memory = Holds::kNothing,
        persistent = Holds::kNothing, shipped = Holds::kNothing;
  Tunes tunes = Tunes::kNotAllowed;
  bool heuristics = true;

  std::string text() const {
    const auto digit = [](auto value) { return std::to_string(static_cast<int>(value)); };
    return "override " + digit(override_choice) + " overlay " + digit(overlay) + " memory " +
           digit(memory) + " persistent " + digit(persistent) + " shipped " + digit(shipped) +
           " tunes " + digit(tunes) + " heuristics " + digit(heuristics);
  }
};

struct Expected {
  std::optional<Tier> tier;  // nothing = an error
  int invalid = 0;           // cache_invalid events
  bool tuned = false;        // the tuner was called
};

Expected model(const World& world) {
  Expected expected;
  const auto bad = [](Holds holds) {
    return holds == Holds::kBadForProblem || holds == Holds::kBadForDevice;
  };
  if (world.override_choice == Holds::kValid) return {Tier::kOverride};
  if (bad(world.override_choice)) return {};
  if (world.overlay == Holds::kValid) return {Tier::kOverlay};
  if (bad(world.overlay)) return {};
  const std::pair<Holds, Tier> caches[] = {{world.memory, Tier::kMemory},
                                           {world.persistent, Tier::kPersistent},
                                           {world.shipped, Tier::kShipped}};
  for (const auto& [holds, tier] : caches) {
    if (holds == Holds::kValid) {
      expected.tier = tier;
      return expected;
    }
    expected.invalid += bad(holds) ? 1 : 0;
  }
  expected.tuned = world.tunes != Tunes::kNotAllowed;
  if (world.tunes == Tunes::kFinds) {
    expected.tier = Tier::kAutotune;
  } else if (world.heuristics) {
    expected.tier = Tier::kHeuristics;
  }
  return expected;
}

std::uint32_t group_of(Tier tier) {
  // The rule for CPUs takes 1.
  return tier == Tier::kHeuristics ? 1 : 2U << static_cast<int>(tier);
}

void fill(FakeStore& store, Holds holds, Tier tier, const std::string& key) {
  if (holds == Holds::kNothing) return;
  store.entries[key] = testing::tuned(variant_for(holds), config_for(holds, group_of(tier)));
}

struct Outcome {
  std::optional<Choice> choice;
  std::string error;
  int invalid = 0;
  int tunings = 0;
  std::vector<std::string> events;
};

struct Scene {
  Problem problem = testing::fake_problem(kLength);
  DeviceProfile profile = testing::load_profile("lavapipe");
  FakeStore memory, persistent, shipped;
};

selection::TuneFunction tuning(Tunes tunes, int& calls) {
  return [tunes, &calls](const Problem& problem, const Policy&) -> TuneReport {
    ++calls;
    switch (tunes) {
      case Tunes::kThrows:
        throw DeviceError("the driver is unwell");
      case Tunes::kFindsNothing:
        return {.operation = problem.operation->name, .key = problem.key};
      case Tunes::kBestIsRefused:
        return testing::won(problem, "plain", config_for(Holds::kBadForDevice, 8));
      default:
        return testing::won(problem, "plain", config_for(Holds::kValid, group_of(Tier::kAutotune)));
    }
  };
}

Outcome play(const World& world, Scene& scene) {
  const std::string key = selection::entry_key(scene.problem);
  fill(scene.memory, world.memory, Tier::kMemory, key);
  fill(scene.persistent, world.persistent, Tier::kPersistent, key);
  fill(scene.shipped, world.shipped, Tier::kShipped, key);
  Outcome outcome;
  selection::Selector selector({.memory = &scene.memory,
                                .persistent = &scene.persistent,
                                .shipped = &scene.shipped,
                                .tune = tuning(world.tunes, outcome.tunings)},
                               [&](const Event& event) {
                                 outcome.events.push_back(event.name);
                                 outcome.invalid += event.name == "cache_invalid" ? 1 : 0;
                               });
  selection::Request request{.problem = &scene.problem, .profile = &scene.profile};
  request.policy = {.autotune = world.tunes != Tunes::kNotAllowed, .heuristics = world.heuristics};
  if (world.override_choice != Holds::kNothing) {
    request.override_choice = {
        .variant = variant_for(world.override_choice),
        .config = config_for(world.override_choice, group_of(Tier::kOverride))};
  }
  std::optional<ScopedOverlay> overlay;
  if (world.overlay != Holds::kNothing) {
    overlay.emplace(
        std::vector<OverlayEntry>{{.operation = "scale",
                                   .variant = variant_for(world.overlay),
                                   .config = config_for(world.overlay, group_of(Tier::kOverlay))}});
  }
  try {
    outcome.choice = selector.choose(request);
  } catch (const Error& error) {
    outcome.error = error.what();
  }
  return outcome;
}

template <class Visit>
void for_all_worlds(Visit visit) {
  for (const Holds override_choice : kAll)
    for (const Holds overlay : kAll)
      for (const Holds memory : kAll)
        for (const Holds persistent : kAll)
          for (const Holds shipped : kAll)
            for (const Tunes tunes : kTunings)
              for (const bool heuristics : {false, true}) {
                if (::testing::Test::HasFatalFailure()) return;
                visit(World{override_choice, overlay, memory, persistent, shipped, tunes,
                            heuristics});
              }
}

TEST(TierTruthTable, EveryCombination) {
  int worlds = 0;
  for_all_worlds([&](const World& world) {
    ++worlds;
    Scene scene;
    const Expected expected = model(world);
    const Outcome outcome = play(world, scene);
    ASSERT_EQ(outcome.choice.has_value(), expected.tier.has_value()) << world.text() << "\n"
                                                                     << outcome.error;
    ASSERT_EQ(outcome.invalid, expected.invalid) << world.text();
    ASSERT_EQ(outcome.tunings, expected.tuned ? 1 : 0) << world.text();
    if (!outcome.choice) {
      ASSERT_FALSE(outcome.error.empty());
      ASSERT_EQ(outcome.events.back(), "error") << world.text();
      return;
    }
    ASSERT_EQ(outcome.choice->tier, *expected.tier) << world.text();
    ASSERT_EQ(outcome.choice->variant, "plain") << world.text();
    ASSERT_EQ(outcome.choice->config, config_for(Holds::kValid, group_of(*expected.tier)))
        << world.text();
    // Whatever was chosen, it was judged.
    ASSERT_EQ(selection::refusal(scene.problem, *scene.problem.operation->find_variant("plain"),
                                 outcome.choice->config, scene.profile),
              std::nullopt);
  });
  EXPECT_EQ(worlds, 4 * 4 * 4 * 4 * 4 * 5 * 2);
}

// What reaches the disk: the tuner's results and nothing else.
TEST(TierTruthTable, WhatIsWrittenWhere) {
  for_all_worlds([&](const World& world) {
    Scene scene;
    const Outcome outcome = play(world, scene);
    const bool tuned = outcome.choice && outcome.choice->tier == Tier::kAutotune;
    ASSERT_EQ(scene.persistent.puts, tuned ? 1 : 0) << world.text();
    ASSERT_EQ(scene.shipped.puts, 0);
    if (!outcome.choice) {
      ASSERT_EQ(scene.memory.puts, 0) << world.text();
      return;
    }
    const Tier tier = outcome.choice->tier;
    const bool has_tuned_entry = world.memory != Holds::kNothing;  // a guess must not displace it
    const bool promoted = tier == Tier::kPersistent || tier == Tier::kShipped;
    const bool guessed = tier == Tier::kHeuristics && !has_tuned_entry;
    ASSERT_EQ(scene.memory.puts, promoted || tuned || guessed ? 1 : 0) << world.text();
    if (guessed) {
      ASSERT_EQ(scene.memory.entries.begin()->second.origin, Tier::kHeuristics);
    }
  });
}

// explain() says what choose() would do without tuning, and changes nothing.
TEST(TierTruthTable, ExplainAgreesAndHasNoSideEffects) {
  for (const Holds memory : kAll) {
    for (const Holds persistent : kAll) {
      Scene scene;
      const std::string key = selection::entry_key(scene.problem);
      fill(scene.memory, memory, Tier::kMemory, key);
      fill(scene.persistent, persistent, Tier::kPersistent, key);
      int events = 0, tunings = 0;
      selection::Selector selector({.memory = &scene.memory,
                                    .persistent = &scene.persistent,
                                    .tune = tuning(Tunes::kFinds, tunings)},
                                   [&](const Event&) { ++events; });
      const selection::Request request{.problem = &scene.problem, .profile = &scene.profile};
      const auto [choice, refused] = selector.explain(request);
      EXPECT_EQ(scene.memory.puts + scene.persistent.puts + events + tunings, 0);
      ASSERT_EQ(refused.size(), 2U);
      EXPECT_EQ(refused[0].variant, "blocked");
      EXPECT_THAT(refused[0].why, ::testing::HasSubstr("fits with none of its 3 configurations"));
      EXPECT_EQ(refused[1].variant, "reference");
      const Choice again = selector.choose(request);
      EXPECT_EQ(choice.tier, again.tier);
      EXPECT_EQ(choice.config, again.config);
    }
  }
}

}  // namespace
}  // namespace tessera
