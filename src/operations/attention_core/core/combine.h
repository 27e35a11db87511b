// SPDX-License-Identifier: Apache-2.0
// How a row of attention ends, for attention/core/combine and for kernels that need none. Text for
// OpenCL C and GLSL, after score.h; the host reads the numbers.
//
// Partial results lie in the scratch buffer, in floats from AttentionArgs::partials on: sums of
// exp2(score - m) value [splits, batch, heads, q_len, VALUE_DIM], then their maxima and sums of
// weights {m, l} [splits, batch, heads, q_len, 2]. l = 0: this split saw nothing, and its sums do
// not count.
#ifndef TESSERA_OPERATIONS_ATTENTION_COMBINE_H
#define TESSERA_OPERATIONS_ATTENTION_COMBINE_H

// Features of an item, and items of a row.
#define COMBINE_FEATURES 4u
#define COMBINE_PARTS ((VALUE_DIM + COMBINE_FEATURES - 1u) / COMBINE_FEATURES)

#ifndef __cplusplus
// {factor, lse}: output = factor * sum of exp2(score - before) value, lse = ln of the sum of exp of
// scores and sinks. `top` and `sum` are the maximum and the sum of the weights with the sinks; sum
// is 0 where there was nothing, and then lse is `nothing`. `far`: scores may be beyond FAR_SCORE.
FUNCTION FLOAT2 row_result(float before, float top, float sum, bool normalize, bool far,
                           float nothing) {
  if (sum == 0.0f) return MAKE_FLOAT2(0.0f, nothing);
  const float factor = exp2(before - top), exponent = top + log2(sum);
  return MAKE_FLOAT2(normalize ? factor / sum : factor,
                     far ? score_of_exponent(exponent) : exponent * LN_2);
}
#endif

#endif  // TESSERA_OPERATIONS_ATTENTION_COMBINE_H
