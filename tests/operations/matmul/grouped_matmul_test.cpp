// SPDX-License-Identifier: Apache-2.0
// What grouped products refuse, the laws of their reference, and the typed functions on the host.
#include "tessera/operations/grouped_matmul.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "operations/grouped_core/stages.hpp"
#include "support/reference.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using testing::dot;
using testing::f16;
using testing::f32;
using ::testing::HasSubstr;
using testing::i32;
using testing::normal_numbers;
using testing::problem_of;
using testing::run_reference;
using testing::Specs;
using testing::Values;

TensorSpec spec(DType dtype, Shape shape) {
  return TensorSpec::contiguous(dtype, std::move(shape));
}

// ---- refusals -----------------------------------------------------------------------------------

TEST(GroupedRefusals, SayWhatIsWrong) {
  struct Row {
    const char* operation;
    Specs specs;
    Options options;
    const char* message;
  };
  const Specs plain{{"lhs", f32({6, 3})}, {"rhs", f32({2, 3, 4})}, {"group_sizes", i32({2})}};
  const auto with = [&](const char* name, TensorSpec spec) {
    Specs specs = plain;
    specs[name] = std::move(spec);
    return specs;
  };
  const Row rows[] = {
      {"grouped_matmul", with("lhs", f32({6})), {}, "grouped_matmul: lhs f32[6] must be [m, k]"},
      {"grouped_matmul", with("rhs", f32({3, 4})), {}, "rhs f32[3, 4] must be [groups, k, n]"},
      {"grouped_matmul",
       with("group_sizes", i32({2, 1})),
       {},
       "group_sizes i32[2, 1] must be [num_groups]"},
      {"grouped_matmul", with("group_sizes", f32({2})), {}, "group_sizes"},
      {"grouped_matmul",
       plain,
       {{"transpose_rhs", true}},
       "lhs has 3 terms and rhs 4: f32[6, 3] and f32[2, 3, 4]"},
      {"grouped_matmul",
       plain,
       {{"group_offset", std::int64_t{-1}}},
       "option 'group_offset' must be an integer of at least 0"},
      {"grouped_matmul",
       with("existing_out", f32({6, 3})),
       {},
       "existing_out f32[6, 3] must be f32[6, 4]"},
      {"grouped_matmul",
       with("existing_out", f16({6, 4})),
       {{"output_dtype", std::string("f32")}},
       "existing_out f16[6, 4] must have the dtype of output, f32"},
      {"grouped_matmul",
       plain,
       {{"output_dtype", std::string("i32")}},
       "an output of i32 is sums of products of i8 as they are, with no scales"},
      {"grouped_matmul",
       with("rhs", spec(DType::kI8, {2, 3, 4})),
       {},
       "lhs f32 and rhs i8 do not multiply: both are i8, or of 8-bit floats, or of f32, f16 and "
       "bf16"},
      {"grouped_matmul",
       with("scale_lhs", f32({6, 1})),
       {},
       "scale_lhs f32[6, 1] belongs to operands of 8 bits"},
      {"grouped_matmul",
       {{"lhs", spec(DType::kI8, {6, 3})},
        {"rhs", spec(DType::kI8, {2, 3, 4})},
        {"group_sizes", i32({2})},
        {"scale_rhs", f32({3, 1, 4})}},
       {},
       "scale_rhs f32[3, 1, 4] does not fit rhs i8[2, 3, 4], of which it may have [1 or 2, 1, 1 or "
       "4] elements"},
      {"grouped_matmul",
       {{"lhs", spec(DType::kI8, {1, 1 << 17})},
        {"rhs", spec(DType::kI8, {1, 1 << 17, 1})},
        {"group_sizes", i32({1})}},
       {},
       "products of i8 are added up in 32 bits, which hold 131071 terms, and lhs i8[1, 131072] has "
       "131072"},
      {"transposed_grouped_matmul",
       {{"lhs", spec(DType::kI8, {3, 6})},
        {"rhs", spec(DType::kI8, {6, 4})},
        {"group_sizes", i32({2})},
        {"existing_out", i32({2, 3, 4})}},
       {},
       "an output of i32 is sums of products of i8 as they are, with no scales and nothing added"},
      {"transposed_grouped_matmul",
       {{"lhs", spec(DType::kE5M2, {3, 200})},
        {"rhs", spec(DType::kE4M3FN, {200, 4})},
        {"group_sizes", i32({2})},
        {"scale_lhs", f32({3, 2})}},
       {},
       "scale_lhs f32[3, 2] scales blocks of terms, within which groups may begin"},
      {"grouped_matmul_backward",
       with("grad_output", f32({6, 3})),
       {},
       "grad_output f32[6, 3] must be f32[6, 4]"},
      {"transposed_grouped_matmul",
       {{"lhs", f32({3, 6})}, {"rhs", f32({5, 4})}, {"group_sizes", i32({2})}},
       {},
       "lhs has 6 terms and rhs 5: f32[3, 6] and f32[5, 4]"},
      {"transposed_grouped_matmul",
       {{"lhs", f32({3, 6})}, {"rhs", f32({6, 4})}, {"group_sizes", i32({2})}},
       {{"groups", std::int64_t{-2}}},
       "option 'groups' must be an integer of at least 0"},
      {"transposed_grouped_matmul_backward",
       {{"lhs", f32({3, 6})},
        {"rhs", f32({6, 4})},
        {"group_sizes", i32({2})},
        {"grad_output", f32({2, 4, 3})}},
       {},
       "grad_output f32[2, 4, 3] must be f32[2, 3, 4]"},
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

// ---- laws of the reference ----------------------------------------------------------------------

const std::vector<double> kSizes{2, 0, 3, 1};

// An offset behind the last group leaves every row as one without a matrix.
TEST(GroupedReference, OfAnyOffsetBehindTheGroupsMultipliesNothing) {
  const Specs specs{{"lhs", f32({5, 3})},
                    {"rhs", f32({1, 3, 4})},
                    {"group_sizes", i32({1})},
                    {"existing_out", f32({5, 4})}};
  const Values inputs{{"lhs", normal_numbers(15, 1)},
                      {"rhs", normal_numbers(12, 2)},
                      {"group_sizes", {5}},
                      {"existing_out", normal_numbers(20, 3)}};
  for (const std::int64_t offset : {std::int64_t{1}, std::numeric_limits<std::int64_t>::max()}) {
    const Problem problem = problem_of("grouped_matmul", specs, {{"group_offset", offset}});
    EXPECT_EQ(problem.as<operations::matmul::GroupedProblem>().first, 1);
    EXPECT_EQ(run_reference(problem, inputs).at("output"), inputs.at("existing_out"));
  }
}

TEST(GroupedReference, OfOneGroupIsThePlainProduct) {
  const Values inputs{{"lhs", normal_numbers(5 * 3, 1)}, {"rhs", normal_numbers(3 * 4, 2)}};
  const Values plain = run_reference(problem_of("matmul", {{"a", f32({5, 3})}, {"b", f32({3, 4})}}),
                                     {{"a", inputs.at("lhs")}, {"b", inputs.at("rhs")}});
  Values grouped = inputs;
  grouped["group_sizes"] = {5};
  const Values result = run_reference(
      problem_of("grouped_matmul",
                 {{"lhs", f32({5, 3})}, {"rhs", f32({1, 3, 4})}, {"group_sizes", i32({1})}}),
      grouped);
  EXPECT_EQ(result.at("output"), plain.at("output"));
}

// With scales of rows, of each matrix's columns and of blocks of terms.
TEST(GroupedReference, OfEightBitsIsMatmulOfEachGroup) {
  const std::int64_t m = 3, k = 200, n = 2;
  std::vector<double> lhs = normal_numbers(2 * m * k, 1), rhs = normal_numbers(2 * k * n, 2);
  for (auto* values : {&lhs, &rhs})
    for (double& value : *values) value = std::round(30 * value);
  const std::vector<double> scale_lhs = normal_numbers(2 * m * 2, 3);
  const std::vector<double> scale_rhs = normal_numbers(2 * 2 * n, 4);
  const Values grouped =
      run_reference(problem_of("grouped_matmul", {{"lhs", spec(DType::kI8, {2 * m, k})},
                                                  {"rhs", spec(DType::kI8, {2, k, n})},
                                                  {"group_sizes", i32({2})},
                                                  {"scale_lhs", f32({2 * m, 2})},
                                                  {"scale_rhs", f32({2, 2, n})}}),
                    {{"lhs", lhs},
                     {"rhs", rhs},
                     {"group_sizes", {3, 3}},
                     {"scale_lhs", scale_lhs},
                     {"scale_rhs", scale_rhs}});
  for (std::size_t g = 0; g < 2; ++g) {
    const auto part = [&](const std::vector<double>& from) {
      const auto each = static_cast<std::ptrdiff_t>(from.size() / 2);
      const auto first = from.begin() + static_cast<std::ptrdiff_t>(g) * each;
      return std::vector<double>(first, first + each);
    };
    const Values one = run_reference(problem_of("matmul", {{"a", spec(DType::kI8, {m, k})},
                                                           {"b", spec(DType::kI8, {k, n})},
                                                           {"scale_a", f32({m, 2})},
                                                           {"scale_b", f32({2, n})}}),
                                     {{"a", part(lhs)},
                                      {"b", part(rhs)},
                                      {"scale_a", part(scale_lhs)},
                                      {"scale_b", part(scale_rhs)}});
    EXPECT_EQ(part(grouped.at("output")), one.at("output"));
  }
}

// Shares of the groups, each after the other into the same rows, are the whole.
TEST(GroupedReference, OfSharesOfTheGroupsIsTheWhole) {
  const Specs specs{{"lhs", f32({7, 3})}, {"rhs", f32({4, 3, 2})}, {"group_sizes", i32({4})}};
  Values inputs{
      {"lhs", normal_numbers(21, 1)}, {"rhs", normal_numbers(24, 2)}, {"group_sizes", kSizes}};
  const Values whole = run_reference(problem_of("grouped_matmul", specs), inputs);
  EXPECT_EQ(whole.at("output")[12], 0);  // row 6 is of no group
  const std::vector<double> rhs = inputs["rhs"];
  std::vector<double> rows(14, 0);
  for (const std::int64_t first : {0, 2}) {
    Specs part = specs;
    part["rhs"] = f32({2, 3, 2});
    part["existing_out"] = f32({7, 2});
    inputs["rhs"].assign(rhs.begin() + 6 * first, rhs.begin() + 6 * (first + 2));
    inputs["existing_out"] = rows;
    rows = run_reference(problem_of("grouped_matmul", part, {{"group_offset", first}}), inputs)
               .at("output");
  }
  EXPECT_EQ(rows, whole.at("output"));
}

// <w, f(x + d)> - <w, f(x)> = <grad, d> of what is linear in each operand.
TEST(GroupedReference, GradientsAreThoseOfTheDefinition) {
  for (const bool turned : {false, true}) {
    const Options options{{"transpose_rhs", turned}, {"group_offset", std::int64_t{1}}};
    const Shape rhs = turned ? Shape{2, 5, 3} : Shape{2, 3, 5};
    const Specs specs{{"lhs", f32({8, 3})},
                      {"rhs", f32(rhs)},
                      {"group_sizes", i32({4})},
                      {"existing_out", f32({8, 5})}};
    Values inputs{{"lhs", normal_numbers(24, 1)},
                  {"rhs", normal_numbers(30, 2)},
                  {"existing_out", normal_numbers(40, 3)},
                  {"group_sizes", kSizes}};
    const std::vector<double> weights = normal_numbers(40, 4);
    Specs backward = specs;
    backward.erase("existing_out");
    backward["grad_output"] = f32({8, 5});
    for (const char* name : {"lhs", "rhs", "existing_out"})
      backward[std::string("grad_") + name] = specs.at(name);
    Values known = inputs;
    known.erase("existing_out");
    known["grad_output"] = weights;
    const Values gradients =
        run_reference(problem_of("grouped_matmul_backward", backward, options), known);
    const Problem forward = problem_of("grouped_matmul", specs, options);
    const double before = dot(weights, run_reference(forward, inputs).at("output"));
    for (const char* name : {"lhs", "rhs", "existing_out"}) {
      Values moved = inputs;
      const std::vector<double> change = normal_numbers(inputs.at(name).size(), 5);
      for (std::size_t i = 0; i < change.size(); ++i) moved[name][i] += change[i];
      const double after = dot(weights, run_reference(forward, moved).at("output"));
      EXPECT_NEAR(after - before, dot(gradients.at(std::string("grad_") + name), change), 1e-9)
          << name << turned;
    }
  }
}

TEST(TransposedGroupedReference, GradientsAreThoseOfTheDefinition) {
  const Options options{{"group_offset", std::int64_t{1}}};
  const Specs specs{{"lhs", f32({3, 8})}, {"rhs", f32({8, 5})}, {"group_sizes", i32({4})}};
  const Values inputs{
      {"lhs", normal_numbers(24, 1)}, {"rhs", normal_numbers(40, 2)}, {"group_sizes", kSizes}};
  const std::vector<double> weights = normal_numbers(45, 3);
  Specs backward = specs;
  backward["grad_output"] = f32({3, 3, 5});
  backward["grad_lhs"] = specs.at("lhs");
  backward["grad_rhs"] = specs.at("rhs");
  Values known = inputs;
  known["grad_output"] = weights;
  const Values gradients =
      run_reference(problem_of("transposed_grouped_matmul_backward", backward, options), known);
  const Problem forward = problem_of("transposed_grouped_matmul", specs, options);
  const double before = dot(weights, run_reference(forward, inputs).at("output"));
  for (const char* name : {"lhs", "rhs"}) {
    Values moved = inputs;
    const std::vector<double> change = normal_numbers(inputs.at(name).size(), 5);
    for (std::size_t i = 0; i < change.size(); ++i) moved[name][i] += change[i];
    const double after = dot(weights, run_reference(forward, moved).at("output"));
    EXPECT_NEAR(after - before, dot(gradients.at(std::string("grad_") + name), change), 1e-9);
  }
}

// The gradient of rhs is the transposed operation.
TEST(TransposedGroupedReference, IsTheGradientOfTheOther) {
  const std::vector<double> lhs = normal_numbers(24, 1), weights = normal_numbers(40, 2);
  const Values gradients =
      run_reference(problem_of("grouped_matmul_backward", {{"lhs", f32({8, 3})},
                                                           {"rhs", f32({4, 3, 5})},
                                                           {"group_sizes", i32({4})},
                                                           {"grad_output", f32({8, 5})},
                                                           {"grad_rhs", f32({4, 3, 5})}}),
                    {{"lhs", lhs},
                     {"rhs", normal_numbers(60, 3)},
                     {"group_sizes", kSizes},
                     {"grad_output", weights}});
  std::vector<double> turned(24);
  for (std::size_t i = 0; i < 24; ++i) turned[i % 3 * 8 + i / 3] = lhs[i];
  const Values product = run_reference(
      problem_of("transposed_grouped_matmul",
                 {{"lhs", f32({3, 8})}, {"rhs", f32({8, 5})}, {"group_sizes", i32({4})}}),
      {{"lhs", turned}, {"rhs", weights}, {"group_sizes", kSizes}});
  EXPECT_EQ(product.at("output"), gradients.at("grad_rhs"));
}

// ---- the work list ------------------------------------------------------------------------------

TEST(GroupedList, HasRoomForATileThatEveryRangeEndsIn) {
  using namespace operations::matmul;
  const Problem problem =
      problem_of("grouped_matmul",
                 {{"lhs", f32({100, 3})}, {"rhs", f32({5, 3, 4})}, {"group_sizes", i32({9})}});
  const GroupedStage stage = grouped_stages(grouped_slots()).front();
  EXPECT_EQ(grouped_items(problem, stage, 32), 3U + 5U + 2U);
  EXPECT_EQ(grouped_scratch(problem, 32), 16U * 11U + 4U * 9U);
}

// ---- the typed functions ------------------------------------------------------------------------

TEST(GroupedMatmul, MultipliesAndItsPullbackMatches) {
  const Context context = Context::open({.device = "host", .cache_directory = ""});
  const Tensor lhs = context.upload(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor rhs = context.upload(std::vector<float>{1, 10, 2, 20}, {2, 2, 1});
  const Tensor sizes = context.upload(std::vector<std::int32_t>{1, 1}, {2});
  const Tensor kept = context.upload(std::vector<float>{7, 8, 9}, {3, 1});
  const auto [output, pullback] =
      vjp::grouped_matmul(context, lhs, rhs, sizes, {.existing_out = kept});
  EXPECT_EQ(context.download<float>(output), (std::vector<float>{21, 86, 9}));
  const GroupedMatmulGradients gradients =
      pullback(context.upload(std::vector<float>{1, 2, 3}, {3, 1}));
  EXPECT_EQ(context.download<float>(gradients.lhs), (std::vector<float>{1, 10, 4, 40, 0, 0}));
  EXPECT_EQ(context.download<float>(gradients.rhs), (std::vector<float>{1, 2, 6, 8}));
  EXPECT_EQ(context.download<float>(gradients.existing_out), (std::vector<float>{0, 0, 3}));
}

TEST(TransposedGroupedMatmul, HasAResultForEachGroup) {
  const Context context = Context::open({.device = "host", .cache_directory = ""});
  const Tensor lhs = context.upload(std::vector<float>{1, 2, 3}, {1, 3});
  const Tensor rhs = context.upload(std::vector<float>{1, 10, 100}, {3, 1});
  const Tensor sizes = context.upload(std::vector<std::int32_t>{2, 0, 1}, {3});
  EXPECT_EQ(context.download<float>(transposed_grouped_matmul(context, lhs, rhs, sizes)),
            (std::vector<float>{21, 0, 300}));
  EXPECT_EQ(context.download<float>(transposed_grouped_matmul(context, lhs, rhs, sizes,
                                                              {.group_offset = 1, .groups = 1})),
            (std::vector<float>{0}));
  const TransposedGroupedMatmulGradients gradients = transposed_grouped_matmul_backward(
      context, lhs, rhs, sizes, context.upload(std::vector<float>{1, 2, 3}, {3, 1, 1}));
  EXPECT_EQ(context.download<float>(gradients.lhs), (std::vector<float>{1, 10, 300}));
  EXPECT_EQ(context.download<float>(gradients.rhs), (std::vector<float>{1, 2, 9}));
  const auto [output, pullback] = vjp::transposed_grouped_matmul(context, lhs, rhs, sizes);
  EXPECT_EQ(context.download<float>(output), (std::vector<float>{21, 0, 300}));
  const Tensor gradient = context.upload(std::vector<float>{1, 2, 3}, {3, 1, 1});
  const TransposedGroupedMatmulGradients pulled = pullback(gradient, {.lhs = false});
  EXPECT_FALSE(pulled.lhs);
  EXPECT_EQ(context.download<float>(pulled.rhs), (std::vector<float>{1, 2, 9}));
}

TEST(GroupedMatmul, OfIntegersGivesTheirSumsOrScalesThem) {
  const Context context = Context::open({.device = "host", .cache_directory = ""});
  const Tensor lhs = context.upload(std::vector<std::int8_t>{127, -128, 3, 4, 5, 6}, {3, 2});
  const Tensor rhs = context.upload(std::vector<std::int8_t>{127, -128, 2, 20}, {2, 2, 1});
  const Tensor sizes = context.upload(std::vector<std::int32_t>{1, 1}, {2});
  const Tensor kept = context.upload(std::vector<std::int32_t>{7, 8, 2147483647}, {3, 1});
  const Tensor sums = grouped_matmul(context, lhs, rhs, sizes, {.existing_out = kept});
  EXPECT_EQ(context.download<std::int32_t>(sums),
            (std::vector<std::int32_t>{32513, 86, 2147483647}));
  const Tensor scale_lhs = context.upload(std::vector<float>{0.5F, 2, 3}, {3, 1});
  const Tensor scale_rhs = context.upload(std::vector<float>{2, 0.25F}, {2, 1, 1});
  EXPECT_EQ(context.download<float>(grouped_matmul(
                context, lhs, rhs, sizes, {.scale_lhs = scale_lhs, .scale_rhs = scale_rhs})),
            (std::vector<float>{32513, 43, 0}));
  const Tensor turned = context.upload(std::vector<std::int8_t>{2, 3}, {1, 2});
  const Tensor rows = context.upload(std::vector<std::int8_t>{5, 7}, {2, 1});
  EXPECT_EQ(context.download<std::int32_t>(transposed_grouped_matmul(context, turned, rows, sizes)),
            (std::vector<std::int32_t>{10, 21}));
}

TEST(GroupedMatmul, SizesThatAreWrongAreRaised) {
  const Context context = Context::open({.device = "host", .cache_directory = ""});
  const Tensor lhs = context.upload(std::vector<float>(6, 1), {3, 2});
  const Tensor rhs = context.upload(std::vector<float>(4, 1), {2, 2, 1});
  const auto message = [&](std::vector<std::int32_t> sizes) -> std::string {
    try {
      const Tensor output = grouped_matmul(context, lhs, rhs, context.upload(sizes, {2}));
      (void)context.download<float>(output);
    } catch (const DataError& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_THAT(message({-1, 3}), HasSubstr("group_sizes[0]"));
  EXPECT_THAT(message({-1, 3}), HasSubstr("is negative and counts 0"));
  EXPECT_THAT(message({2, std::numeric_limits<std::int32_t>::max()}), HasSubstr("group_sizes[1]"));
  EXPECT_THAT(message({2, 2}), HasSubstr("goes beyond the last row"));
  EXPECT_EQ(message({2, 1}), "nothing");
}

}  // namespace
}  // namespace tessera
