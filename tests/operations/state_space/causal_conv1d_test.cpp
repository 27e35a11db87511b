// SPDX-License-Identifier: Apache-2.0
// What causal_conv1d refuses, and the laws of its reference. No device is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/reference.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using testing::f16;
using testing::f32;
using ::testing::HasSubstr;
using testing::i32;
using testing::normal_numbers;
using testing::Specs;
using testing::Values;

constexpr std::int64_t kTokens = 9, kDim = 3;

struct Call {
  std::int64_t tokens = kTokens, width = 4;
  Values values{};
  std::vector<double> boundaries{};
  bool silu = true;

  std::int64_t sequences() const {
    return boundaries.empty() ? 1 : static_cast<std::int64_t>(boundaries.size()) - 1;
  }
  TensorSpec states() const { return f32({sequences(), width - 1, kDim}); }
  Specs specs() const {
    Specs all{{"input", f32({1, tokens, kDim})},
              {"weight", f32({kDim, width})},
              {"bias", f32({kDim})},
              {"initial_state", states()}};
    std::erase_if(all, [&](const auto& spec) { return values.count(spec.first) == 0; });
    if (!boundaries.empty()) all["cu_seqlens"] = i32({sequences() + 1});
    return all;
  }
  Options options() const { return {{"activation", std::string(silu ? "silu" : "none")}}; }
  Values inputs() const {
    Values all = values;
    if (!boundaries.empty()) all["cu_seqlens"] = boundaries;
    return all;
  }
  Values run() const {
    Specs all = specs();
    all["final_state"] = states();
    return testing::run_reference(testing::problem_of("causal_conv1d", all, options()), inputs());
  }
};

Call a_call(std::int64_t sequences = 1, std::int64_t width = 4) {
  Call call;
  call.width = width;
  call.values = {{"input", normal_numbers(kTokens * kDim, 1)},
                 {"weight", normal_numbers(static_cast<std::size_t>(kDim * width), 2)},
                 {"bias", normal_numbers(kDim, 3)},
                 {"initial_state",
                  normal_numbers(static_cast<std::size_t>(sequences * (width - 1) * kDim), 4)}};
  return call;
}

// Tokens [begin, end) of a call, from a state.
Call part_of(const Call& call, std::int64_t begin, std::int64_t end,
             const std::vector<double>& state) {
  Call part = call;
  part.boundaries.clear();
  part.tokens = end - begin;
  const std::vector<double>& input = call.values.at("input");
  part.values["input"] = {input.begin() + begin * kDim, input.begin() + end * kDim};
  part.values["initial_state"] = state;
  return part;
}

