// SPDX-License-Identifier: Apache-2.0
// Cases whose output is quantised.
#include "operations/matmul_core/made_case.hpp"

namespace tessera::operations::matmul {

std::vector<MatmulCase> codes_table(const MatmulSlots& slots, DType dtype) {
  if (slots.backward()) return {};
  if (is_eight_bits(dtype))
    return {{.name = "codes_scaled",
             .why = "codes of products of codes, as layers that follow one another have them",
             .m = 21,
             .n = 50,
             .k = 130,
             .has = kHasBias | kTransposeB,
             .activation = "relu",
             .scale_a = {21, 1},
             .scale_b = {1, 50},
             .quantise = dtype == DType::kI8 ? "i8" : "e4m3fn"}};
  return {{.name = "codes_i8",
           .why = "a scale for each row of codes",
           .m = 19,
           .n = 70,
           .k = 33,
           .has = kHasBias | kHasGate | kHasResidual,
           .activation = "silu",
           .quantise = "i8"},
          {.name = "codes_wild",
           .why = "NaN and infinity stay in their row of codes",
           .m = 21,
           .n = 19,
           .k = 40,
           .data = "wild",
           .quantise = "i8"},
          {.name = "codes_e4m3fn_wild",
           .why = "the same as floats of 8 bits",
           .m = 21,
           .n = 19,
           .k = 40,
           .data = "wild",
           .quantise = "e4m3fn"},
          {.name = "codes_pairs",
           .why = "rows of half the columns, batches, unused memory between rows",
           .m = 9,
           .n = 44,
           .k = 25,
           .activation = "swiglu",
           .batch_a = {2},
           .layout = Layout::kGaps,
           .quantise = "e5m2"},
          {.name = "codes_no_terms",
           .why = "rows of zeros have a scale, too",
           .m = 4,
           .n = 6,
           .k = 0,
           .quantise = "e4m3fn"}};
}

}  // namespace tessera::operations::matmul
