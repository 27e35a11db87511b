// SPDX-License-Identifier: Apache-2.0
// What delta_rule and gated_delta_rule refuse, and the laws of their reference. No device is
// needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "operations/recurrence/recurrence_call.hpp"
#include "support/refusal.hpp"

namespace tessera {
namespace {

using testing::expect_near;
using testing::expect_refusal;
using testing::expect_slopes;
using testing::expect_to_reverse;
using testing::expect_to_split;
using testing::expect_to_unpack;
using testing::f16;
using testing::f32;
using testing::kColumns;
using testing::kError;
using testing::kHeads;
using testing::kKeys;
using testing::kTokens;
using testing::normal_numbers;
using testing::part_of;
using testing::recurrence_call;
using testing::SequenceCall;
using testing::Specs;
using testing::Values;

SequenceCall a_delta_call(std::int64_t sequences = 1) {
  SequenceCall call = recurrence_call("gated_delta_rule");
  unsigned seed = 31;
  for (const char* name : {"query", "key", "value", "beta", "g"})
    call.values[name] = normal_numbers(call.width_of(name) * kTokens, seed++);
  for (double& value : call.values["key"]) value /= std::sqrt(double{kKeys});
  for (double& value : call.values["beta"]) value = 1 / (1 + std::exp(-value));
  for (double& value : call.values["g"]) value = -0.3 * std::fabs(value);
  call.values["initial_state"] =
      normal_numbers(static_cast<std::size_t>(sequences * kHeads * kKeys * kColumns), seed);
  return call;
}

SequenceCall of_key_dims(SequenceCall call) {
  call.rows["g"] = {kHeads, kKeys};
  call.values["g"] = normal_numbers(call.width_of("gk") * kTokens, 61);
  for (double& value : call.values["g"]) value = -0.3 * std::fabs(value);
  return call;
}

TEST(DeltaRuleReference, AKeyOfNormOneHoldsItsLastValue) {
  SequenceCall call = recurrence_call("delta_rule");
  call.tokens = 3;
  call.options["softmax_scale"] = 1.0;
  // Both heads: the first key dim, the second, and the first once more; the query is the first.
  call.values["query"] = {1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0};
  call.values["key"] = {1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0};
  call.values["beta"] = {1, 1, 1, 1, 1, 0.25};
  std::vector<double>& value = call.values["value"];
  for (const double row : {2.0, 3.0, 5.0, 7.0, 11.0, 13.0})
    value.insert(value.end(), kColumns, row);
  const Values result = call.run();
  std::vector<double> wanted;
  // A quarter of 13, and three of what was there.
  for (const double row : {2.0, 3.0, 2.0, 3.0, 11.0, 13.0 / 4 + 3.0 * 3 / 4})
    wanted.insert(wanted.end(), kColumns, row);
  expect_near(result.at("output"), wanted, kError);
}

TEST(DeltaRuleReference, IsTheGatedOneWithoutDecays) {
  SequenceCall gated = a_delta_call();
  gated.values["g"].assign(gated.values["g"].size(), 0);
  SequenceCall plain = gated;
  plain.operation = "delta_rule";
  plain.values.erase("g");
  EXPECT_EQ(plain.run().at("output"), gated.run().at("output"));
  EXPECT_EQ(plain.run().at("final_state"), gated.run().at("final_state"));
}

TEST(DeltaRuleReference, OneDecayOfAllKeyDimsIsThatOfTheHead) {
  SequenceCall call = a_delta_call();
  const Values all = call.run();
  std::vector<double> rows;
  for (const double decay : call.values["g"]) rows.insert(rows.end(), kKeys, decay);
  call.values["g"] = rows;
  call.rows["g"] = {kHeads, kKeys};
  expect_near(call.run().at("output"), all.at("output"), kError);
}

// With keys that nothing is held for, what is added is what linear attention adds.
TEST(DeltaRuleReference, IsLinearAttentionOfOrthogonalKeys) {
  SequenceCall call = a_delta_call();
  call.tokens = 3;
  for (const char* name : {"query", "value", "g", "beta"})
    call.values[name].resize(call.width_of(name) * 3);
  call.values.erase("initial_state");
  std::vector<double>& key = call.values["key"];
  key.assign(call.width_of("key") * 3, 0);
  for (std::size_t t = 0; t < 3; ++t) {
    for (std::size_t h = 0; h < 2; ++h) key[(t * 2 + h) * 3 + t] = 0.5;
  }
  const Values delta = call.run();
  call.operation = "recurrent";
  for (std::size_t i = 0; i < call.values["value"].size(); ++i)
    call.values["value"][i] *= call.values["beta"][i / kColumns];
  call.values.erase("beta");
  expect_near(call.run().at("output"), delta.at("output"), kError);
}

TEST(DeltaRuleReference, TwoCallsThroughTheStateAreOne) { expect_to_split(a_delta_call(), true); }

TEST(DeltaRuleReference, PackedIsOneCallForEachSequence) {
  SequenceCall packed = a_delta_call(5);
  packed.boundaries = {1, 1, 4, 4, 9, 10};
  expect_to_unpack(packed);
}

TEST(DeltaRuleReference, ReverseIsReversal) { expect_to_reverse(a_delta_call()); }

TEST(DeltaRuleReference, MinusInfinityBeginsAnew) {
  SequenceCall call = a_delta_call();
  for (std::size_t h = 0; h < kHeads; ++h)
    call.values["g"][7 * kHeads + h] = -std::numeric_limits<double>::infinity();
  const Values all = call.run();
  const std::vector<double> zero(call.values["initial_state"].size());
  expect_near(all.at("final_state"), part_of(call, 7, kTokens, zero).run().at("final_state"),
              kError);
}

TEST(DeltaRuleBackwardReference, IsTheSlopeOfForward) {
  SequenceCall call = a_delta_call();
  expect_slopes(call);
  call.options["reverse"] = true;
  call.options["softmax_scale"] = 0.7;
  expect_slopes(call);
  call.operation = "delta_rule";
  call.values.erase("g");
  expect_slopes(call);
}

TEST(DeltaRuleBackwardReference, IsTheSlopeOfPackedSequences) {
  SequenceCall call = a_delta_call(4);
  call.boundaries = {1, 1, 5, 9, 10};
  expect_slopes(call);
}

TEST(DeltaRuleBackwardReference, IsTheSlopeOfDecaysForEachKeyDim) {
  expect_slopes(of_key_dims(a_delta_call()));
}

Specs plain_delta() {
  return {{"query", f32({2, 5, 2, 3})},
          {"key", f32({2, 5, 2, 3})},
          {"value", f32({2, 5, 2, 4})},
          {"beta", f32({2, 5, 2})}};
}

TEST(DeltaRuleRefuses, WhatBetaIsNot) {
  Specs specs = plain_delta();
  specs["beta"] = f32({2, 5, 1});
  expect_refusal("delta_rule", specs, "beta f32[2, 5, 1] must be f32[2, 5, 2]");
  specs = plain_delta();
  specs["beta"] = f16({2, 5, 2});
  expect_refusal("gated_delta_rule", specs, "must have the dtype of query or f32");
  specs = plain_delta();
  specs.erase("beta");
  expect_refusal("delta_rule", specs, "beta");
}

TEST(DeltaRuleRefuses, GradientsOfWhatThereIsNot) {
  Specs specs = plain_delta();
  specs["grad_output"] = f32({2, 5, 2, 4});
  specs["grad_g"] = f32({2, 5, 2});
  expect_refusal("gated_delta_rule_backward", specs, "grad_g is wanted, but the call has no g");
}

}  // namespace
}  // namespace tessera