std::vector<double> joined(std::vector<double> a, const std::vector<double>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(CausalConv1dReference, IsASumOverTheLastTokens) {
  const Specs specs{{"input", f32({1, 4, 1})}, {"weight", f32({1, 2})}, {"bias", f32({1})}};
  const Values values{{"input", {1, 2, 3, 4}}, {"weight", {10, 1}}, {"bias", {100}}};
  const Values result = testing::run_reference(testing::problem_of("causal_conv1d", specs), values);
  EXPECT_THAT(result.at("output"), ElementsAre(101, 112, 123, 134));
  const Values silu = testing::run_reference(
      testing::problem_of("causal_conv1d", specs, {{"activation", std::string("silu")}}), values);
  EXPECT_NEAR(silu.at("output")[1], 112 / (1 + std::exp(-112.0)), 1e-12);
}

TEST(CausalConv1dReference, TwoCallsThroughTheStateAreOne) {
  for (const std::int64_t width : {2, 4, 8}) {
    const Call whole = a_call(1, width);
    const Values all = whole.run();
    for (const std::int64_t cut : {std::int64_t{0}, std::int64_t{1}, std::int64_t{5}, kTokens}) {
      const Values first = part_of(whole, 0, cut, whole.values.at("initial_state")).run();
      const Values second = part_of(whole, cut, kTokens, first.at("final_state")).run();
      EXPECT_EQ(all.at("output"), joined(first.at("output"), second.at("output")));
      EXPECT_EQ(all.at("final_state"), second.at("final_state"));
    }
  }
}

TEST(CausalConv1dReference, PackedIsOneCallForEachSequence) {
  Call packed = a_call(5);
  packed.boundaries = {1, 1, 2, 2, 7, 8};
  const Values all = packed.run();
  std::vector<double> outputs(kDim), states;  // of the first token: 0
  const std::ptrdiff_t count = 3 * kDim;
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

TEST(CausalConv1dReference, BoundariesThatDecreaseCutNothingTwice) {
  Call packed = a_call(3);
  packed.boundaries = {-4, 6, 2, 99};
  Call mended = packed;
  mended.boundaries = {0, 6, 6, 9};
  EXPECT_EQ(packed.run().at("output"), mended.run().at("output"));
  EXPECT_EQ(packed.run().at("final_state"), mended.run().at("final_state"));
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
      testing::problem_of("causal_conv1d_backward", specs, call.options()), inputs);
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

TEST(CausalConv1dBackwardReference, IsTheSlopeOfForward) {
  for (const std::int64_t width : {2, 4, 8}) expect_slopes(a_call(1, width));
  Call plain = a_call();
  plain.silu = false;
  plain.values.erase("bias");
  plain.values.erase("initial_state");
  expect_slopes(plain);
}

TEST(CausalConv1dBackwardReference, IsTheSlopeOfPackedSequences) {
  Call call = a_call(4);
  call.boundaries = {1, 1, 3, 8, 8};
  expect_slopes(call);
}

// ---- refusals -----------------------------------------------------------------------------------

void expect_refusal(const Specs& specs, const std::string& sentence, Options options = {},
                    const std::string& operation = "causal_conv1d") {
  try {
    testing::problem_of(operation, specs, std::move(options));
    FAIL() << "no refusal; expected: " << sentence;
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(std::string(error.what()), HasSubstr(sentence));
  }
}

TEST(CausalConv1dRefuses, WhatContradictsItself) {
  const Specs plain{{"input", f32({2, 5, 3})}, {"weight", f32({3, 4})}};
  const auto with = [&](const std::string& name, const TensorSpec& spec) {
    Specs specs = plain;
    specs[name] = spec;
    return specs;
  };
  expect_refusal(with("input", f32({5, 3})), "must be [batch, seq, dim]");
  expect_refusal(with("weight", f32({12})), "must be [dim, width]");
  expect_refusal(with("weight", f32({3, 1})), "must have a width of 2 to 8");
  expect_refusal(with("weight", f32({3, 9})), "must have a width of 2 to 8");
  expect_refusal(with("weight", f32({4, 4})), "weight f32[4, 4] must be f32[3, 4]");
  expect_refusal(with("weight", f16({3, 4})), "weight f16[3, 4] must be f32");
  expect_refusal(with("bias", f32({4})), "bias f32[4] must be f32[3]");
  expect_refusal(with("initial_state", f32({2, 4, 3})),
                 "initial_state f32[2, 4, 3] must be f32[2, 3, 3]");
  expect_refusal(with("initial_state", f16({2, 3, 3})), "must be f32");
  expect_refusal(with("cu_seqlens", i32({3})), "must have batch 1, for cu_seqlens packs it");
  expect_refusal(with("cu_seqlens", i32({0})), "of one element more than there are sequences");
  expect_refusal(plain, "none or silu", {{"activation", std::string("gelu")}});
  Specs backward = with("grad_output", f32({2, 5, 3}));
  backward["grad_bias"] = f32({3});
  expect_refusal(backward, "grad_bias is wanted, but the call has no bias", {},
                 "causal_conv1d_backward");
}

}  // namespace
}  // namespace tessera
