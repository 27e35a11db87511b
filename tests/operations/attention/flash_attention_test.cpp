// SPDX-License-Identifier: Apache-2.0
// Refusals, laws of the oracle, and which variant is chosen on machines that nobody here owns.
// Needs no device.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "abi/shared.h"
#include "kernel/sources.hpp"
#include "operations/attention_core/problem.hpp"
#include "selection/selector.hpp"
#include "support/messages.hpp"
#include "support/profiles.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::attention {
namespace {

using Values = std::vector<double>;
using Band = std::pair<std::int64_t, std::int64_t>;

TensorSpec spec(std::int64_t batch, std::int64_t rows, std::int64_t heads, std::int64_t dim,
                DType dtype = DType::kF32) {
  return TensorSpec::contiguous(dtype, {batch, rows, heads, dim});
}

Problem problem_of(std::vector<std::optional<TensorSpec>> operands, Options options = {}) {
  return make_problem(find_operation("flash_attention"), std::move(operands), std::move(options));
}

std::string refusal_of(std::vector<std::optional<TensorSpec>> operands, Options options = {}) {
  return testing::message_of<InvalidArgument>(
      [&] { problem_of(std::move(operands), std::move(options)); });
}

Values normal(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> distribution;
  Values values(count);
  for (double& value : values) value = distribution(generator);
  return values;
}

struct Answer {
  Values output, log_sum_exp;
};

// The reference on double operands.
Answer reference(const Shape& q, const Shape& kv, Values query, Values key, Values value,
                 Options options = {}) {
  const auto wide = [](const Shape& shape) { return TensorSpec::contiguous(DType::kF64, shape); };
  Problem problem = problem_of({spec(q[0], q[1], q[2], q[3]), spec(kv[0], kv[1], kv[2], kv[3]),
                                spec(kv[0], kv[1], kv[2], kv[3]), std::nullopt,
                                TensorSpec::contiguous(DType::kF32, {q[0], q[2], q[1]})},
                               std::move(options));
  Answer answer{Values(static_cast<std::size_t>(q[0] * q[1] * q[2] * kv[3])),
                Values(static_cast<std::size_t>(q[0] * q[1] * q[2]))};
  const auto tensor = [](TensorSpec s, Values& values) {
    return HostTensor{.spec = std::move(s), .data = reinterpret_cast<std::byte*>(values.data())};
  };
  std::vector<HostTensor> tensors{tensor(wide(q), query), tensor(wide(kv), key),
                                  tensor(wide(kv), value),
                                  tensor(wide({q[0], q[1], q[2], kv[3]}), answer.output),
                                  tensor(wide({q[0], q[2], q[1]}), answer.log_sum_exp)};
  reference_attention(problem, tensors);
  return answer;
}

TEST(FlashAttentionRefusals, NameOperandAndValue) {
  const TensorSpec q = spec(2, 8, 4, 64), kv = spec(2, 8, 2, 64);
  EXPECT_EQ(refusal_of({TensorSpec::contiguous(DType::kF32, {8, 64}), kv, kv}),
            "flash_attention: query f32[8, 64] must have the 4 axes [batch, rows, heads, dim], "
            "or [rows, heads, dim] with cum_seqlens");
  EXPECT_EQ(
      refusal_of({q, spec(3, 8, 2, 64), kv}),
      "flash_attention: query f32[2, 8, 4, 64] and key f32[3, 8, 2, 64] must have the same batch");
  EXPECT_EQ(refusal_of({q, kv, spec(2, 9, 2, 64)}),
            "flash_attention: key f32[2, 8, 2, 64] and value f32[2, 9, 2, 64] must have the same "
            "number of rows");
  EXPECT_EQ(refusal_of({q, spec(2, 8, 2, 32), spec(2, 8, 2, 64)}),
            "flash_attention: query f32[2, 8, 4, 64] and key f32[2, 8, 2, 32] must have the same "
            "head_dim");
  EXPECT_EQ(refusal_of({q, spec(2, 8, 3, 64), spec(2, 8, 3, 64)}),
            "flash_attention: the 4 query heads must be a multiple of the 3 key/value heads");
  EXPECT_EQ(refusal_of({q, spec(2, 8, 2, 64, DType::kF16), kv}),
            "flash_attention: key must have the dtype of query, f32");
  EXPECT_NE(refusal_of({spec(1, 1, 1, 513), spec(1, 1, 1, 513), kv}).find("last axis of 1 to 512"),
            std::string::npos);
  TensorSpec transposed = q;
  transposed.strides[3] = 2;
  EXPECT_EQ(refusal_of({transposed, kv, kv}),
            "flash_attention: query must be contiguous along its last axis");
}

TEST(FlashAttentionRefusals, NameOptionAndValue) {
  const TensorSpec q = spec(1, 8, 2, 64);
  const auto with = [&](const char* name, OptionValue value) {
    return refusal_of({q, q, q}, {{name, std::move(value)}});
  };
  EXPECT_EQ(with("softmax_scale", std::nan("")),
            "flash_attention: option 'softmax_scale' must be a finite number, not 'nan'");
  EXPECT_EQ(with("logits_soft_cap", 0.0),
            "flash_attention: option 'logits_soft_cap' must be greater than 0, not '0'");
  EXPECT_EQ(with("sliding_window", std::vector<std::int64_t>{1, -2}),
            "flash_attention: option 'sliding_window' must be one or two integers that are not "
            "negative, not '1,-2'");
  EXPECT_EQ(
      with("causal_alignment", std::string("center")),
      "flash_attention: option 'causal_alignment' must be top_left or bottom_right, not 'center'");
  EXPECT_EQ(with("softmax_scale", 0.0), "");  // 0 and negative scales are calls like any other
  EXPECT_EQ(with("softmax_scale", -1.0), "");
}

TEST(FlashAttentionBand, FoldsCausalAlignmentAndWindow) {
  const TensorSpec q = spec(1, 10, 1, 8), kv = spec(1, 25, 1, 8);
  const auto band = [&](Options options) {
    const AttentionProblem call =
        problem_of({q, kv, kv}, std::move(options)).as<AttentionProblem>();
    return Band(call.band_low, call.band_high);
  };
  const OptionValue bottom = std::string("bottom_right");
  EXPECT_EQ(band({}), Band(INDEX_MIN, INDEX_MAX));
  EXPECT_EQ(band({{"causal", true}}), Band(INDEX_MIN, 0));
  EXPECT_EQ(band({{"causal", true}, {"causal_alignment", bottom}}), Band(INDEX_MIN, 15));
  EXPECT_EQ(band({{"sliding_window", std::vector<std::int64_t>{3, 2}}}), Band(-3, 2));
  EXPECT_EQ(band({{"sliding_window", std::int64_t{4}}}), Band(-4, 4));
  EXPECT_EQ(band({{"sliding_window", std::vector<std::int64_t>{3, 2}},
                  {"causal", true},
                  {"causal_alignment", bottom}}),
            Band(12, 15));
}

TEST(FlashAttentionOracle, ConstantValuesComeBack) {
  const Shape q{1, 5, 2, 4}, kv{1, 7, 1, 4};
  const Answer answer = reference(q, kv, normal(40, 1), normal(28, 2), Values(28, 0.75));
  for (const double value : answer.output) EXPECT_NEAR(value, 0.75, 1e-14);
}

TEST(FlashAttentionOracle, AddingAConstantToAllScoresShiftsOnlyTheLogSumExp) {
  // One more feature that is 1 in every query and c in every key.
  const Shape q{1, 3, 1, 3}, kv{1, 6, 1, 3};
  Values query = normal(9, 3), key = normal(18, 4);
  const Values value = normal(18, 5);
  for (std::size_t i = 0; i < 3; ++i) query[i * 3 + 2] = 1;
  for (std::size_t j = 0; j < 6; ++j) key[j * 3 + 2] = 0;
  const Answer plain = reference(q, kv, query, key, value, {{"softmax_scale", 1.0}});
  for (std::size_t j = 0; j < 6; ++j) key[j * 3 + 2] = 2.5;
  const Answer shifted = reference(q, kv, query, key, value, {{"softmax_scale", 1.0}});
  for (std::size_t i = 0; i < plain.output.size(); ++i)
    EXPECT_NEAR(shifted.output[i], plain.output[i], 1e-13);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(shifted.log_sum_exp[i], plain.log_sum_exp[i] + 2.5, 1e-13);
}

TEST(FlashAttentionOracle, ACausalPrefixIsTheShorterCall) {
  const Values query = normal(6 * 4, 6), key = normal(6 * 4, 7), value = normal(6 * 4, 8);
  const Answer whole = reference({1, 6, 1, 4}, {1, 6, 1, 4}, query, key, value, {{"causal", true}});
  const auto prefix = [](const Values& values) {
    return Values(values.begin(), values.begin() + 4 * 4);
  };
  const Answer part = reference({1, 4, 1, 4}, {1, 4, 1, 4}, prefix(query), prefix(key),
                                prefix(value), {{"causal", true}});
  for (std::size_t i = 0; i < part.output.size(); ++i) EXPECT_EQ(part.output[i], whole.output[i]);
}

TEST(FlashAttentionOracle, TwoHalvesMergeByTheirLogSumExp) {
  const Values query = normal(4, 9), key = normal(8 * 4, 10), value = normal(8 * 4, 11);
  const Answer whole = reference({1, 1, 1, 4}, {1, 8, 1, 4}, query, key, value);
  const auto half = [](const Values& values, std::size_t n) {
    return Values(values.begin() + static_cast<std::ptrdiff_t>(n * 16),
                  values.begin() + static_cast<std::ptrdiff_t>(n * 16 + 16));
  };
  const Answer a = reference({1, 1, 1, 4}, {1, 4, 1, 4}, query, half(key, 0), half(value, 0));
  const Answer b = reference({1, 1, 1, 4}, {1, 4, 1, 4}, query, half(key, 1), half(value, 1));
  const double wa = std::exp(a.log_sum_exp[0] - whole.log_sum_exp[0]),
               wb = std::exp(b.log_sum_exp[0] - whole.log_sum_exp[0]);
  EXPECT_NEAR(wa + wb, 1, 1e-14);
  for (std::size_t d = 0; d < 4; ++d)
    EXPECT_NEAR(wa * a.output[d] + wb * b.output[d], whole.output[d], 1e-13);
}

TEST(FlashAttentionOracle, GroupedHeadsAreRepeatedKeysAndValues) {
  const Values query = normal(3 * 4 * 2, 12), key = normal(5 * 2 * 2, 13),
               value = normal(5 * 2 * 2, 14);
  Values repeated_key, repeated_value;
  for (std::size_t j = 0; j < 5; ++j) {
    for (std::size_t h = 0; h < 4; ++h) {
      for (std::size_t d = 0; d < 2; ++d) {
        repeated_key.push_back(key[(j * 2 + h / 2) * 2 + d]);
        repeated_value.push_back(value[(j * 2 + h / 2) * 2 + d]);
      }
    }
  }
  const Answer grouped = reference({1, 3, 4, 2}, {1, 5, 2, 2}, query, key, value);
  const Answer repeated =
      reference({1, 3, 4, 2}, {1, 5, 4, 2}, query, repeated_key, repeated_value);
  EXPECT_EQ(grouped.output, repeated.output);
}

TEST(FlashAttentionOracle, RowsThatSeeNothingAreZeroAndMinusInfinity) {
  const Answer answer =
      reference({1, 4, 1, 2}, {1, 2, 1, 2}, normal(8, 15), normal(4, 16), normal(4, 17),
                {{"causal", true}, {"causal_alignment", std::string("bottom_right")}});
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(answer.output[2 * i], 0);
    EXPECT_EQ(answer.log_sum_exp[i], -HUGE_VAL);
  }
  EXPECT_TRUE(std::isfinite(answer.log_sum_exp[2]));
}

