// SPDX-License-Identifier: Apache-2.0
// What the operations of mixtures of experts refuse, and the laws of their references. No device is
// needed but for the typed functions, which run on the host.
#include "tessera/operations/moe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "operations/common/philox.hpp"
#include "support/reference.hpp"
#include "tessera/error.hpp"
#include "tessera/record.hpp"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using testing::dot;
using testing::f32;
using testing::i32;
using testing::normal_numbers;
using testing::problem_of;
using testing::run_reference;
using testing::Specs;
using testing::Values;

// ---- refusals -----------------------------------------------------------------------------------

TEST(MoeRefusals, SayWhatIsWrong) {
  const Specs logits{{"logits", f32({5, 8})}};
  const Specs choices{{"expert_ids", i32({5, 2})}, {"slots", i32({5, 2})}, {"offsets", i32({9})}};
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
      {"route", {{"logits", f32({8})}}, {}, "logits f32[8] must be [tokens, experts]"},
      {"route", logits, {{"top_k", std::int64_t{9}}}, "chooses 9 of 8 experts"},
      {"route", logits, {{"top_k", std::int64_t{0}}}, "an integer of at least 1"},
      {"route", logits, {{"groups", std::int64_t{3}}}, "keeps 3 of 3 groups of 8 experts"},
      {"route",
       logits,
       {{"groups", std::int64_t{4}}, {"top_groups", std::int64_t{5}}},
       "keeps 5 of 4 groups"},
      {"route", logits, {{"capacity", std::int64_t{0}}}, "an integer of at least 1"},
      {"route", logits, {{"noise", -0.5}}, "a finite number, not negative"},
      {"route", logits, {{"score", std::string("relu")}}, "softmax or sigmoid"},
      {"route", with(logits, "bias", f32({5})), {}, "bias f32[5] must be f32[8]"},
      {"route_backward",
       {{"logits", f32({5, 8})},
        {"expert_ids", i32({4, 2})},
        {"slots", i32({4, 2})},
        {"grad_weights", f32({4, 2})}},
       {},
       "expert_ids i32[4, 2] must be [5, top_k]"},
      {"dispatch", with(choices, "input", f32({4, 8})), {}, "differ in tokens"},
      {"dispatch", with(with(choices, "input", f32({5, 8})), "slots", i32({5, 1})), {}, "must be"},
      {"combine", with(choices, "rows", f32({4})), {}, "must be [rows, dim]"},
      {"combine_backward",
       with(with(with(choices, "rows", f32({10, 8})), "grad_output", f32({5, 8})), "grad_weights",
            f32({5, 2})),
       {},
       "grad_weights is wanted, but the call has no weights"}};
  for (const Row& row : rows) {
    try {
      problem_of(row.operation, row.specs, row.options);
      ADD_FAILURE() << "takes what should be refused: " << row.message;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(row.message));
    }
  }
}

// ---- routing ------------------------------------------------------------------------------------

class Moe : public ::testing::Test {
 protected:
  Context context = Context::open({.device = "host", .cache_directory = ""});
  std::vector<std::int32_t> integers(const Tensor& tensor) {
    return context.download<std::int32_t>(tensor);
  }
  std::vector<float> floats(const Tensor& tensor) { return context.download<float>(tensor); }
};

TEST_F(Moe, TokensTakePlacesInTheirOrderAndTiesGoToTheLowerExpert) {
  const Tensor logits =
      context.upload(std::vector<float>{1, 1, 0, 0, 2, 2, 5, 1, 1, 3, 3, 3}, {4, 3});
  const Routes routes = route(context, logits, {.top_k = 2, .capacity = 2});
  EXPECT_THAT(integers(routes.expert_ids), ElementsAre(0, 1, 1, 2, 0, 1, 0, 1));
  EXPECT_THAT(integers(routes.slots), ElementsAre(0, 0, 1, 0, 1, -1, -1, -1));
  EXPECT_THAT(integers(routes.counts), ElementsAre(2, 2, 1));
  EXPECT_THAT(integers(routes.offsets), ElementsAre(0, 2, 4, 6));
  // Weights of kept choices are 1 together; of a token without any, 0.
  EXPECT_THAT(floats(routes.weights), ElementsAre(0.5F, 0.5F, 0.5F, 0.5F, 1, 0, 0, 0));
  const Routes dropless = route(context, logits, {.top_k = 2});
  EXPECT_THAT(integers(dropless.offsets), ElementsAre(0, 3, 7, 8));
}

