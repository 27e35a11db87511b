// SPDX-License-Identifier: Apache-2.0
// What the expectations of attention leave open, and what they do not: keys without weight beside
// values that are not finite, and scores that float cannot tell apart.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/compare.hpp"
#include "support/reference.hpp"

namespace tessera {
namespace {

using testing::f16;
using testing::f32;
using testing::Specs;
using testing::Values;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A call with its operands in host memory.
class Call {
 public:
  Call(const std::string& operation, const Specs& specs, const Values& inputs, Options options)
      : problem_(testing::problem_of(operation, specs, std::move(options))),
        memory_(problem_.operands.size()),
        tensors_(memory_.size()) {
    for (std::size_t slot = 0; slot < memory_.size(); ++slot) {
      if (!problem_.has(slot)) continue;
      const TensorSpec& spec = problem_.spec(slot);
      memory_[slot].resize(static_cast<std::size_t>(spec.elements()) * size_of(spec.dtype));
      tensors_[slot] = {.spec = spec, .data = memory_[slot].data()};
    }
    for (const auto& [operand, values] : inputs) write(operand, values);
  }
  void write(const std::string& operand, const std::vector<double>& values) {
    tensors_[problem_.operation->slot(operand)].write(values);
  }
  Expectation expected(const std::string& output) {
    for (Expectation& each : problem_.operation->workload.expect(problem_, tensors_, {}, 1e300)) {
      if (each.slot == problem_.operation->slot(output)) return each;
    }
    return {};
  }
  // Is an output that holds this right?
  std::string failure(const std::string& output, const std::vector<double>& values) {
    write(output, values);
    const Expectation one = expected(output);
    return runtime::compare(problem_, tensors_, {&one, 1}).failure;
  }

 private:
  Problem problem_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<HostTensor> tensors_;
};

// Two keys with scores 0 and `score`; the output's elements that are looked at, and their values.
Expectation of_light_key(double score, const std::vector<double>& values, Options options = {}) {
  options.emplace("softmax_scale", 1.0);
  Call call(
      "flash_attention",
      {{"query", f32({1, 1, 1, 2})}, {"key", f32({1, 2, 1, 2})}, {"value", f32({1, 2, 1, 2})}},
      {{"query", {1, 0}}, {"key", {0, 0, score, 0}}, {"value", values}}, std::move(options));
  return call.expected("output");
}

TEST(AttentionBounds, KeysWithoutWeightLeaveOpenWhatIsNotFinite) {
  using Elements = std::vector<std::size_t>;
  for (const double wild : {kNan, std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(of_light_key(-100, {1, 2, wild, 4}).elements, Elements{1});
    EXPECT_EQ(of_light_key(-1e38, {1, 2, wild, wild}).elements, Elements{});
    EXPECT_EQ(of_light_key(-87, {1, 2, wild, 4}).elements, (Elements{0, 1}));
    // What another key makes NaN is NaN all the same.
    const Expectation both = of_light_key(-100, {kNan, 2, wild, 4});
    EXPECT_EQ(both.elements, (Elements{0, 1}));
    EXPECT_TRUE(std::isnan(both.values[0]));
  }
  EXPECT_EQ(of_light_key(-100, {1, 2, 3, 4}).elements, (Elements{0, 1}));
}

// Gradients of two keys whose scores differ by 3 beside a bias.
class TwoKeys {
 public:
  explicit TwoKeys(double bias) : bias_(bias) {
    query[0] = 1;
    keys[kDim] = -3;
    for (double& g : gradient) g = from_half_bits(to_half_bits(g));
  }
  // Is it right if the keys have these weights?
  std::string failure(double first, double second) {
    const double sum = 1 + std::exp(-3.0);
    Call call("flash_attention_backward",
              {{"query", f16(kRow)},
               {"key", f16(kRows)},
               {"value", f16(kRows)},
               {"output", f16(kRow)},
               {"log_sum_exp", f32({1, 1, 1})},
               {"output_gradient", f16(kRow)},
               {"bias", f32({1, 1, 1, 2})}},
              {{"query", query},
               {"key", keys},
               {"value", std::vector<double>(2 * kDim, 1.0)},
               {"output", std::vector<double>(kDim, 1.0)},
               {"log_sum_exp", {bias_ + std::log(sum)}},
               {"output_gradient", gradient},
               {"bias", {bias_, bias_}}},
              {{"softmax_scale", 1.0}});
    std::vector<double> of_values;
    for (const double weight : {first, second})
      for (const double g : gradient) of_values.push_back(weight * g);
    return call.failure("value_gradient", of_values);
  }

 private:
  static constexpr std::int64_t kDim = 64;
  const Shape kRow{1, 1, 1, kDim}, kRows{1, 2, 1, kDim};
  double bias_;
  std::vector<double> query = std::vector<double>(kDim), keys = std::vector<double>(2 * kDim),
                      gradient = testing::normal_numbers(kDim, 1);
};

TEST(AttentionBounds, OneRoundingMovesScoresThatFloatCannotTellApart) {
  const double sum = 1 + std::exp(-3.0), first = 1 / sum, second = std::exp(-3.0) / sum;
  TwoKeys near(0), far(1e8);
  EXPECT_EQ(near.failure(first, second), "");
  EXPECT_NE(near.failure(0.5, 0.5), "");
  // Floats at 1e8 are 8 apart: a kernel that adds the bias has equal scores.
  EXPECT_EQ(far.failure(first, second), "");
  EXPECT_EQ(far.failure(0.5, 0.5), "");
  EXPECT_NE(far.failure(4, 0.5), "") << "no weight is above 1";
}

}  // namespace
}  // namespace tessera