// What a Vulkan device with these matrices takes; the base tier where glslc knew none.
std::string matrix_variant(const DeviceProfile& profile, DType dtype, std::int64_t dim) {
  const bool registers = has(profile.features, Feature::kMatrixRegisters);
  const bool shape = std::ranges::any_of(profile.matrix_shapes, [&](const MatrixShape& s) {
    return s.input == dtype && (!registers || s.n == s.k);
  });
  const std::string module = kernel::module_name("attention/cooperative/forward.comp",
                                                 {{"DTYPE", dtype == DType::kF16 ? 1U : 2U},
                                                  {"POLICY", 0},
                                                  {"REGISTERS", registers ? 1U : 0U}});
  if (!shape || dim > 256 || kernel::find_module(module).words.empty()) return "tile_subgroup";
  return registers ? "cooperative_registers" : "cooperative";
}

// What a Hopper GPU runs through OpenCL.
std::string instruction_variant(DType dtype, std::int64_t dim) {
  if (dim > 256) return "tile";
  return dtype != DType::kF32 && dim % 8 == 0 ? "hopper" : "mma";
}

// An H200 that had no matrix instructions but these.
DeviceProfile h200_with(Feature instructions) {
  DeviceProfile profile = tessera::testing::load_profile("h200_opencl");
  profile.features = Feature::kStorage16 | Feature::kNvidiaPtx | Feature::kFp64 | instructions;
  return profile;
}

