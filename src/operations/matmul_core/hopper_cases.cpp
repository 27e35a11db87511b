// SPDX-License-Identifier: Apache-2.0
// What Hopper's kernel finishes in registers, and factors of two types, at the ends of tiles in
// every direction.
#include <algorithm>

#include "operations/matmul_core/made_case.hpp"

namespace tessera::operations::matmul {
namespace {

std::vector<MatmulCase> whole_table(DType dtype, const Config& config) {
  const std::int64_t m = 200, n = config.at("BLOCK_N") + 48, k = 272;
  if (is_eight_bits(dtype)) {
    std::vector<MatmulCase> table{{.name = "scaled_halves",
                                   .why = "a scale for each row and column",
                                   .m = m,
                                   .n = n,
                                   .k = k,
                                   .has = kTransposeB,
                                   .alpha = 0.5,
                                   .output = "f16",
                                   .scale_a = {m, 1},
                                   .scale_b = {1, n}},
                                  {.name = "scaled_floats",
                                   .why = "a scale for each row and all columns, batches",
                                   .m = m,
                                   .n = n,
                                   .k = k,
                                   .has = kTransposeB,
                                   .batch_a = {2},
                                   .batch_b = {2},
                                   .output = "f32",
                                   .scale_a = {2, m, 1},
                                   .scale_b = {1, 1}},
                                  {.name = "scaled_bias",
                                   .why = "what floats in local memory are for",
                                   .m = m,
                                   .n = n,
                                   .k = k,
                                   .has = kTransposeB | kHasBias,
                                   .activation = "gelu",
                                   .output = "bf16",
                                   .scale_a = {m, 1},
                                   .scale_b = {1, n}}};
    if (dtype == DType::kI8) return table;
    table.push_back({.name = "scaled_mixed",
                     .why = "both 8-bit floats, a residual and more terms than a share has",
                     .m = m,
                     .n = n,
                     .k = 2080,
                     .has = kTransposeB | kHasResidual,
                     .b_dtype = dtype == DType::kE5M2 ? "e4m3fn" : "e5m2",
                     .output = "f16",
                     .scale_a = {1, 1},
                     .scale_b = {1, 1}});
    return table;
  }
  const std::int64_t odd = n - 6;  // fours and eights end with no tile
  return {{.name = "bias_gelu",
           .why = "a bias and an activation",
           .m = m,
           .n = n,
           .k = k,
           .has = kHasBias,
           .activation = "gelu"},
          {.name = "bias_odd",
           .why = "rows that copies do not take",
           .m = m,
           .n = odd,
           .k = k,
           .has = kHasBias | kTransposeB,
           .activation = "gelu_tanh"},
          {.name = "residual_silu",
           .why = "a residual by copies, of more tiles than work-groups",
           .m = 16 * 128 + 8,
           .n = (config.at("GROUPS") / 16 + 1) * config.at("BLOCK_N") + 8,
           .k = 72,
           .has = kHasResidual | kTransposeB,
           .activation = "silu"},
          {.name = "residual_batches",
           .why = "a residual and a bias of batches",
           .m = m,
           .n = n,
           .k = k,
           .has = kHasResidual | kHasBias,
           .activation = "relu",
           .batch_a = {3},
           .batch_b = {3},
           .bias = {3, 1, n}},
          {.name = "gated",
           .why = "a gate by copies, beside both operands by columns",
           .m = m,
           .n = n,
           .k = k,
           .has = kHasGate | kTransposeA},
          {.name = "gate_and_residual",
           .why = "two matrices behind the sums",
           .m = m,
           .n = n,
           .k = k,
           .has = kHasGate | kHasResidual},
          {.name = "swiglu",
           .why = "pairs of columns with bias and residual",
           .m = m,
           .n = n,
           .k = k,
           .has = kHasBias | kHasResidual | kTransposeB,
           .activation = "swiglu"},
          {.name = "geglu",
           .why = "pairs of columns",
           .m = m,
           .n = 2 * n,
           .k = k,
           .has = kHasGate,
           .activation = "geglu",
           .alpha = 0.5},
          {.name = "floats",
           .why = "floats by copies",
           .m = m,
           .n = n,
           .k = k,
           .has = kTransposeB,
           .alpha = -1.5,
           .output = "f32"},
          {.name = "other_halves",
           .why = "the other type of 16 bits",
           .m = m,
           .n = n,
           .k = k,
           .output = dtype == DType::kF16 ? "bf16" : "f16"}};
}

// Floats times 16 bits, on either side; columns end with no tile.
std::vector<MatmulCase> mixed_table(DType dtype, const Config& config) {
  const bool floats = dtype == DType::kF32;
  const std::int64_t m = 200, n = config.at("BLOCK_N") + 48, k = 276;
  std::vector<MatmulCase> table{
      {.name = "mixed",
       .why = "factors of two types, of terms that end with no step",
       .m = m,
       .n = n,
       .k = floats ? k : 280,
       .b_dtype = floats ? "f16" : "f32"},
      {.name = "mixed_turned",
       .why = "factors of two types by columns, shared terms and batches",
       .m = m,
       .n = n,
       .k = 2080,
       .has = kTransposeA | kTransposeB | kHasBias,
       .batch_a = {2},
       .batch_b = {2},
       .alpha = 0.5,
       .b_dtype = floats ? "bf16" : "f32"},
      {.name = "mixed_infinite",
       .why = "splitting a factor makes NaN of infinities, beside 16 bits",
       .m = m,
       .n = n,
       .k = 64,
       .data = "wild",
       .b_dtype = floats ? "f16" : "f32"}};
  if (!floats)
    table.push_back({.name = "mixed_output",
                     .why = "gradients of sums are floats, and what becomes of them",
                     .m = m,
                     .n = n,
                     .k = 280,
                     .has = kHasBias,
                     .activation = "silu",
                     .b_dtype = dtype == DType::kF16 ? "f32" : "",
                     .output = "f32"});
  return table;
}

bool is_linear(const MatmulCase& from) {
  return from.batch_b.empty() && from.alpha == 1 && (from.has & kTransposeA) == 0;
}

}  // namespace

std::vector<MatmulCase> hopper_table(const MatmulSlots& slots, DType dtype, const Config& config) {
  constexpr std::uint32_t kMostFloats = 128;  // columns
  std::vector<MatmulCase> table;
  if (!is_eight_bits(dtype) && config.at("BLOCK_N") <= kMostFloats)
    table = mixed_table(dtype, config);
  if (!slots.backward()) {
    const std::vector<MatmulCase> whole = whole_table(dtype, config);
    table.insert(table.end(), whole.begin(), whole.end());
  }
  if (slots.linear) std::erase_if(table, [](const MatmulCase& from) { return !is_linear(from); });
  return table;
}

}  // namespace tessera::operations::matmul
