// SPDX-License-Identifier: Apache-2.0
// Elements whose storage type is a value and no build-time axis: DTYPE_... of abi/shared.h. Where it is constant, so is
// the choice. The build-time axis STORAGE16 is 0 where no operand of a call has 16 bits: devices without such storage
// take that module.
#ifndef TESSERA_LIB_TYPED_GLSL
#define TESSERA_LIB_TYPED_GLSL
#include "lib/prelude.glsl"
#include "lib/bits16.glsl"

#if STORAGE16
#define TYPED_SHORTS(access, name, slot)                                                      \
  layout(std430, binding = slot) access buffer name##_shorts { uint16_t name##_as_shorts[]; }; \
  layout(std430, binding = slot) access buffer name##_pairs { uvec2 name##_as_pairs[]; };
#define TYPED_LOAD_SHORT(name)                                       \
  if (type != DTYPE_F32) {                                           \
    const uint bits = uint(name##_as_shorts[at]);                    \
    return type == DTYPE_F16 ? unpackHalf2x16(bits).x : uintBitsToFloat(bits << 16); \
  }
#define TYPED_LOAD_SHORTS(name)                                                                 \
  if (type != DTYPE_F32) {                                                                      \
    const uvec2 pairs = name##_as_pairs[at / 4u];                                               \
    if (type == DTYPE_F16) return vec4(unpackHalf2x16(pairs.x), unpackHalf2x16(pairs.y));       \
    return vec4(bfloat16_pair(pairs.x), bfloat16_pair(pairs.y));                                \
  }
uint typed_bits(float x, uint type) { return type == DTYPE_F16 ? half_bits(x) : bfloat16_bits(x); }
#define TYPED_STORE_SHORT(name)                              \
  if (type != DTYPE_F32) {                                   \
    name##_as_shorts[at] = uint16_t(typed_bits(x, type));    \
    return;                                                  \
  }
#define TYPED_STORE_SHORTS(name)                                                        \
  if (type != DTYPE_F32) {                                                              \
    name##_as_pairs[at / 4u] = uvec2(typed_bits(x.x, type) | typed_bits(x.y, type) << 16, \
                                     typed_bits(x.z, type) | typed_bits(x.w, type) << 16); \
    return;                                                                             \
  }
#else
#define TYPED_SHORTS(access, name, slot)
#define TYPED_LOAD_SHORT(name)
#define TYPED_LOAD_SHORTS(name)
#define TYPED_STORE_SHORT(name)
#define TYPED_STORE_SHORTS(name)
#endif

#define TYPED_BUFFER(access, name, slot)                                                     \
  layout(std430, binding = slot) access buffer name##_floats { float name##_as_floats[]; };   \
  layout(std430, binding = slot) access buffer name##_vectors { vec4 name##_as_vectors[]; }; \
  TYPED_SHORTS(access, name, slot)

// An operand: load_<name>(at, type), and four of them where `at` is a multiple of four.
#define TYPED_INPUT(name, slot)              \
  TYPED_BUFFER(readonly, name, slot)         \
  float load_##name(uint at, uint type) {    \
    TYPED_LOAD_SHORT(name)                   \
    return name##_as_floats[at];             \
  }                                          \
  vec4 load_##name##_vector(uint at, uint type) { \
    TYPED_LOAD_SHORTS(name)                  \
    return name##_as_vectors[at / 4u];       \
  }
#define TYPED_OUTPUT(name, slot)                      \
  TYPED_BUFFER(writeonly, name, slot)                 \
  void store_##name(float x, uint at, uint type) {    \
    TYPED_STORE_SHORT(name)                           \
    name##_as_floats[at] = x;                         \
  }                                                   \
  void store_##name##_vector(vec4 x, uint at, uint type) { \
    TYPED_STORE_SHORTS(name)                          \
    name##_as_vectors[at / 4u] = x;                   \
  }

#endif  // TESSERA_LIB_TYPED_GLSL