TEST(FlashAttentionSelection, RulesOnMachinesNobodyHereOwns) {
  const std::map<std::string, std::string> expected{
      {"pocl_cpu", "cpu"},  {"lavapipe", "tile_subgroup"},
      {"h200_opencl", "*"}, {"h200_vulkan", ""},
      {"rdna3_vulkan", ""}, {"arc_vulkan", ""}};  // "": by its matrices, "*": by its instructions
  for (const std::int64_t dim : {1, 40, 64, 128, 256, 512}) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      const TensorSpec q = spec(1, 300, 4, dim, dtype);
      const Problem problem = problem_of({q, q, q});
      for (const auto& [name, variant] : expected) {
        const DeviceProfile profile = tessera::testing::load_profile(name);
        selection::Selector selector({}, {});
        const Choice choice = selector.choose({.problem = &problem, .profile = &profile});
        // Intel's registers hold no more than this of a row of matrices.
        const bool spills = name == "arc_vulkan" && dim >= 40;
        EXPECT_EQ(choice.variant, spills            ? "tile_subgroup"
                                  : variant.empty() ? matrix_variant(profile, dtype, dim)
                                  : variant == "*"  ? instruction_variant(dtype, dim)
                                                    : variant)
            << name << " dim " << dim;
        EXPECT_EQ(choice.tier, Tier::kHeuristics);
      }
    }
  }
}

