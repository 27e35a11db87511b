// SPDX-License-Identifier: Apache-2.0
// What lstm, gru and rnn refuse, and the laws of their reference. No device is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "support/reference.hpp"
#include "support/refusal.hpp"

namespace tessera {
namespace {

using testing::expect_refusal;
using testing::f16;
using testing::f32;
using testing::i32;
using testing::normal_numbers;
using testing::Specs;
using testing::Values;

constexpr std::int64_t kBatch = 3, kFeatures = 2, kHidden = 3;

// A call with everything that the cell has.
struct Call {
  std::string operation = "lstm";
  std::int64_t tokens = 5, directions = 1;
  std::int64_t projection = 0;  // of h, where it is more than 0
  std::vector<double> lengths{};
  Options options{};
  Values values{};

  std::int64_t rows() const {
    return kHidden * (operation == "lstm" ? 4 : operation == "gru" ? 3 : 1);
  }
  std::int64_t outputs() const { return projection > 0 ? projection : kHidden; }
  Specs specs() const {
    Specs specs{{"input", f32({kBatch, tokens, kFeatures})},
                {"weight_ih", f32({directions, rows(), kFeatures})},
                {"weight_hh", f32({directions, rows(), outputs()})},
                {"bias_ih", f32({directions, rows()})},
                {"bias_hh", f32({directions, rows()})},
                {"h0", f32({directions, kBatch, outputs()})}};
    if (projection > 0) specs["weight_hr"] = f32({directions, projection, kHidden});
    if (operation == "lstm") specs["c0"] = f32({directions, kBatch, kHidden});
    if (!lengths.empty()) specs["lengths"] = i32({kBatch});
    return specs;
  }
  void make_up(unsigned seed) {
    for (const auto& [name, spec] : specs()) {
      if (name == "lengths") continue;
      values[name] = normal_numbers(static_cast<std::size_t>(spec.elements()), seed++);
      for (double& value : values[name]) value *= 0.7;
    }
  }
  TensorSpec reserve() const {
    const std::int64_t blocks = operation == "lstm" ? 5 : operation == "gru" ? 4 : 1;
    return f32(
        {kBatch, tokens, directions, (blocks + (projection > 0 ? 1 : 0)) * kHidden + outputs()});
  }
  Values run(bool keeps = false) const {
    Specs all = specs();
    if (keeps) all["reserve"] = reserve();
    Values inputs = values;
    if (!lengths.empty()) inputs["lengths"] = lengths;
    all["h_n"] = f32({directions, kBatch, outputs()});
    if (operation == "lstm") all["c_n"] = f32({directions, kBatch, kHidden});
    return testing::run_reference(testing::problem_of(operation, all, options), inputs);
  }
  // Gradients of the outputs' products with `weights`.
  Values run_backward(const Values& weights, const std::vector<double>& kept = {}) const {
    Specs all = specs();
    Values inputs = values;
    for (const auto& [name, spec] : specs()) {
      if (name != "lengths") all["grad_" + name] = spec;
    }
    if (!lengths.empty()) inputs["lengths"] = lengths;
    all["grad_output"] = f32({kBatch, tokens, directions * outputs()});
    all["grad_h_n"] = f32({directions, kBatch, outputs()});
    if (operation == "lstm") all["grad_c_n"] = f32({directions, kBatch, kHidden});
    for (const auto& [name, weight] : weights) inputs["grad_" + name] = weight;
    if (!kept.empty()) {
      all["reserve"] = reserve();
      inputs["reserve"] = kept;
    }
    return testing::run_reference(testing::problem_of(operation + "_backward", all, options),
                                  inputs);
  }
};

Call a_call(const std::string& operation, std::int64_t directions = 1,
            std::int64_t projection = 0) {
  Call call{.operation = operation, .directions = directions, .projection = projection};
  call.make_up(1);
  return call;
}

const std::vector<std::string> kCells{"lstm", "gru", "rnn"};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// One token of one feature and one unit.
double one_step(const std::string& operation, std::vector<double> w, std::vector<double> u,
                std::vector<double> b, std::vector<double> e, double x, double h, double c) {
  const auto rows = static_cast<std::int64_t>(w.size());
  Specs specs{{"input", f32({1, 1, 1})},        {"weight_ih", f32({1, rows, 1})},
              {"weight_hh", f32({1, rows, 1})}, {"bias_ih", f32({1, rows})},
              {"bias_hh", f32({1, rows})},      {"h0", f32({1, 1, 1})}};
  Values values{{"input", {x}}, {"weight_ih", w}, {"weight_hh", u},
                {"bias_ih", b}, {"bias_hh", e},   {"h0", {h}}};
  if (operation == "lstm") {
    specs["c0"] = f32({1, 1, 1});
    values["c0"] = {c};
  }
  return testing::run_reference(testing::problem_of(operation, specs), values).at("output")[0];
}

TEST(CellsReference, OneStepIsTheFormula) {
  const std::vector<double> w{0.3, -0.7, 1.1, 0.4}, u{-0.2, 0.6, 0.9, -1.3};
  const std::vector<double> b{0.1, 0.2, -0.3, 0.5}, e{0.05, -0.4, 0.25, 0.15};
  const double x = 0.8, h = -0.6, c = 0.9;
  const auto sum = [&](std::size_t i) { return w[i] * x + b[i] + u[i] * h + e[i]; };
  const double c1 = sigmoid(sum(1)) * c + sigmoid(sum(0)) * std::tanh(sum(2));
  EXPECT_NEAR(one_step("lstm", w, u, b, e, x, h, c), sigmoid(sum(3)) * std::tanh(c1), 1e-14);
  const auto first = [](std::vector<double> all, std::size_t count) {
    all.resize(count);
    return all;
  };
  const double z = sigmoid(sum(1));
  const double n = std::tanh(w[2] * x + b[2] + sigmoid(sum(0)) * (u[2] * h + e[2]));
  EXPECT_NEAR(one_step("gru", first(w, 3), first(u, 3), first(b, 3), first(e, 3), x, h, c),
              (1 - z) * n + z * h, 1e-14);
  EXPECT_NEAR(one_step("rnn", first(w, 1), first(u, 1), first(b, 1), first(e, 1), x, h, c),
              std::tanh(sum(0)), 1e-14);
}

TEST(CellsReference, TwoDirectionsAreOneOfEach) {
  for (const std::string& cell : kCells) {
    Call both = a_call(cell, 2);
    both.lengths = {5, 0, 3};
    const Values of_both = both.run();
    for (const std::size_t direction : {0U, 1U}) {
      Call one = both;
      one.directions = 1;
      one.options["reverse"] = direction == 1;
      for (auto& [name, values] : one.values) {
        if (name == "input") continue;
        const auto half = static_cast<std::ptrdiff_t>(values.size() / 2);
        values = direction == 0 ? std::vector(values.begin(), values.begin() + half)
                                : std::vector(values.begin() + half, values.end());
      }
      const std::vector<double> output = one.run().at("output");
      for (std::size_t i = 0; i < output.size(); ++i) {
        const std::size_t place = (i / kHidden * 2 + direction) * kHidden + i % kHidden;
        EXPECT_EQ(of_both.at("output")[place], output[i]) << cell;
      }
    }
  }
}

TEST(CellsReference, AProjectionIsAProductOfEachStep) {
  // By an identity nothing changes, by its half h is half of it, and so is what weight_hh takes.
  const Call plain = a_call("lstm");
  Call projected = plain;
  projected.projection = kHidden;
  std::vector<double>& weight = projected.values["weight_hr"];
  weight.assign(kHidden * kHidden, 0);
  for (std::size_t i = 0; i < kHidden; ++i) weight[i * (kHidden + 1)] = 1;
  EXPECT_EQ(projected.run(), plain.run());
  for (double& element : weight) element /= 2;
  for (double& element : projected.values["weight_hh"]) element *= 2;
  for (double& element : projected.values["h0"]) element /= 2;
  Values expected = plain.run();
  for (const char* const name : {"output", "h_n"}) {
    for (double& element : expected[name]) element /= 2;
  }
  EXPECT_EQ(projected.run(), expected);
}

TEST(CellsReference, SplittingASequenceChangesNothing) {
  for (const std::string& cell : kCells) {
    const Call whole = a_call(cell);
    Call first = whole, second = whole;
    first.tokens = 2;
    second.tokens = 3;
    std::vector<double>&head = first.values["input"], &tail = second.values["input"];
    head.clear();
    tail.clear();
    for (std::size_t i = 0; i < whole.values.at("input").size(); ++i)
      (i / kFeatures % 5 < 2 ? head : tail).push_back(whole.values.at("input")[i]);
    const Values middle = first.run();
    second.values["h0"] = middle.at("h_n");
    if (cell == "lstm") second.values["c0"] = middle.at("c_n");
    EXPECT_EQ(second.run().at("h_n"), whole.run().at("h_n")) << cell;
  }
}

TEST(CellsReference, WhatLiesBehindLengthsIsNotUsed) {
  for (const std::string& cell : kCells) {
    Call padded = a_call(cell);
    padded.lengths = {3, 3, 3};
    Call shorter = padded;
    shorter.tokens = 3;
    shorter.lengths.clear();
    std::vector<double>& input = padded.values["input"];
    std::vector<double>& kept = shorter.values["input"];
    kept.clear();
    for (std::size_t i = 0; i < input.size(); ++i) {
      if (i / kFeatures % 5 < 3) {
        kept.push_back(input[i]);
      } else {
        input[i] = std::nan("");
      }
    }
    EXPECT_EQ(padded.run().at("h_n"), shorter.run().at("h_n")) << cell;
    Values weights{{"output", std::vector<double>(kBatch * 5 * kHidden, std::nan(""))},
                   {"h_n", normal_numbers(kBatch * kHidden, 9)}};
    if (cell == "lstm") weights["c_n"] = std::vector<double>(kBatch * kHidden, 0.0);
    for (std::size_t i = 0; i < weights["output"].size(); ++i) {
      if (i / kHidden % 5 < 3) weights["output"][i] = 1;
    }
    const Values gradients = padded.run_backward(weights);
    weights["output"] = std::vector<double>(kBatch * 3 * kHidden, 1.0);
    const Values expected = shorter.run_backward(weights);
    for (const auto& [name, values] : expected) {
      if (name == "grad_input") continue;
      EXPECT_EQ(gradients.at(name), values) << cell << name;
    }
    for (std::size_t i = 0; i < gradients.at("grad_input").size(); ++i) {
      if (i / kFeatures % 5 < 3) continue;
      EXPECT_EQ(gradients.at("grad_input")[i], 0);
    }
  }
}

void expect_differences(const Call& call) {
  Values weights;
  unsigned seed = 50;
  for (const auto& [name, values] : call.run())
    weights[name] = normal_numbers(values.size(), seed++);
  const Values gradients = call.run_backward(weights);
  const auto objective = [&](const Call& moved) {
    double sum = 0;
    for (const auto& [name, values] : moved.run()) sum += testing::dot(weights.at(name), values);
    return sum;
  };
  for (const auto& [name, values] : call.values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      constexpr double kStep = 1e-5;
      Call more = call, less = call;
      more.values[name][i] += kStep;
      less.values[name][i] -= kStep;
      EXPECT_NEAR((objective(more) - objective(less)) / (2 * kStep),
                  gradients.at("grad_" + name)[i], 1e-7)
          << call.operation << " " << name << " " << i;
    }
  }
}

TEST(CellsReference, GradientsAreThoseOfDifferences) {
  for (const std::string& cell : kCells) {
    expect_differences(a_call(cell));
    Call both = a_call(cell, 2);
    both.lengths = {4, 0, 2};
    expect_differences(both);
  }
  Call relu = a_call("rnn");
  relu.options["activation"] = std::string("relu");
  expect_differences(relu);
  for (const std::int64_t projection : {2, 4}) {
    Call projected = a_call("lstm", 2, projection);
    projected.lengths = {4, 0, 2};
    expect_differences(projected);
  }
}

TEST(CellsReference, TheReserveIsWhatGradientsNeedOfForward) {
  for (const std::string& cell : kCells) {
    for (const std::int64_t projection : {0, 2}) {
      if (projection > 0 && cell != "lstm") continue;
      Call call = a_call(cell, 2, projection);
      call.lengths = {4, 0, 2};
      const Values plain = call.run(), outputs = call.run(true);
      const std::vector<double>& kept = outputs.at("reserve");
      Values weights;
      unsigned seed = 30;
      for (const auto& [name, values] : plain) {
        EXPECT_EQ(outputs.at(name), values) << cell;
        weights[name] = normal_numbers(values.size(), seed++);
      }
      const Values expected = call.run_backward(weights);
      // Which need no first states and biases then.
      for (auto& [name, values] : call.values) {
        if (name == "h0" || name == "c0" || name.starts_with("bias"))
          values.assign(values.size(), std::nan(""));
      }
      EXPECT_EQ(call.run_backward(weights, kept), expected) << cell << projection;
      for (std::size_t i = kept.size() / kBatch; i < kept.size() / kBatch * 2; ++i)
        EXPECT_EQ(kept[i], 0) << "behind the length of the second";
    }
  }
}

// An input whose tokens and batch entries are no one axis, which then needs a copy.
TEST(CellSteps, GradientsOfTheHiddenStateDoNotReadTheInput) {
  for (const std::string& cell : kCells) {
    Specs specs = a_call(cell).specs();
    specs["input"].strides = {kFeatures, kBatch * kFeatures, 1};
    specs["grad_output"] = f32({kBatch, 5, kHidden});
    specs["grad_weight_hh"] = specs["weight_hh"];
    const Problem problem = testing::problem_of(cell + "_backward", specs);
    for (const char* const name : {"cpu", "tile"}) {
      const Variant& variant = *problem.operation->find_variant(name);
      std::size_t calls = 0;
      for (const Step& step : variant.steps(problem, {{"ROWS", 4}})) {
        const CallStep* const call = std::get_if<CallStep>(&step);
        if (call == nullptr || call->operation != "linear_backward") continue;
        ++calls;
        for (const auto& [operand, place] : call->operands)
          EXPECT_NE(place.slot, problem.operation->slot("input")) << operand;
      }
      EXPECT_EQ(calls, 1U) << name;
    }
  }
}

TEST(CellSteps, WithAReserveForwardIsNotComputedAgain) {
  for (const std::string& cell : kCells) {
    const Call call = a_call(cell);
    Specs specs = call.specs();
    specs["grad_output"] = f32({kBatch, 5, kHidden});
    specs["grad_weight_hh"] = specs["weight_hh"];
    for (const bool has_reserve : {false, true}) {
      if (has_reserve) specs["reserve"] = call.reserve();
      const Problem problem = testing::problem_of(cell + "_backward", specs);
      for (const char* const name : {"cpu", "tile"}) {
        const Variant& variant = *problem.operation->find_variant(name);
        std::set<std::string> passes;
        for (const Step& step : variant.steps(problem, {{"ROWS", 4}})) {
          if (const LaunchStep* const launch = std::get_if<LaunchStep>(&step))
            passes.insert(launch->pass);
        }
        const std::set<std::string> expected =
            has_reserve ? std::set<std::string>{"begin_backward", "backward_of_reserve"}
                        : std::set<std::string>{"begin", "forward", "begin_backward", "backward"};
        EXPECT_EQ(passes, expected) << name;
      }
    }
  }
}

// Nobody waits in the second of both passes: which of them does something, work-groups find out.
TEST(CellSteps, MatrixUnitsTakeAllStepsOfAPassInOneLaunch) {
  DeviceProfile profile;
  profile.backend = Backend::kOpenCL;
  profile.features = Feature::kStorage16 | Feature::kNvidiaPtx | Feature::kMmaSync;
  for (const std::string& cell : kCells) {
    const Call call = a_call(cell);
    Specs specs = call.specs();
    for (auto& [name, spec] : specs) {
      if (name != "lengths") spec.dtype = DType::kF16;
    }
    specs["grad_output"] = f16({kBatch, 5, kHidden});
    specs["grad_weight_hh"] = specs["weight_hh"];
    for (const bool has_reserve : {false, true}) {
      if (has_reserve) specs["reserve"] = call.reserve();
      const Problem problem = testing::problem_of(cell + "_backward", specs);
      const Variant& variant = *problem.operation->find_variant("mma");
      const Config config = variant.space(problem, profile).front();
      EXPECT_EQ(variant.rejects(problem, config, profile), std::nullopt);
      std::vector<std::string> passes;
      for (const Step& step : variant.steps(problem, config)) {
        if (const LaunchStep* const launch = std::get_if<LaunchStep>(&step))
          passes.push_back(launch->pass);
      }
      const std::vector<std::string> expected =
          has_reserve
              ? std::vector<std::string>{"begin_backward", "backward_of_reserve_together",
                                         "backward_of_reserve_alone"}
              : std::vector<std::string>{"begin",          "forward_together",  "forward_alone",
                                         "begin_backward", "backward_together", "backward_alone"};
      EXPECT_EQ(passes, expected) << cell;
      for (const std::string& pass : passes)
        EXPECT_EQ(std::ranges::count(variant.passes, pass, &Pass::name), 1) << pass;
    }
  }
}

TEST(CellsRefuse, WhatContradictsItself) {
  const auto with = [](const std::string& name, const TensorSpec& spec) {
    Specs specs = a_call("lstm").specs();
    specs[name] = spec;
    return specs;
  };
  expect_refusal("lstm", with("input", f32({5, 2})), "must be [batch, seq, features]");
  expect_refusal("lstm", with("weight_hh", f32({12, 3})), "[directions, 4 hidden, hidden]");
  expect_refusal("lstm", with("weight_hh", f32({3, 12, 3})), "one direction or two");
  expect_refusal("lstm", with("weight_hh", f32({1, 9, 3})), "must be f32[1, 12, 3]");
  expect_refusal("lstm", with("weight_ih", f32({1, 12, 7})), "must be f32[1, 12, 2]");
  expect_refusal("lstm", with("h0", f16({1, 3, 3})), "must have the dtype of input");
  expect_refusal("lstm", with("lengths", i32({4})), "must be i32[3]");
  expect_refusal("lstm", with("weight_hr", f32({3, 3})), "must be [directions, proj, hidden]");
  expect_refusal("lstm", with("weight_hr", f32({1, 2, 3})), "must be f32[1, 3, 3]");
  Specs projected = a_call("gru").specs();
  projected["weight_hr"] = f32({1, 3, 3});
  expect_refusal("gru", projected, "has no operand 'weight_hr'");
  expect_refusal("gru", with("c0", f32({1, 3, 3})), "c0");
  expect_refusal("rnn", a_call("rnn").specs(), "tanh or relu",
                 {{"activation", std::string("gelu")}});
  Specs backward = a_call("lstm").specs();
  backward.erase("h0");
  backward["grad_output"] = f32({3, 5, 3});
  backward["grad_h0"] = f32({1, 3, 3});
  expect_refusal("lstm_backward", backward, "grad_h0 is wanted, but the call has no h0");
  backward.erase("grad_h0");
  backward["grad_input"] = backward["input"];
  backward["reserve"] = f32({3, 5, 1, 17});
  expect_refusal("lstm_backward", backward, "reserve f32[3, 5, 1, 17] must be f32[3, 5, 1, 18]");
  backward["reserve"] = f16({3, 5, 1, 18});
  expect_refusal("lstm_backward", backward, "reserve");
  expect_refusal("lstm", with("reserve", f32({3, 5, 18})), "f32[3, 5, 1, 18]");
}

}  // namespace
}  // namespace tessera
