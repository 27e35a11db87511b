// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/rows/quantise.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "kv_cache/core/codes.glsl"
#include "lib/chunks.glsl"
#include "lib/codes.glsl"
#include "operations/kv_cache/rows/lines.h"

layout(std430, binding = 0) readonly buffer Floats { scalar float_elements[]; };
layout(std430, binding = 0) readonly buffer Fours { scalar4 float_fours[]; };
layout(std430, binding = 0) readonly buffer Chunks { uvec4 float_chunks[]; };
layout(std430, binding = 1) buffer Codes { uint code_words[]; };
layout(std430, binding = 1) writeonly buffer CodePairs { uvec2 code_pairs[]; };
layout(std430, binding = 2) buffer Scales { float scales[]; };
layout(std430, binding = 3) readonly buffer Scratch { int list[]; };
layout(std430, binding = 4) writeonly buffer Peaks { float peaks[]; };
PUSH_ARGS(CacheCodesArgs);
LOAD_COLUMN(load_floats, float_elements, float_fours)
LOAD_CHUNK(load_float_chunk, load_floats, float_chunks)

#define LIST(i) list[i]
#define SCALE(i) scales[i]
#define STORE_SCALE(value, i) scales[i] = (value)
#define STORE_PEAK(value, i) peaks[i] = (value)

// Two elements are in low.xy.
#define CACHE_LOAD(at, left) \
  vec4 low, high;            \
  load_eight(at, left, low, high)
void load_eight(uint at, uint left, out vec4 low, out vec4 high) {
  high = vec4(0.0);
  if (ALIGNED != 0u) {
    const uvec4 chunk = load_float_chunk(at, 8u);
    low = chunk_vector(chunk, 0u);
#if DTYPE == DTYPE_F32
    high = load_floats(at + 4u, 4u);
#else
    high = chunk_vector(chunk, 1u);
#endif
  } else {
    low = load_floats(at, min(left, 2u));
  }
}

// A NaN is no largest.
float larger(float a, float b) { return b > a ? b : a; }
float peak_of(vec4 x) {
  const vec4 m = abs(x);
  return larger(larger(larger(larger(0.0, m.x), m.y), m.z), m.w);
}
#define CACHE_PEAK(peak) peak = larger(peak, larger(peak_of(low), peak_of(high)))

vec4 quotients(vec4 x, float scale, float inverse) {
  return vec4(quotient_by_scale(x.x, scale, inverse), quotient_by_scale(x.y, scale, inverse),
              quotient_by_scale(x.z, scale, inverse), quotient_by_scale(x.w, scale, inverse));
}
uint codes_of(vec4 x, float most, uint bits) {
  return cache_code(CODES, x.x, most) | cache_code(CODES, x.y, most) << bits |
         cache_code(CODES, x.z, most) << (2u * bits) | cache_code(CODES, x.w, most) << (3u * bits);
}
#define CACHE_STORE(at, left) \
  store_eight(at, left, quotients(low, scale, inverse), quotients(high, scale, inverse), largest)
void store_eight(uint at, uint left, vec4 low, vec4 high, float most) {
  if (ALIGNED != 0u) {
    if (CODES == DTYPE_I4) {
      code_words[at / 8u] = codes_of(low, most, 4u) | codes_of(high, most, 4u) << 16;
    } else {
      code_pairs[at / 8u] = uvec2(codes_of(low, most, 8u), codes_of(high, most, 8u));
    }
    return;
  }
  const uint even = cache_code(CODES, low.x, most), odd = cache_code(CODES, low.y, most);
  if (CODES == DTYPE_I4) {
    STORE_BYTE(even | odd << 4, code_words, at / 2u)
  } else {
    STORE_BYTE(even, code_words, at)
    if (left > 1u) STORE_BYTE(odd, code_words, at + 1u)
  }
}

// Of the LANES items of a row; every item of the work-group comes here.
shared float space[WG_X];
float LARGEST_LINE(float x) {
  const uint item = gl_LocalInvocationID.x, lane = item % LANES;
  space[item] = x;
  for (uint width = LANES / 2u; width > 0u; width /= 2u) {
    barrier();
    if (lane < width) space[item] = larger(space[item], space[item + width]);
  }
  barrier();
  const float all = space[item - lane];
  barrier();
  return all;
}

void main() {
#include "operations/kv_cache/quantise.h"
}
