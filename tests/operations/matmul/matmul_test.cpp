// SPDX-License-Identifier: Apache-2.0
// What matmul refuses, the laws of its reference, and which products a call is made of. No device
// is needed but for the typed functions, which run on the host.
#include "tessera/operations/matmul.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "kernel/precision.hpp"
#include "operations/matmul_core/launch.hpp"
#include "tessera/error.hpp"
#include "tessera/operations/linear.hpp"
#include "tessera/record.hpp"

namespace tessera {
namespace {

using operations::matmul::MatmulProblem;
using operations::matmul::Product;
using operations::matmul::products_of;
using ::testing::HasSubstr;

TensorSpec f32(Shape shape) { return TensorSpec::contiguous(DType::kF32, std::move(shape)); }
TensorSpec f16(Shape shape) { return TensorSpec::contiguous(DType::kF16, std::move(shape)); }

TensorSpec of(DType dtype, Shape shape) { return TensorSpec::contiguous(dtype, std::move(shape)); }

using Specs = std::map<std::string, TensorSpec>;

Problem problem_of(const std::string& name, const Specs& specs, Options options = {}) {
  const Operation& operation = find_operation(name);
  std::vector<std::optional<TensorSpec>> operands(operation.operands.size());
  for (const auto& [operand, spec] : specs) operands[operation.slot(operand)] = spec;
  return make_problem(operation, std::move(operands), std::move(options));
}

// ---- refusals -----------------------------------------------------------------------------------

TEST(MatmulRefusals, SayWhatIsWrong) {
  struct Row {
    const char* operation;
    Specs specs;
    Options options;
    const char* message;
  };
  TensorSpec huge = f32({1, 1});
  huge.shape = {std::int64_t{1} << 40, 1};
  huge.strides = {0, 0};
  TensorSpec huge_too = huge;
  huge_too.shape = {1, std::int64_t{1} << 40};
  const Row rows[] = {
      {"matmul", {{"a", f32({3})}, {"b", f32({3, 4})}}, {}, "matmul: a f32[3] must be a matrix"},
      {"fused_mlp",
       {{"input", f32({3})}, {"w1", f32({3, 4})}, {"w2", f32({4, 2})}},
       {},
       "fused_mlp: input f32[3] must be a matrix"},
      {"fused_mlp",
       {{"input", f32({2, 3})}, {"w1", f32({3, 4})}, {"w2", f32({4, 2})}},
       {{"activation", "swiglu"}},
       "w1 f32[3, 4] is not [3, 8] as input f32[2, 3] and w2 f32[4, 2] want it"},
      {"fused_mlp",
       {{"input", f32({2, 3})}, {"w1", f32({3, 4})}, {"w2", f32({4, 2})}, {"b2", f32({4})}},
       {},
       "b2 f32[4]"},
      {"matmul",
       {{"a", f32({2, 3})}, {"b", f32({4, 5})}},
       {},
       "a has 3 columns to multiply and b 4 rows: f32[2, 3] and f32[4, 5]"},
      {"matmul",
       {{"a", f32({2, 2, 3})}, {"b", f32({3, 3, 5})}},
       {},
       "the leading axes of a and b do not broadcast to one another"},
      {"matmul",
       {{"a", f32({2, 3})}, {"b", f32({3, 5})}, {"bias", f32({4})}},
       {},
       "bias f32[4] does not broadcast to the product, f32[2, 5]"},
      {"matmul",
       {{"a", f32({2, 3})}, {"b", f32({3, 5})}, {"gate", f32({5})}},
       {},
       "gate f32[5] must be f32[2, 5]"},
      {"matmul",
       {{"a", f32({2, 3})}, {"b", f32({3, 5})}},
       {{"activation", std::string("swiglu")}},
       "activation 'swiglu' takes pairs of columns, and b has 5"},
      {"matmul",
       {{"a", f32({2, 3})}, {"b", f32({3, 5})}},
       {{"activation", std::string("tanh")}},
       "option 'activation' must be none or relu"},
      {"matmul",
       {{"a", f32({2, 3})}, {"b", f32({3, 5})}},
       {{"alpha", 1e60}},
       "option 'alpha' must be a number that float holds"},
      {"matmul",
       {{"a", f32({2, 3})}, {"b", f32({3, 5})}},
       {{"output_dtype", std::string("i8")}},
       "option 'output_dtype' must be f32 or f16 or bf16 or i32"},
      {"matmul",
       {{"a", f32({2, 3})}, {"b", f32({3, 5})}},
       {{"output_dtype", std::string("i32")}},
       "output_dtype 'i32' gives the sums of products of i8 as they are, with nothing behind them"},
      {"matmul",
       {{"a", of(DType::kI8, {2, 3})}, {"b", of(DType::kI8, {3, 5})}, {"bias", f32({5})}},
       {},
       "output_dtype 'i32' gives the sums of products of i8 as they are, with nothing behind them"},
      {"matmul",
       {{"a", of(DType::kI8, {2, 3})}, {"b", f16({3, 5})}},
       {},
       "a i8 and b f16 do not multiply: both are i8, or of 8-bit floats, or of f32, f16 and bf16"},
      {"matmul",
       {{"a", of(DType::kI8, {2, 1 << 17})}, {"b", of(DType::kI8, {1 << 17, 5})}},
       {},
       "products of i8 are added up in 32 bits, which hold 131071 terms"},
      {"matmul",
       {{"a", f32({2, 3})}, {"b", f32({3, 5})}, {"scale_a", f32({1})}},
       {},
       "scale_a f32[1] belongs to operands of 8 bits"},
      {"matmul",
       {{"a", of(DType::kE5M2, {200, 300})},
        {"b", of(DType::kE4M3FN, {300, 5})},
        {"scale_a", f32({200, 300})}},
       {},
       "scale_a f32[200, 300] does not fit a e5m2[200, 300], of which it may have "
       "[1 or 200 or 2, 1 or 3] elements: one, each, or blocks of 128, of terms one or blocks"},
      {"matmul",
       {{"a", of(DType::kE5M2, {7, 2, 300})},
        {"b", of(DType::kE5M2, {300, 5})},
        {"scale_a", f32({2, 2, 1})}},
       {},
       "of which it may have [1 or 7, 1 or 2, 1 or 3] elements"},
      {"linear",
       {{"input", of(DType::kE5M2, {7, 2})},
        {"weight", of(DType::kE5M2, {300, 2})},
        {"scale_weight", f32({1, 300})}},
       {},
       "scale_weight f32[1, 300] does not fit weight e5m2[300, 2], of which it may have "
       "[1 or 300 or 3, 1] elements"},
      {"matmul_backward",
       {{"a", of(DType::kI8, {2, 3})}, {"b", of(DType::kI8, {3, 5})}, {"grad_output", f32({2, 5})}},
       {},
       "a i8[2, 3] must be one of f32, f16, bf16"},
      {"matmul",
       {{"a", huge}, {"b", huge_too}},
       {},
       "a tensor's shape has more elements than 64 bits can count"},
      {"matmul_backward",
       {{"a", f32({2, 3})}, {"b", f32({3, 5})}, {"grad_output", f32({2, 4})}},
       {},
       "grad_output f32[2, 4] must be f32[2, 5]"},
      {"matmul_backward",
       {{"a", f32({2, 3})},
        {"b", f32({3, 5})},
        {"grad_output", f32({2, 5})},
        {"grad_bias", f32({5})}},
       {},
       "grad_bias is wanted, but the call has no bias"},
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

// ---- which products a call is made of -----------------------------------------------------------

TEST(MatmulProducts, JoinAxesThatLieAlike) {
  // Batches that share b are rows.
  std::vector<Product> list =
      products_of(problem_of("matmul", {{"a", f32({2, 3, 4, 5})}, {"b", f32({5, 60})}}));
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].m, 24);
  EXPECT_TRUE(list[0].axes.empty());
  // The gradient of what repeats is a sum: over terms, where they lie one behind the other.
  list = products_of(problem_of("matmul_backward", {{"a", f32({2, 3, 4, 5})},
                                                    {"b", f32({5, 60})},
                                                    {"grad_output", f32({2, 3, 4, 60})},
                                                    {"grad_b", f32({5, 60})}}));
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].k, 24);
  EXPECT_TRUE(list[0].axes.empty());
}

