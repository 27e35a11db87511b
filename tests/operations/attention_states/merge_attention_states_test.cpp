// SPDX-License-Identifier: Apache-2.0
// What merge_attention_states refuses, and the laws of its reference.
#include "tessera/operations/merge_attention_states.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/reference.hpp"
#include "tessera/error.hpp"
#include "tessera/record.hpp"

namespace tessera {
namespace {

using ::testing::HasSubstr;

using testing::dot;
using testing::f16;
using testing::f32;
using testing::normal_numbers;
using testing::problem_of;
using testing::run_reference;
using testing::Specs;
using testing::Values;

TEST(MergeAttentionStates, RefusalsSayWhatIsWrong) {
  struct Row {
    Specs specs;
    const char* message;
  };
  const Row rows[] = {
      {{{"outputs", f32({2, 3, 4})}, {"log_sum_exps", f32({2, 3})}},
       "must be [parts, tokens, heads, dim] or"},
      {{{"outputs", f32({2, 3, 1, 4})}, {"log_sum_exps", f32({2, 1, 3})}},
       "log_sum_exps f32[2, 1, 3] must be f32[2, 3, 1]"},
      {{{"outputs", f32({2, 5, 3, 1, 4})}, {"log_sum_exps", f32({2, 5, 3, 1})}},
       "must be f32[2, 5, 1, 3]"},
      {{{"outputs", f32({0, 3, 1, 4})}, {"log_sum_exps", f32({0, 3, 1})}}, "has no parts"},
      {{{"outputs", f32({1, 3, 1, 4})},
        {"log_sum_exps", f32({1, 3, 1})},
        {"other_output", f32({3, 1, 4})}},
       "come together"},
      {{{"outputs", f32({1, 3, 1, 4})},
        {"log_sum_exps", f32({1, 3, 1})},
        {"other_output", f16({3, 1, 4})},
        {"other_log_sum_exp", f32({3, 1})}},
       "must have the dtype of outputs, f32"}};
  for (const Row& row : rows) {
    try {
      problem_of("merge_attention_states", row.specs);
      ADD_FAILURE() << "takes what should be refused: " << row.message;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(row.message));
    }
  }
}

// One query's keys in any parts give what all of them give.
TEST(MergeAttentionStates, PartsOfKeysGiveTheWhole) {
  const std::vector<double> scores{1, -2, 3, 0.5, 2}, values{2, -1, 4, 3, 0.25};
  const auto state = [&](std::size_t from, std::size_t to) {
    double sum = 0, output = 0;
    for (std::size_t j = from; j < to; ++j) {
      sum += std::exp(scores[j]);
      output += std::exp(scores[j]) * values[j];
    }
    return std::pair(to > from ? output / sum : 99.0, std::log(sum));
  };
  const auto [all, log_all] = state(0, 5);
  for (std::size_t cut = 0; cut <= 5; ++cut) {
    const auto [a, log_a] = state(0, cut);
    const auto [b, log_b] = state(cut, 5);
    const Values merged =
        run_reference(problem_of("merge_attention_states", {{"outputs", f32({2, 1, 1, 1})},
                                                            {"log_sum_exps", f32({2, 1, 1})},
                                                            {"log_sum_exp", f32({1, 1})}}),
                      {{"outputs", {a, b}}, {"log_sum_exps", {log_a, log_b}}});
    EXPECT_NEAR(merged.at("output")[0], all, 1e-6) << cut;
    EXPECT_NEAR(merged.at("log_sum_exp")[0], log_all, 1e-6) << cut;
  }
}

TEST(MergeAttentionStates, InfinitiesAndLowestFloatsAreDefined) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double lowest = -std::numeric_limits<float>::max();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto merge = [](const std::vector<double>& outputs, const std::vector<double>& sums) {
    const auto parts = static_cast<std::int64_t>(sums.size());
    return run_reference(problem_of("merge_attention_states", {{"outputs", f32({parts, 1, 1, 1})},
                                                               {"log_sum_exps", f32({parts, 1, 1})},
                                                               {"log_sum_exp", f32({1, 1})}}),
                         {{"outputs", outputs}, {"log_sum_exps", sums}});
  };
  EXPECT_EQ(merge({nan, nan}, {-infinity, -infinity}).at("output")[0], 0);
  EXPECT_EQ(merge({nan, nan}, {-infinity, -infinity}).at("log_sum_exp")[0], -infinity);
  EXPECT_EQ(merge({nan, 3}, {-infinity, 1}).at("output")[0], 3);
  EXPECT_EQ(merge({2, 4}, {lowest, lowest}).at("output")[0], 3);
  EXPECT_EQ(merge({2, 4}, {lowest, 7}).at("output")[0], 4);
  EXPECT_EQ(merge({2, 4, 8}, {infinity, 7, infinity}).at("output")[0], 5);
  EXPECT_TRUE(std::isnan(merge({2, 4}, {nan, 7}).at("output")[0]));
}

