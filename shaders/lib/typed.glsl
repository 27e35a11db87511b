// SPDX-License-Identifier: Apache-2.0
// Elements whose storage type is a value and no build-time axis: DTYPE_... of abi/shared.h. Where it is constant, so is
// the choice. The build-time axis STORAGE16 is 0 where no operand of a call has 16 bits: devices without such storage
// take that module.
#ifndef TESSERA_LIB_TYPED_GLSL
#define TESSERA_LIB_TYPED_GLSL
#include "lib/prelude.glsl"
#include "lib/bits16.glsl"

vec4 widen_typed(uvec2 pairs, uint type) {
  if (type == DTYPE_F16) return vec4(unpackHalf2x16(pairs.x), unpackHalf2x16(pairs.y));
  return vec4(bfloat16_pair(pairs.x), bfloat16_pair(pairs.y));
}
uvec4 narrow_typed(vec4 x, uint type) {
  if (type == DTYPE_F16) return uvec4(half_bits(x.x), half_bits(x.y), half_bits(x.z), half_bits(x.w));
  return uvec4(bfloat16_bits(x.x), bfloat16_bits(x.y), bfloat16_bits(x.z), bfloat16_bits(x.w));
}

#if STORAGE16
#define TYPED_SHORTS(access, name, slot)                                                       \
  layout(std430, binding = slot) access buffer name##_shorts { uint16_t name##_as_shorts[]; }; \
  layout(std430, binding = slot) access buffer name##_pairs { uvec2 name##_as_pairs[]; };
#define TYPED_LOAD_PAIRS(name) \
  if (type != DTYPE_F32) return widen_typed(name##_as_pairs[at / 4u], type);
#define TYPED_LOAD_SHORTS(name)                                                           \
  if (type != DTYPE_F32) {                                                                \
    uvec2 pairs = uvec2(uint(name##_as_shorts[at]), 0u);                                  \
    if (count > 1u) pairs.x |= uint(name##_as_shorts[at + step]) << 16;                   \
    if (count > 2u) pairs.y = uint(name##_as_shorts[at + 2u * step]);                     \
    if (count > 3u) pairs.y |= uint(name##_as_shorts[at + 3u * step]) << 16;              \
    return widen_typed(pairs, type);                                                      \
  }
#define TYPED_STORE_PAIRS(name)                                                           \
  if (type != DTYPE_F32) {                                                                \
    const uvec4 bits = narrow_typed(x, type);                                             \
    name##_as_pairs[at / 4u] = uvec2(bits.x | bits.y << 16, bits.z | bits.w << 16);       \
    return;                                                                               \
  }
#define TYPED_STORE_SHORTS(name)                                                          \
  if (type != DTYPE_F32) {                                                                \
    const uvec4 bits = narrow_typed(x, type);                                             \
    name##_as_shorts[at] = uint16_t(bits.x);                                              \
    if (count > 1u) name##_as_shorts[at + step] = uint16_t(bits.y);                       \
    if (count > 2u) name##_as_shorts[at + 2u * step] = uint16_t(bits.z);                  \
    if (count > 3u) name##_as_shorts[at + 3u * step] = uint16_t(bits.w);                  \
    return;                                                                               \
  }
#else
#define TYPED_SHORTS(access, name, slot)
#define TYPED_LOAD_PAIRS(name)
#define TYPED_LOAD_SHORTS(name)
#define TYPED_STORE_PAIRS(name)
#define TYPED_STORE_SHORTS(name)
#endif

#define TYPED_BUFFER(access, name, slot)                                                     \
  layout(std430, binding = slot) access buffer name##_floats { float name##_as_floats[]; };  \
  layout(std430, binding = slot) access buffer name##_vectors { vec4 name##_as_vectors[]; }; \
  TYPED_SHORTS(access, name, slot)

// An operand. load_<name>_vector(at, type): four elements, where `at` is a multiple of four; load_<name>_steps(at, step,
// count, type): up to four, `step` apart, and 0 behind `count`, which is at least 1.
#define TYPED_INPUT(name, slot)                                              \
  TYPED_BUFFER(readonly, name, slot)                                         \
  vec4 load_##name##_vector(uint at, uint type) {                            \
    TYPED_LOAD_PAIRS(name)                                                   \
    return name##_as_vectors[at / 4u];                                       \
  }                                                                          \
  vec4 load_##name##_steps(uint at, uint step, uint count, uint type) {      \
    TYPED_LOAD_SHORTS(name)                                                  \
    vec4 x = vec4(name##_as_floats[at], 0.0, 0.0, 0.0);                      \
    if (count > 1u) x.y = name##_as_floats[at + step];                       \
    if (count > 2u) x.z = name##_as_floats[at + 2u * step];                  \
    if (count > 3u) x.w = name##_as_floats[at + 3u * step];                  \
    return x;                                                                \
  }
#define TYPED_OUTPUT(name, slot)                                              \
  TYPED_BUFFER(writeonly, name, slot)                                         \
  void store_##name##_vector(vec4 x, uint at, uint type) {                    \
    TYPED_STORE_PAIRS(name)                                                   \
    name##_as_vectors[at / 4u] = x;                                           \
  }                                                                           \
  void store_##name##_steps(vec4 x, uint at, uint step, uint count, uint type) { \
    TYPED_STORE_SHORTS(name)                                                  \
    name##_as_floats[at] = x.x;                                               \
    if (count > 1u) name##_as_floats[at + step] = x.y;                        \
    if (count > 2u) name##_as_floats[at + 2u * step] = x.z;                   \
    if (count > 3u) name##_as_floats[at + 3u * step] = x.w;                   \
  }

#endif  // TESSERA_LIB_TYPED_GLSL
