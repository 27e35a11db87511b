// SPDX-License-Identifier: Apache-2.0
// Functions on single floats: read by OpenCL C and GLSL. NaN stays NaN, of which GLSL's comparisons
// and functions promise nothing: its bits tell.
#ifndef TESSERA_OPERATIONS_COMMON_FUNCTIONS_H
#define TESSERA_OPERATIONS_COMMON_FUNCTIONS_H
#include "abi/storage.h"

#define FLOAT_IS_NAN(x) ((BITS_OF_FLOAT(x) & 0x7fffffffu) > 0x7f800000u)

// Below -104 nothing of a float is left; functions of devices need not say so.
FUNCTION float float_exp(float x) {
  if (FLOAT_IS_NAN(x)) return x;
  return x < -104.0f ? 0.0f : exp(x);
}

FUNCTION float float_sigmoid(float x) {
  if (FLOAT_IS_NAN(x)) return x;
  const float e = float_exp(x < 0.0f ? x : -x);
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}

#endif  // TESSERA_OPERATIONS_COMMON_FUNCTIONS_H
