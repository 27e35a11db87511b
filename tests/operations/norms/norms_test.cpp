// SPDX-License-Identifier: Apache-2.0
// What the norms refuse, the laws of their reference, and how their rows are dealt out. No device
// is needed but for the typed functions, which run on the host.
#include "tessera/operations/norms.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "operations/norms/launch.hpp"
#include "support/reference.hpp"
#include "tessera/error.hpp"
#include "tessera/record.hpp"

namespace tessera {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

using testing::dot;
using testing::f16;
using testing::f32;
using testing::normal_numbers;
using testing::problem_of;
using testing::Specs;

// ---- quantised outputs
// ---------------------------------------------------------------------------

TEST(NormQuantised, CodesTimesScaleAreTheOutput) {
  const Context context = Context::open({.device = "host", .cache_directory = ""});
  const Tensor x = context.upload(std::vector<float>{1, -2, 3, 0.5F, 0, 0, 0, 0}, {2, 4});
  const auto plain = context.download<float>(rms_norm(context, x));
  const NormForward i8 = rms_norm_forward(context, x, {.quantise = DType::kI8});
  EXPECT_EQ(i8.scale.shape(), (Shape{2, 1}));
  const auto scale = context.download<float>(i8.scale);
  const auto codes = context.download<std::int8_t>(i8.output);
  EXPECT_EQ(codes[2], 127);
  for (std::size_t i = 0; i < codes.size(); ++i)
    EXPECT_NEAR(codes[i] * scale[i / 4], plain[i], 0.5 * scale[i / 4]) << i;
  const NormForward e4m3 = rms_norm_forward(context, x, {.quantise = DType::kE4M3FN});
  const auto floats = context.download<Float8E4M3FN>(e4m3.output);
  EXPECT_EQ(static_cast<float>(floats[2]), 448.0F);
  EXPECT_THROW(rms_norm(context, x, {.quantise = DType::kI8}), InvalidArgument);
  EXPECT_THROW(vjp::rms_norm(context, x, {.quantise = DType::kI8}), InvalidArgument);
  EXPECT_THROW(rms_norm_forward(context, x, {.quantise = DType::kF16}), InvalidArgument);
}

// ---- refusals -----------------------------------------------------------------------------------

TEST(NormRefusals, SayWhatIsWrong) {
  TensorSpec spread = f32({2, 4});
  spread.strides = {8, 2};
  const Specs gradient{{"input", f32({2, 4})}, {"grad_output", f32({2, 4})}};
  const auto with = [](Specs specs, const std::string& name, TensorSpec spec) {
    specs[name] = std::move(spec);
    return specs;
  };
  struct Row {
    const char* operation;
    Specs specs;
    Options options;
    const char* message;
  };
  const Row rows[] = {
      {"rms_norm", {{"input", f32({})}}, {}, "rms_norm: input f32[] must have a last axis"},
      {"rms_norm", {{"input", f32({3, 0})}}, {}, "input f32[3, 0] has rows of no elements"},
      {"layer_norm", {{"input", spread}}, {}, "input must be contiguous along its last axis"},
      {"rms_norm",
       {{"input", f32({2, 4})}},
       {{"quantise", std::string("i9")}},
       "one of none, i8, e4m3fn, e5m2"},
      {"rms_norm",
       {{"input", f32({2, 4})}, {"scale", f32({2, 1})}},
       {},
       "scale belongs to an output that is quantised"},
      {"layer_norm",
       {{"input", f32({2, 4})}, {"weight", f32({3})}},
       {},
       "weight f32[3] must be [4]"},
      {"rms_norm",
       {{"input", f32({2, 4})}, {"bias", f16({4})}},
       {},
       "bias f16[4] must be f32, the dtype of input, or f32"},
      {"rms_norm",
       {{"input", f16({2, 4})}, {"residual", f32({2, 4})}},
       {},
       "residual f32[2, 4] must have the dtype of input, f16"},
      {"rms_norm",
       {{"input", f32({2, 4})}, {"residual", f32({2, 1})}},
       {},
       "residual f32[2, 1] must have the last axis of input, 4"},
      {"rms_norm",
       {{"input", f32({2, 4})}, {"residual", f32({3, 4})}},
       {},
       "residual f32[3, 4] does not broadcast to input f32[2, 4] along its leading axes"},
      {"rms_norm",
       {{"input", f32({2, 4})}, {"residual", f32({1, 2, 4})}},
       {},
       "residual f32[1, 2, 4] does not broadcast"},
      {"rms_norm",
       {{"input", f32({2, 4})}},
       {{"epsilon", -1e-6}},
       "option 'epsilon' must be a finite number, not negative"},
      {"rms_norm",
       {{"input", f32({2, 4})}, {"output", f32({2, 5})}},
       {},
       "output is f32[2, 5] but must be f32[2, 4]"},
      {"rms_norm_backward",
       {{"input", f32({2, 4})}, {"grad_output", f32({2, 5})}},
       {},
       "grad_output f32[2, 5] must be f32[2, 4]"},
      {"layer_norm_backward",
       with(gradient, "grad_weight", f32({4})),
       {},
       "grad_weight is wanted, but the call has no weight"},
      {"layer_norm_backward",
       with(gradient, "grad_sum", f32({4})),
       {},
       "grad_sum f32[4] must be f32[2, 4]"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.message);
    try {
      problem_of(row.operation, row.specs, row.options);
      ADD_FAILURE() << "accepted";
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(row.message));
    }
  }
}

