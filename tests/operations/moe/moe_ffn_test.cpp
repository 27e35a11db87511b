// SPDX-License-Identifier: Apache-2.0
// What moe_ffn refuses, that it is its pieces, and that its gradients are slopes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "support/reference.hpp"
#include "tessera/error.hpp"
#include "tessera/operations/grouped_matmul.hpp"
#include "tessera/operations/moe.hpp"

namespace tessera {
namespace {

using ::testing::HasSubstr;

using testing::dot;
using testing::f32;
using testing::i32;
using testing::normal_numbers;
using testing::problem_of;
using testing::Specs;

TEST(MoeFfnRefusals, SayWhatIsWrong) {
  const Specs forward{{"input", f32({5, 8})},
                      {"logits", f32({5, 3})},
                      {"gate_up", f32({3, 8, 12})},
                      {"down", f32({3, 6, 8})}};
  const Specs backward{
      {"input", f32({5, 8})},      {"gate_up", f32({3, 8, 12})}, {"down", f32({3, 6, 8})},
      {"expert_ids", i32({5, 2})}, {"slots", i32({5, 2})},       {"weights", f32({5, 2})},
      {"offsets", i32({4})},       {"grad_output", f32({5, 8})}, {"grad_input", f32({5, 8})}};
  struct Row {
    const char* operation;
    Specs specs;
    Options options;
    const char* message;
  };
  const auto with = [](Specs specs, const std::string& name, TensorSpec spec) {
    specs[name] = std::move(spec);
    return specs;
  };
  const Row rows[] = {
      {"moe_ffn", with(forward, "input", f32({5})), {}, "input f32[5] must be [tokens, hidden]"},
      {"moe_ffn",
       with(forward, "down", f32({6, 8})),
       {},
       "down f32[6, 8] must be [experts, inner, hidden]"},
      {"moe_ffn",
       with(forward, "gate_up", f32({3, 8, 6})),
       {},
       "gate_up f32[3, 8, 6] must be f32[3, 8, 12]"},
      {"moe_ffn", with(forward, "logits", f32({5, 4})), {}, "logits f32[5, 4] must be f32[5, 3]"},
      {"moe_ffn", forward, {{"top_k", std::int64_t{4}}}, "chooses 4 of 3 experts"},
      {"moe_ffn",
       forward,
       {{"activation", std::string("swish")}},
       "option 'activation' must be silu or gelu or gelu_tanh or relu or none"},
      {"moe_ffn", forward, {{"gated", false}}, "gate_up f32[3, 8, 12] must be f32[3, 8, 6]"},
      {"moe_ffn", forward, {{"transposed", true}}, "down f32[3, 6, 8] must be f32[3, 8, 8]"},
      {"moe_ffn_backward",
       with(backward, "expert_ids", i32({4, 2})),
       {},
       "expert_ids i32[4, 2] must be [5, top_k]"},
      {"moe_ffn_backward",
       with(backward, "offsets", i32({3})),
       {},
       "offsets i32[3] must be i32[4]"},
      {"moe_ffn_backward",
       with(backward, "grad_output", testing::f16({5, 8})),
       {},
       "grad_output f16[5, 8] must have the dtype of input, f32"},
  };
  for (const Row& row : rows) {
    try {
      (void)problem_of(row.operation, row.specs, row.options);
      FAIL() << "not refused: " << row.message;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(row.message));
    }
  }
}

// An expert that there is not, one whose rows begin nowhere, and a place behind all rows.
TEST(MoeFfnReference, WrongChoicesCountNothing) {
  testing::Values inputs{{"input", normal_numbers(4 * 3, 1)},
                         {"gate_up", normal_numbers(3 * 3 * 4, 2)},
                         {"down", normal_numbers(3 * 2 * 3, 3)},
                         {"expert_ids", {0, -1, -1, -1}},
                         {"slots", {0, 0, 0, 0}},
                         {"weights", {0.5, 0.25, 0.75, 1}},
                         {"offsets", {0, 1, 9, 9}},
                         {"grad_output", normal_numbers(4 * 3, 4)}};
  Specs specs{{"input", f32({4, 3})},      {"gate_up", f32({3, 3, 4})}, {"down", f32({3, 2, 3})},
              {"expert_ids", i32({4, 1})}, {"slots", i32({4, 1})},      {"weights", f32({4, 1})},
              {"offsets", i32({4})},       {"grad_output", f32({4, 3})}};
  for (const char* const of : {"input", "gate_up", "down", "weights"})
    specs[std::string("grad_") + of] = specs.at(of);
  const auto run = [&] {
    return testing::run_reference(problem_of("moe_ffn_backward", specs), inputs);
  };
  const testing::Values dropped = run();
  inputs["expert_ids"] = {0, 7, 2, 0};
  inputs["slots"] = {0, 0, 0, 4};
  EXPECT_EQ(run(), dropped);
}

// A gate of +-infinity passes its gradient on by a slope of 1 or 0.
TEST(MoeFfnReference, InfiniteGatesHaveSlopes) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Specs specs{
      {"input", f32({2, 1})},      {"gate_up", f32({1, 1, 1})},  {"down", f32({1, 1, 1})},
      {"expert_ids", i32({2, 1})}, {"slots", i32({2, 1})},       {"weights", f32({2, 1})},
      {"offsets", i32({2})},       {"grad_output", f32({2, 1})}, {"grad_input", f32({2, 1})}};
  for (const char* const activation : {"silu", "gelu", "gelu_tanh", "relu"}) {
    const Problem problem = problem_of("moe_ffn_backward", specs,
                                       {{"gated", false}, {"activation", std::string(activation)}});
    const testing::Values gradients =
        testing::run_reference(problem, {{"input", {kInfinity, -kInfinity}},
                                         {"gate_up", {2}},
                                         {"down", {3}},
                                         {"expert_ids", {0, 0}},
                                         {"slots", {0, 1}},
                                         {"weights", {1, 1}},
                                         {"offsets", {0, 2}},
                                         {"grad_output", {5, 5}}});
    EXPECT_THAT(gradients.at("grad_input"), ::testing::ElementsAre(30, 0)) << activation;
  }
}

