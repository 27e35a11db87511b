// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/rows/dequantise.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "kv_cache/core/codes.glsl"
#include "lib/chunks.glsl"
#include "lib/codes.glsl"
#include "operations/kv_cache/rows/lines.h"

layout(std430, binding = 0) readonly buffer Codes { uint code_words[]; };
layout(std430, binding = 0) readonly buffer CodePairs { uvec2 code_pairs[]; };
layout(std430, binding = 1) readonly buffer Scales { float scales[]; };
layout(std430, binding = 2) writeonly buffer Floats { scalar float_elements[]; };
layout(std430, binding = 2) writeonly buffer Fours { scalar4 float_fours[]; };
layout(std430, binding = 2) writeonly buffer Chunks { uvec4 float_chunks[]; };
PUSH_ARGS(CacheCodesArgs);
STORE_COLUMN(store_floats, float_elements, float_fours)
STORE_CHUNK(store_float_chunk, store_floats, float_chunks)

float widen_code(uint at) {
  if (CODES == DTYPE_I4) return from_storage(CODES, LOAD_HALF_BYTE(code_words, at));
  return from_storage(CODES, LOAD_BYTE(code_words, at));
}

void widen_chunk(uint from, uint to, uint left, float scale) {
  if (ALIGNED != 0u) {
    vec4 low, high;
    if (CODES == DTYPE_I4) {
      const uint word = code_words[from / 8u];
      low = floats_of_half_bytes(word) * scale;
      high = floats_of_half_bytes(word >> 16) * scale;
    } else {
      const uvec2 words = code_pairs[from / 8u];
      low = floats_of_bytes(words.x, CODES) * scale;
      high = floats_of_bytes(words.y, CODES) * scale;
    }
    store_float_chunk(low, high, to, 8u);
#if DTYPE == DTYPE_F32
    store_floats(high, to + 4u, 4u);
#endif
    return;
  }
  float_elements[to] = store_scalar(widen_code(from) * scale);
  if (left > 1u) float_elements[to + 1u] = store_scalar(widen_code(from + 1u) * scale);
}

#define SCALE(i) scales[i]
#define WIDEN_CHUNK(from, to, left) widen_chunk(from, to, left, scale)

void main() {
#include "operations/kv_cache/dequantise.h"
}