// Sums of rows know no rows of their own: what the gradient repeats along stays an axis.
TEST(MatmulProducts, OfABiasHaveOneRow) {
  TensorSpec grad_output = f32({4, 10, 2});
  grad_output.strides = {0, 2, 1};
  const std::vector<Product> list =
      products_of(problem_of("matmul_backward", {{"a", f32({4, 10, 5})},
                                                 {"b", f32({4, 5, 2})},
                                                 {"bias", f32({4, 1, 2})},
                                                 {"grad_output", grad_output},
                                                 {"grad_bias", f32({4, 1, 2})}}));
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].m, 1);
  EXPECT_EQ(list[0].n, 2);
  EXPECT_EQ(list[0].batches(), 4);
}

TEST(MatmulProducts, AreTurnedWhereTheResultLiesByColumns) {
  const std::vector<Product> list = products_of(problem_of("matmul_backward",
                                                           {{"a", f32({40, 50})},
                                                            {"b", f32({60, 50})},
                                                            {"grad_output", f32({40, 60})},
                                                            {"grad_b", f32({60, 50})}},
                                                           {{"transpose_b", true}}));
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].m, 60);
  EXPECT_EQ(list[0].n, 50);
  EXPECT_EQ(list[0].views[operations::matmul::kResult].column, 1);
}

