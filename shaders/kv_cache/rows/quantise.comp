// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/rows/quantise.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "kv_cache/rows/codes.glsl"

layout(std430, binding = 0) readonly buffer Floats { scalar float_elements[]; };
layout(std430, binding = 0) readonly buffer Fours { scalar4 float_fours[]; };
layout(std430, binding = 1) buffer Codes { uint code_words[]; };
layout(std430, binding = 2) buffer Scales { float scales[]; };
layout(std430, binding = 3) readonly buffer Scratch { int list[]; };
layout(std430, binding = 4) writeonly buffer Peaks { float peaks[]; };
PUSH_ARGS(CacheCodesArgs);

#define LIST(i) list[i]
#define SCALE(i) scales[i]
#define STORE_SCALE(value, i) scales[i] = (value)
#define STORE_PEAK(value, i) peaks[i] = (value)

// Two elements are in low.xy.
#define LOAD_CHUNK(at, left) \
  vec4 low, high;            \
  load_chunk(at, left, low, high)
void load_chunk(uint at, uint left, out vec4 low, out vec4 high) {
  low = vec4(0.0);
  high = vec4(0.0);
  if (ALIGNED != 0u) {
    low = load_scalar4(float_fours[at / 4u]);
    high = load_scalar4(float_fours[at / 4u + 1u]);
  } else {
    low.x = load_scalar(float_elements[at]);
    if (left > 1u) low.y = load_scalar(float_elements[at + 1u]);
  }
}

// A NaN is no largest.
float larger(float a, float b) { return b > a ? b : a; }
float peak_of(vec4 x) {
  const vec4 m = abs(x);
  return larger(larger(larger(larger(0.0, m.x), m.y), m.z), m.w);
}
#define PEAK_OF_CHUNK(peak) peak = larger(peak, larger(peak_of(low), peak_of(high)))

#define STORE_CHUNK(at, left) store_chunk(at, left, type, low / scale, high / scale, largest)
uint codes_of(vec4 x, uint type, float most, uint bits) {
  return cache_code(type, x.x, most) | cache_code(type, x.y, most) << bits |
         cache_code(type, x.z, most) << (2u * bits) | cache_code(type, x.w, most) << (3u * bits);
}
void store_chunk(uint at, uint left, uint type, vec4 low, vec4 high, float most) {
  if (ALIGNED != 0u) {
    if (type == DTYPE_I4) {
      code_words[at / 8u] = codes_of(low, type, most, 4u) | codes_of(high, type, most, 4u) << 16;
    } else {
      code_words[at / 4u] = codes_of(low, type, most, 8u);
      code_words[at / 4u + 1u] = codes_of(high, type, most, 8u);
    }
    return;
  }
  const uint even = cache_code(type, low.x, most), odd = cache_code(type, low.y, most);
  if (type == DTYPE_I4) {
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
#include "operations/kv_cache/rows/quantise.h"
}