TEST(FlashAttentionSelection, HopperTakesCallsOfFilledWarpgroups) {
  const DeviceProfile profile = h200_with(Feature::kWgmma);
  selection::Selector selector({}, {});
  const auto chosen = [&](const Problem& problem) {
    return selector.choose({.problem = &problem, .profile = &profile}).variant;
  };
  const auto rows = [](std::int64_t count, std::int64_t dim, DType dtype) {
    return spec(1, count, 4, dim, dtype);
  };
  for (const std::int64_t dim : {40, 64, 96, 128, 192, 256}) {
    const TensorSpec q = rows(300, dim, DType::kBF16);
    EXPECT_EQ(chosen(problem_of({q, q, q})), "hopper") << dim;
    EXPECT_EQ(chosen(problem_of({q, q, q}, {{"causal", true}, {"softmax_scale", -1.0}})), "hopper");
    EXPECT_EQ(chosen(problem_of({q, q, q}, {{"dropout_prob", 0.5}})), "hopper");
    EXPECT_EQ(chosen(problem_of({q, q, q}, {{"num_splits", std::int64_t{2}}})), "tile");
  }
  for (const std::int64_t dim : {20, 264, 512}) {
    const TensorSpec q = rows(300, dim, DType::kF16);
    EXPECT_EQ(chosen(problem_of({q, q, q})), "tile") << dim;
  }
  const TensorSpec few = rows(8, 64, DType::kF16), wide = rows(300, 64, DType::kF32);
  EXPECT_EQ(chosen(problem_of({few, few, few})), "decode");
  EXPECT_EQ(chosen(problem_of({wide, wide, wide})), "tile");
}

