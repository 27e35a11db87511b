// SPDX-License-Identifier: Apache-2.0
// What moe_ffn refuses, that it is its pieces, and that its gradients are slopes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "selection/heuristics.hpp"
#include "support/profiles.hpp"
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
       "option 'activation' must be silu or gelu or gelu_tanh or relu or identity"},
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

// ---- on Hopper
// ------------------------------------------------------------------------------------

Problem gated_problem(DType dtype, std::int64_t tokens, std::int64_t experts, std::int64_t hidden,
                      std::int64_t inner, Options options = {}) {
  const bool transposed = options.contains("transposed");
  const bool gated = !options.contains("gated");
  const std::int64_t columns = gated ? 2 * inner : inner;
  const auto of = [&](Shape shape) { return TensorSpec::contiguous(dtype, std::move(shape)); };
  return problem_of(
      "moe_ffn",
      {{"input", of({tokens, hidden})},
       {"logits", of({tokens, experts})},
       {"gate_up", transposed ? of({experts, columns, hidden}) : of({experts, hidden, columns})},
       {"down", transposed ? of({experts, hidden, inner}) : of({experts, inner, hidden})}},
      std::move(options));
}

TEST(MoeFfnHopper, IsChosenWhereTilesAreFull) {
  const auto chosen = [](const Problem& problem, const char* profile) {
    const auto choice =
        selection::heuristic_choice(problem, testing::load_profile(profile), nullptr);
    return choice ? choice->variant + " " + choice->config.to_string() : "nothing";
  };
  const Problem mixture =
      gated_problem(DType::kBF16, 16384, 64, 4096, 1536, {{"top_k", std::int64_t{6}}});
  EXPECT_EQ(chosen(mixture, "h200_opencl"), "hopper BLOCK_N=256,GROUPS=132,STAGES=3,WG_X=384");
  EXPECT_EQ(chosen(mixture, "ampere_opencl"), "calls WG_X=64");
  EXPECT_EQ(chosen(mixture, "h200_vulkan"), "calls WG_X=64");
  EXPECT_EQ(chosen(gated_problem(DType::kF16, 64, 2, 1024, 512), "h200_opencl"),
            "hopper BLOCK_N=128,GROUPS=132,STAGES=4,WG_X=384");
  const std::pair<Problem, const char*> others[] = {
      {gated_problem(DType::kF32, 512, 4, 256, 256), "floats"},
      {gated_problem(DType::kF16, 4, 4, 256, 256), "few rows"},
      {gated_problem(DType::kF16, 512, 4, 256, 32), "few columns"},
      {gated_problem(DType::kF16, 512, 4, 256, 260), "rows that are no multiples of 16 bytes"},
      {gated_problem(DType::kF16, 512, 4, 256, 256, {{"gated", false}}), "no gate"}};
  for (const auto& [problem, why] : others)
    EXPECT_EQ(chosen(problem, "h200_opencl"), "calls WG_X=64") << why;
}

TEST(MoeFfnHopper, SaysWhatItDoesNotTake) {
  const DeviceProfile profile = testing::load_profile("h200_opencl");
  const Variant& variant = *find_operation("moe_ffn").find_variant("hopper");
  const auto refusal = [&](const Problem& problem, std::uint32_t block_n = 256) {
    const Config config{{"BLOCK_N", block_n}, {"STAGES", 3}, {"WG_X", 384}, {"GROUPS", 132}};
    return variant.rejects(problem, config, profile).value_or("");
  };
  EXPECT_EQ(refusal(gated_problem(DType::kF16, 512, 4, 256, 200)), "");
  EXPECT_EQ(refusal(gated_problem(DType::kF16, 512, 4, 256, 200, {{"transposed", true}})), "");
  EXPECT_THAT(refusal(gated_problem(DType::kF16, 512, 4, 256, 200), 64),
              HasSubstr("takes tiles of 128 or 256 columns"));
  EXPECT_THAT(refusal(gated_problem(DType::kF16, 512, 4, 256, 200, {{"gated", false}})),
              HasSubstr("takes experts with a gate"));
  // Matrices have rows of multiples of 16 bytes there, gated values do not.
  EXPECT_THAT(refusal(gated_problem(DType::kF16, 512, 4, 256, 204)),
              HasSubstr("leaves gated results by tensor copies"));
  EXPECT_THAT(refusal(gated_problem(DType::kF16, 512, 4, 252, 256)),
              HasSubstr("multiples of 16 bytes"));
  // One row of gate and one of up are lines of a map, too.
  EXPECT_THAT(refusal(gated_problem(DType::kF16, 1, 4, 252, 1,
                                    {{"transposed", true}, {"top_k", std::int64_t{1}}})),
              HasSubstr("multiples of 16 bytes"));
  EXPECT_THAT(refusal(gated_problem(DType::kF16, 512, 1025, 64, 64)),
              HasSubstr("takes at most 1024 groups"));
}

// What is stored between its steps lies behind the list of groups, and the sums of gate and up are
// nowhere.
TEST(MoeFfnHopper, KeepsNoSumsInScratch) {
  const DeviceProfile profile = testing::load_profile("h200_opencl");
  const Operation& operation = find_operation("moe_ffn");
  const Problem problem = gated_problem(DType::kBF16, 4096, 16, 512, 384);
  const auto scratch = [&](const char* name) {
    const Variant& variant = *operation.find_variant(name);
    return variant.scratch_bytes(problem, variant.space(problem, profile).front());
  };
  const std::uint64_t sums = std::uint64_t{2} * 2 * 4096 * 2 * 384;
  EXPECT_LT(scratch("hopper"), scratch("calls") - sums + 16384);
}

// Edges of its tiles, which no device at hand may have.
TEST(MoeFfnEdges, OfHopperAreTakenByHopper) {
  const DeviceProfile profile = testing::load_profile("h200_opencl");
  const Operation& operation = find_operation("moe_ffn");
  const Variant& variant = *operation.find_variant("hopper");
  for (const std::uint32_t block_n : {128U, 256U}) {
    const Config config{{"BLOCK_N", block_n}, {"STAGES", 3}, {"WG_X", 384}, {"GROUPS", 132}};
    for (const Case& edge : operation.workload.edge_cases(DType::kF16, config)) {
      const Problem problem = make_problem(operation, edge.operands, edge.options);
      EXPECT_EQ(variant.rejects(problem, config, profile).value_or(""), "") << edge.name;
    }
  }
}

// ---- whole calls
// ----------------------------------------------------------------------------------

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
  check_slopes({.activation = ExpertActivation::kIdentity});
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
