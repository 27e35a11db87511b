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

// The largest of a row's parts, the sum of their weights, and what makes that 1; 0 where none saw a
// key. Mostly there are two parts: their exponentials are taken once.
#define STATE_SUMS(largest, sum, factor)                                            \
  float largest = STATE_NOTHING;                                                    \
  for (u32 p = 0u; p < all_parts; ++p) {                                            \
    const float x = LOG_SUM(p);                                                     \
    largest = x > largest ? x : largest;                                            \
  }                                                                                 \
  const float weight0 = state_weight(LOG_SUM(0u), largest);                         \
  const float weight1 = all_parts > 1u ? state_weight(LOG_SUM(1u), largest) : 0.0f; \
  float sum = weight0 + weight1;                                                    \
  for (u32 p = 2u; p < all_parts; ++p) sum += state_weight(LOG_SUM(p), largest);    \
  const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
#define STATE_WEIGHT(p) \
  (((p) == 0u ? weight0 : (p) == 1u ? weight1 : state_weight(LOG_SUM(p), largest)) * factor)

#endif  // TESSERA_OPERATIONS_MERGE_ATTENTION_STATES_WEIGHTS_H
