// SPDX-License-Identifier: Apache-2.0
// Calls of recurrences for the laws of their reference, and laws that all of them keep. No device
// is needed.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/reference.hpp"
#include "tessera/error.hpp"

namespace tessera::testing {

inline constexpr std::int64_t kTokens = 11, kHeads = 2, kKeys = 3, kColumns = 4;

// A call of one batch entry, with the operands that have values.
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
              {"beta", f32({1, tokens, kHeads})},
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
    return run_reference(problem_of(operation, all, options), inputs);
  }
};

inline std::size_t width_of(const std::string& name) {
  if (name == "g" || name == "beta") return kHeads;
  return static_cast<std::size_t>(kHeads * (name == "value" || name == "gv" ? kColumns : kKeys));
}

inline bool has_rows(const std::string& name) {
  return name != "g_gamma" && name != "initial_state";
}

// Tokens [begin, end) of a call, from a state.
inline Call part_of(const Call& call, std::int64_t begin, std::int64_t end,
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

inline std::vector<double> joined(std::vector<double> a, const std::vector<double>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline void expect_near(const std::vector<double>& a, const std::vector<double>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12) << i;
}

// Two calls through the state are one.
inline void expect_to_split(Call whole) {
  for (const bool reverse : {false, true}) {
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

// A packed call is one for each sequence.
inline void expect_to_unpack(Call packed) {
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

// Reverse is reversal.
inline void expect_to_reverse(Call call) {
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

// Of the sum of outputs and final states times weights.
inline Values gradients_of(const Call& call, const Values& weights) {
  Specs specs = call.specs();
  Values inputs = call.values;
  if (!call.boundaries.empty()) inputs["cu_seqlens"] = call.boundaries;
  for (const auto& [name, values] : call.values) specs["grad_" + name] = specs.at(name);
  specs["grad_output"] = f32({1, call.tokens, kHeads, kColumns});
  specs["grad_final_state"] = f32({call.sequences(), kHeads, kKeys, kColumns});
  inputs["grad_output"] = weights.at("output");
  inputs["grad_final_state"] = weights.at("final_state");
  return run_reference(problem_of(call.operation + "_backward", specs, call.options), inputs);
}

inline double weighted(const Call& call, const Values& weights) {
  const Values result = call.run();
  return dot(result.at("output"), weights.at("output")) +
         dot(result.at("final_state"), weights.at("final_state"));
}

inline void expect_slopes(Call call) {
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

inline void expect_refusal(const std::string& operation, Specs specs, const std::string& sentence,
                           Options options = {}) {
  try {
    problem_of(operation, specs, std::move(options));
    FAIL() << "no refusal; expected: " << sentence;
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(std::string(error.what()), ::testing::HasSubstr(sentence));
  }
}

}  // namespace tessera::testing
