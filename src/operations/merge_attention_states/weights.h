// SPDX-License-Identifier: Apache-2.0
// The weights of parts. Text for OpenCL C and GLSL. LOG_SUM(p) is the log-sum-exp of part p at the
// row of `n` and `head`.
#ifndef TESSERA_OPERATIONS_MERGE_ATTENTION_STATES_WEIGHTS_H
#define TESSERA_OPERATIONS_MERGE_ATTENTION_STATES_WEIGHTS_H
#include "abi/storage.h"

#define STATE_NOTHING FLOAT_OF_BITS(0xff800000u)  // the log-sum-exp of a row that saw no key

// exp(x - largest), where infinities are equal to themselves.
FUNCTION float state_weight(float x, float largest) {
  if (x == largest) return x == STATE_NOTHING ? 0.0f : 1.0f;
  return exp(x - largest);
}

// The largest of a row's parts, and one over the sum of their weights; 0 where none saw a key.
#define STATE_SUMS(largest, sum, factor)                                         \
  float largest = STATE_NOTHING, sum = 0.0f;                                     \
  for (u32 p = 0u; p < all_parts; ++p) {                                         \
    const float x = LOG_SUM(p);                                                  \
    largest = x > largest ? x : largest;                                         \
  }                                                                              \
  for (u32 p = 0u; p < all_parts; ++p) sum += state_weight(LOG_SUM(p), largest); \
  const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;

#endif  // TESSERA_OPERATIONS_MERGE_ATTENTION_STATES_WEIGHTS_H
