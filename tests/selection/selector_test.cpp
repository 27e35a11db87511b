// SPDX-License-Identifier: Apache-2.0
// What the truth table does not show: origins, partial overrides, allowed tiers, events, shared
// keys, single flight.
#include "selection/selector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernel/hash_of_kernels.hpp"
#include "support/fake_operation.hpp"
#include "support/profiles.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using testing::FakeStore;
using ::testing::HasSubstr;

class SelectorTest : public ::testing::Test {
 protected:
  selection::Request request(const Problem& problem) const {
    return {.problem = &problem, .profile = &profile};
  }
  selection::Tiers tiers() {
    return {.memory = &memory, .persistent = &persistent, .shipped = &shipped};
  }
  EventSink sink() {
    return [this](const Event& event) {
      events.push_back(event.name + (event.detail.empty() ? "" : " " + event.detail));
    };
  }
  template <class E>
  static std::string error_of(selection::Selector& selector, const selection::Request& request) {
    try {
      selector.choose(request);
    } catch (const E& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  Problem problem = testing::fake_problem(4096);
  std::string key = selection::entry_key(problem);
  DeviceProfile profile = testing::load_profile("rdna3_vulkan");
  FakeStore memory, persistent, shipped;
  std::vector<std::string> events;
};

TEST_F(SelectorTest, KeysNameTheOperation) {
  EXPECT_EQ(key, "scale|dtype=f32;n=4096");
  EXPECT_EQ(selection::entry_key(problem, "plain"), "scale|dtype=f32;n=4096|variant=plain");
}

TEST_F(SelectorTest, OriginSurvivesPromotion) {
  persistent.entries[key] = testing::tuned("plain", {{"WG_X", 64}});
  selection::Selector selector(tiers(), sink());
  const Choice first = selector.choose(request(problem));
  EXPECT_EQ(first.tier, Tier::kPersistent);
  EXPECT_EQ(first.origin, Tier::kAutotune);
  EXPECT_EQ(first.why, "2025-01-31T12:00:00Z");
  const Choice second = selector.choose(request(problem));
  EXPECT_EQ(second.tier, Tier::kMemory);
  EXPECT_EQ(second.origin, Tier::kAutotune);
  EXPECT_EQ(second.config.to_string(), "UNROLL=4,WG_X=64") << "a stored configuration is completed";
  EXPECT_THAT(events, ElementsAre("cache_hit persistent", "cache_hit memory"));
}

TEST_F(SelectorTest, GuessDoesNotKeepFromTuning) {
  int tunings = 0;
  selection::Tiers all = tiers();
  all.tune = [&](const Problem& p, const Policy&) {
    ++tunings;
    return testing::won(p, "plain", {{"UNROLL", 4}, {"WG_X", 8}});
  };
  selection::Selector selector(all, sink());
  selection::Request guess = request(problem);
  EXPECT_EQ(selector.choose(guess).tier, Tier::kHeuristics);
  const Choice remembered = selector.choose(guess);
  EXPECT_EQ(remembered.tier, Tier::kMemory);
  EXPECT_EQ(remembered.origin, Tier::kHeuristics);
  EXPECT_EQ(remembered.why, "blocks keep a GPU busy");
  EXPECT_EQ(persistent.puts, 0);

  selection::Request tune = request(problem);
  tune.policy.autotune = true;
  EXPECT_EQ(selector.choose(tune).tier, Tier::kAutotune);
  EXPECT_EQ(tunings, 1);
  EXPECT_EQ(persistent.entries.at(key).milliseconds, 1);
  EXPECT_EQ(persistent.entries.at(key).error_over_bound, 0.5);
  EXPECT_EQ(selector.choose(tune).tier, Tier::kMemory);
  EXPECT_EQ(selector.choose(guess).config.to_string(), "UNROLL=4,WG_X=8");
  EXPECT_EQ(tunings, 1);
}

TEST_F(SelectorTest, GuessIsNoAnswerForWhoWantsNone) {
  selection::Selector selector(tiers(), sink());
  selection::Request strict = request(problem);
  selector.choose(strict);
  ASSERT_EQ(memory.entries.at(key).origin, Tier::kHeuristics);
  strict.policy.heuristics = false;
  const std::string error = error_of<Unsupported>(selector, strict);
  EXPECT_THAT(error, HasSubstr("blocked could run"));
  EXPECT_THAT(error, HasSubstr("reference runs through host only"));
}

TEST_F(SelectorTest, PolicyMayKeepTheDiskClean) {
  selection::Tiers all = tiers();
  all.tune = [](const Problem& p, const Policy&) {
    return testing::won(p, "plain", {{"WG_X", 8}});
  };
  selection::Selector selector(all, {});
  selection::Request tune = request(problem);
  tune.policy = {.autotune = true, .persist = false};
  EXPECT_EQ(selector.choose(tune).tier, Tier::kAutotune);
  EXPECT_EQ(memory.puts, 1);
  EXPECT_EQ(persistent.puts, 0);
}

TEST_F(SelectorTest, ResultThatTheTunerStoredIsNotWrittenTwice) {
  selection::Tiers all = tiers();
  all.tune = [&](const Problem& p, const Policy&) {
    TuneReport report = testing::won(p, "plain", {{"WG_X", 8}});
    const auto entry =
        selection::new_entry(p, profile.backend, *report.best, report.measurements.front());
    memory.put(key, entry);
    persistent.put(key, entry);
    return report;
  };
  selection::Selector selector(all, {});
  selection::Request tune = request(problem);
  tune.policy.autotune = true;
  EXPECT_EQ(selector.choose(tune).tier, Tier::kAutotune);
  EXPECT_EQ(persistent.puts, 1);
  EXPECT_EQ(memory.puts, 1);
}

TEST_F(SelectorTest, WhatWasTunedWithOtherKernelsIsTunedAgain) {
  persistent.entries[key] = testing::tuned("plain", {{"WG_X", 64}});
  persistent.entries[key].kernels =
      kernel::hash_of_kernels(testing::fake_operation(), Backend::kOpenCL);
  selection::Tiers all = tiers();
  all.tune = [](const Problem& p, const Policy&) {
    return testing::won(p, "plain", {{"WG_X", 64}}, 1.5);
  };
  selection::Selector selector(all, {});
  EXPECT_EQ(selector.choose(request(problem)).tier, Tier::kHeuristics);
  selection::Request tune = request(problem);
  tune.policy.autotune = true;
  EXPECT_EQ(selector.choose(tune).tier, Tier::kAutotune);
  EXPECT_EQ(persistent.puts, 1);
  EXPECT_EQ(persistent.entries.at(key).kernels,
            kernel::hash_of_kernels(testing::fake_operation(), Backend::kVulkan));
  memory.entries.clear();
  EXPECT_EQ(selector.choose(request(problem)).tier, Tier::kPersistent);
}

TEST_F(SelectorTest, WhatIsShippedServesWhateverKernelsItWasTunedWith) {
  shipped.entries[key] = testing::tuned("plain", {{"WG_X", 64}});
  shipped.entries[key].kernels.clear();
  selection::Selector selector(tiers(), {});
  EXPECT_EQ(selector.choose(request(problem)).tier, Tier::kShipped);
}

TEST_F(SelectorTest, NothingLeftListsEveryRefusal) {
  problem = testing::fake_problem(4096);
  profile.backend = Backend::kHost;
  static const Operation without_reference = [] {
    Operation operation = testing::fake_operation();
    operation.variants.pop_back();
    return operation;
  }();
  problem.operation = &without_reference;
  selection::Selector selector(tiers(), sink());
  const std::string error = error_of<Unsupported>(selector, request(problem));
  EXPECT_THAT(error, HasSubstr("no variant can run this call"));
  EXPECT_THAT(error, HasSubstr("blocked has no host kernel"));
  EXPECT_THAT(error, HasSubstr("plain has no host kernel"));
  EXPECT_THAT(events.back(), HasSubstr("error scale on"));
}

// ---- overrides

TEST_F(SelectorTest, OverrideErrorsNameTheRefusal) {
  selection::Selector selector(tiers(), sink());
  selection::Request call = request(problem);
  call.override_choice = {.variant = "quick", .config = {}};
  EXPECT_THAT(error_of<InvalidArgument>(selector, call),
              HasSubstr("names the variant 'quick'; there are blocked, plain, reference"));
  call.override_choice = {.variant = "reference", .config = {}};
  EXPECT_THAT(error_of<Unsupported>(selector, call), HasSubstr("runs through host only"));
  call.override_choice = {.variant = "plain", .config = Config{{"TILE", 3}}};
  EXPECT_THAT(error_of<InvalidArgument>(selector, call), HasSubstr("has no tunable 'TILE'"));
  call.override_choice = {.variant = "", .config = Config{{"TILE", 3}}};
  const std::string all = error_of<InvalidArgument>(selector, call);
  EXPECT_THAT(all, HasSubstr("blocked has no tunable 'TILE'"));
  EXPECT_THAT(all, HasSubstr("plain has no tunable 'TILE'"));
  // Another length would do, but no other configuration: the call itself is the trouble.
  const Problem odd = testing::fake_problem(100);
  selection::Request odd_call = request(odd);
  odd_call.override_choice = {.variant = "blocked", .config = Config{{"BLOCK", 64}}};
  EXPECT_THAT(error_of<Unsupported>(selector, odd_call), HasSubstr("length that BLOCK divides"));
  EXPECT_EQ(memory.puts + persistent.puts, 0);
}

TEST_F(SelectorTest, OverrideOfTheConfigurationFindsItsVariant) {
  selection::Selector selector(tiers(), sink());
  selection::Request call = request(problem);
  call.override_choice.config = Config{{"UNROLL", 2}};
  EXPECT_EQ(selector.choose(call).variant, "plain");
  call.override_choice.config = Config{{"BLOCK", 32}};
  EXPECT_EQ(selector.choose(call).variant, "blocked");
  call.override_choice.config = Config{{"WG_X", 16}};
  const Choice choice = selector.choose(call);
  EXPECT_EQ(choice.variant, "blocked") << "of two that take it, the one that the rules speak for";
  EXPECT_EQ(choice.config.to_string(), "BLOCK=32,WG_X=16");
  EXPECT_EQ(memory.puts + persistent.puts, 0) << "an override is for this call only";
}

TEST_F(SelectorTest, OverrideOfTheVariantTakesItsBest) {
  selection::Selector selector(tiers(), sink());
  selection::Request call = request(problem);
  call.override_choice.variant = "plain";
  // Nothing is known: the first configuration that fits, although the rules speak for blocked.
  Choice choice = selector.choose(call);
  EXPECT_EQ(choice.config.to_string(), "UNROLL=4,WG_X=256");
  EXPECT_EQ(choice.tier, Tier::kOverride);
  EXPECT_EQ(choice.origin, Tier::kHeuristics);
  EXPECT_EQ(memory.puts, 0);
  // The best of all variants is another one: of no use here.
  persistent.entries[key] = testing::tuned("blocked", {{"BLOCK", 32}});
  EXPECT_EQ(selector.choose(call).config.to_string(), "UNROLL=4,WG_X=256");
  // The best of all variants is this one.
  persistent.entries[key] = testing::tuned("plain", {{"WG_X", 32}});
  choice = selector.choose(call);
  EXPECT_EQ(choice.config.to_string(), "UNROLL=4,WG_X=32");
  EXPECT_EQ(choice.origin, Tier::kAutotune);
  // The variant's own best goes before.
  shipped.entries[selection::entry_key(problem, "plain")] =
      testing::tuned("plain", {{"WG_X", 128}});
  memory.entries.clear();
  persistent.entries.clear();
  EXPECT_EQ(selector.choose(call).config.to_string(), "UNROLL=4,WG_X=128");
  // Without guesses too the caller's word counts.
  memory.entries.clear();
  shipped.entries.clear();
  call.policy.heuristics = false;
  EXPECT_EQ(selector.choose(call).config.to_string(), "UNROLL=4,WG_X=256");
}

TEST_F(SelectorTest, OverrideOfTheVariantTunesIt) {
  selection::Tiers all = tiers();
  std::string tuned_variant;
  all.tune_variant = [&](const Problem& p, const Policy&, const std::string& variant) {
    tuned_variant = variant;
    return testing::won(p, variant, {{"UNROLL", 4}, {"WG_X", 8}});
  };
  selection::Selector selector(all, sink());
  selection::Request call = request(problem);
  call.policy.autotune = true;
  call.override_choice.variant = "plain";
  const Choice choice = selector.choose(call);
  EXPECT_EQ(tuned_variant, "plain");
  EXPECT_EQ(choice.tier, Tier::kOverride);
  EXPECT_EQ(choice.origin, Tier::kAutotune);
  EXPECT_FALSE(persistent.entries.contains(key)) << "it is not the best of all variants";
  EXPECT_TRUE(persistent.entries.contains(selection::entry_key(problem, "plain")));
}

// ---- allowed tiers

TEST_F(SelectorTest, OnlyAllowedTiersAnswer) {
  memory.entries[key] = testing::tuned("plain", {{"WG_X", 2}});
  persistent.entries[key] = testing::tuned("plain", {{"WG_X", 4}});
  shipped.entries[key] = testing::tuned("plain", {{"WG_X", 8}});
  selection::Selector selector(tiers(), {});
  selection::Request call = request(problem);
  for (const Tier tier : {Tier::kMemory, Tier::kPersistent, Tier::kShipped, Tier::kHeuristics}) {
    call.allowed = {tier};
    EXPECT_EQ(selector.choose(call).tier, tier);
    memory.entries[key] = testing::tuned("plain", {{"WG_X", 2}});
  }
  call.allowed = {Tier::kAutotune};
  EXPECT_THROW(selector.choose(call), Unsupported);
  call.allowed = std::vector<Tier>{};
  EXPECT_THROW(selector.choose(call), Unsupported);
  call.override_choice.variant = "blocked";
  EXPECT_EQ(selector.choose(call).variant, "blocked") << "the caller's own word is always obeyed";
}

// ---- one key, several problems

TEST_F(SelectorTest, AnotherProblemOfTheKeyDoesNotLoseTheEntry) {
  // 96 and 100 share a bucket; BLOCK=32 divides only the first.
  const Problem even = testing::fake_problem(96), odd = testing::fake_problem(100);
  ASSERT_EQ(even.key, odd.key);
  int tunings = 0;
  selection::Tiers all = tiers();
  all.tune = [&](const Problem& p, const Policy&) {
    ++tunings;
    return testing::won(p, "blocked", {{"BLOCK", 32}, {"WG_X", 32}});
  };
  selection::Selector selector(all, sink());
  selection::Request for_even = request(even), for_odd = request(odd);
  for_even.policy.autotune = for_odd.policy.autotune = true;
  EXPECT_EQ(selector.choose(for_even).tier, Tier::kAutotune);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(selector.choose(for_odd).tier, Tier::kHeuristics);
    EXPECT_EQ(selector.choose(for_odd).variant, "plain");
    EXPECT_EQ(selector.choose(for_even).tier, Tier::kMemory);
    EXPECT_EQ(selector.choose(for_even).variant, "blocked");
  }
  EXPECT_EQ(tunings, 1) << "the two problems must not tune in turns for ever";
}

TEST_F(SelectorTest, FailedTuningIsToldOnceAndNotRepeated) {
  int tunings = 0;
  selection::Tiers all = tiers();
  all.tune = [&](const Problem& p, const Policy&) {
    ++tunings;
    TuneReport report{.operation = "scale", .key = p.key};
    report.measurements = {
        {.variant = "plain", .config = {{"WG_X", 1}}, .failure = "wrong result"}};
    return report;
  };
  selection::Selector selector(all, sink());
  selection::Request call = request(problem);
  call.policy.autotune = true;
  EXPECT_EQ(selector.choose(call).tier, Tier::kHeuristics);
  EXPECT_THAT(
      events,
      ElementsAre("autotune_start 6 candidates",
                  "autotune_finish failed: no candidate passed\n  plain{WG_X=1}: wrong result",
                  "heuristics blocks keep a GPU busy"));
  EXPECT_EQ(selector.choose(call).tier, Tier::kMemory);
  EXPECT_EQ(tunings, 1);
  EXPECT_EQ(persistent.puts, 0);
}

TEST_F(SelectorTest, MoreTimeIsWorthAnotherTry) {
  int tunings = 0;
  selection::Tiers all = tiers();
  all.tune = [&](const Problem& p, const Policy& policy) {
    ++tunings;
    if (policy.tune_seconds > 5) return testing::won(p, "plain", {{"WG_X", 8}});
    return TuneReport{.operation = "scale", .key = p.key, .out_of_budget = true};
  };
  selection::Selector selector(all, {});
  selection::Request call = request(problem);
  call.policy = {.autotune = true, .tune_seconds = 1};
  EXPECT_EQ(selector.choose(call).tier, Tier::kHeuristics);
  EXPECT_EQ(selector.choose(call).tier, Tier::kMemory);
  EXPECT_EQ(tunings, 1);
  call.policy.tune_seconds = 10;
  EXPECT_EQ(selector.choose(call).tier, Tier::kAutotune);
  EXPECT_EQ(tunings, 2);
}

TEST_F(SelectorTest, TuningThatAsksForItsOwnKeyDoesNotHang) {
  selection::Selector* inner = nullptr;
  selection::Tiers all = tiers();
  all.tune = [&](const Problem& p, const Policy& policy) {
    selection::Request nested{.problem = &p, .profile = &profile};
    nested.policy = policy;
    EXPECT_EQ(inner->choose(nested).tier, Tier::kHeuristics);
    return testing::won(p, "plain", {{"WG_X", 8}});
  };
  selection::Selector selector(all, {});
  inner = &selector;
  selection::Request call = request(problem);
  call.policy.autotune = true;
  EXPECT_EQ(selector.choose(call).tier, Tier::kAutotune);
  EXPECT_EQ(selector.choose(call).config.to_string(), "UNROLL=4,WG_X=8");
}

}  // namespace
}  // namespace tessera
