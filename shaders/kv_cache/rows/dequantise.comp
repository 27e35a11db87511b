// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/rows/dequantise.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "kv_cache/rows/codes.glsl"

layout(std430, binding = 0) readonly buffer Codes { uint code_words[]; };
layout(std430, binding = 1) readonly buffer Scales { float scales[]; };
layout(std430, binding = 2) writeonly buffer Floats { scalar float_elements[]; };
layout(std430, binding = 2) writeonly buffer Fours { scalar4 float_fours[]; };
PUSH_ARGS(CacheCodesArgs);

vec4 widen_word(uint word, uint type) {
  return vec4(from_storage(type, word & 0xffu), from_storage(type, (word >> 8) & 0xffu),
              from_storage(type, (word >> 16) & 0xffu), from_storage(type, word >> 24));
}
vec4 widen_half_word(uint word) {
  return vec4(from_i4(word & 0xfu), from_i4((word >> 4) & 0xfu), from_i4((word >> 8) & 0xfu),
              from_i4((word >> 12) & 0xfu));
}
float widen_code(uint at, uint type) {
  if (type == DTYPE_I4) return from_storage(type, LOAD_HALF_BYTE(code_words, at));
  return from_storage(type, LOAD_BYTE(code_words, at));
}

void widen_chunk(uint from, uint to, uint left, uint type, float scale) {
  if (ALIGNED != 0u) {
    vec4 low, high;
    if (type == DTYPE_I4) {
      const uint word = code_words[from / 8u];
      low = widen_half_word(word);
      high = widen_half_word(word >> 16);
    } else {
      low = widen_word(code_words[from / 4u], type);
      high = widen_word(code_words[from / 4u + 1u], type);
    }
    float_fours[to / 4u] = store_scalar4(low * scale);
    float_fours[to / 4u + 1u] = store_scalar4(high * scale);
    return;
  }
  float_elements[to] = store_scalar(widen_code(from, type) * scale);
  if (left > 1u) float_elements[to + 1u] = store_scalar(widen_code(from + 1u, type) * scale);
}

#define SCALE(i) scales[i]
#define WIDEN_CHUNK(from, to, left) widen_chunk(from, to, left, type, scale)

void main() {
#include "operations/kv_cache/rows/dequantise.h"
}