// The slopes of <grad_output, output> + <grad_log_sum_exp, log_sum_exp> along every operand.
TEST(MergeAttentionStates, BackwardAgreesWithFiniteDifferences) {
  constexpr double kStep = 1e-5;
  Values inputs{{"outputs", normal_numbers(48, 1)},
                {"log_sum_exps", normal_numbers(12, 2)},
                {"other_output", normal_numbers(24, 3)},
                {"other_log_sum_exp", normal_numbers(6, 4)}};
  Values with = inputs;
  with["grad_output"] = normal_numbers(24, 5);
  with["grad_log_sum_exp"] = normal_numbers(6, 6);
  const Specs specs{{"outputs", f32({2, 2, 3, 4})},
                    {"log_sum_exps", f32({2, 2, 3})},
                    {"other_output", f32({2, 3, 4})},
                    {"other_log_sum_exp", f32({2, 3})}};
  Specs forward = specs, backward = specs;
  forward["log_sum_exp"] = f32({2, 3});
  backward["grad_output"] = f32({2, 3, 4});
  backward["grad_log_sum_exp"] = f32({2, 3});
  const auto value = [&] {
    const Values result = run_reference(problem_of("merge_attention_states", forward), inputs);
    return dot(with["grad_output"], result.at("output")) +
           dot(with["grad_log_sum_exp"], result.at("log_sum_exp"));
  };
  const Values gradients =
      run_reference(problem_of("merge_attention_states_backward", backward), with);
  for (const std::string name : {"outputs", "log_sum_exps", "other_output", "other_log_sum_exp"}) {
    const std::vector<double>& gradient = gradients.at("grad_" + name);
    for (std::size_t i = 0; i < inputs[name].size(); ++i) {
      const double kept = inputs[name][i];
      inputs[name][i] = kept + kStep;
      const double above = value();
      inputs[name][i] = kept - kStep;
      const double below = value();
      inputs[name][i] = kept;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-7) << name << " " << i;
    }
  }
}

TEST(MergeAttentionStates, TypedFunctionsTakeTwoParts) {
  const Context context = Context::open({.device = "host", .cache_directory = ""});
  const AttentionStates a{context.upload(std::vector<float>{1, 3}, {1, 1, 1, 2}),
                          context.upload(std::vector<float>{0}, {1, 1, 1})};
  const AttentionStates b{context.upload(std::vector<float>{3, 5}, {1, 1, 2}),
                          context.upload(std::vector<float>{0}, {1, 1})};
  const AttentionStates merged = merge_attention_states(context, a, b);
  EXPECT_THAT(context.download<float>(merged.output), ::testing::ElementsAre(2, 4));
  EXPECT_THAT(context.download<float>(merged.log_sum_exp), ::testing::ElementsAre(std::log(2.0F)));
  const MergeGradients gradients = merge_attention_states_backward(context, a, merged, b);
  EXPECT_THAT(context.download<float>(gradients.parts.output), ::testing::ElementsAre(1, 2));
  EXPECT_THAT(context.download<float>(gradients.other.output), ::testing::ElementsAre(1, 2));
}

}  // namespace
}  // namespace tessera
