// SPDX-License-Identifier: Apache-2.0
// Codes of GGUF's blocks, after operations/quantised_core/scale.h. Text for OpenCL C and GLSL;
// PRECISE keeps GLSL from fusing, and FP_CONTRACT OpenCL C.
#ifndef TESSERA_OPERATIONS_QUANTISE_GGUF_CODES_H
#define TESSERA_OPERATIONS_QUANTISE_GGUF_CODES_H

// 0 of a scale that devices may lose.
FUNCTION float gguf_inverse(float scale) {
  const bool is_there = scale >= 1.17549435e-38f || scale <= -1.17549435e-38f;
  return is_there ? rounded_quotient(1.0f, scale) : 0.0f;
}

FUNCTION u32 gguf_half(float x) {
  const u32 bits = BITS_OF_FLOAT(x), magnitude = bits & 0x7fffffffu;
  return ((bits >> 16) & 0x8000u) | min(narrow_magnitude(magnitude, 13u, 15u), 0x7c00u);
}

// Of a quotient, halves away from zero; of NaN 0.
FUNCTION u32 gguf_byte(float x) {
  const float size = x < 0.0f ? -x : x;
  if (!(size >= 0.5f)) return 0u;
  i32 code = TO_INT(min(size, 127.0f));
  if (size - TO_FLOAT(code) >= 0.5f && code < 127) ++code;
  return TO_U32(x < 0.0f ? -code : code) & 0xffu;
}

// The same in 4 bits, of which 8 is zero; of NaN that. A product and a sum, each rounded.
FUNCTION u32 gguf_half_byte(float x, float inverse) {
  PRECISE float product = x * inverse;
  PRECISE float size = product + 8.5f;
  return size >= 0.0f ? TO_U32(min(size, 15.0f)) : 8u;
}

#endif  // TESSERA_OPERATIONS_QUANTISE_GGUF_CODES_H