// ---- the reference, in double -------------------------------------------------------------------

// A call by shape and values; what is empty is left out.
struct Call {
  bool centered = false;
  Shape shape{}, residual_shape{};
  std::vector<double> input{}, weight{}, bias{}, residual{}, grad_output{}, grad_sum{};
  double epsilon = 1e-3;

  std::map<std::string, std::vector<double>> run(bool backward) const {
    const std::string name =
        std::string(centered ? "layer_norm" : "rms_norm") + (backward ? "_backward" : "");
    std::map<std::string, std::pair<Shape, const std::vector<double>*>> inputs;
    const auto add = [&](const char* operand, const Shape& of, const std::vector<double>& values) {
      if (!values.empty()) inputs[operand] = {of, &values};
    };
    const Shape row{shape.back()};
    add("input", shape, input);
    add("weight", row, weight);
    add("bias", row, bias);
    add("residual", residual_shape, residual);
    std::map<std::string, Shape> outputs;
    if (backward) {
      add("grad_output", shape, grad_output);
      add("grad_sum", shape, grad_sum);
      outputs["grad_input"] = shape;
      if (!weight.empty()) outputs["grad_weight"] = row;
      if (!bias.empty()) outputs["grad_bias"] = row;
      if (!residual.empty()) outputs["grad_residual"] = residual_shape;
    } else {
      outputs = {{"output", shape}, {"sum", shape}};
    }
    Specs specs;
    for (const auto& [operand, from] : inputs) specs[operand] = f32(from.first);
    for (const auto& [operand, of] : outputs) specs[operand] = f32(of);
    const Problem problem = problem_of(name, specs, {{"epsilon", epsilon}});

    testing::Values values;
    for (const auto& [operand, from] : inputs) values[operand] = *from.second;
    return testing::run_reference(problem, values);
  }
};

TEST(NormReference, RowsHaveTheMomentsThatTheDefinitionSays) {
  Call call{.shape = {7, 50}, .input = normal_numbers(350, 1), .epsilon = 0};
  for (const bool centered : {false, true}) {
    call.centered = centered;
    const std::vector<double> y = call.run(false)["output"];
    for (std::size_t row = 0; row < 7; ++row) {
      double mean = 0, squares = 0;
      for (std::size_t i = 0; i < 50; ++i) {
        mean += y[row * 50 + i] / 50;
        squares += y[row * 50 + i] * y[row * 50 + i] / 50;
      }
      EXPECT_NEAR(squares, 1, 1e-12);
      if (centered) {
        EXPECT_NEAR(mean, 0, 1e-12);
      }
    }
  }
}

TEST(NormReference, ComputesWhatCanBeSaidByHand) {
  Call call{.shape = {1, 2}, .input = {3, 5}, .weight = {2, 10}, .bias = {1, -1}, .epsilon = 0};
  const double rms = std::sqrt((9.0 + 25.0) / 2);
  EXPECT_THAT(call.run(false)["output"], ::testing::Pointwise(::testing::DoubleNear(1e-14),
                                                              {2 * 3 / rms + 1, 10 * 5 / rms - 1}));
  call.centered = true;
  EXPECT_THAT(call.run(false)["output"],
              ::testing::Pointwise(::testing::DoubleNear(1e-14), {-2.0 + 1, 10.0 - 1}));
  call.residual = {1, 3};
  call.residual_shape = {2};
  EXPECT_THAT(call.run(false)["sum"], ::testing::ElementsAre(4, 8));
}

TEST(NormReference, EpsilonKeepsEqualElementsFinite) {
  const Call call{.centered = true, .shape = {2, 3}, .input = std::vector<double>(6, 4.0)};
  EXPECT_THAT(call.run(false).at("output"), Each(0));
}