TEST(FlashAttentionSelection, MatrixInstructionsTakeWhatHopperLeaves) {
  DeviceProfile profile;
  selection::Selector selector({}, {});
  const auto chosen = [&](const TensorSpec& q, Options options = {}) {
    const Problem problem = problem_of({q, q, q}, std::move(options));
    return selector.choose({.problem = &problem, .profile = &profile}).variant;
  };
  for (const Feature more : {Feature::kMmaSync, Feature::kMmaSync | Feature::kWgmma}) {
    profile = h200_with(more);
    for (const std::int64_t dim : {20, 64, 100, 128, 256}) {
      const TensorSpec q = spec(1, 300, 4, dim, DType::kF16);
      const bool copied = has(more, Feature::kWgmma) && dim % 8 == 0;
      EXPECT_EQ(chosen(q, {{"dropout_prob", 0.5}}), copied ? "hopper" : "mma") << dim;
      EXPECT_EQ(chosen(q, {{"num_splits", std::int64_t{2}}}), "mma") << dim;
    }
    EXPECT_EQ(chosen(spec(1, 300, 4, 128, DType::kBF16)),
              has(more, Feature::kWgmma) ? "hopper" : "mma");
    EXPECT_EQ(chosen(spec(1, 32, 4, 64, DType::kBF16)), "mma");
    EXPECT_EQ(chosen(spec(1, 8, 4, 64, DType::kBF16)), "decode");
    EXPECT_EQ(chosen(spec(1, 300, 4, 264, DType::kF16)), "tile");
    EXPECT_EQ(chosen(spec(1, 300, 4, 64, DType::kF32)),
              has(more, Feature::kWgmma) ? "mma" : "tile");
  }
}

TEST(FlashAttentionSelection, DecodeSplitsKeysOfFewHeadsAndPinnedSplitsIgnoreTheBatch) {
  const DeviceProfile profile = tessera::testing::load_profile("h200_opencl");
  selection::Selector selector({}, {});
  const auto chosen = [&](const std::string& variant, std::int64_t batch, std::int64_t keys,
                          Options options = {}) {
    const TensorSpec q = spec(batch, 1, 32, 128, DType::kF16);
    const TensorSpec k = spec(batch, keys, 8, 128, DType::kF16);
    const Problem problem = problem_of({q, k, k}, std::move(options));
    const Choice choice = selector.choose({.problem = &problem, .profile = &profile});
    EXPECT_EQ(choice.variant, variant);
    return choice.config;
  };
  EXPECT_GT(chosen("mma_decode", 1, 32768).at("SPLITS"), 16U);
  EXPECT_GT(chosen("mma_decode", 32, 32768).at("SPLITS"), 1U);
  EXPECT_EQ(chosen("decode", 1, 1024).get("SPLITS", 1), 1U);  // one pass is faster than two
  const Options pinned{{"num_splits", std::int64_t{4}}};
  EXPECT_EQ(chosen("mma_decode", 1, 1024, pinned), chosen("mma_decode", 32, 1024, pinned));
}

