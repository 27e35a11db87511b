// SPDX-License-Identifier: Apache-2.0
// What becomes of sums: read by the kernels of every GPU in OpenCL C and GLSL. The room says how
// operands are reached: MATMUL_PARAMETERS and MATMUL_ARGUMENTS of functions, ARGS(name), and for
// each operand LOAD_<NAME>_VECTOR and LOAD_<NAME>_STEPS as in lib/typed, or STORE_… of result and
// beside; of scales, which are floats, LOAD_SCALE_A(at) and LOAD_SCALE_B(at). FLOATS_OF_WORDS(x)
// has the bits of four integers, TO_FLOAT4(x) their values.
#ifndef TESSERA_OPERATIONS_MATMUL_CORE_FINISH_H
#define TESSERA_OPERATIONS_MATMUL_CORE_FINISH_H

#include "operations/matmul_core/core/place.h"

// name(batch, row, column, count): elements of up to four columns of a row; 0 behind `count`.
#define MATMUL_READ(name, view, shift, LOAD_VECTOR, LOAD_STEPS)                                 \
  FUNCTION FLOAT4 name(MATMUL_PARAMETERS u32 batch, u32 row, u32 column, u32 count) {           \
    const u32 type = (ARGS(types) >> shift) & 15u, step = ARGS(view).column;                    \
    const u32 at =                                                                              \
        matmul_base(MATMUL_ARGUMENTS ARGS(view), batch) + row * ARGS(view).row + column * step; \
    if (step == 1u && count >= 4u && at % 4u == 0u) return LOAD_VECTOR(at, type);               \
    return LOAD_STEPS(at, step, count, type);                                                   \
  }
#define MATMUL_WRITE(name, view, shift, STORE_VECTOR, STORE_STEPS)                              \
  FUNCTION void name(MATMUL_PARAMETERS u32 batch, u32 row, u32 column, u32 count, FLOAT4 x) {   \
    const u32 type = (ARGS(types) >> shift) & 15u, step = ARGS(view).column;                    \
    const u32 at =                                                                              \
        matmul_base(MATMUL_ARGUMENTS ARGS(view), batch) + row * ARGS(view).row + column * step; \
    if (step == 1u && count >= 4u && at % 4u == 0u) {                                           \
      STORE_VECTOR(x, at, type);                                                                \
    } else {                                                                                    \
      STORE_STEPS(x, at, step, count, type);                                                    \
    }                                                                                           \
  }

MATMUL_READ(matmul_read_bias, bias, MATMUL_TYPE_BIAS, LOAD_BIAS_VECTOR, LOAD_BIAS_STEPS)
MATMUL_READ(matmul_read_addend, addend, MATMUL_TYPE_ADDEND, LOAD_ADDEND_VECTOR, LOAD_ADDEND_STEPS)
MATMUL_READ(matmul_read_gate, gate, MATMUL_TYPE_GATE, LOAD_GATE_VECTOR, LOAD_GATE_STEPS)
MATMUL_READ(matmul_read_residual, residual, MATMUL_TYPE_RESIDUAL, LOAD_RESIDUAL_VECTOR,
            LOAD_RESIDUAL_STEPS)
MATMUL_WRITE(matmul_write_result, result, MATMUL_TYPE_RESULT, STORE_RESULT_VECTOR,
             STORE_RESULT_STEPS)
MATMUL_WRITE(matmul_write_beside, beside, MATMUL_TYPE_BESIDE, STORE_BESIDE_VECTOR,
             STORE_BESIDE_STEPS)

