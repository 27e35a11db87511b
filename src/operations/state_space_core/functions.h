// SPDX-License-Identifier: Apache-2.0
// Functions of gates and steps, on single floats: read by OpenCL C and GLSL. NaN stays NaN.
#ifndef TESSERA_OPERATIONS_STATE_SPACE_CORE_FUNCTIONS_H
#define TESSERA_OPERATIONS_STATE_SPACE_CORE_FUNCTIONS_H

#include "operations/common/functions.h"

// By the functions of devices that are fast: SPACE_EXP2 and SPACE_RECIPROCAL are off by 4 and 2
// units at most, and the argument of the first by 1.3 units of |x|. Where exp(-x) is no float, its
// reciprocal is 0, as the sigmoid nearly is.
#define SPACE_LOG2_E 1.44269504f
FUNCTION float space_sigmoid(float x) {
  return SPACE_RECIPROCAL(1.0f + SPACE_EXP2(-SPACE_LOG2_E * x));
}
FUNCTION float space_silu(float x) { return x * space_sigmoid(x); }

FUNCTION float space_silu_slope(float x) {
  const float s = space_sigmoid(x);
  return s * (1.0f + x * (1.0f - s));
}

// log(1 + exp(x)): log(1 + e) = 2 artanh(e / (2 + e)) by its series, whose next term is below
// 2^-29 of the sum.
FUNCTION float space_softplus(float x) {
  const float e = SPACE_EXP2(SPACE_LOG2_E * (x < 0.0f ? x : -x));
  const float s = e * SPACE_RECIPROCAL(2.0f + e), y = s * s;
  float p = y * (1.0f / 15.0f) + 1.0f / 13.0f;
  p = p * y + 1.0f / 11.0f;
  p = p * y + 1.0f / 9.0f;
  p = p * y + 1.0f / 7.0f;
  p = p * y + 1.0f / 5.0f;
  p = p * y + 1.0f / 3.0f;
  const float rest = 2.0f * (s * y * p + s);
  return FLOAT_IS_NAN(x) ? x : x > 0.0f ? x + rest : rest;
}

#endif  // TESSERA_OPERATIONS_STATE_SPACE_CORE_FUNCTIONS_H
