// SPDX-License-Identifier: Apache-2.0
// The comparator that every check goes through: NaN, infinities and outliers fail on each of its
// paths. Needs no device.
#include "runtime/compare.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "operations/attention_core/oracle/thresholds.hpp"

namespace tessera::runtime {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::size_t kOutput = 3, kLogSumExp = 4;

// One row of four features and its log-sum-exp.
class CompareTest : public ::testing::Test {
 protected:
  CompareTest() {
    const TensorSpec row = TensorSpec::contiguous(DType::kF32, {1, 1, 1, 4});
    problem = make_problem(
        find_operation("flash_attention"),
        {row, row, row, std::nullopt, TensorSpec::contiguous(DType::kF32, {1, 1, 1})}, {});
    expected[0] = {.slot = kOutput, .values = output, .bounds = {0.1, 0.1, 0.1, 0.1}};
    expected[1] = {.slot = kLogSumExp, .values = {log_sum_exp}, .bounds = {0.1}};
  }

  Verdict run() {
    std::vector<HostTensor> tensors(problem.operands.size());
    const auto wide = [&](std::size_t slot, double* data) {
      tensors[slot] = {.spec = TensorSpec::contiguous(DType::kF64, problem.spec(slot).shape),
                       .data = reinterpret_cast<std::byte*>(data)};
    };
    wide(kOutput, output.data());
    wide(kLogSumExp, &log_sum_exp);
    return compare(problem, tensors, expected);
  }
  void expect_failure(const std::string& sentence) {
    const Verdict verdict = run();
    EXPECT_NE(verdict.failure.find(sentence), std::string::npos) << verdict.failure;
    EXPECT_FALSE(verdict.worst <= 1) << verdict.worst;
  }

  Problem problem;
  std::vector<double> output{1, -2, 0, 4};
  double log_sum_exp = 1.5;
  std::vector<Expectation> expected{2};
};

TEST_F(CompareTest, TheExactResultPasses) {
  const Verdict verdict = run();
  EXPECT_EQ(verdict.failure, "");
  EXPECT_EQ(verdict.worst, 0);
}

TEST_F(CompareTest, ErrorsAreCountedInBounds) {
  output[1] = -2.05;
  EXPECT_NEAR(run().worst, 0.5, 1e-12);
  EXPECT_EQ(run().failure, "");
  output[3] = 4.2;
  expect_failure("output[0,0,0,3] is 4.2 but must be 4 within 0.1");
}

TEST_F(CompareTest, NanAndInfinityFailInEveryElement) {
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    for (double& element : output) {
      const double right = std::exchange(element, bad);
      expect_failure("output[0,0,0,");
      element = right;
    }
    const double right = std::exchange(log_sum_exp, bad);
    expect_failure("log_sum_exp[0,0,0] is");
    log_sum_exp = right;
  }
}

TEST_F(CompareTest, NanAfterAWrongElementStillFails) {
  output = {100, kNan, 0, 4};
  expect_failure("output[0,0,0,1] is nan");
}

TEST_F(CompareTest, NoBoundForgivesWhatIsNotANumber) {
  for (const double bound : {0.0, kInfinity, kNan}) {
    for (const double bad : {kNan, kInfinity, -kInfinity})
      EXPECT_EQ(error_over_bound(bad, 1, bound), kInfinity) << bound << " " << bad;
  }
  EXPECT_EQ(error_over_bound(2, 1, kNan), kInfinity);  // nor does a bound that is none
  EXPECT_EQ(error_over_bound(2, 1, -1), kInfinity);
  EXPECT_EQ(error_over_bound(2, 1, 0), kInfinity);
  EXPECT_EQ(error_over_bound(1, 1, 0), 0);
}

TEST_F(CompareTest, InfinityIsRightWhereItIsWanted) {
  // The log-sum-exp of a row that sees nothing.
  EXPECT_EQ(error_over_bound(-kInfinity, -kInfinity, 0), 0);
  for (const double bad : {kInfinity, kNan, 0.0, -3e38})
    EXPECT_EQ(error_over_bound(bad, -kInfinity, 0), kInfinity) << bad;
  EXPECT_EQ(error_over_bound(-3e38, -kInfinity, kInfinity), kInfinity);
}

TEST_F(CompareTest, NanIsRightWhereItIsWanted) {
  EXPECT_EQ(error_over_bound(kNan, kNan, 0.1), 0);
  EXPECT_EQ(error_over_bound(1, kNan, 0.1), kInfinity);
  EXPECT_EQ(error_over_bound(kInfinity, kNan, kInfinity), kInfinity);
}

TEST_F(CompareTest, SmallErrorsEverywhereFailTheirMean) {
  expected[0].rms_bound = 0.02;
  for (double& element : output) element += 0.05;  // half of each element's bound
  expect_failure("the errors of output have a root mean square of 0.05");
  EXPECT_NEAR(rms_over_bound(output, expected[0]), 2.5, 1e-12);
}

TEST_F(CompareTest, NanAndInfinityFailTheMean) {
  expected[0].rms_bound = 1e300;
  for (const double bad : {kNan, kInfinity, -kInfinity}) {
    output[2] = bad;
    EXPECT_EQ(rms_over_bound(output, expected[0]), kInfinity);
  }
  expected[0].rms_bound = kNan;
  output[2] = 0.01;
  EXPECT_EQ(rms_over_bound(output, expected[0]), kInfinity);
}

TEST_F(CompareTest, TheMeanLeavesOutWhatIsWantedToBeInfinite) {
  expected[0].values[2] = output[2] = -kInfinity;
  expected[0].rms_bound = 0.02;
  EXPECT_EQ(run().failure, "");
}

TEST_F(CompareTest, ASampleIsComparedAtItsOwnPlaces) {
  expected[0].elements = {3, 1};
  expected[0].values = {4, -2};
  expected[0].rms_bound = 0.02;
  EXPECT_EQ(run().failure, "");
  output[1] = kNan;
  expect_failure("output[0,0,0,1] is nan");
}

TEST_F(CompareTest, ResultsThatShowLittleAreMistrusted) {
  Expectation some{.values = std::vector<double>(20, 1), .bounds = std::vector<double>(20, 0.01)};
  EXPECT_EQ(mistrusted(some), "");
  some.bounds[3] = 0.2;
  EXPECT_EQ(mistrusted(some), "a bound is more than 10 % of the largest value");
  some.bounds[3] = kNan;
  some.values.assign(20, 0);
  EXPECT_EQ(mistrusted(some), "more than 90 % of the values are 0");
}

TEST(AttentionThresholds, TheMeanIsBoundWhereRoundingCostsSomething) {
  Expectation expected;
  for (int n = 0; n < 100; ++n) {
    expected.values.push_back(std::sin(n));
    expected.bounds.push_back(0x1p-11 * std::fabs(std::sin(n)) + 0x1p-20);
  }
  // Between the factor and the hard stop of 2, of a rounding to 11 bits: 0.29 units.
  const double bound =
      operations::attention::rms_bound(DType::kF16, expected, operations::attention::kRmsFactor);
  EXPECT_GT(bound, 0.15 * 0x1p-11);
  EXPECT_LT(bound, 0.40 * 0x1p-11);
  EXPECT_EQ(
      operations::attention::rms_bound(DType::kF32, expected, operations::attention::kRmsFactor),
      kInfinity);
  // Exact in the storage type: nothing to compare with.
  expected.values.assign(100, 0.75);
  EXPECT_EQ(
      operations::attention::rms_bound(DType::kF16, expected, operations::attention::kRmsFactor),
      kInfinity);
}

}  // namespace
}  // namespace tessera::runtime
