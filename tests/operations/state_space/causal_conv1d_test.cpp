// SPDX-License-Identifier: Apache-2.0
// What causal_conv1d refuses, and the laws of its reference. No device is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "support/profiles.hpp"
#include "support/reference.hpp"
#include "support/refusal.hpp"
#include "support/sequence_fixture.hpp"

namespace tessera {
namespace {

using ::testing::ElementsAre;
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

constexpr std::int64_t kTokens = 9, kDim = 3;

SequenceCall a_conv_call(std::int64_t sequences = 1, std::int64_t width = 4) {
  SequenceCall call{.operation = "causal_conv1d",
                    .tokens = kTokens,
                    .rows = {{"input", {kDim}}, {"output", {kDim}}},
                    .whole = {{"weight", {kDim, width}}, {"bias", {kDim}}},
                    .state = {width - 1, kDim}};
  call.options["activation"] = std::string("silu");
  call.values = {{"input", normal_numbers(kTokens * kDim, 1)},
                 {"weight", normal_numbers(static_cast<std::size_t>(kDim * width), 2)},
                 {"bias", normal_numbers(kDim, 3)},
                 {"initial_state",
                  normal_numbers(static_cast<std::size_t>(sequences * (width - 1) * kDim), 4)}};
  return call;
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
  for (const std::int64_t width : {2, 4, 8}) expect_to_split(a_conv_call(1, width), false);
}

TEST(CausalConv1dReference, PackedIsOneCallForEachSequence) {
  SequenceCall packed = a_conv_call(5);
  packed.boundaries = {1, 1, 2, 2, 7, 8};
  expect_to_unpack(packed);
}

TEST(CausalConv1dReference, BoundariesThatDecreaseCutNothingTwice) {
  expect_to_mend(a_conv_call(3), {-4, 6, 2, 99}, {0, 6, 6, 9});
}

TEST(CausalConv1dBackwardReference, IsTheSlopeOfForward) {
  for (const std::int64_t width : {2, 4, 8}) expect_slopes(a_conv_call(1, width));
  SequenceCall plain = a_conv_call();
  plain.options["activation"] = std::string("none");
  plain.values.erase("bias");
  plain.values.erase("initial_state");
  expect_slopes(plain);
}

TEST(CausalConv1dBackwardReference, IsTheSlopeOfPackedSequences) {
  SequenceCall call = a_conv_call(4);
  call.boundaries = {1, 1, 3, 8, 8};
  expect_slopes(call);
}

TEST(CausalConv1dRefuses, WhatContradictsItself) {
  const Specs plain{{"input", f32({2, 5, 3})}, {"weight", f32({3, 4})}};
  const auto with = [&](const std::string& name, const TensorSpec& spec) {
    Specs specs = plain;
    specs[name] = spec;
    return specs;
  };
  expect_refusal("causal_conv1d", with("input", f32({5, 3})), "must be [batch, seq, dim]");
  expect_refusal("causal_conv1d", with("weight", f32({12})), "must be [dim, width]");
  expect_refusal("causal_conv1d", with("weight", f32({3, 1})), "must have a width of 2 to 8");
  expect_refusal("causal_conv1d", with("weight", f32({3, 9})), "must have a width of 2 to 8");
  expect_refusal("causal_conv1d", with("weight", f32({4, 4})),
                 "weight f32[4, 4] must be f32[3, 4]");
  expect_refusal("causal_conv1d", with("weight", f16({3, 4})), "weight f16[3, 4] must be f32");
  expect_refusal("causal_conv1d", with("bias", f32({4})), "bias f32[4] must be f32[3]");
  expect_refusal("causal_conv1d", with("initial_state", f32({2, 4, 3})),
                 "initial_state f32[2, 4, 3] must be f32[2, 3, 3]");
  expect_refusal("causal_conv1d", with("initial_state", f16({2, 3, 3})), "must be f32");
  expect_refusal("causal_conv1d", with("cu_seqlens", i32({3})),
                 "must have batch 1, for cu_seqlens packs it");
  expect_refusal("causal_conv1d", with("cu_seqlens", i32({0})),
                 "of one element more than there are sequences");
  expect_refusal("causal_conv1d", plain, "none or silu", {{"activation", std::string("gelu")}});
  Specs backward = with("grad_output", f32({2, 5, 3}));
  backward["grad_bias"] = f32({3});
  expect_refusal("causal_conv1d_backward", backward,
                 "grad_bias is wanted, but the call has no bias");
}

// Rows may reach further: their places are numbers of 64 bits.
TEST(CausalConv1dRefuses, WeightsThatProcessorsDoNotCountTo) {
  const DeviceProfile profile = testing::load_profile("pocl_cpu");
  const Variant& cpu = *find_operation("causal_conv1d").find_variant("cpu");
  constexpr std::int64_t kFar = std::int64_t{1} << 31;
  const TensorSpec rows{DType::kF32, {1, 9, 3}, {0, kFar, 1}};
  Specs specs{{"input", rows}, {"weight", f32({3, 4})}};
  const auto said = [&] {
    const Problem problem = testing::problem_of("causal_conv1d", specs);
    return cpu.rejects(problem, cpu.space(problem, profile).front(), profile).value_or("");
  };
  EXPECT_EQ(said(), "");
  specs["weight"] = TensorSpec{DType::kF32, {3, 4}, {kFar, 1}};
  EXPECT_THAT(said(), HasSubstr("its kernels count to 2^31"));
}

}  // namespace
}  // namespace tessera
