// SPDX-License-Identifier: Apache-2.0
// Four floats from and to four codes of 8 bits in a word, and from eight codes of 4 bits. As cl_kernels/lib/codes.clh.
#ifndef TESSERA_LIB_CODES_GLSL
#define TESSERA_LIB_CODES_GLSL
#include "lib/bytes.glsl"

// As to_storage().
uint code_word(vec4 x, uint type) {
  return to_storage(type, x.x) | to_storage(type, x.y) << 8 | to_storage(type, x.z) << 16 |
         to_storage(type, x.w) << 24;
}

// As from_storage(). Integers become the last bits of 2^23, of which that and half their range are taken away.
vec4 floats_of_numbers(uvec4 numbers, float half_of_range) {
  return uintBitsToFloat(numbers | 0x4b000000u) - (8388608.0 + half_of_range);
}
vec4 floats_of_bytes(uint word, uint type) {
  if (type == DTYPE_I8)
    return floats_of_numbers((uvec4(word ^ 0x80808080u) >> uvec4(0u, 8u, 16u, 24u)) & 0xffu, 128.0);
  return vec4(from_storage(type, word & 0xffu), from_storage(type, (word >> 8) & 0xffu),
              from_storage(type, (word >> 16) & 0xffu), from_storage(type, word >> 24));
}
// Of the lower four of eight signed half bytes.
vec4 floats_of_half_bytes(uint word) {
  return floats_of_numbers((uvec4(word ^ 0x8888u) >> uvec4(0u, 4u, 8u, 12u)) & 0xfu, 8.0);
}

#endif  // TESSERA_LIB_CODES_GLSL