// PoCL unrolls the loops over an item's sums: minutes for hundreds of vectors.
TEST(FlashAttentionBackwardSpace, TilesOnCpusHaveFewSumsPerItem) {
  const Operation& operation = find_operation("flash_attention_backward");
  const Variant& tile = *operation.find_variant("tile");
  const std::pair<std::uint32_t, std::uint32_t> dims[] = {
      {64, 64}, {238, 174}, {256, 256}, {40, 250}};
  for (const auto& [dim, value_dim] : dims) {
    const TensorSpec q = spec(1, 16, 1, dim, DType::kBF16);
    const TensorSpec v = spec(1, 16, 1, value_dim, DType::kBF16);
    std::vector<std::optional<TensorSpec>> operands(operation.operands.size());
    for (const char* name : {"query", "key"}) operands[operation.slot(name)] = q;
    for (const char* name : {"value", "output", "output_gradient"})
      operands[operation.slot(name)] = v;
    operands[operation.slot("log_sum_exp")] = TensorSpec::contiguous(DType::kF32, {1, 1, 16});
    const Problem problem = make_problem(operation, operands, {});
    for (const char* device : {"pocl_cpu", "lavapipe"}) {
      const auto space = tile.space(problem, tessera::testing::load_profile(device));
      EXPECT_FALSE(space.empty());
      for (const Config& config : space) {
        for (const char* own : {"BLOCK_K", "BLOCK_Q"}) {
          const std::uint32_t rows = config.at("ITEM_ROWS");
          const std::uint32_t features = 4 * config.at("WG_X") * rows / config.at(own);
          const std::uint32_t vectors =
              (dim + features - 1) / features + (value_dim + features - 1) / features;
          EXPECT_LE(rows * vectors, 48U) << device << ' ' << dim << ' ' << config.to_string();
        }
      }
    }
  }
}

TEST(FlashAttentionSelection, DotProductsOfBf16AreForBf16Alone) {
  DeviceProfile profile = tessera::testing::load_profile("pocl_cpu");
  profile.features = profile.features | Feature::kCpuBf16Dot;
  selection::Selector selector({}, {});
  const auto chosen = [&](std::int64_t rows, DType dtype, const Options& options = {}) {
    const TensorSpec q = spec(1, rows, 4, 64, dtype);
    const Problem problem = problem_of({q, q, q}, options);
    return selector.choose({.problem = &problem, .profile = &profile}).variant;
  };
  EXPECT_EQ(chosen(300, DType::kBF16), "cpu_bf16");
  EXPECT_EQ(chosen(300, DType::kBF16, {{"dropout_prob", 0.5}}), "cpu_bf16");
  EXPECT_EQ(chosen(300, DType::kF16), "cpu");
  EXPECT_EQ(chosen(300, DType::kF32), "cpu");
  EXPECT_EQ(chosen(8, DType::kBF16), "cpu_decode");
}

TEST(FlashAttentionSelection, GradientsInBf16TakeDotProducts) {
  DeviceProfile profile = tessera::testing::load_profile("pocl_cpu");
  selection::Selector selector({}, {});
  const auto chosen = [&](DType dtype, Precision precision = Precision::kDefault) {
    const Operation& operation = find_operation("flash_attention_backward");
    std::vector<std::optional<TensorSpec>> operands(operation.operands.size());
    for (std::size_t slot = 0; slot < operands.size(); ++slot) {
      if (operation.operands[slot].name == "log_sum_exp")
        operands[slot] = TensorSpec::contiguous(DType::kF32, {1, 4, 300});
      else if (operation.operands[slot].role == Role::kInput && !operation.operands[slot].optional)
        operands[slot] = spec(1, 300, 4, 64, dtype);
    }
    Problem problem = make_problem(operation, std::move(operands), {});
    problem.precision = precision;
    return selector.choose({.problem = &problem, .profile = &profile}).variant;
  };
  EXPECT_EQ(chosen(DType::kBF16), "cpu");
  profile.features = profile.features | Feature::kCpuBf16Dot;
  EXPECT_EQ(chosen(DType::kBF16), "cpu_bf16");
  EXPECT_EQ(chosen(DType::kBF16, Precision::kHighest), "cpu");
  EXPECT_EQ(chosen(DType::kF16), "cpu");
  EXPECT_EQ(chosen(DType::kF32), "cpu");
}