TEST(MatmulProducts, OfNoActivationMultiplyTheGradientItself) {
  const Specs specs{{"a", f16({40, 50})},
                    {"b", f16({50, 60})},
                    {"grad_output", f16({40, 60})},
                    {"grad_a", f16({40, 50})},
                    {"grad_b", f16({50, 60})}};
  EXPECT_EQ(products_of(problem_of("matmul_backward", specs)).size(), 2U);
  const Problem shaped =
      problem_of("matmul_backward", specs, {{"activation", std::string("gelu")}});
  const std::vector<Product> list = products_of(shaped);
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[1].views[operations::matmul::kA].dtype, DType::kF32);  // from scratch
  EXPECT_EQ(operations::matmul::scratch_of_stages(shaped), 4U + 40U * 60U);
}

// Blocks of rows begin anew with each batch, so that batches are no rows of theirs.
TEST(MatmulProducts, WithScalesJoinOnlyWhatTheScalesFollow) {
  const Specs factors{{"a", of(DType::kI8, {4, 130, 5})}, {"b", of(DType::kI8, {5, 60})}};
  const auto rows_with = [&](Shape scale) {
    Specs specs = factors;
    specs["scale_a"] = f32(std::move(scale));
    return products_of(problem_of("matmul", specs)).front().m;
  };
  EXPECT_EQ(rows_with({1}), 520);
  EXPECT_EQ(rows_with({4, 130, 1}), 520);
  EXPECT_EQ(rows_with({130, 1}), 130);
  EXPECT_EQ(rows_with({4, 1, 1}), 130);
  EXPECT_EQ(rows_with({4, 2, 1}), 130);
}

TEST(MatmulProducts, SplitTermsWhereTilesAreFew) {
  const Product product =
      products_of(problem_of("matmul", {{"a", f32({64, 8192})}, {"b", f32({8192, 64})}})).front();
  EXPECT_EQ(operations::matmul::filling_splits(product, 1, 16, 64), 16U);
  EXPECT_EQ(operations::matmul::filling_splits(product, 32, 16, 64), 1U);
  EXPECT_EQ(operations::matmul::filling_splits(product, 1, 1000, 4096), 2U);
}

// ---- variants -----------------------------------------------------------------------------------

const Variant& variant_of(const Operation& operation, const std::string& name) {
  const auto found = std::ranges::find(operation.variants, name, &Variant::name);
  EXPECT_NE(found, operation.variants.end());
  return *found;
}

// Rows that are contiguous are read by fours, which begin at multiples of four.
TEST(MatmulSkinny, RefusesBlocksOfRowsThatFoursStraddle) {
  const Variant& skinny = variant_of(find_operation("matmul"), "skinny");
  const Problem problem =
      problem_of("matmul", {{"a", f32({64, 8})}, {"b", f32({64, 256})}}, {{"transpose_a", true}});
  const auto refusal = [&](std::uint32_t rows) {
    const Config config{{"ROWS", rows},  {"COLUMNS", 4}, {"SQUARES", 1},
                        {"LANES_K", 32}, {"WG_X", 32},   {"FILL", 1}};
    return skinny.rejects(problem, config, DeviceProfile{});
  };
  EXPECT_THAT(refusal(2).value_or(""), HasSubstr("has blocks of 2 rows"));
  EXPECT_EQ(refusal(4), std::nullopt);
  EXPECT_EQ(refusal(8), std::nullopt);
}