// The slopes of <grad_output, output> + <grad_sum, sum> along every operand.
TEST(NormReference, BackwardAgreesWithFiniteDifferences) {
  constexpr double kStep = 1e-5;
  for (const bool centered : {false, true}) {
    for (const Shape& residual_shape : {Shape{4, 3, 5}, Shape{5}, Shape{3, 5}, Shape{4, 1, 5}}) {
      std::size_t residual_size = 1;
      for (const std::int64_t extent : residual_shape)
        residual_size *= static_cast<std::size_t>(extent);
      Call call{.centered = centered,
                .shape = {4, 3, 5},
                .residual_shape = residual_shape,
                .input = normal_numbers(60, 1),
                .weight = normal_numbers(5, 2),
                .bias = normal_numbers(5, 3),
                .residual = normal_numbers(residual_size, 4),
                .grad_output = normal_numbers(60, 5),
                .grad_sum = normal_numbers(60, 6)};
      const auto value = [&call] {
        const auto result = call.run(false);
        return dot(call.grad_output, result.at("output")) + dot(call.grad_sum, result.at("sum"));
      };
      const auto gradients = call.run(true);
      const auto compare = [&](const char* name, std::vector<double>& of) {
        const std::vector<double>& gradient = gradients.at(name);
        ASSERT_EQ(gradient.size(), of.size());
        for (std::size_t i = 0; i < of.size(); ++i) {
          const double kept = of[i];
          of[i] = kept + kStep;
          const double above = value();
          of[i] = kept - kStep;
          const double below = value();
          of[i] = kept;
          EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-7) << name << " " << i;
        }
      };
      compare("grad_input", call.input);
      compare("grad_weight", call.weight);
      compare("grad_bias", call.bias);
      compare("grad_residual", call.residual);
    }
  }
}

// ---- how rows are dealt out ---------------------------------------------------------------------

TEST(NormLaunch, EveryGroupHasRowsAndAllRowsAreDealt) {
  for (std::int64_t rows = 0; rows < 70; ++rows) {
    for (const std::int64_t lines : {1, 3, 4}) {
      for (const std::int64_t wanted : {1, 2, 7, 64}) {
        const auto dealing = operations::norms::deal(rows, lines, wanted);
        const std::int64_t blocks = (rows + lines - 1) / lines;
        ASSERT_LE(dealing.groups, wanted);
        if (blocks == 0) {
          ASSERT_EQ(dealing.groups, 0);
          continue;
        }
        // What a kernel makes of the number of groups.
        const std::int64_t each = (blocks + dealing.groups - 1) / dealing.groups;
        ASSERT_GE(dealing.groups * each, blocks);
        ASSERT_LT((dealing.groups - 1) * each, blocks) << rows << " " << lines << " " << wanted;
      }
    }
  }
}

TEST(NormLaunch, NeighbouringAxesThatLieAlikeAreOne) {
  const auto axes_of = [](const Specs& specs) {
    return operations::norms::row_axes(problem_of("rms_norm", specs));
  };
  const auto sizes = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    return std::array<std::int64_t, 3>{a, b, c};
  };
  EXPECT_EQ(axes_of({{"input", f32({2, 3, 4, 5, 8})}})->sizes, sizes(1, 1, 120));
  EXPECT_EQ(axes_of({{"input", f32({2, 3, 4, 8})}, {"residual", f32({4, 8})}})->sizes,
            sizes(1, 6, 4));
  EXPECT_EQ(axes_of({{"input", f32({2, 3, 4, 8})}, {"residual", f32({2, 1, 4, 8})}})->sizes,
            sizes(2, 3, 4));
  EXPECT_EQ(axes_of({{"input", f32({8})}})->sizes, sizes(1, 1, 1));
  EXPECT_FALSE(axes_of({{"input", f32({2, 3, 4, 5, 8})}, {"residual", f32({2, 1, 4, 1, 8})}}));
}

// ---- typed functions ----------------------------------------------------------------------------

TEST(NormFunctions, PullbackIsTheGradientOperation) {
  const Context context = Context::open("host");
  const std::vector<float> x{1, 2, 3, 4, -1, 0, 5, 2}, w{1, 2, 0.5F, 3},
      dy{1, 0, 2, -1, 3, 1, 0, 1};
  const Tensor input = context.upload(x, {2, 4}), weight = context.upload(w, {4}),
               gradient = context.upload(dy, {2, 4}), residual = context.upload(w, {4});
  for (const bool same_shape : {false, true}) {
    const NormOptions options{.weight = weight,
                              .bias = weight,
                              .residual = same_shape ? gradient : residual,
                              .epsilon = 1e-3F};
    const auto [output, sum, pullback] = vjp::layer_norm(context, input, options);
    EXPECT_EQ(context.download<float>(output),
              context.download<float>(layer_norm(context, input, options)));
    EXPECT_EQ(sum.shape(), input.shape());
    const NormGradients once = pullback(gradient, {.grad_sum = gradient});
    const NormGradients direct =
        layer_norm_backward(context, input, gradient, options, {.grad_sum = gradient});
    EXPECT_EQ(context.download<float>(once.input), context.download<float>(direct.input));
    EXPECT_EQ(context.download<float>(once.weight), context.download<float>(direct.weight));
    EXPECT_EQ(context.download<float>(once.bias), context.download<float>(direct.bias));
    EXPECT_EQ(once.residual.shape(), options.residual.shape());
    const NormGradients few =
        pullback(gradient, {.weight = false, .bias = false, .residual = false});
    EXPECT_TRUE(few.input);
    EXPECT_FALSE(few.weight || few.bias || few.residual);
  }
}

}  // namespace
}  // namespace tessera
