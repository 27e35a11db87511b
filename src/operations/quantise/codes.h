// SPDX-License-Identifier: Apache-2.0
// Scales and codes, after abi/storage.h. Text for OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_QUANTISE_CODES_H
#define TESSERA_OPERATIONS_QUANTISE_CODES_H

// An element of a matrix of the arguments, in its batch.
#define CODES_AT(matrix, y, x) \
  (ARGS(matrix).offset + batch * ARGS(matrix).batch + (y)*ARGS(matrix).row + (x))

FUNCTION bool codes_are_unsigned(u32 type) {
  return type == TO_U32(DTYPE_U8) || type == TO_U32(DTYPE_U4);
}
FUNCTION bool codes_are_floats(u32 type) {
  return type == TO_U32(DTYPE_E4M3FN) || type == TO_U32(DTYPE_E5M2);
}
FUNCTION bool codes_are_packed(u32 type) {
  return type == TO_U32(DTYPE_I4) || type == TO_U32(DTYPE_U4);
}

// Of floats from `least` to `most`, 0 among them.
FUNCTION float scale_of_codes(u32 type, bool is_dynamic, float least, float most, float largest) {
  const float peak = -least > most ? -least : most;
  // Devices may lose what is smaller.
  const float over = is_dynamic ? largest : codes_are_unsigned(type) ? most - least : peak;
  const float under = is_dynamic ? peak + 1.0e-6f : largest;
  const float scale = rounded_quotient(over, under);
  if (is_dynamic) return peak >= 1.17549435e-38f ? scale : 1.0f;
  if (scale >= 1.17549435e-38f) return scale;
  return codes_are_floats(type) ? 1.17549435e-38f : 1.0f;
}

// Of a float that is divided by its scale.
FUNCTION u32 code_of_quotient(u32 type, float x, i32 zero, float largest) {
  if (type == TO_U32(DTYPE_E4M3FN)) return to_e4m3fn(x);
  if (type == TO_U32(DTYPE_E5M2)) return to_e5m2(x);
  i32 code = to_integer(x, -largest, largest);
  if (codes_are_unsigned(type)) code = min(max(code + zero, 0), TO_INT(largest));
  return TO_U32(code) & (codes_are_packed(type) ? 0xfu : 0xffu);
}

// What the lowest bits of a word mean.
FUNCTION float widened_code(u32 type, u32 word, float zero, float scale, bool is_dynamic) {
  const u32 bits = word & (codes_are_packed(type) ? 0xfu : 0xffu);
  const float number = from_storage(type, bits) - zero;
  return is_dynamic ? number / scale : number * scale;
}

#endif  // TESSERA_OPERATIONS_QUANTISE_CODES_H