TEST_F(Moe, AllTokensToOneExpertDropTheRest) {
  std::vector<float> values(20 * 4, 0.0F);
  for (std::size_t token = 0; token < 20; ++token) values[token * 4 + 3] = 9;
  const Tensor logits = context.upload(values, {20, 4});
  const std::int64_t capacity = expert_capacity(20, 1.25F, 1, 4);
  EXPECT_EQ(capacity, 7);
  const Routes routes = route(context, logits, {.top_k = 1, .capacity = capacity});
  EXPECT_THAT(integers(routes.counts), ElementsAre(0, 0, 0, 7));
  EXPECT_EQ(expert_capacity(20, 1e-9F, 1, 4), 1);
}

TEST_F(Moe, GroupsAndBiasLimitTheChoiceAndNotTheWeights) {
  // Two groups of two: with the bias the first has the larger sum, the second the best expert.
  const Tensor logits = context.upload(std::vector<float>{0, 0, 1, -9}, {1, 4});
  const Tensor bias = context.upload(std::vector<float>{0.2F, 0.1F, 0, 0}, {4});
  const RouteOptions options{.top_k = 2,
                             .score = RouteScore::kSigmoid,
                             .bias = bias,
                             .groups = 2,
                             .top_groups = 1,
                             .scale = 3};
  const Routes routes = route(context, logits, options);
  EXPECT_THAT(integers(routes.expert_ids), ElementsAre(0, 1));
  EXPECT_THAT(floats(routes.weights), ElementsAre(1.5F, 1.5F));
  const Routes few = route(context, logits, {.top_k = 3, .groups = 4, .top_groups = 1});
  EXPECT_THAT(integers(few.expert_ids), ElementsAre(2, -1, -1));
  EXPECT_THAT(integers(few.slots), ElementsAre(0, -1, -1));
}

TEST_F(Moe, NoiseIsThatOfTheGenerator) {
  const Tensor logits = context.upload(std::vector<float>(2 * 3, 0.0F), {2, 3});
  const Routes routes = route(
      context, logits,
      {.top_k = 3, .score = RouteScore::kSigmoid, .renormalise = false, .noise = 1, .seed = 77});
  const auto ids = integers(routes.expert_ids);
  const auto weights = floats(routes.weights);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto number = i / 3 * 3 + static_cast<std::size_t>(ids[i]);
    const auto words = operations::philox_block(77, number);
    const double u = (static_cast<double>(words[0] >> 8) + 1) / 0x1p24;
    const double v = static_cast<double>(words[1] >> 8) / 0x1p24;
    const double x = std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
    EXPECT_NEAR(weights[i], 1 / (1 + std::exp(-x)), 1e-6);
  }
}

// The slopes of <grad_weights, weights> and the losses along logits.
TEST(MoeReference, RouteBackwardAgreesWithFiniteDifferences) {
  constexpr double kStep = 1e-6;
  for (const char* score : {"softmax", "sigmoid"}) {
    for (const bool renormalise : {true, false}) {
      Options options{{"score", std::string(score)},
                      {"renormalise", renormalise},
                      {"scale", 1.5},
                      {"balance_coefficient", 0.3},
                      {"z_coefficient", 0.2}};
      Options forward_options = options;
      forward_options["top_k"] = std::int64_t{3};
      forward_options["capacity"] = std::int64_t{3};
      const Problem forward = problem_of(
          "route", {{"logits", f32({6, 5})}, {"balance_loss", f32({1})}, {"z_loss", f32({1})}},
          forward_options);
      std::vector<double> logits = normal_numbers(30, 3);
      const Values routed = run_reference(forward, {{"logits", logits}});
      const std::vector<double> grad_weights = normal_numbers(18, 5);
      const Values gradients = run_reference(problem_of("route_backward",
                                                        {{"logits", f32({6, 5})},
                                                         {"expert_ids", i32({6, 3})},
                                                         {"slots", i32({6, 3})},
                                                         {"grad_weights", f32({6, 3})},
                                                         {"grad_balance_loss", f32({1})},
                                                         {"grad_z_loss", f32({1})}},
                                                        options),
                                             {{"logits", logits},
                                              {"expert_ids", routed.at("expert_ids")},
                                              {"slots", routed.at("slots")},
                                              {"grad_weights", grad_weights},
                                              {"grad_balance_loss", {0.7}},
                                              {"grad_z_loss", {-1.3}}});
      const auto value = [&] {
        const Values result = run_reference(forward, {{"logits", logits}});
        return dot(grad_weights, result.at("weights")) + 0.7 * result.at("balance_loss")[0] -
               1.3 * result.at("z_loss")[0];
      };
      for (std::size_t i = 0; i < logits.size(); ++i) {
        const double kept = logits[i];
        logits[i] = kept + kStep;
        const double above = value();
        logits[i] = kept - kStep;
        const double below = value();
        logits[i] = kept;
        EXPECT_NEAR(gradients.at("grad_logits")[i], (above - below) / (2 * kStep), 1e-7) << i;
      }
    }
  }
}

