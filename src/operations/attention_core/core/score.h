// SPDX-License-Identifier: Apache-2.0
// What a score is, in base-2 units: kernels take exp2 of score differences. For OpenCL C and GLSL.
//
//   score = log2(e) * scale * dot                              without a soft cap
//   score = log2(e) * cap * tanh(scale * dot / cap)            with one
#ifndef TESSERA_OPERATIONS_FLASH_ATTENTION_SCORE_H
#define TESSERA_OPERATIONS_FLASH_ATTENTION_SCORE_H

#define LOG2_E 1.4426950408889634f
#define LN_2 0.6931471805599453f

// A masked score and the start of every row maximum. Both are finite and half of float's range
// apart, so that exp2 of their difference is 0 and never NaN: a row whose keys are all masked adds
// up to 0. The scores of visible keys are not below LOWEST_MAXIMUM, see exponent_of_score().
#define MASKED_SCORE (-3.4028234e38f)
#define LOWEST_MAXIMUM (-1.7014117e38f)

// Biases and sinks may be as large as float goes, where log2(e) times a score is no float any more.
// Beyond FAR_SCORE the base-2 score grows more slowly, by half of the score: the order stays, and
// different scores are so far apart that only the largest has a weight. The lowest float becomes
// LOWEST_MAXIMUM.
#define FAR_SCORE 1.2676506e30f  // 2^100
#define FAR_OFFSET (FAR_SCORE * (LOG2_E - 0.5f))
// No branches, by which ptxas would serialize products. NaN stays NaN, -inf stays -inf.
FUNCTION float exponent_of_score(float score) {
  const float least = fma(score, 0.5f, -FAR_OFFSET), most = fma(score, 0.5f, FAR_OFFSET);
  return min(max(score * LOG2_E, least), most);
}
FUNCTION float score_of_exponent(float exponent) {
  const float least = 2.0f * (exponent - FAR_OFFSET), most = 2.0f * (exponent + FAR_OFFSET);
  return max(min(exponent * LN_2, most), least);
}

// Where the exponential form of tanh would cancel: an odd polynomial (a minimax fit of our own,
// error 0.05 roundings before its own arithmetic) for magnitudes below TANH_NEAR_ZERO.
#define TANH_NEAR_ZERO 0.6f
FUNCTION float tanh_near_zero(float x) {
  const float square = x * x;
  float near_zero = fma(-5.8951583e-3f, square, 2.0795971e-2f);
  near_zero = fma(near_zero, square, -5.3783830e-2f);
  near_zero = fma(near_zero, square, 1.3331924e-1f);
  near_zero = fma(near_zero, square, -3.3333299e-1f);
  return fma(x * square, near_zero, x);
}

// Relative error a few float roundings everywhere; saturates to +-1; NaN stays NaN.
FUNCTION float saturating_tanh(float x) {
  const float magnitude = max(x, -x);
  const float e = exp2(-2.0f * LOG2_E * magnitude);
  const float away = (1.0f - e) / (1.0f + e);
  return magnitude < TANH_NEAR_ZERO ? tanh_near_zero(x) : (x < 0.0f ? -away : away);
}

#endif  // TESSERA_OPERATIONS_FLASH_ATTENTION_SCORE_H
