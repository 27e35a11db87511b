// SPDX-License-Identifier: Apache-2.0
// Functions of gates, on single floats: read by OpenCL C and GLSL. NaN stays NaN.
#ifndef TESSERA_OPERATIONS_CELLS_CORE_FUNCTIONS_H
#define TESSERA_OPERATIONS_CELLS_CORE_FUNCTIONS_H

#include "operations/common/functions.h"

FUNCTION float cell_relu(float x) {
  if (FLOAT_IS_NAN(x)) return x;
  return x > 0.0f ? x : 0.0f;
}

// Relative errors of a few units: GLSL's own is off by 1e-5 near 0. Below 0.5 a Taylor series,
// whose next term is below 2^-26.
FUNCTION float cell_tanh(float x) {
  if (FLOAT_IS_NAN(x)) return x;
  const float size = x < 0.0f ? -x : x;
  if (size < 0.5f) {
    const float y = x * x;
    float p = -1.45583438e-3f * y + 3.59212803e-3f;
    p = p * y - 8.86323552e-3f;
    p = p * y + 2.18694885e-2f;
    p = p * y - 5.39682540e-2f;
    p = p * y + 1.33333333e-1f;
    p = p * y - 3.33333333e-1f;
    return x * y * p + x;
  }
  const float rest = 2.0f / (exp(2.0f * (size > 15.0f ? 15.0f : size)) + 1.0f);
  return x < 0.0f ? rest - 1.0f : 1.0f - rest;
}

#endif  // TESSERA_OPERATIONS_CELLS_CORE_FUNCTIONS_H
