// SPDX-License-Identifier: Apache-2.0
// Functions of gates and steps, on single floats: read by OpenCL C and GLSL. NaN stays NaN.
#ifndef TESSERA_OPERATIONS_STATE_SPACE_CORE_FUNCTIONS_H
#define TESSERA_OPERATIONS_STATE_SPACE_CORE_FUNCTIONS_H

#include "operations/common/functions.h"

FUNCTION float space_silu(float x) { return x * float_sigmoid(x); }

FUNCTION float space_silu_slope(float x) {
  const float s = float_sigmoid(x);
  return s * (1.0f + x * (1.0f - s));
}

// log(1 + exp(x)): log(1 + e) = 2 artanh(e / (2 + e)) by its series, whose next term is below
// 2^-29 of the sum.
FUNCTION float space_softplus(float x) {
  if (FLOAT_IS_NAN(x)) return x;
  const float e = float_exp(x < 0.0f ? x : -x);
  const float s = e / (2.0f + e), y = s * s;
  float p = y * (1.0f / 15.0f) + 1.0f / 13.0f;
  p = p * y + 1.0f / 11.0f;
  p = p * y + 1.0f / 9.0f;
  p = p * y + 1.0f / 7.0f;
  p = p * y + 1.0f / 5.0f;
  p = p * y + 1.0f / 3.0f;
  const float rest = 2.0f * (s * y * p + s);
  return x > 0.0f ? x + rest : rest;
}

#endif  // TESSERA_OPERATIONS_STATE_SPACE_CORE_FUNCTIONS_H
