// SPDX-License-Identifier: Apache-2.0
// What selective_scan refuses, and the laws of its reference. No device is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "support/profiles.hpp"
#include "support/reference.hpp"
#include "support/refusal.hpp"
#include "support/sequence_fixture.hpp"

namespace tessera {
namespace {

using ::testing::Each;
using testing::expect_refusal;
using testing::expect_slopes;
using testing::expect_to_mend;
using testing::expect_to_split;
using testing::expect_to_unpack;
using testing::f16;
using testing::f32;
using ::testing::HasSubstr;
using testing::i32;
using testing::normal_numbers;
using testing::SequenceCall;
using testing::Specs;
using testing::Values;

constexpr std::int64_t kScanTokens = 9, kChannels = 4, kGroups = 2, kStates = 3;

SequenceCall a_scan_call(std::int64_t sequences = 1) {
  const Shape factors{kGroups, kStates};
  SequenceCall call{
      .operation = "selective_scan",
      .tokens = kScanTokens,
      .rows = {{"u", {kChannels}},
               {"delta", {kChannels}},
               {"z", {kChannels}},
               {"b", factors},
               {"c", factors},
               {"output", {kChannels}}},
      .whole = {{"a", {kChannels, kStates}}, {"d", {kChannels}}, {"delta_bias", {kChannels}}},
      .state = {kChannels, kStates}};
  call.options["delta_softplus"] = true;
  unsigned seed = 1;
  for (const char* name : {"u", "delta", "z", "b", "c"})
    call.values[name] = normal_numbers(kScanTokens * call.width_of(name), seed++);
  call.values["a"] = normal_numbers(kChannels * kStates, seed++);
  for (double& rate : call.values["a"]) rate = -std::fabs(rate);
  call.values["d"] = normal_numbers(kChannels, seed++);
  call.values["delta_bias"] = normal_numbers(kChannels, seed++);
  call.values["initial_state"] =
      normal_numbers(static_cast<std::size_t>(sequences) * call.state_elements(), seed);
  return call;
}

TEST(SelectiveScanReference, IsThatOfItsFormula) {
  // One channel of one state, by hand.
  const Specs specs{{"u", f32({1, 2, 1})},    {"delta", f32({1, 2, 1})}, {"a", f32({1, 1})},
                    {"b", f32({1, 2, 1, 1})}, {"c", f32({1, 2, 1, 1})},  {"d", f32({1})},
                    {"z", f32({1, 2, 1})}};
  const Values values{{"u", {3, 5}},   {"delta", {0.5, 0.25}}, {"a", {-2}},
                      {"b", {7, 11}},  {"c", {1, 2}},          {"d", {10}},
                      {"z", {0.3, -4}}};
  const Values result =
      testing::run_reference(testing::problem_of("selective_scan", specs), values);
  const double first = 0.5 * 7 * 3, second = std::exp(-0.5) * first + 0.25 * 11 * 5;
  const auto silu = [](double z) { return z / (1 + std::exp(-z)); };
  EXPECT_NEAR(result.at("output")[0], (first + 30) * silu(0.3), 1e-12);
  EXPECT_NEAR(result.at("output")[1], (2 * second + 50) * silu(-4), 1e-12);
}

TEST(SelectiveScanReference, TwoCallsThroughTheStateAreOne) {
  expect_to_split(a_scan_call(), false);
}

TEST(SelectiveScanReference, PackedIsOneCallForEachSequence) {
  SequenceCall packed = a_scan_call(5);
  packed.boundaries = {1, 1, 2, 2, 7, 8};
  expect_to_unpack(packed);
}

TEST(SelectiveScanReference, BoundariesThatDecreaseCutNothingTwice) {
  expect_to_mend(a_scan_call(3), {-4, 6, 2, 99}, {0, 6, 6, 9});
}

TEST(SelectiveScanReference, StaysFiniteOverManySteps) {
  SequenceCall call = a_scan_call();
  call.tokens = 100000;
  for (const char* name : {"u", "delta", "z", "b", "c"})
    call.values[name].assign(static_cast<std::size_t>(call.tokens) * call.width_of(name), 0.5);
  call.values["delta"].assign(static_cast<std::size_t>(call.tokens * kChannels), 80.0);
  const Values all = call.run();
  EXPECT_THAT(all.at("output"), Each(::testing::Truly([](double x) { return std::isfinite(x); })));
}

TEST(SelectiveScanBackwardReference, IsTheSlopeOfForward) {
  expect_slopes(a_scan_call());
  SequenceCall plain = a_scan_call();
  plain.options["delta_softplus"] = false;
  for (const char* name : {"d", "z", "delta_bias", "initial_state"}) plain.values.erase(name);
  for (double& step : plain.values["delta"]) step *= 0.1;  // of both signs: states grow slowly
  expect_slopes(plain);
}

TEST(SelectiveScanBackwardReference, IsTheSlopeOfPackedSequences) {
  SequenceCall call = a_scan_call(4);
  call.boundaries = {1, 1, 3, 8, 8};
  expect_slopes(call);
}

TEST(SelectiveScanRefuses, WhatContradictsItself) {
  const Specs plain{{"u", f32({2, 5, 6})},
                    {"delta", f32({2, 5, 6})},
                    {"a", f32({6, 3})},
                    {"b", f32({2, 5, 2, 3})},
                    {"c", f32({2, 5, 2, 3})}};
  const auto with = [&](const std::string& name, const TensorSpec& spec) {
    Specs specs = plain;
    specs[name] = spec;
    return specs;
  };
  expect_refusal("selective_scan", with("u", f32({5, 6})), "must be [batch, seq, dim]");
  expect_refusal("selective_scan", with("delta", f32({2, 5, 5})),
                 "delta f32[2, 5, 5] must be f32[2, 5, 6]");
  expect_refusal("selective_scan", with("a", f32({18})), "must be [dim, state]");
  expect_refusal("selective_scan", with("a", f32({6, 0})), "must have states");
  expect_refusal("selective_scan", with("a", f16({6, 3})), "a f16[6, 3] must be f32");
  expect_refusal("selective_scan", with("b", f32({2, 5, 6})),
                 "must be [batch, seq, groups, state]");
  expect_refusal("selective_scan", with("b", f32({2, 5, 4, 3})),
                 "must have a number of groups that divides dim");
  expect_refusal("selective_scan", with("c", f32({2, 5, 1, 3})),
                 "c f32[2, 5, 1, 3] must be f32[2, 5, 2, 3]");
  expect_refusal("selective_scan", with("d", f32({3})), "d f32[3] must be f32[6]");
  expect_refusal("selective_scan", with("z", f16({2, 5, 6})), "z f16[2, 5, 6] must be f32");
  expect_refusal("selective_scan", with("delta_bias", f32({3})),
                 "delta_bias f32[3] must be f32[6]");
  expect_refusal("selective_scan", with("initial_state", f32({2, 6, 4})),
                 "initial_state f32[2, 6, 4] must be f32[2, 6, 3]");
  expect_refusal("selective_scan", with("cu_seqlens", i32({3})),
                 "must have batch 1, for cu_seqlens packs it");
  Specs backward = with("grad_output", f32({2, 5, 6}));
  backward["grad_z"] = f32({2, 5, 6});
  expect_refusal("selective_scan_backward", backward, "grad_z is wanted, but the call has no z");
}

// lavapipe ends a kernel's loops after 65535 rounds, and says nothing.
TEST(SelectiveScanRefuses, MoreRoundsThanLavapipeTakes) {
  const DeviceProfile profile = testing::load_profile("lavapipe");
  const Variant& tile = *find_operation("selective_scan").find_variant("tile");
  const auto packed = [](std::int64_t tokens) {
    return testing::problem_of("selective_scan", {{"u", f32({1, tokens, 32})},
                                                  {"delta", f32({1, tokens, 32})},
                                                  {"a", f32({32, 16})},
                                                  {"b", f32({1, tokens, 1, 16})},
                                                  {"c", f32({1, tokens, 1, 16})},
                                                  {"cu_seqlens", i32({tokens + 1})}});
  };
  const Problem many = packed(20000), more = packed(60000);
  const Config config = tile.space(many, profile).front();
  EXPECT_EQ(tile.rejects(many, config, profile), std::nullopt);
  Config one = config;
  one.set("SPAN", 20000);  // a search for the sequence of each token
  EXPECT_THAT(tile.rejects(many, one, profile).value_or(""),
              HasSubstr("rounds of an item's loops"));
  EXPECT_THAT(tile.rejects(more, config, profile).value_or(""),
              HasSubstr("rounds of an item's loops"));
  EXPECT_EQ(tile.rejects(more, one, testing::load_profile("h200_vulkan")), std::nullopt);
}

}  // namespace
}  // namespace tessera
