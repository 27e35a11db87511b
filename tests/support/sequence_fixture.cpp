// SPDX-License-Identifier: Apache-2.0
#include "support/sequence_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tessera::testing {
namespace {

Shape joined(Shape a, const Shape& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<double> joined(std::vector<double> a, const std::vector<double>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::size_t elements(const Shape& shape) { return static_cast<std::size_t>(f32(shape).elements()); }

std::vector<double> cut(const std::vector<double>& all, std::size_t begin, std::size_t end) {
  return {all.begin() + static_cast<std::ptrdiff_t>(begin),
          all.begin() + static_cast<std::ptrdiff_t>(end)};
}

// The last row first.
void turn(std::vector<double>& rows, std::size_t width) {
  std::vector<double> turned;
  for (std::size_t end = rows.size(); end > 0; end -= width)
    turned = joined(turned, cut(rows, end - width, end));
  rows = turned;
}

double weighted(const SequenceCall& call, const Values& weights) {
  const Values result = call.run();
  return dot(result.at("output"), weights.at("output")) +
         dot(result.at("final_state"), weights.at("final_state"));
}

}  // namespace

std::int64_t SequenceCall::sequences() const {
  return boundaries.empty() ? 1 : static_cast<std::int64_t>(boundaries.size()) - 1;
}

std::size_t SequenceCall::width_of(const std::string& name) const {
  return elements(rows.at(name));
}

std::size_t SequenceCall::state_elements() const { return elements(state); }

TensorSpec SequenceCall::rows_spec(const std::string& name) const {
  return f32(joined({1, tokens}, rows.at(name)));
}

TensorSpec SequenceCall::states_spec() const { return f32(joined({sequences()}, state)); }

Specs SequenceCall::specs() const {
  Specs all;
  for (const auto& [name, given] : values)
    all[name] = name == "initial_state" ? states_spec()
                : rows.contains(name)   ? rows_spec(name)
                                        : f32(whole.at(name));
  if (!boundaries.empty()) all["cu_seqlens"] = i32({sequences() + 1});
  return all;
}

Values SequenceCall::inputs() const {
  Values all = values;
  if (!boundaries.empty()) all["cu_seqlens"] = boundaries;
  return all;
}

Values SequenceCall::run() const {
  Specs all = specs();
  all["final_state"] = states_spec();
  return run_reference(problem_of(operation, all, options), inputs());
}

Values SequenceCall::gradients(const Values& weights) const {
  Specs all = specs();
  for (const auto& [name, given] : values) all["grad_" + name] = all.at(name);
  all["grad_output"] = rows_spec("output");
  all["grad_final_state"] = states_spec();
  Values given = inputs();
  given["grad_output"] = weights.at("output");
  given["grad_final_state"] = weights.at("final_state");
  return run_reference(problem_of(operation + "_backward", all, options), given);
}

SequenceCall part_of(const SequenceCall& call, std::int64_t begin, std::int64_t end,
                     const std::vector<double>& state) {
  SequenceCall part = call;
  part.boundaries.clear();
  part.tokens = end - begin;
  for (auto& [name, values] : part.values) {
    if (!call.rows.contains(name)) continue;
    const std::size_t width = call.width_of(name);
    values = cut(call.values.at(name), static_cast<std::size_t>(begin) * width,
                 static_cast<std::size_t>(end) * width);
  }
  part.values["initial_state"] = state;
  return part;
}

void expect_near(const std::vector<double>& a, const std::vector<double>& b, double error) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], error) << i;
}

void expect_to_split(SequenceCall whole, bool reverses) {
  for (const bool reverse : {false, true}) {
    if (reverse && !reverses) continue;
    if (reverses) whole.options["reverse"] = reverse;
    const Values all = whole.run();
    const std::vector<double>& state = whole.values.at("initial_state");
    for (const std::int64_t at :
         {std::int64_t{0}, std::int64_t{1}, whole.tokens - 4, whole.tokens}) {
      SCOPED_TRACE(at);
      const auto early = [&](const std::vector<double>& from) {
        return part_of(whole, 0, at, from).run();
      };
      const auto late = [&](const std::vector<double>& from) {
        return part_of(whole, at, whole.tokens, from).run();
      };
      const Values first = reverse ? late(state) : early(state);
      const std::vector<double>& between = first.at("final_state");
      const Values second = reverse ? early(between) : late(between);
      expect_near(all.at("final_state"), second.at("final_state"), whole.error);
      expect_near(all.at("output"),
                  reverse ? joined(second.at("output"), first.at("output"))
                          : joined(first.at("output"), second.at("output")),
                  whole.error);
    }
  }
}

void expect_to_unpack(const SequenceCall& packed) {
  const std::vector<double>& cuts = packed.boundaries;
  ASSERT_TRUE(cuts[0] > 0 && cuts[1] == cuts[0] &&
              cuts.back() < static_cast<double>(packed.tokens));
  const Values all = packed.run();
  const std::size_t width = packed.width_of("output"), count = packed.state_elements();
  const std::vector<double>& given = packed.values.at("initial_state");
  // Tokens of no sequence are 0.
  std::vector<double> outputs(static_cast<std::size_t>(cuts[0]) * width), states;
  for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
    const Values one =
        part_of(packed, static_cast<std::int64_t>(cuts[s]), static_cast<std::int64_t>(cuts[s + 1]),
                cut(given, s * count, (s + 1) * count))
            .run();
    outputs = joined(outputs, one.at("output"));
    states = joined(states, one.at("final_state"));
  }
  outputs.resize(static_cast<std::size_t>(packed.tokens) * width);
  expect_near(all.at("output"), outputs, packed.error);
  expect_near(all.at("final_state"), states, packed.error);
  // One of length 0 passes its state on.
  EXPECT_EQ(cut(states, 0, count), cut(given, 0, count));
}

void expect_to_reverse(SequenceCall call) {
  const Values forward = call.run();
  for (auto& [name, values] : call.values) {
    if (call.rows.contains(name)) turn(values, call.width_of(name));
  }
  call.options["reverse"] = true;
  Values backward = call.run();
  turn(backward["output"], call.width_of("output"));
  EXPECT_EQ(backward["output"], forward.at("output"));
  EXPECT_EQ(backward["final_state"], forward.at("final_state"));
}

void expect_to_mend(SequenceCall call, const std::vector<double>& boundaries,
                    const std::vector<double>& mended) {
  call.boundaries = mended;
  const Values wanted = call.run();
  call.boundaries = boundaries;
  const Values got = call.run();
  EXPECT_EQ(got.at("output"), wanted.at("output"));
  EXPECT_EQ(got.at("final_state"), wanted.at("final_state"));
}

void expect_slopes(SequenceCall call) {
  const auto tokens = static_cast<std::size_t>(call.tokens);
  const std::size_t states = static_cast<std::size_t>(call.sequences()) * call.state_elements();
  const Values weights{{"output", normal_numbers(call.width_of("output") * tokens, 21)},
                       {"final_state", normal_numbers(states, 22)}};
  const Values gradients = call.gradients(weights);
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

}  // namespace tessera::testing
