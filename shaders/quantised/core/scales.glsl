// SPDX-License-Identifier: Apache-2.0
// Scales of weights, in two steps: nothing may be made of one before it is needed, for that would wait for it. Includers have
// TYPED_INPUT(scale, slot) and the constant SCALE_TYPE.
#ifndef TESSERA_QUANTISED_CORE_SCALES_GLSL
#define TESSERA_QUANTISED_CORE_SCALES_GLSL
#include "lib/typed.glsl"
#include "operations/quantised_core/scale.h"

uint scale_bits(uint at) {
#if STORAGE16
  if (SCALE_TYPE != DTYPE_F32) return uint(scale_as_shorts[at]);
#endif
  return floatBitsToUint(scale_as_floats[at]);
}
float number_of_scale(uint bits) {
  return quant_scale(SCALE_TYPE == DTYPE_F32 ? uintBitsToFloat(bits) : widen_typed(uvec2(bits, 0u), SCALE_TYPE).x);
}

#endif  // TESSERA_QUANTISED_CORE_SCALES_GLSL
