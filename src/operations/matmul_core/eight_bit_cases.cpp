// SPDX-License-Identifier: Apache-2.0
// Cases with factors of 8 bits.
#include "operations/matmul_core/made_case.hpp"

namespace tessera::operations::matmul {
namespace eight_bits {

std::vector<MatmulCase> shared_table() {
  return {
      {.name = "odd", .why = "sizes that divide no tile and no vector", .m = 37, .n = 53, .k = 29},
      {.name = "rows",
       .why = "a scale for each row and column, as layers are quantised",
       .m = 24,
       .n = 72,
       .k = 150,
       .has = kHasBias | kTransposeB,
       .activation = "gelu",
       .output = "bf16",
       .scale_a = {24, 1},
       .scale_b = {1, 72}},
      {.name = "blocks",
       .why = "a scale for 1 x 128 of a, for 128 x 128 of b",
       .m = 40,
       .n = 140,
       .k = 290,
       .scale_a = {40, 3},
       .scale_b = {3, 2}}};
}

std::vector<MatmulCase> matmul_table() {
  return {{.name = "largest",
           .why = "sums beyond the whole numbers of float",
           .m = 20,
           .n = 24,
           .k = 3000,
           .data = "largest"},
          {.name = "square_blocks",
           .why = "both in 128 x 128, a by columns",
           .m = 150,
           .n = 132,
           .k = 260,
           .has = kTransposeA,
           .scale_a = {2, 3},
           .scale_b = {3, 2}},
          {.name = "gaps",
           .why = "unused memory between rows, of scales too",
           .m = 23,
           .n = 27,
           .k = 135,
           .has = kHasBias | kHasResidual,
           .layout = Layout::kGaps,
           .output = "f16",
           .scale_a = {23, 2},
           .scale_b = {1, 27}},
          {.name = "columns",
           .why = "all operands by columns, the output too",
           .m = 31,
           .n = 22,
           .k = 26,
           .layout = Layout::kColumns},
          {.name = "tensors",
           .why = "a scale for all, and all that may follow",
           .m = 35,
           .n = 46,
           .k = 24,
           .has = kAll,
           .activation = "swiglu",
           .alpha = 0.5,
           .beta = -1.5,
           .scale_a = {1},
           .scale_b = {1, 1}},
          {.name = "column",
           .why = "a matrix times one column: turned, with its scales",
           .m = 150,
           .n = 1,
           .k = 130,
           .scale_a = {2, 2},
           .scale_b = {1, 1}},
          {.name = "batched",
           .why = "batches of both, and scales of one of them",
           .m = 10,
           .n = 24,
           .k = 28,
           .batch_a = {3},
           .batch_b = {3},
           .scale_a = {3, 10, 1},
           .scale_b = {1, 24}},
          {.name = "shared_b",
           .why = "b repeats: batches are rows, with their scales",
           .m = 10,
           .n = 24,
           .k = 28,
           .batch_a = {2, 3},
           .scale_a = {2, 3, 10, 1},
           .scale_b = {1, 24}},
          {.name = "blocks_of_batches",
           .why = "blocks of rows begin with each batch",
           .m = 130,
           .n = 9,
           .k = 11,
           .batch_a = {2},
           .scale_a = {2, 2, 1}},
          {.name = "no_terms",
           .why = "the product is 0 where K is, whatever its scales are",
           .m = 5,
           .n = 6,
           .k = 0,
           .has = kHasBias,
           .data = "scales",
           .scale_a = {5, 1},
           .scale_b = {1, 6}},
          {.name = "no_terms_as_they_are", .why = "sums of nothing", .m = 5, .n = 6, .k = 0},
          {.name = "wild_scales",
           .why = "scales of 0, NaN and infinity stay in their row and column",
           .m = 21,
           .n = 19,
           .k = 40,
           .data = "scales",
           .scale_a = {21, 1},
           .scale_b = {1, 19}}};
}

}  // namespace eight_bits

std::vector<MatmulCase> eight_bit_table(const MatmulSlots& slots, DType dtype) {
  std::vector<MatmulCase> table = eight_bits::shared_table();
  if (slots.linear) return table;
  const std::vector<MatmulCase> more = eight_bits::matmul_table();
  table.insert(table.end(), more.begin(), more.end());
  if (dtype == DType::kI8) return table;
  table.push_back({.name = "mixed",
                   .why = "both 8-bit floats",
                   .m = 22,
                   .n = 30,
                   .k = 34,
                   .data = "wild",
                   .b_dtype = dtype == DType::kE5M2 ? "e4m3fn" : "e5m2",
                   .scale_a = {1, 1}});
  return table;
}

}  // namespace tessera::operations::matmul