TEST(MatmulSkinny, HasAConfigurationForSmallWorkGroups) {
  const Variant& skinny = variant_of(find_operation("matmul"), "skinny");
  const Problem problem = problem_of("matmul", {{"a", f32({4, 64})}, {"b", f32({64, 256})}});
  DeviceProfile profile;
  profile.backend = Backend::kOpenCL;
  profile.max_group_size = 64;
  const std::vector<Config> space = skinny.space(problem, profile);
  ASSERT_FALSE(space.empty());
  EXPECT_LE(space.front().group().x, 64U);
  EXPECT_EQ(skinny.rejects(problem, space.front(), profile), std::nullopt);
}

// A work-group of one warp copies lines of at most 512 bytes at once.
TEST(MatmulMma, RefusesLinesThatItsItemsDoNotCopy) {
  const Variant& mma = variant_of(find_operation("matmul"), "mma");
  const Problem problem = problem_of("matmul", {{"a", f32({256, 64})}, {"b", f32({64, 256})}});
  DeviceProfile profile;
  profile.backend = Backend::kOpenCL;
  const auto refusal = [&](std::uint32_t columns) {
    const Config config{{"BLOCK_M", 16},     {"BLOCK_N", columns}, {"STAGES", 2}, {"WARP_M", 16},
                        {"WARP_N", columns}, {"WG_X", 32},         {"FILL", 1}};
    return mma.rejects(problem, config, profile);
  };
  EXPECT_EQ(refusal(128), std::nullopt);
  EXPECT_THAT(refusal(256).value_or(""), HasSubstr("has no such tiles"));
}

// The instruction takes subnormal factors for 0.
TEST(MatmulCpuBf16, KeepsHighPrecision) {
  const Variant& variant = variant_of(find_operation("matmul"), "cpu_bf16");
  EXPECT_EQ(precision_of(variant, DType::kBF16), Precision::kHigh);
}

// The matrix unit adds in less than float.
TEST(MatmulHopperFp8, KeepsDefaultPrecision) {
  const Variant& variant = variant_of(find_operation("matmul"), "hopper_fp8");
  EXPECT_EQ(precision_of(variant, DType::kE4M3FN), Precision::kDefault);
}

// Copies bring rows of a; those of b are split before, wherever they lie.
TEST(MatmulHopperF32, TakesAnyB) {
  const Variant& variant = variant_of(find_operation("matmul"), "hopper_f32");
  DeviceProfile profile;
  profile.backend = Backend::kOpenCL;
  const auto refusal = [&](std::int64_t k, std::int64_t n, std::uint32_t block_n) {
    const Problem problem = problem_of("matmul", {{"a", f32({256, k})}, {"b", f32({k, n})}});
    const Config config{{"BLOCK_N", block_n}, {"STAGES", 3}, {"WG_X", 384}, {"GROUPS", 132}};
    return variant.rejects(problem, config, profile).value_or("");
  };
  EXPECT_EQ(refusal(260, 259, 128), "");
  EXPECT_THAT(refusal(259, 260, 128), HasSubstr("multiples of 16 bytes"));
  EXPECT_THAT(refusal(260, 260, 256), HasSubstr("takes tiles of 64 or 128 columns of floats"));
}