class MoeFfn : public ::testing::Test {
 protected:
  Tensor numbers(Shape shape, unsigned seed, double size = 1) const {
    std::size_t count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
    const std::vector<double> wide = normal_numbers(count, seed);
    std::vector<float> values;
    for (const double x : wide) values.push_back(static_cast<float>(size * x));
    return context.upload(values, std::move(shape));
  }
  std::vector<double> list(const Tensor& tensor) const {
    const std::vector<float> values = context.download<float>(tensor);
    return {values.begin(), values.end()};
  }

  void check_slopes(const MoeFfnOptions& options) const;

  Context context = Context::open({.device = "host", .cache_directory = ""});
  Tensor input = numbers({7, 6}, 1), logits = numbers({7, 4}, 2);
  Tensor gate_up = numbers({4, 6, 10}, 3, 0.4), down = numbers({4, 5, 6}, 4, 0.4);
};

TEST_F(MoeFfn, IsItsPieces) {
  for (const bool capacity : {false, true}) {
    MoeFfnOptions options;
    if (capacity) options.route.capacity = 3;
    const MoeFfnResult result = moe_ffn(context, input, logits, gate_up, down, options);
    const Routes routes = route(context, logits, options.route);
    EXPECT_EQ(list(result.routes.weights), list(routes.weights));
    const Tensor rows = dispatch(context, input, routes, capacity ? 12 : 0);
    const Tensor sizes =
        capacity ? context.upload(std::vector<std::int32_t>(4, 3), {4}) : routes.counts;
    const std::vector<double> both = list(grouped_matmul(context, rows, gate_up, sizes));
    std::vector<float> gated;
    for (std::size_t row = 0; row < both.size() / 10; ++row) {
      for (std::size_t i = 0; i < 5; ++i) {
        const double gate = both[row * 10 + i], up = both[row * 10 + 5 + i];
        gated.push_back(static_cast<float>(gate / (1 + std::exp(-gate)) * up));
      }
    }
    const Tensor inner = context.upload(gated, {static_cast<std::int64_t>(gated.size() / 5), 5});
    const std::vector<double> output =
        list(combine(context, grouped_matmul(context, inner, down, sizes), routes));
    const std::vector<double> whole = list(result.output);
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(whole[i], output[i], 1e-6) << i;
  }
}

// A small step along a random direction changes <output, weights> by what the gradients say.
TEST_F(MoeFfn, GradientsAreSlopes) {
  check_slopes({.route = {.top_k = 3}});
  check_slopes({.route = {.top_k = 3}, .activation = ExpertActivation::kGelu});
  check_slopes({.activation = ExpertActivation::kNone});
  gate_up = numbers({4, 6, 5}, 3, 0.4);
  check_slopes({.activation = ExpertActivation::kGeluTanh, .gated = false});
}

void MoeFfn::check_slopes(const MoeFfnOptions& options) const {
  const Tensor grad_output = numbers({7, 6}, 5);
  const MoeFfnResult result = moe_ffn(context, input, logits, gate_up, down, options);
  const MoeFfnGradients gradients =
      moe_ffn_backward(context, input, logits, gate_up, down, result.routes, grad_output, options);
  const auto value = [&](const Tensor& x, const Tensor& l, const Tensor& g, const Tensor& d) {
    return dot(list(moe_ffn(context, x, l, g, d, options).output), list(grad_output));
  };
  const auto check = [&](const Tensor& at, const Tensor& gradient, auto&& value_at) {
    const std::vector<double> direction =
        normal_numbers(static_cast<std::size_t>(at.spec().elements()), 6);
    const std::vector<double> from = list(at);
    constexpr double kStep = 1e-2;
    double values[2];
    for (const int side : {0, 1}) {
      std::vector<float> moved;
      for (std::size_t i = 0; i < from.size(); ++i)
        moved.push_back(static_cast<float>(from[i] + (side == 0 ? -kStep : kStep) * direction[i]));
      values[side] = value_at(context.upload(moved, at.shape()));
    }
    EXPECT_NEAR((values[1] - values[0]) / (2 * kStep), dot(list(gradient), direction), 2e-2);
  };
  check(input, gradients.input, [&](const Tensor& x) { return value(x, logits, gate_up, down); });
  check(logits, gradients.logits, [&](const Tensor& l) { return value(input, l, gate_up, down); });
  check(gate_up, gradients.gate_up, [&](const Tensor& g) { return value(input, logits, g, down); });
  check(down, gradients.down, [&](const Tensor& d) { return value(input, logits, gate_up, d); });
}

}  // namespace
}  // namespace tessera
