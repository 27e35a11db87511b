// SPDX-License-Identifier: Apache-2.0
// What products with quantised weights refuse, the laws of their reference, and the typed function
// on the host.
#include "tessera/operations/quantised_matmul.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "operations/quantised_core/problem.hpp"
#include "support/contexts.hpp"
#include "support/messages.hpp"
#include "support/reference.hpp"
#include "tessera/error.hpp"
#include "tessera/operations/quantise.hpp"

namespace tessera {
namespace {

using testing::f32;
using ::testing::HasSubstr;
using testing::message_of;
using testing::normal_numbers;
using testing::problem_of;
using testing::run_reference;
using testing::Specs;
using testing::u8;
using testing::Values;

TEST(QuantisedRefusals, SayWhatIsWrong) {
  struct Row {
    Specs specs;
    Options options;
    const char* message;
  };
  const Specs plain{{"input", f32({2, 64})}, {"weight", u8({3, 64})}, {"scale", f32({3, 2})}};
  const auto with = [&](const char* name, TensorSpec spec) {
    Specs specs = plain;
    specs[name] = std::move(spec);
    return specs;
  };
  Specs unscaled = plain;
  unscaled.erase("scale");
  const Row rows[] = {
      {with("weight", u8({64})), {}, "weight u8[64] must be [out_features, in_features]"},
      {with("weight", u8({3, 60})), {}, "weight u8[3, 60] must be u8[3, 64]"},
      {plain, {{"group_offset", std::int64_t{0}}}, "group_offset is that of group_sizes"},
      {with("group_sizes", testing::i32({3})),
       {},
       "weight u8[3, 64] must be [matrices, out_features, in_features]"},
      {{{"input", f32({2, 64})},
        {"weight", u8({4, 3, 64})},
        {"scale", f32({3, 2})},
        {"group_sizes", testing::i32({4})}},
       {},
       "scale f32[3, 2] must be [matrices, n, groups]"},
      {{{"input", f32({1, 2, 64})},
        {"weight", u8({4, 3, 64})},
        {"scale", f32({4, 3, 2})},
        {"group_sizes", testing::i32({4})}},
       {},
       "input f32[1, 2, 64] must have two axes: its rows are in groups"},
      {unscaled, {}, "weight in layout 'plain' needs scale"},
      {with("scale", f32({3})), {}, "scale f32[3] must be [n, groups]"},
      {with("scale", f32({3, 3})), {}, "groups have a multiple of 32 terms, not 22"},
      {plain,
       {{"group_size", std::int64_t{64}}},
       "scale f32[3, 2] must have a column for each of the 1 groups of 64 terms"},
      {plain,
       {{"group_size", std::int64_t{0}}},
       "option 'group_size' must be an integer of at least 1"},
      {with("zero_point", u8({3, 1})), {}, "zero_point u8[3, 1] must be u8[3, 2]"},
      {with("zero_point", TensorSpec::contiguous(DType::kI8, {3, 2})),
       {},
       "zero_point i8[3, 2] must have the dtype of weight, u8"},
      {plain, {{"layout", std::string("q5_0")}}, "option 'layout' must be plain or q8_0 or q4_0"},
      {unscaled, {{"layout", std::string("q8_0")}}, "weight u8[3, 64] must be u8[3, 68]"},
      {{{"input", f32({2, 64})}, {"weight", u8({3, 36})}, {"scale", f32({3, 2})}},
       {{"layout", std::string("q4_0")}},
       "blocks have scales of their own, and the call has scale or zero_point"},
      {{{"input", f32({2, 60})}, {"weight", u8({3, 36})}},
       {{"layout", std::string("q4_0")}},
       "blocks have 32 weights, and input has 60 terms"},
      {with("input", TensorSpec::contiguous(DType::kI8, {2, 64})),
       {},
       "input of i8 has an input_scale, and no other: input is i8"},
      {with("input_scale", f32({2, 1})),
       {},
       "input of i8 has an input_scale, and no other: input is f32"},
  };
  for (const Row& row : rows) {
    try {
      (void)problem_of("quantised_matmul", row.specs, row.options);
      FAIL() << "not refused: " << row.message;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(row.message));
    }
  }
}

// The same numbers as codes with zero points and as blocks of ggml: the product is the same.
TEST(QuantisedReference, LayoutsOfTheSameNumbersAgree) {
  const std::vector<double> input = normal_numbers(64, 1);
  std::vector<double> codes(64), bytes8, bytes4, centred(64);
  for (std::size_t i = 0; i < 64; ++i) {
    codes[i] = static_cast<double>(i * 7 % 16);
    centred[i] = codes[i] - 8;
  }
  for (std::size_t block = 0; block < 2; ++block) {
    const std::uint16_t scale = to_half_bits(block == 0 ? 0.5 : -0.25);
    for (auto* bytes : {&bytes8, &bytes4}) {
      bytes->push_back(scale % 256);
      bytes->push_back(scale / 256);
    }
    for (std::size_t i = 0; i < 32; ++i) {
      const double number = centred[32 * block + i];
      bytes8.push_back(number < 0 ? number + 256 : number);
    }
    for (std::size_t i = 0; i < 16; ++i)
      bytes4.push_back(codes[32 * block + i] + 16 * codes[32 * block + 16 + i]);
  }
  const auto run = [&](TensorSpec weight, const std::vector<double>& numbers, const char* layout,
                       double zero) {
    Specs specs{{"input", f32({1, 64})}, {"weight", std::move(weight)}};
    Values values{{"input", input}, {"weight", numbers}};
    if (std::string(layout) == "plain") {
      specs["scale"] = f32({1, 2});
      specs["zero_point"] = u8({1, 2});
      values["scale"] = {0.5, -0.25};
      values["zero_point"] = {zero, zero};
    }
    return run_reference(problem_of("quantised_matmul", specs, {{"layout", std::string(layout)}}),
                         values)
        .at("output");
  };
  const std::vector<double> plain = run(u8({1, 64}), codes, "plain", 8);
  EXPECT_EQ(run(u8({1, 68}), bytes8, "q8_0", 0), plain);
  EXPECT_EQ(run(u8({1, 36}), bytes4, "q4_0", 0), plain);
  double sum = 0;
  for (std::size_t i = 0; i < 64; ++i) sum += input[i] * centred[i] * (i < 32 ? 0.5 : -0.25);
  EXPECT_NEAR(plain[0], sum, 1e-12);
}

TEST(QuantisedReference, ScalesThatAreNoNumbersMakeNan) {
  const auto output = [](double scale) {
    return run_reference(
               problem_of("quantised_matmul",
                          {{"input", f32({1, 1})}, {"weight", u8({1, 1})}, {"scale", f32({1, 1})}}),
               {{"input", {2}}, {"weight", {3}}, {"scale", {scale}}})
        .at("output")[0];
  };
  EXPECT_EQ(output(0.5), 3);
  EXPECT_EQ(output(0), 0);
  EXPECT_TRUE(std::isnan(output(std::numeric_limits<double>::infinity())));
  EXPECT_TRUE(std::isnan(output(std::nan(""))));
}

// A group size beyond 32 bits is that of the row, for kernels too.
TEST(QuantisedProblems, HaveNoGroupsLongerThanARow) {
  const Specs specs{{"input", f32({2, 64})}, {"weight", u8({1, 64})}, {"scale", f32({1, 1})}};
  const Values values{
      {"input", normal_numbers(128, 1)}, {"weight", std::vector<double>(64, 3)}, {"scale", {0.5}}};
  const auto output = [&](const Options& options) {
    return run_reference(problem_of("quantised_matmul", specs, options), values).at("output");
  };
  for (const std::int64_t size :
       {std::int64_t{64}, std::int64_t{1} << 37, std::numeric_limits<std::int64_t>::max()}) {
    const Options options{{"group_size", size}};
    const Problem problem = problem_of("quantised_matmul", specs, options);
    EXPECT_EQ(operations::quantised::arguments_of(problem).group, 2U) << size;
    EXPECT_EQ(output(options), output({})) << size;
  }
}

TEST(QuantisedMatmul, RefusesALayoutThatIsNone) {
  const Context context = Context::open({.device = "host", .cache_directory = ""});
  const Tensor input = context.upload(std::vector<float>{1, 2}, {1, 2});
  const Tensor weight = context.upload(std::vector<std::uint8_t>{1, 0}, {1, 2});
  EXPECT_THROW((void)quantised_matmul(context, input, weight,
                                      {.layout = static_cast<WeightLayout>(9), .scale = input}),
               InvalidArgument);
}

// Activations that quantise() makes codes of, and the product with their numbers.
TEST(QuantisedMatmul, TakesQuantisedActivations) {
  const Context context = Context::open({.device = "host", .cache_directory = ""});
  const Tensor input = context.upload(std::vector<float>{127, -64, 2, 1}, {2, 2});
  const Tensor weight = context.upload(std::vector<std::uint8_t>{1, 0, 2, 1}, {2, 2});
  const Tensor scale = context.upload(std::vector<float>{2, 10}, {2, 1});
  const Quantised codes = quantise(context, input, DType::kI8);
  const Tensor output =
      quantised_matmul(context, codes.codes, weight, {.scale = scale, .input_scale = codes.scale});
  EXPECT_EQ(output.dtype(), DType::kF32);
  const std::vector<float> row = context.download<float>(output);
  EXPECT_EQ(row[0], 254);
  EXPECT_EQ(row[1], 1900);
  EXPECT_NEAR(row[2], 4, 1e-5);
  EXPECT_NEAR(row[3], 10 * (4 + 64.0 * 2 / 127), 1e-4);  // 1 is code 63.5, to even
}

TEST(QuantisedMatmul, ItsGradientIsTheTransposedProduct) {
  const Context context = Context::open({.device = "host", .cache_directory = ""});
  const Tensor weight = context.upload(std::vector<std::uint8_t>{1, 0, 2, 1}, {2, 2});
  const Tensor scale = context.upload(std::vector<float>{2, 10}, {2, 1});
  const Tensor zero_point = context.upload(std::vector<std::uint8_t>{1, 0}, {2, 1});
  const Tensor gradient = context.upload(std::vector<float>{1, 3}, {1, 1, 2});
  const Tensor result = quantised_matmul_backward(context, gradient, weight,
                                                  {.scale = scale, .zero_point = zero_point});
  EXPECT_EQ(result.shape(), (Shape{1, 1, 2}));
  EXPECT_EQ(context.download<float>(result), (std::vector<float>{60, 28}));
}

// Each group by its own matrix; rows before group_offset and behind the last group are 0.
TEST(QuantisedMatmul, TakesRowsInGroups) {
  const Context context = Context::open({.device = "host", .cache_directory = ""});
  const Tensor input = context.upload(std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  const Tensor weight =
      context.upload(std::vector<std::uint8_t>{1, 0, 2, 1, 0, 1, 3, 3}, {2, 2, 2});
  const Tensor scale = context.upload(std::vector<float>{2, 10, 1, 0.5F}, {2, 2, 1});
  const QuantisedMatmulOptions options{
      .scale = scale,
      .group_sizes = context.upload(std::vector<std::int32_t>{1, 1, 1}, {3}),
      .group_offset = 1};
  EXPECT_EQ(context.download<float>(quantised_matmul(context, input, weight, options)),
            (std::vector<float>{0, 0, 6, 100, 6, 16.5F, 0, 0}));
  EXPECT_EQ(context.download<float>(quantised_matmul_backward(context, input, weight, options)),
            (std::vector<float>{0, 0, 3 * 2 + 4 * 20, 4 * 10, 6 * 1.5F, 5 + 6 * 1.5F, 0, 0}));
}

// On every platform; a size that is cut counts as far as there are rows.
TEST(QuantisedMatmul, SizesThatAreWrongAreRaised) {
  for (const char* const name : {"host", "opencl", "vulkan"}) {
    if (select_devices(probe_devices(), name).empty()) continue;
    const Context context = testing::open(name);
    const Tensor rows = context.upload(std::vector<float>{1, 2, 3}, {3, 1});
    const Tensor weight = context.upload(std::vector<std::int8_t>{2, 3, 5}, {3, 1, 1});
    const QuantisedMatmulOptions options{
        .scale = context.upload(std::vector<float>{1, 1, 1}, {3, 1, 1}),
        .group_sizes = context.upload(std::vector<std::int32_t>{1, -1, 9}, {3})};
    for (const bool backward : {false, true}) {
      const Tensor result = backward ? quantised_matmul_backward(context, rows, weight, options)
                                     : quantised_matmul(context, rows, weight, options);
      EXPECT_EQ(message_of<DataError>([&] { context.synchronize(); }),
                std::string("quantised_matmul") + (backward ? "_backward" : "") +
                    ": group_sizes[1] is negative and counts 0")
          << name;
      EXPECT_EQ(context.download<float>(result), (std::vector<float>{2, 10, 15})) << name;
    }
  }
}

TEST(QuantisedMatmul, TakesLeadingAxes) {
  const Context context = Context::open({.device = "host", .cache_directory = ""});
  const Tensor input = context.upload(std::vector<float>{1, 2, 3, 4}, {2, 1, 2});
  const Tensor weight = context.upload(std::vector<std::uint8_t>{1, 0, 2, 1}, {2, 2});
  const Tensor scale = context.upload(std::vector<float>{2, 10}, {2, 1});
  const Tensor output = quantised_matmul(context, input, weight, {.scale = scale});
  EXPECT_EQ(output.shape(), (Shape{2, 1, 2}));
  EXPECT_EQ(context.download<float>(output), (std::vector<float>{2, 40, 6, 100}));
}

}  // namespace
}  // namespace tessera