TEST(FlashAttentionSelection, HopperTakesPlainBackwardCalls) {
  DeviceProfile profile = h200_with(Feature::kWgmma);
  selection::Selector selector({}, {});
  const auto chosen = [&](std::int64_t count, std::int64_t dim, DType dtype, Options options = {}) {
    const Operation& operation = find_operation("flash_attention_backward");
    std::vector<std::optional<TensorSpec>> operands(operation.operands.size());
    for (std::size_t slot = 0; slot < operands.size(); ++slot) {
      const std::string& name = operation.operands[slot].name;
      if (name == "log_sum_exp")
        operands[slot] = TensorSpec::contiguous(DType::kF32, {1, 4, count});
      else if (operation.operands[slot].role == Role::kInput && !operation.operands[slot].optional)
        operands[slot] = spec(1, count, 4, dim, dtype);
    }
    const Problem problem = make_problem(operation, std::move(operands), std::move(options));
    return selector.choose({.problem = &problem, .profile = &profile}).variant;
  };
  for (const std::int64_t dim : {40, 64, 96, 128}) {
    EXPECT_EQ(chosen(300, dim, DType::kBF16), "hopper") << dim;
    EXPECT_EQ(chosen(300, dim, DType::kF16, {{"causal", true}, {"logits_soft_cap", 30.0}}),
              "hopper");
    EXPECT_EQ(chosen(300, dim, DType::kF16, {{"dropout_prob", 0.5}}), "tile");
    EXPECT_EQ(chosen(300, dim, DType::kF32), "tile");
    EXPECT_EQ(chosen(8, dim, DType::kF16), "tile");
  }
  for (const std::int64_t dim : {20, 136, 256}) EXPECT_EQ(chosen(300, dim, DType::kF16), "tile");
  profile = h200_with(Feature::kWgmma | Feature::kMmaSync);
  for (const std::int64_t dim : {40, 64, 128}) {
    EXPECT_EQ(chosen(300, dim, DType::kBF16), "hopper");
    EXPECT_EQ(chosen(300, dim, DType::kF16, {{"dropout_prob", 0.5}}), "mma");
    EXPECT_EQ(chosen(8, dim, DType::kF16), "tile");
  }
  EXPECT_EQ(chosen(300, 20, DType::kF16), "mma");
  for (const std::int64_t dim : {129, 256}) {
    EXPECT_EQ(chosen(300, dim, DType::kF16), "mma_wide") << dim;
    EXPECT_EQ(chosen(300, dim, DType::kBF16, {{"dropout_prob", 0.5}}), "mma_wide") << dim;
    EXPECT_EQ(chosen(300, dim, DType::kF32), "tile") << dim;
  }
  EXPECT_EQ(chosen(300, 257, DType::kF16), "tile");
  // With the work-group memory that every GPU from sm_80 on has.
  profile = h200_with(Feature::kMmaSync);
  EXPECT_EQ(chosen(300, 256, DType::kF16), "mma_wide");
}

TEST(FlashAttentionSelection, WithoutSubGroupsTheSharedMemoryFormIsTaken) {
  DeviceProfile profile = tessera::testing::load_profile("lavapipe");
  profile.features = without(profile.features, Feature::kSubgroupArithmetic);
  const TensorSpec q = spec(1, 64, 1, 64);
  const Problem problem = problem_of({q, q, q});
  selection::Selector selector({}, {});
  EXPECT_EQ(selector.choose({.problem = &problem, .profile = &profile}).variant, "tile");
  profile.features = without(profile.features, Feature::kStorage16);
  EXPECT_THROW(selector.choose({.problem = &problem, .profile = &profile}), Unsupported);
}

TEST(FlashAttentionSelection, KeysBucketLengthsAndNameWhatChangesTheKernel) {
  const auto key = [](std::int64_t rows, std::int64_t dim, Options options = {}) {
    const TensorSpec q = spec(1, rows, 4, dim);
    return problem_of({q, q, q}, std::move(options)).key;
  };
  EXPECT_EQ(key(1000, 64), key(1024, 64));
  EXPECT_NE(key(1000, 64), key(1025, 64));
  EXPECT_NE(key(1000, 64), key(1000, 65));
  EXPECT_NE(key(1000, 64), key(1000, 64, {{"causal", true}}));
  EXPECT_EQ(key(1000, 64),
            key(1000, 64, {{"softmax_scale", 0.5}}));  // a number that kernels take as an argument
}

}  // namespace
}  // namespace tessera::operations::attention