// One of both factors may have 16 bits, but not all.
TEST(MatmulHopperF32, TakesFloatsOnOneSide) {
  const Variant& variant = variant_of(find_operation("matmul_backward"), "hopper_f32");
  DeviceProfile profile;
  profile.backend = Backend::kOpenCL;
  profile.features = Feature::kStorage16;
  const auto refusal = [&](DType a, DType b, DType gradient) {
    Specs specs{{"a", of(a, {256, 256})}, {"b", of(b, {256, 256})}};
    specs["grad_output"] = of(gradient, {256, 256});
    specs["grad_a"] = specs["a"];
    specs["grad_b"] = specs["b"];
    const Problem problem = problem_of("matmul_backward", specs);
    const Config config{{"BLOCK_N", 128}, {"STAGES", 4}, {"WG_X", 384}, {"GROUPS", 132}};
    return variant.rejects(problem, config, profile).value_or("");
  };
  EXPECT_EQ(refusal(DType::kF16, DType::kF16, DType::kF32), "");
  EXPECT_EQ(refusal(DType::kF32, DType::kBF16, DType::kF32), "");
  EXPECT_EQ(refusal(DType::kF16, DType::kF32, DType::kF16), "");
  EXPECT_THAT(refusal(DType::kF16, DType::kF16, DType::kF16), HasSubstr("on one side at least"));
  EXPECT_EQ(precision_of(variant, DType::kF16), Precision::kHighest);
}

TEST(MatmulHopperF32, CountsTheScratchOfParts) {
  const Variant& variant = variant_of(find_operation("matmul"), "hopper_f32");
  const Problem problem = problem_of("matmul", {{"a", f32({3, 256, 40})}, {"b", f32({40, 100})}});
  const Config config{{"BLOCK_N", 128}, {"STAGES", 3}, {"WG_X", 384}, {"GROUPS", 132}};
  // Both parts of 64 terms, of a b that all batches share.
  const std::uint64_t parts = 4 * 2 * 64 * 100;
  EXPECT_GT(variant.scratch_bytes(problem, config), parts);
  EXPECT_LT(variant.scratch_bytes(problem, config), 2 * parts + 256 * 512);
}

// A case that a variant refuses is skipped, and no device at hand may have it.
TEST(MatmulEdges, OfHopperAreTakenByHopper) {
  DeviceProfile profile;
  profile.backend = Backend::kOpenCL;
  profile.features = Feature::kStorage16;
  for (const char* name : {"matmul", "matmul_backward", "linear", "linear_backward"}) {
    const Operation& operation = find_operation(name);
    for (const std::uint32_t block_n : {64U, 128U, 256U}) {
      const Config config{{"BLOCK_N", block_n}, {"STAGES", 3}, {"WG_X", 384}, {"GROUPS", 132}};
      for (const DType dtype : operation.operands.front().dtypes) {
        if (dtype == DType::kF32 && block_n == 256) continue;  // parts of b leave no room for it
        if (operations::is_eight_bits(dtype) && std::string(name).ends_with("_backward")) continue;
        for (const Case& edge : operation.workload.edge_cases(dtype, config)) {
          const Problem problem = make_problem(operation, edge.operands, edge.options);
          const bool taken = std::ranges::any_of(operation.variants, [&](const Variant& variant) {
            return variant.name.starts_with("hopper") &&
                   std::ranges::count(variant.dtypes, dtype) != 0 &&
                   variant.rejects(problem, config, profile) == std::nullopt;
          });
          EXPECT_TRUE(taken) << name << " " << edge.name << " " << to_string(dtype) << " "
                             << block_n;
        }
      }
    }
  }
}

// ---- laws of the reference ----------------------------------------------------------------------

// The sum of output * weights, as a function of one operand, against the gradient for it.
class MatmulSlopes : public ::testing::TestWithParam<const char*> {};

