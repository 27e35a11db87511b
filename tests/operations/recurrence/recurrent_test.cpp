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

#include "support/reference.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using testing::f16;
using testing::f32;
using ::testing::HasSubstr;
using testing::i32;
using testing::normal_numbers;
using testing::Specs;
using testing::Values;

constexpr std::int64_t kTokens = 11, kHeads = 2, kKeys = 3, kColumns = 4;

// A call with all decays, of one batch entry.
struct Call {
  std::int64_t tokens = kTokens;
  Values values{};
  std::vector<double> boundaries{};
  Options options{};
  std::string operation = "recurrent";
  bool gate_of_keys = false;  // g has an axis of key dims

  std::int64_t sequences() const {
    return boundaries.empty() ? 1 : static_cast<std::int64_t>(boundaries.size()) - 1;
  }
  Specs specs() const {
    Specs all{{"query", f32({1, tokens, kHeads, kKeys})},
              {"key", f32({1, tokens, kHeads, kKeys})},
              {"value", f32({1, tokens, kHeads, kColumns})},
              {"g", f32({1, tokens, kHeads})},
              {"g_gamma", f32({kHeads})},
              {"gk", f32({1, tokens, kHeads, kKeys})},
              {"gv", f32({1, tokens, kHeads, kColumns})},
              {"initial_state", f32({sequences(), kHeads, kKeys, kColumns})}};
    if (gate_of_keys) all["g"] = f32({1, tokens, kHeads, kKeys});
    std::erase_if(all, [&](const auto& spec) { return values.count(spec.first) == 0; });
    if (!boundaries.empty()) all["cu_seqlens"] = i32({sequences() + 1});
    return all;
  }
  Values run() const {
    Values inputs = values;
    if (!boundaries.empty()) inputs["cu_seqlens"] = boundaries;
    Specs all = specs();
    all["final_state"] = f32({sequences(), kHeads, kKeys, kColumns});
    return testing::run_reference(testing::problem_of(operation, all, options), inputs);
  }
};

std::size_t width_of(const std::string& name) {
  if (name == "g") return kHeads;
  return static_cast<std::size_t>(kHeads * (name == "value" || name == "gv" ? kColumns : kKeys));
}

bool has_rows(const std::string& name) { return name != "g_gamma" && name != "initial_state"; }

Call a_call(std::int64_t sequences = 1) {
  Call call;
  unsigned seed = 1;
  for (const char* name : {"query", "key", "value", "g", "gk", "gv"}) {
    std::vector<double>& values = call.values[name];
    values = normal_numbers(width_of(name) * kTokens, seed++);
    if (name[0] != 'g') continue;
    for (double& value : values) value = -0.3 * std::fabs(value);
  }
  call.values["g_gamma"] = {-0.1, -0.2};
  call.values["initial_state"] =
      normal_numbers(static_cast<std::size_t>(sequences * kHeads * kKeys * kColumns), seed);
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
    const auto width = static_cast<std::int64_t>(width_of(name));
    values = {call.values.at(name).begin() + begin * width,
              call.values.at(name).begin() + end * width};
  }
  part.values["initial_state"] = state;
  return part;
}

std::vector<double> joined(std::vector<double> a, const std::vector<double>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12) << i;
}