// Four columns of a row: sums, or those of block `block` of the terms, times their scales. Where a
// kernel takes no scales it defines MATMUL_SCALES as 0.
#ifndef MATMUL_SCALES
#define MATMUL_SCALES 1
#endif
FUNCTION FLOAT4 matmul_scaled(MATMUL_PARAMETERS u32 batch, u32 row, u32 column, u32 block,
                              FLOAT4 sum) {
  const u32 count = min(ARGS(n) - column, 4u);
  if ((ARGS(features) & MATMUL_SCALE_A) != 0u) {
    const u32 at = matmul_base(MATMUL_ARGUMENTS ARGS(scale_a), batch) +
                   row / ARGS(scale_rows) * ARGS(scale_a).row + block * ARGS(scale_a).column;
    sum *= LOAD_SCALE_A(at);
  }
  if ((ARGS(features) & MATMUL_SCALE_B) != 0u) {
    const u32 step = ARGS(scale_b).column;
    const u32 at = matmul_base(MATMUL_ARGUMENTS ARGS(scale_b), batch) +
                   column / ARGS(scale_columns) * step + block * ARGS(scale_b).row;
    const float first = LOAD_SCALE_B(at);
    FLOAT4 scale = MAKE_FLOAT4(first, first, first, first);  // a block of columns has whole vectors
    if (ARGS(scale_columns) == 1u && step != 0u) {
      if (count > 1u) scale.y = LOAD_SCALE_B(at + step);
      if (count > 2u) scale.z = LOAD_SCALE_B(at + 2u * step);
      if (count > 3u) scale.w = LOAD_SCALE_B(at + 3u * step);
    }
    sum *= scale;
  }
  return sum;
}

// Columns `column` to column + 3 of a row, as far as there are; column is a multiple of four.
FUNCTION void matmul_finish(MATMUL_PARAMETERS u32 batch, u32 row, u32 column, FLOAT4 sum) {
  const u32 features = ARGS(features), kind = features & MATMUL_ACTIVATION;
  const u32 count = min(ARGS(n) - column, 4u);
  const bool paired = (features & MATMUL_PAIRED) != 0u;
  const u32 own = paired ? column / 2u : column, own_count = paired ? count / 2u : count;
  if (MATMUL_SCALES != 0 && ARGS(scale_terms) == 0u)
    sum = matmul_scaled(MATMUL_ARGUMENTS batch, row, column, 0u, sum);
  FLOAT4 z = ARGS(alpha) * sum;
  if ((features & MATMUL_BIAS) != 0u)
    z += matmul_read_bias(MATMUL_ARGUMENTS batch, row, column, count);
  if ((features & MATMUL_ADDEND) != 0u)
    z += ARGS(beta) * matmul_read_addend(MATMUL_ARGUMENTS batch, row, column, count);
  FLOAT4 gate = MAKE_FLOAT4(1.0f, 1.0f, 1.0f, 1.0f);
  if ((features & MATMUL_GATE) != 0u)
    gate = matmul_read_gate(MATMUL_ARGUMENTS batch, row, own, own_count);
  const FLOAT4 shaped = matmul_activation(kind, z);
  const FLOAT4 value = paired ? MAKE_FLOAT4(shaped.x * z.y, shaped.z * z.w, 0.0f, 0.0f) : shaped;
  if ((features & MATMUL_GRADIENT) == 0u) {
    FLOAT4 y = value * gate;
    if ((features & MATMUL_RESIDUAL) != 0u)
      y += matmul_read_residual(MATMUL_ARGUMENTS batch, row, own, own_count);
    matmul_write_result(MATMUL_ARGUMENTS batch, row, own, own_count, y);
    return;
  }
  const FLOAT4 dy = matmul_read_residual(MATMUL_ARGUMENTS batch, row, own, own_count);
  if ((features & MATMUL_BESIDE) != 0u)
    matmul_write_beside(MATMUL_ARGUMENTS batch, row, own, own_count, dy * value);
  const FLOAT4 through = dy * gate, slope = matmul_slope(kind, z);
  const FLOAT4 dz = paired ? MAKE_FLOAT4(through.x * slope.x * z.y, through.x * shaped.x,
                                         through.y * slope.z * z.w, through.y * shaped.z)
                           : through * slope;
  matmul_write_result(MATMUL_ARGUMENTS batch, row, column, count, dz);
}

// The same of whole numbers, which may be the result as they are: words of 32 bits like floats.
FUNCTION void matmul_finish_whole(MATMUL_PARAMETERS u32 batch, u32 row, u32 column, INT4 sum) {
  if ((ARGS(features) & MATMUL_WHOLE) != 0u) {
    matmul_write_result(MATMUL_ARGUMENTS batch, row, column, min(ARGS(n) - column, 4u),
                        FLOATS_OF_WORDS(sum));
  } else {
    matmul_finish(MATMUL_ARGUMENTS batch, row, column, TO_FLOAT4(sum));
  }
}

#endif  // TESSERA_OPERATIONS_MATMUL_CORE_FINISH_H