TEST_P(MatmulSlopes, AreThoseOfTheForwardDefinition) {
  const std::string activation = GetParam();
  const bool paired = activation.find("glu") != std::string::npos;
  const std::int64_t n = paired ? 4 : 8;
  const Options options{
      {"activation", activation}, {"alpha", 0.75}, {"beta", -0.5}, {"transpose_a", true}};
  const auto f64 = [](Shape shape) {
    return TensorSpec::contiguous(DType::kF32, std::move(shape));
  };
  const Specs inputs{{"a", f64({2, 5, 3})},
                     {"b", f64({5, 8})},
                     {"bias", f64({3, 1})},
                     {"c", f64({2, 3, 8})},
                     {"gate", f64({2, 3, n})}};
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  std::map<std::string, std::vector<float>> values;
  const auto fill = [&](const std::string& name, const TensorSpec& spec) {
    auto& data = values[name];
    data.resize(static_cast<std::size_t>(spec.elements()));
    for (float& x : data) x = normal(generator);
  };
  for (const auto& [name, spec] : inputs) fill(name, spec);
  fill("grad_output", f64({2, 3, n}));
  const auto run = [&](const std::string& operation, const Specs& specs) {
    const Operation& record = find_operation(operation);
    const Problem problem = problem_of(operation, specs, options);
    std::vector<HostTensor> tensors(record.operands.size());
    for (std::size_t slot = 0; slot < tensors.size(); ++slot) {
      if (!problem.has(slot)) continue;
      auto& data = values[record.operands[slot].name];
      data.resize(static_cast<std::size_t>(problem.spec(slot).elements()));
      tensors[slot] = {problem.spec(slot), reinterpret_cast<std::byte*>(data.data())};
    }
    record.reference(problem, tensors);
  };
  Specs backward = inputs;
  backward["grad_output"] = f64({2, 3, n});
  for (const auto& [name, spec] : inputs) backward["grad_" + name] = spec;
  run("matmul_backward", backward);
  const auto loss = [&] {
    run("matmul", inputs);
    double sum = 0;
    for (std::size_t i = 0; i < values["output"].size(); ++i)
      sum += double{values["output"][i]} * double{values["grad_output"][i]};
    return sum;
  };
  for (const auto& [name, spec] : inputs) {
    const std::vector<float> slopes = values["grad_" + name];
    for (std::size_t i = 0; i < slopes.size(); i += 3) {
      float& x = values[name][i];
      const float before = x;
      x = before + 0x1p-7F;
      const double above = loss();
      x = before - 0x1p-7F;
      const double below = loss();
      x = before;
      EXPECT_NEAR(slopes[i], (above - below) * 0x1p6, 4e-3 * (1 + std::fabs(double{slopes[i]})))
          << name << "[" << i << "]";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Activations, MatmulSlopes,
                         ::testing::Values("none", "gelu", "gelu_tanh", "silu", "swiglu", "geglu"));

// ---- the typed functions ------------------------------------------------------------------------

TEST(Matmul, ScalesFactorsOf8Bits) {
  Context context = Context::open({.device = "host"});
  const std::vector<std::int8_t> a{1, -2, 127, 4}, b{1, 0, -128, 3};
  const Tensor x = context.upload(a, {2, 2}), w = context.upload(b, {2, 2});
  EXPECT_EQ(context.download<std::int32_t>(matmul(context, x, w)),
            (std::vector<std::int32_t>{257, -6, -385, 12}));
  const Tensor rows = context.upload(std::vector<float>{2, 1}, {2, 1});
  EXPECT_EQ(context.download<float>(matmul(context, x, w, {.scale_a = rows})),
            (std::vector<float>{514, -12, -385, 12}));
  EXPECT_EQ(context.download<float>(linear(
                context, x, w, {.scale_weight = context.upload(std::vector<float>{1, 4}, {2, 1})})),
            (std::vector<float>{1, -536, 127, -64976}));
}

TEST(Matmul, MultipliesAndItsPullbackMatches) {
  Context context = Context::open({.device = "host"});
  const std::vector<float> a{1, 2, 3, 4, 5, 6}, b{1, 0, 0, 1, 1, 1}, bias{10, 20};
  const Tensor x = context.upload(a, {2, 3}), w = context.upload(b, {3, 2});
  const MatmulOptions options{.bias = context.upload(bias, {2})};
  const auto [output, pullback] = vjp::matmul(context, x, w, options);
  EXPECT_EQ(context.download<float>(output), (std::vector<float>{14, 25, 20, 31}));
  const MatmulGradients gradients =
      pullback(context.upload(std::vector<float>{1, 1, 2, 0}, {2, 2}));
  EXPECT_EQ(context.download<float>(gradients.a), (std::vector<float>{1, 1, 2, 2, 0, 2}));
  EXPECT_EQ(context.download<float>(gradients.b), (std::vector<float>{9, 1, 12, 2, 15, 3}));
  EXPECT_EQ(context.download<float>(gradients.bias), (std::vector<float>{3, 1}));
  EXPECT_FALSE(gradients.c);
}

}  // namespace
}  // namespace tessera