TEST(RecurrentReference, IsThatOfTheSpecification) {
  // Orthogonal keys, queries of the same: each token finds its own value.
  Call call;
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

TEST(RecurrentReference, TwoCallsThroughTheStateAreOne) {
  for (const bool reverse : {false, true}) {
    Call whole = a_call();
    whole.options["reverse"] = reverse;
    const Values all = whole.run();
    for (const std::int64_t cut : {std::int64_t{0}, std::int64_t{1}, std::int64_t{7}, kTokens}) {
      SCOPED_TRACE(cut);
      const std::vector<double>& state = whole.values["initial_state"];
      const Call early = part_of(whole, 0, cut, state), late = part_of(whole, cut, kTokens, state);
      const Values first = (reverse ? late : early).run();
      const std::vector<double>& between = first.at("final_state");
      const Values second =
          (reverse ? part_of(whole, 0, cut, between) : part_of(whole, cut, kTokens, between)).run();
      expect_near(all.at("final_state"), second.at("final_state"));
      expect_near(all.at("output"), reverse ? joined(second.at("output"), first.at("output"))
                                            : joined(first.at("output"), second.at("output")));
    }
  }
}

TEST(RecurrentReference, PackedIsOneCallForEachSequence) {
  Call packed = a_call(5);
  packed.boundaries = {1, 1, 4, 4, 9, 10};
  const Values all = packed.run();
  std::vector<double> outputs(width_of("value")), states;  // of the first token: 0
  const std::size_t count = kHeads * kKeys * kColumns;
  for (std::size_t s = 0; s < 5; ++s) {
    const auto from =
        packed.values["initial_state"].begin() + static_cast<std::ptrdiff_t>(s * count);
    const Values one = part_of(packed, static_cast<std::int64_t>(packed.boundaries[s]),
                               static_cast<std::int64_t>(packed.boundaries[s + 1]),
                               {from, from + static_cast<std::ptrdiff_t>(count)})
                           .run();
    outputs = joined(outputs, one.at("output"));
    states = joined(states, one.at("final_state"));
  }
  outputs.resize(outputs.size() + width_of("value"));
  expect_near(all.at("output"), outputs);
  expect_near(all.at("final_state"), states);
  // One of length 0 passes its state on.
  EXPECT_TRUE(std::equal(states.begin(), states.begin() + static_cast<std::ptrdiff_t>(count),
                         packed.values["initial_state"].begin()));
}

TEST(RecurrentReference, BoundariesThatDecreaseCutNothingTwice) {
  Call packed = a_call(3);
  packed.boundaries = {-4, 6, 2, 99};
  Call mended = packed;
  mended.boundaries = {0, 6, 6, 11};
  EXPECT_EQ(packed.run().at("output"), mended.run().at("output"));
  EXPECT_EQ(packed.run().at("final_state"), mended.run().at("final_state"));
}

TEST(RecurrentReference, ReverseIsReversal) {
  Call call = a_call();
  const Values forward = call.run();
  const auto turn = [](std::vector<double>& rows, std::size_t width) {
    for (std::size_t t = 0; t < kTokens / 2; ++t)
      std::swap_ranges(rows.begin() + static_cast<std::ptrdiff_t>(t * width),
                       rows.begin() + static_cast<std::ptrdiff_t>((t + 1) * width),
                       rows.begin() + static_cast<std::ptrdiff_t>((kTokens - 1 - t) * width));
  };
  for (auto& [name, values] : call.values) {
    if (has_rows(name)) turn(values, width_of(name));
  }
  call.options["reverse"] = true;
  Values backward = call.run();
  turn(backward["output"], width_of("value"));
  EXPECT_EQ(backward["output"], forward.at("output"));
  EXPECT_EQ(backward["final_state"], forward.at("final_state"));
}

TEST(RecurrentReference, DecaysAreAddedUp) {
  Call call = a_call();
  const Values all = call.run();
  // Everything but gv in gk.
  for (std::size_t i = 0; i < call.values["gk"].size(); ++i) {
    const std::size_t row = i / kKeys;
    call.values["gk"][i] += call.values["g"][row] + call.values["g_gamma"][row % kHeads];
  }
  call.values.erase("g");
  call.values.erase("g_gamma");
  expect_near(call.run().at("output"), all.at("output"));
}

TEST(RecurrentReference, MinusInfinityBeginsAnew) {
  Call call = a_call();
  for (std::size_t i = 0; i < width_of("gk"); ++i)
    call.values["gk"][7 * width_of("gk") + i] = -std::numeric_limits<double>::infinity();
  const Values all = call.run();
  const std::vector<double> zero(call.values["initial_state"].size());
  const Values late = part_of(call, 7, kTokens, zero).run();
  expect_near(all.at("final_state"), late.at("final_state"));
}

TEST(RecurrentReference, StrongDecaysKeepTheStateFinite) {
  Call call = a_call();
  for (const char* name : {"g", "gk", "gv"}) std::ranges::fill(call.values[name], -80.0);
  const Values all = call.run();
  EXPECT_THAT(all.at("final_state"),
              Each(::testing::Truly([](double x) { return std::isfinite(x); })));
}

TEST(RecurrentReference, LightningIsRecurrentWithItsDecays) {
  Call call = a_call();
  for (const char* name : {"g", "gk", "gv"}) call.values.erase(name);
  call.values["g_gamma"] = {0, -8.0 / 2 * (1 - 4.0 / 8)};
  const Values wanted = call.run();
  call.operation = "lightning_attention";
  call.values.erase("g_gamma");
  call.options = {{"layer_idx", std::int64_t{4}}, {"num_layers", std::int64_t{8}}};
  const Values got = call.run();
  expect_near(got.at("output"), wanted.at("output"));
  expect_near(got.at("final_state"), wanted.at("final_state"));
}

// ---- gradients ----------------------------------------------------------------------------------

// Of the sum of outputs and final states times weights.
Values gradients_of(const Call& call, const Values& weights) {
  Specs specs = call.specs();
  Values inputs = call.values;
  if (!call.boundaries.empty()) inputs["cu_seqlens"] = call.boundaries;
  for (const auto& [name, values] : call.values) specs["grad_" + name] = specs.at(name);
  specs["grad_output"] = f32({1, call.tokens, kHeads, kColumns});
  specs["grad_final_state"] = f32({call.sequences(), kHeads, kKeys, kColumns});
  inputs["grad_output"] = weights.at("output");
  inputs["grad_final_state"] = weights.at("final_state");
  return testing::run_reference(
      testing::problem_of(call.operation + "_backward", specs, call.options), inputs);
}

double weighted(const Call& call, const Values& weights) {
  const Values result = call.run();
  return testing::dot(result.at("output"), weights.at("output")) +
         testing::dot(result.at("final_state"), weights.at("final_state"));
}

void expect_slopes(Call call) {
  const std::size_t states = static_cast<std::size_t>(call.sequences() * kHeads * kKeys * kColumns);
  const Values weights{{"output", normal_numbers(width_of("value") * kTokens, 21)},
                       {"final_state", normal_numbers(states, 22)}};
  const Values gradients = gradients_of(call, weights);
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

TEST(RecurrentBackwardReference, IsTheSlopeOfForward) {
  Call call = a_call();
  expect_slopes(call);
  call.options["reverse"] = true;
  call.options["softmax_scale"] = 0.7;
  expect_slopes(call);
}

TEST(RecurrentBackwardReference, IsTheSlopeOfPackedSequences) {
  Call call = a_call(4);
  call.boundaries = {1, 1, 5, 9, 10};
  expect_slopes(call);
}

TEST(RecurrentBackwardReference, IsTheSlopeOfDecaysForEachKeyDim) {
  Call call = a_call();
  call.operation = "gla";
  call.values["g"] = call.values["gk"];
  call.values.erase("gk");
  call.values.erase("gv");
  call.gate_of_keys = true;
  expect_slopes(call);
}

TEST(RecurrentBackwardReference, ResetsHaveNoSlope) {
  Call call = a_call();
  const std::size_t width = width_of("gk");
  for (std::size_t i = 0; i < width; ++i)
    call.values["gk"][7 * width + i] = -std::numeric_limits<double>::infinity();
  const Values weights{{"output", normal_numbers(width_of("value") * kTokens, 21)},
                       {"final_state", normal_numbers(kHeads * kKeys * kColumns, 22)}};
  const Values gradients = gradients_of(call, weights);
  const std::vector<double>& row = gradients.at("grad_gk");
  EXPECT_THAT((std::vector<double>{row.begin() + static_cast<std::ptrdiff_t>(7 * width),
                                   row.begin() + static_cast<std::ptrdiff_t>(8 * width)}),
              Each(0));
}

// ---- refusals -----------------------------------------------------------------------------------

void expect_refusal(const std::string& operation, Specs specs, const std::string& sentence,
                    Options options = {}) {
  try {
    testing::problem_of(operation, specs, std::move(options));
    FAIL() << "no refusal; expected: " << sentence;
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(std::string(error.what()), HasSubstr(sentence));
  }
}

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
