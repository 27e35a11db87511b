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
#include "tessera/error.hpp"

namespace tessera {
namespace {

using ::testing::Each;
using testing::f16;
using testing::f32;
using ::testing::HasSubstr;
using testing::i32;
using testing::normal_numbers;
using testing::Specs;
using testing::Values;

constexpr std::int64_t kTokens = 9, kDim = 4, kGroups = 2, kStates = 3;

bool has_rows(const std::string& name) {
  return std::set<std::string>{"u", "delta", "z", "b", "c"}.count(name) != 0;
}
std::int64_t width_of(const std::string& name) {
  return name == "b" || name == "c" ? kGroups * kStates : kDim;
}

struct Call {
  std::int64_t tokens = kTokens;
  Values values{};
  std::vector<double> boundaries{};
  bool softplus = true;

  std::int64_t sequences() const {
    return boundaries.empty() ? 1 : static_cast<std::int64_t>(boundaries.size()) - 1;
  }
  TensorSpec states() const { return f32({sequences(), kDim, kStates}); }
  Specs specs() const {
    Specs all{{"a", f32({kDim, kStates})},
              {"d", f32({kDim})},
              {"delta_bias", f32({kDim})},
              {"initial_state", states()}};
    for (const char* name : {"u", "delta", "z"}) all[name] = f32({1, tokens, kDim});
    for (const char* name : {"b", "c"}) all[name] = f32({1, tokens, kGroups, kStates});
    std::erase_if(all, [&](const auto& spec) { return values.count(spec.first) == 0; });
    if (!boundaries.empty()) all["cu_seqlens"] = i32({sequences() + 1});
    return all;
  }
  Options options() const { return {{"delta_softplus", softplus}}; }
  Values inputs() const {
    Values all = values;
    if (!boundaries.empty()) all["cu_seqlens"] = boundaries;
    return all;
  }
  Values run() const {
    Specs all = specs();
    all["final_state"] = states();
    return testing::run_reference(testing::problem_of("selective_scan", all, options()), inputs());
  }
};

Call a_call(std::int64_t sequences = 1) {
  Call call;
  unsigned seed = 1;
  for (const char* name : {"u", "delta", "z", "b", "c"})
    call.values[name] = normal_numbers(static_cast<std::size_t>(kTokens * width_of(name)), seed++);
  call.values["a"] = normal_numbers(kDim * kStates, seed++);
  for (double& rate : call.values["a"]) rate = -std::fabs(rate);
  call.values["d"] = normal_numbers(kDim, seed++);
  call.values["delta_bias"] = normal_numbers(kDim, seed++);
  call.values["initial_state"] =
      normal_numbers(static_cast<std::size_t>(sequences * kDim * kStates), seed);
  return call;
}

// Tokens [begin, end) of a call, from a state.
Call part_of(const Call& call, std::int64_t begin, std::int64_t end,
             const std::vector<double>& state) {
  Call part = call;
  part.boundaries.clear();
  part.tokens = end - begin;
  for (auto& [name, values] : part.values) {
    if (!has_rows(name)) continue;
    const std::vector<double>& all = call.values.at(name);
    values = {all.begin() + begin * width_of(name), all.begin() + end * width_of(name)};
  }
  part.values["initial_state"] = state;
  return part;
}

std::vector<double> joined(std::vector<double> a, const std::vector<double>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
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
  const Call whole = a_call();
  const Values all = whole.run();
  for (const std::int64_t cut : {std::int64_t{0}, std::int64_t{1}, std::int64_t{5}, kTokens}) {
    const Values first = part_of(whole, 0, cut, whole.values.at("initial_state")).run();
    const Values second = part_of(whole, cut, kTokens, first.at("final_state")).run();
    EXPECT_EQ(all.at("output"), joined(first.at("output"), second.at("output")));
    EXPECT_EQ(all.at("final_state"), second.at("final_state"));
  }
}

TEST(SelectiveScanReference, PackedIsOneCallForEachSequence) {
  Call packed = a_call(5);
  packed.boundaries = {1, 1, 2, 2, 7, 8};
  const Values all = packed.run();
  std::vector<double> outputs(kDim), states;  // of the first token: 0
  const std::ptrdiff_t count = kDim * kStates;
  for (std::ptrdiff_t s = 0; s < 5; ++s) {
    const auto from = packed.values["initial_state"].begin() + s * count;
    const auto at = static_cast<std::size_t>(s);
    const Values one =
        part_of(packed, static_cast<std::int64_t>(packed.boundaries[at]),
                static_cast<std::int64_t>(packed.boundaries[at + 1]), {from, from + count})
            .run();
    outputs = joined(outputs, one.at("output"));
    states = joined(states, one.at("final_state"));
  }
  outputs.resize(outputs.size() + kDim);
  EXPECT_EQ(all.at("output"), outputs);
  EXPECT_EQ(all.at("final_state"), states);
}

TEST(SelectiveScanReference, BoundariesThatDecreaseCutNothingTwice) {
  Call packed = a_call(3);
  packed.boundaries = {-4, 6, 2, 99};
  Call mended = packed;
  mended.boundaries = {0, 6, 6, 9};
  EXPECT_EQ(packed.run().at("output"), mended.run().at("output"));
  EXPECT_EQ(packed.run().at("final_state"), mended.run().at("final_state"));
}

TEST(SelectiveScanReference, StaysFiniteOverManySteps) {
  Call call = a_call();
  call.tokens = 100000;
  for (const char* name : {"u", "delta", "z", "b", "c"})
    call.values[name].assign(static_cast<std::size_t>(call.tokens * width_of(name)), 0.5);
  call.values["delta"].assign(static_cast<std::size_t>(call.tokens * kDim), 80.0);
  const Values all = call.run();
  EXPECT_THAT(all.at("output"), Each(::testing::Truly([](double x) { return std::isfinite(x); })));
}

// ---- gradients ----------------------------------------------------------------------------------

double weighted(const Call& call, const Values& weights) {
  const Values result = call.run();
  return testing::dot(result.at("output"), weights.at("output")) +
         testing::dot(result.at("final_state"), weights.at("final_state"));
}

void expect_slopes(Call call) {
  const auto states = static_cast<std::size_t>(call.states().elements());
  const Values weights{{"output", normal_numbers(kTokens * kDim, 21)},
                       {"final_state", normal_numbers(states, 22)}};
  Specs specs = call.specs();
  Values inputs = call.inputs();
  for (const auto& [name, values] : call.values) specs["grad_" + name] = specs.at(name);
  specs["grad_output"] = f32({1, call.tokens, kDim});
  specs["grad_final_state"] = call.states();
  inputs["grad_output"] = weights.at("output");
  inputs["grad_final_state"] = weights.at("final_state");
  const Values gradients = testing::run_reference(
      testing::problem_of("selective_scan_backward", specs, call.options()), inputs);
  constexpr double kStep = 1e-5;
  for (auto& [name, values] : call.values) {
    SCOPED_TRACE(name);
    const std::vector<double>& got = gradients.at("grad_" + name);
    ASSERT_EQ(got.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double kept = values[i];
      values[i] = kept + kStep;
      const double above = weighted(call, weights);
      values[i] = kept - kStep;
      const double below = weighted(call, weights);
      values[i] = kept;
      EXPECT_NEAR(got[i], (above - below) / (2 * kStep), 1e-7 * (1 + std::fabs(got[i]))) << i;
    }
  }
}

TEST(SelectiveScanBackwardReference, IsTheSlopeOfForward) {
  expect_slopes(a_call());
  Call plain = a_call();
  plain.softplus = false;
  for (const char* name : {"d", "z", "delta_bias", "initial_state"}) plain.values.erase(name);
  for (double& step : plain.values["delta"]) step *= 0.1;  // of both signs: states grow slowly
  expect_slopes(plain);
}

TEST(SelectiveScanBackwardReference, IsTheSlopeOfPackedSequences) {
  Call call = a_call(4);
  call.boundaries = {1, 1, 3, 8, 8};
  expect_slopes(call);
}

// ---- refusals -----------------------------------------------------------------------------------

void expect_refusal(const Specs& specs, const std::string& sentence,
                    const std::string& operation = "selective_scan") {
  try {
    testing::problem_of(operation, specs);
    FAIL() << "no refusal; expected: " << sentence;
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(std::string(error.what()), HasSubstr(sentence));
  }
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
  expect_refusal(with("u", f32({5, 6})), "must be [batch, seq, dim]");
  expect_refusal(with("delta", f32({2, 5, 5})), "delta f32[2, 5, 5] must be f32[2, 5, 6]");
  expect_refusal(with("a", f32({18})), "must be [dim, state]");
  expect_refusal(with("a", f32({6, 0})), "must have states");
  expect_refusal(with("a", f16({6, 3})), "a f16[6, 3] must be f32");
  expect_refusal(with("b", f32({2, 5, 6})), "must be [batch, seq, groups, state]");
  expect_refusal(with("b", f32({2, 5, 4, 3})), "must have a number of groups that divides dim");
  expect_refusal(with("c", f32({2, 5, 1, 3})), "c f32[2, 5, 1, 3] must be f32[2, 5, 2, 3]");
  expect_refusal(with("d", f32({3})), "d f32[3] must be f32[6]");
  expect_refusal(with("z", f16({2, 5, 6})), "z f16[2, 5, 6] must be f32");
  expect_refusal(with("delta_bias", f32({3})), "delta_bias f32[3] must be f32[6]");
  expect_refusal(with("initial_state", f32({2, 6, 4})),
                 "initial_state f32[2, 6, 4] must be f32[2, 6, 3]");
  expect_refusal(with("cu_seqlens", i32({3})), "must have batch 1, for cu_seqlens packs it");
  Specs backward = with("grad_output", f32({2, 5, 6}));
  backward["grad_z"] = f32({2, 5, 6});
  expect_refusal(backward, "grad_z is wanted, but the call has no z", "selective_scan_backward");
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
