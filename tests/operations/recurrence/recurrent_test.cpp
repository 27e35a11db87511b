// SPDX-License-Identifier: Apache-2.0
// What recurrent, gla and lightning_attention refuse, and the laws of their reference. No device is
// needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "operations/recurrence/recurrence_call.hpp"
#include "support/refusal.hpp"

namespace tessera {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::expect_near;
using testing::expect_refusal;
using testing::expect_slopes;
using testing::expect_to_mend;
using testing::expect_to_reverse;
using testing::expect_to_split;
using testing::expect_to_unpack;
using testing::f16;
using testing::f32;
using testing::i32;
using testing::kColumns;
using testing::kError;
using testing::kHeads;
using testing::kKeys;
using testing::kTokens;
using testing::normal_numbers;
using testing::part_of;
using testing::problem_of;
using testing::recurrence_call;
using testing::run_reference;
using testing::SequenceCall;
using testing::Specs;
using testing::Values;

SequenceCall a_call(std::int64_t sequences = 1) {
  SequenceCall call = recurrence_call("recurrent");
  unsigned seed = 1;
  for (const char* name : {"query", "key", "value", "g", "gk", "gv"}) {
    std::vector<double>& values = call.values[name];
    values = normal_numbers(call.width_of(name) * kTokens, seed++);
    if (name[0] != 'g') continue;
    for (double& value : values) value = -0.3 * std::fabs(value);
  }
  call.values["g_gamma"] = {-0.1, -0.2};
  call.values["initial_state"] =
      normal_numbers(static_cast<std::size_t>(sequences * kHeads * kKeys * kColumns), seed);
  return call;
}

TEST(RecurrentReference, IsThatOfTheSpecification) {
  // Orthogonal keys, queries of the same: each token finds its own value.
  SequenceCall call = recurrence_call("recurrent");
  call.tokens = 3;
  call.values["query"] = call.values["key"] = std::vector<double>(18);
  call.values["value"] = std::vector<double>(24);
  for (std::size_t t = 0; t < 3; ++t) {
    for (std::size_t h = 0; h < 2; ++h) {
      call.values["query"][(t * 2 + h) * 3 + t] = call.values["key"][(t * 2 + h) * 3 + t] = 1;
      call.values["value"][(t * 2 + h) * 4 + t] = static_cast<double>(t + 2);
    }
  }
  call.options["softmax_scale"] = 1.0;
  const Values result = call.run();
  EXPECT_EQ(result.at("output"), call.values["value"]);
  EXPECT_THAT((std::vector<double>{result.at("final_state").begin(),
                                   result.at("final_state").begin() + 12}),
              ElementsAre(2, 0, 0, 0, 0, 3, 0, 0, 0, 0, 4, 0));
}

TEST(RecurrentReference, TwoCallsThroughTheStateAreOne) { expect_to_split(a_call(), true); }

TEST(RecurrentReference, AStateInPlaceIsOneInAndOneOut) {
  const SequenceCall call = a_call();
  const Values apart = call.run();
  Specs specs = call.specs();
  specs["state"] = specs.at("initial_state");
  specs.erase("initial_state");
  Values inputs = call.inputs();
  inputs["state"] = inputs.at("initial_state");
  inputs.erase("initial_state");
  const Values in_place = run_reference(problem_of("recurrent", specs, call.options), inputs);
  EXPECT_EQ(in_place.at("output"), apart.at("output"));
  EXPECT_EQ(in_place.at("state"), apart.at("final_state"));
}

TEST(RecurrentReference, PackedIsOneCallForEachSequence) {
  SequenceCall packed = a_call(5);
  packed.boundaries = {1, 1, 4, 4, 9, 10};
  expect_to_unpack(packed);
}

TEST(RecurrentReference, BoundariesThatDecreaseCutNothingTwice) {
  expect_to_mend(a_call(3), {-4, 6, 2, 99}, {0, 6, 6, 11});
}

TEST(RecurrentReference, ReverseIsReversal) { expect_to_reverse(a_call()); }

TEST(RecurrentReference, DecaysAreAddedUp) {
  SequenceCall call = a_call();
  const Values all = call.run();
  // Everything but gv in gk.
  for (std::size_t i = 0; i < call.values["gk"].size(); ++i) {
    const std::size_t row = i / kKeys;
    call.values["gk"][i] += call.values["g"][row] + call.values["g_gamma"][row % kHeads];
  }
  call.values.erase("g");
  call.values.erase("g_gamma");
  expect_near(call.run().at("output"), all.at("output"), kError);
}

TEST(RecurrentReference, MinusInfinityBeginsAnew) {
  SequenceCall call = a_call();
  for (std::size_t i = 0; i < call.width_of("gk"); ++i)
    call.values["gk"][7 * call.width_of("gk") + i] = -std::numeric_limits<double>::infinity();
  const Values all = call.run();
  const std::vector<double> zero(call.values["initial_state"].size());
  const Values late = part_of(call, 7, kTokens, zero).run();
  expect_near(all.at("final_state"), late.at("final_state"), kError);
}

TEST(RecurrentReference, StrongDecaysKeepTheStateFinite) {
  SequenceCall call = a_call();
  for (const char* name : {"g", "gk", "gv"}) std::ranges::fill(call.values[name], -80.0);
  const Values all = call.run();
  EXPECT_THAT(all.at("final_state"),
              Each(::testing::Truly([](double x) { return std::isfinite(x); })));
}

TEST(RecurrentReference, LightningIsRecurrentWithItsDecays) {
  SequenceCall call = a_call();
  for (const char* name : {"g", "gk", "gv"}) call.values.erase(name);
  call.values["g_gamma"] = {0, -8.0 / 2 * (1 - 4.0 / 8)};
  const Values wanted = call.run();
  call.operation = "lightning_attention";
  call.values.erase("g_gamma");
  call.options = {{"layer_idx", std::int64_t{4}}, {"num_layers", std::int64_t{8}}};
  const Values got = call.run();
  expect_near(got.at("output"), wanted.at("output"), kError);
  expect_near(got.at("final_state"), wanted.at("final_state"), kError);
}

// ---- gradients ----------------------------------------------------------------------------------

TEST(RecurrentBackwardReference, IsTheSlopeOfForward) {
  SequenceCall call = a_call();
  expect_slopes(call);
  call.options["reverse"] = true;
  call.options["softmax_scale"] = 0.7;
  expect_slopes(call);
}

TEST(RecurrentBackwardReference, IsTheSlopeOfPackedSequences) {
  SequenceCall call = a_call(4);
  call.boundaries = {1, 1, 5, 9, 10};
  expect_slopes(call);
}

TEST(RecurrentBackwardReference, IsTheSlopeOfDecaysForEachKeyDim) {
  SequenceCall call = a_call();
  call.operation = "gla";
  call.values["g"] = call.values["gk"];
  call.values.erase("gk");
  call.values.erase("gv");
  call.rows["g"] = {kHeads, kKeys};
  expect_slopes(call);
}

TEST(RecurrentBackwardReference, ResetsHaveNoSlope) {
  SequenceCall call = a_call();
  const std::size_t width = call.width_of("gk");
  for (std::size_t i = 0; i < width; ++i)
    call.values["gk"][7 * width + i] = -std::numeric_limits<double>::infinity();
  const Values weights{{"output", normal_numbers(call.width_of("value") * kTokens, 21)},
                       {"final_state", normal_numbers(kHeads * kKeys * kColumns, 22)}};
  const Values gradients = call.gradients(weights);
  const std::vector<double>& row = gradients.at("grad_gk");
  EXPECT_THAT((std::vector<double>{row.begin() + static_cast<std::ptrdiff_t>(7 * width),
                                   row.begin() + static_cast<std::ptrdiff_t>(8 * width)}),
              Each(0));
}

// ---- refusals -----------------------------------------------------------------------------------

Specs plain() {
  return {{"query", f32({2, 5, 2, 3})}, {"key", f32({2, 5, 2, 3})}, {"value", f32({2, 5, 2, 4})}};
}

TEST(RecurrentRefuses, Shapes) {
  Specs specs = plain();
  specs["query"] = f32({2, 5, 6});
  expect_refusal("recurrent", specs, "must be [batch, seq, heads, key_dim]");
  specs = plain();
  specs["value"] = f32({2, 5, 8});
  expect_refusal("recurrent", specs, "must be [batch, seq, heads, value_dim]");
  specs = plain();
  specs["key"] = f32({2, 5, 2, 4});
  expect_refusal("recurrent", specs, "key f32[2, 5, 2, 4] must be f32[2, 5, 2, 3]");
  specs = plain();
  specs["value"] = f32({2, 6, 2, 4});
  expect_refusal("recurrent", specs, "value f32[2, 6, 2, 4] must be f32[2, 5, 2, 4]");
  specs = plain();
  specs["g"] = f32({2, 5});
  expect_refusal("recurrent", specs, "must be [batch, seq, heads] or [batch, seq, heads, key_dim]");
  specs = plain();
  specs["g_gamma"] = f32({3});
  expect_refusal("recurrent", specs, "g_gamma f32[3] must be f32[2]");
  specs = plain();
  specs["initial_state"] = f32({1, 2, 3, 4});
  expect_refusal("recurrent", specs, "initial_state f32[1, 2, 3, 4] must be f32[2, 2, 3, 4]");
  specs = plain();
  specs["query"] = specs["key"] = f32({2, 5, 2, 0});
  expect_refusal("recurrent", specs, "key_dim and value_dim must be at least 1");
}

TEST(RecurrentRefuses, AStateInPlaceBesideOthers) {
  Specs specs = plain();
  specs["state"] = f32({2, 2, 3, 4});
  specs["initial_state"] = specs["state"];
  expect_refusal("recurrent", specs, "the call has no initial_state");
  specs.erase("initial_state");
  specs["final_state"] = specs["state"];
  expect_refusal("recurrent", specs, "the call has no final_state");
}

TEST(RecurrentRefuses, GradientsOfWhatThereIsNot) {
  Specs specs = plain();
  specs["grad_output"] = f32({2, 5, 2, 4});
  specs["grad_g"] = f32({2, 5, 2});
  expect_refusal("recurrent_backward", specs, "grad_g is wanted, but the call has no g");
  specs.erase("grad_g");
  specs["grad_output"] = f32({2, 5, 2, 3});
  expect_refusal("recurrent_backward", specs,
                 "grad_output f32[2, 5, 2, 3] must be f32[2, 5, 2, 4]");
}

TEST(RecurrentRefuses, PackedBatches) {
  Specs specs = plain();
  specs["cu_seqlens"] = i32({3});
  expect_refusal("recurrent", specs, "must have batch 1, for cu_seqlens packs it");
  specs["cu_seqlens"] = i32({0});
  expect_refusal("recurrent", specs, "of one element more than there are sequences");
}

TEST(RecurrentRefuses, DTypesAndStrides) {
  Specs specs = plain();
  specs["key"] = f16({2, 5, 2, 3});
  expect_refusal("recurrent", specs, "must have the dtype of query");
  specs = plain();
  specs["gk"] = f16({2, 5, 2, 3});
  expect_refusal("recurrent", specs, "must have the dtype of query or f32");
  specs = plain();
  specs["value"].strides = {80, 16, 8, 2};
  expect_refusal("recurrent", specs, "value must be contiguous along its last axis");
}

TEST(RecurrentRefuses, LayersThatThereAreNot) {
  expect_refusal("lightning_attention", plain(), "must say how many layers there are");
  expect_refusal("lightning_attention", plain(), "must say which of them this is",
                 {{"num_layers", std::int64_t{4}}});
  expect_refusal("lightning_attention", plain(), "below num_layers, which is 4",
                 {{"layer_idx", std::int64_t{4}}, {"num_layers", std::int64_t{4}}});
}

}  // namespace
}  // namespace tessera
