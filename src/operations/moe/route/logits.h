// SPDX-License-Identifier: Apache-2.0
// Logits and scores of tokens. Text for OpenCL C and GLSL; LOAD_LOGIT(token, e) is the operand's.
#ifndef TESSERA_OPERATIONS_MOE_ROUTE_LOGITS_H
#define TESSERA_OPERATIONS_MOE_ROUTE_LOGITS_H
#include "abi/philox.h"
#include "abi/storage.h"

#define MOE_EXCLUDED FLOAT_OF_BITS(0xff800000u)  // no score is less
#define MOE_LEAST_SCORE 1e-6f                    // of a sigmoid

// A normal number: words 0 and 1 of a block through Box and Muller.
FUNCTION float moe_normal(u32 low, u32 high, u32 seed_low, u32 seed_high) {
  PHILOX_BLOCK(low, high, seed_low, seed_high)
  const float first = (TO_FLOAT(c0 >> 8) + 1.0f) * 5.9604645e-8f;  // (0, 1]
  // The cosine of c1 / 2^32 turns as a sine within a quarter of one: GLSL's is good to 2^-11.
  const float turn = TO_FLOAT(c1 >> 8) * 5.9604645e-8f - 0.5f;
  const float x = (0.25f - (turn < 0.0f ? -turn : turn)) * 6.2831853f, xx = x * x;
  const float sine =
      x * (1.0f + xx * (-1.6666667e-1f +
                        xx * (8.3333333e-3f +
                              xx * (-1.9841270e-4f + xx * (2.7557319e-6f - xx * 2.5052108e-8f)))));
  return -sqrt(-2.0f * log(first)) * sine;
}

// Of logit number token * experts + e.
FUNCTION float moe_noise(u32 token, u32 experts, u32 e, u32 seed_low, u32 seed_high) {
  const u32 product = token * experts, low = product + e;
  const u32 high = mul_hi(token, experts) + (low < product ? 1u : 0u);
  return moe_normal(low, high, seed_low, seed_high);
}

// NaN excludes.
FUNCTION float moe_known(float x) {
  return (BITS_OF_FLOAT(x) & 0x7fffffffu) <= 0x7f800000u ? x : MOE_EXCLUDED;
}

#define MOE_LOGIT(token, e)                                                         \
  moe_known(LOAD_LOGIT(token, e) +                                                  \
            (ARGS(noise) == 0.0f ? 0.0f                                             \
                                 : ARGS(noise) * moe_noise(token, ARGS(experts), e, \
                                                           ARGS(seed_low), ARGS(seed_high))))

// exp(logit - from), 0 for excluded experts.
FUNCTION float moe_exp(float logit, float from) {
  return logit > MOE_EXCLUDED ? exp(logit - from) : 0.0f;
}

// `sum` is that of moe_exp(logit, largest); 0 for a token without an expert.
FUNCTION float moe_log_sum(float largest, float sum) {
  return largest > MOE_EXCLUDED ? largest + log(sum) : 0.0f;
}

// log_sum is that of the token's exponentials. Excluded experts have score 0.
FUNCTION float moe_score(u32 sigmoid, float logit, float log_sum) {
  if (!(logit > MOE_EXCLUDED)) return 0.0f;
  if (sigmoid != 0u) {
    const float score = 1.0f / (1.0f + exp(-logit));
    return score < MOE_LEAST_SCORE ? MOE_LEAST_SCORE : score;
  }
  return moe_exp(logit, log_sum);
}

#endif  // TESSERA_OPERATIONS_MOE_ROUTE_LOGITS_H
