// SPDX-License-Identifier: Apache-2.0
// Weights of rows that are computed again, without matrices, since their sums met a number that is not finite.
#ifndef TESSERA_ATTENTION_CORE_EXACT_WEIGHT_GLSL
#define TESSERA_ATTENTION_CORE_EXACT_WEIGHT_GLSL

// A visible key's weight in units of the largest: above 0 wherever double has it, so that small ones
// still take infinities along.
const float kLeastWeight = 1.1754944e-38, kLeastExponent = -1075.0;
float exact_weight(float score, float most) {
  const float weight = exp2(score - most);
  return weight < kLeastWeight && score - most > kLeastExponent ? kLeastWeight : weight;
}

#endif  // TESSERA_ATTENTION_CORE_EXACT_WEIGHT_GLSL