// ---- rows ---------------------------------------------------------------------------------------

TEST_F(Moe, RowsGoToExpertsAndComeBack) {
  const Tensor logits =
      context.upload(std::vector<float>{1, 1, 0, 0, 2, 2, 5, 1, 1, 3, 3, 3}, {4, 3});
  const Routes routes = route(context, logits, {.top_k = 2, .capacity = 2});
  const Tensor input = context.upload(std::vector<float>{1, 2, 3, 4}, {4, 1});
  const Tensor rows = dispatch(context, input, routes, 6);
  EXPECT_THAT(floats(rows), ElementsAre(1, 3, 1, 2, 2, 0));
  // The last token has no expert.
  EXPECT_THAT(floats(combine(context, rows, routes)), ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(floats(dispatch_backward(context, rows, routes)), ElementsAre(2, 4, 3, 0));
  const CombineGradients gradients = combine_backward(context, rows, routes, input);
  EXPECT_THAT(floats(gradients.rows), ElementsAre(0.5F, 3, 0.5F, 1, 1, 0));
  EXPECT_THAT(floats(gradients.weights), ElementsAre(1, 1, 4, 4, 9, 0, 0, 0));
}

TEST_F(Moe, WrongChoicesAreLeftOutAndReported) {
  const Routes routes{.expert_ids = context.upload(std::vector<std::int32_t>{0, 7}, {2, 1}),
                      .slots = context.upload(std::vector<std::int32_t>{0, 0}, {2, 1}),
                      .weights = {},
                      .counts = {},
                      .offsets = context.upload(std::vector<std::int32_t>{0, 1, 2}, {3}),
                      .balance_loss = {},
                      .z_loss = {}};
  const Tensor output = dispatch(context, context.upload(std::vector<float>{5, 6}, {2, 1}), routes);
  try {
    context.synchronize();
    ADD_FAILURE() << "there is no expert 7";
  } catch (const DataError& error) {
    EXPECT_EQ(error.operand(), "expert_ids");
    EXPECT_EQ(error.index(), 1);
  }
  EXPECT_THAT(floats(output), ElementsAre(5, 0));
}

// ---- placement ----------------------------------------------------------------------------------

TEST(ExpertPlacement, PacksAreEquallyManyAndOfLikeWeight) {
  const Packing packing = balanced_packing({9, 1, 5, 5, 2, 8}, 3);
  EXPECT_THAT(packing.pack, ElementsAre(0, 0, 2, 2, 1, 1));
  EXPECT_THAT(packing.rank, ElementsAre(0, 1, 0, 1, 1, 0));
  EXPECT_THAT(balanced_packing({3, 1, 2}, 3).pack, ElementsAre(0, 1, 2));
  EXPECT_THROW(balanced_packing({1, 2, 3}, 2), InvalidArgument);
  EXPECT_THROW(balanced_packing({}, std::int64_t{1} << 62), OutOfHostMemory);
}

TEST(ExpertPlacement, TheBusiestExpertsGetReplicas) {
  const std::vector<double> load{90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86};
  for (const bool hierarchical : {true, false}) {
    const ExpertPlacement placement = expert_placement(
        load, {.replicas = 16, .groups = 4, .nodes = 2, .gpus = 8, .hierarchical = hierarchical});
    ASSERT_EQ(placement.physical_to_logical.size(), 16U);
    EXPECT_EQ(std::accumulate(placement.counts.begin(), placement.counts.end(), std::int64_t{0}),
              16);
    EXPECT_EQ(placement.counts[10], 2);
    EXPECT_EQ(placement.counts[7], 1);
    for (std::size_t expert = 0; expert < load.size(); ++expert) {
      const auto& replicas = placement.logical_to_physical[expert];
      ASSERT_EQ(static_cast<std::int64_t>(replicas.size()), placement.counts[expert]);
      for (const std::int64_t physical : replicas) {
        EXPECT_EQ(placement.physical_to_logical[static_cast<std::size_t>(physical)],
                  static_cast<std::int64_t>(expert));
        // Groups of 3 experts stay on a node of 8 replicas.
        const auto& first = placement.logical_to_physical[expert / 3 * 3];
        if (hierarchical) {
          EXPECT_EQ(physical / 8, first.front() / 8);
        }
      }
    }
  }
  EXPECT_THROW(expert_placement(load, {.replicas = 11}), InvalidArgument);
  EXPECT_THROW(expert_placement(load, {.replicas = 15, .gpus = 2}), InvalidArgument);
  EXPECT_THROW(expert_placement(load, {.replicas = 16, .groups = 5, .gpus = 4}), InvalidArgument);
}

}  // namespace
}  // namespace tessera
