// SPDX-License-Identifier: Apache-2.0
// Elements whose storage type is a value and no build-time axis: DTYPE_... of abi/shared.h. Where it is constant, so is
// the choice. The build-time axis STORAGE16 is 0 where no operand of a call has 16 bits: devices without such storage
// take that module.
#ifndef TESSERA_LIB_TYPED_GLSL
#define TESSERA_LIB_TYPED_GLSL
#include "abi/processors.h"
#include "lib/prelude.glsl"
#include "lib/bits16.glsl"

// element(name, values, i) for each i below `count`, at most 4 and not 0. Processors take them in a loop, for lavapipe
// compiles each access as a loop over its lanes; the loop has values of its own, so that elsewhere they stay in registers.
layout(constant_id = ON_PROCESSOR_ID) const bool ON_PROCESSOR = false;
#define TYPED_EACH(element, name, kind, values)                  \
  if (ON_PROCESSOR) {                                            \
    kind each = values;                                          \
    for (uint i = 0u; i < count; ++i) { element(name, each, i) } \
    values = each;                                               \
  } else {                                                       \
    element(name, values, 0u)                                    \
    if (count > 1u) { element(name, values, 1u) }                \
    if (count > 2u) { element(name, values, 2u) }                \
    if (count > 3u) { element(name, values, 3u) }                \
  }
#define TYPED_LOAD_SHORT(name, pairs, i) \
  pairs[(i) / 2u] |= uint(name##_as_shorts[at + (i) * step]) << 16u * ((i) % 2u);
#define TYPED_LOAD_FLOAT(name, x, i) x[i] = name##_as_floats[at + (i) * step];
// Of the bits, not of a copy: of zeros the optimiser of SPIR-V would make a constant of 16 bits, which needs arithmetic in them.
#define TYPED_STORE_SHORT(name, x, i) name##_as_shorts[at + (i) * step] = uint16_t(bits[i]);
#define TYPED_STORE_FLOAT(name, x, i) name##_as_floats[at + (i) * step] = x[i];

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
#define TYPED_LOAD_SHORTS(name)                      \
  if (type != DTYPE_F32) {                           \
    uvec2 pairs = uvec2(0u);                         \
    TYPED_EACH(TYPED_LOAD_SHORT, name, uvec2, pairs) \
    return widen_typed(pairs, type);                 \
  }
#define TYPED_STORE_PAIRS(name)                                                           \
  if (type != DTYPE_F32) {                                                                \
    const uvec4 bits = narrow_typed(x, type);                                             \
    name##_as_pairs[at / 4u] = uvec2(bits.x | bits.y << 16, bits.z | bits.w << 16);       \
    return;                                                                               \
  }
#define TYPED_STORE_SHORTS(name)                 \
  if (type != DTYPE_F32) {                       \
    const uvec4 bits = narrow_typed(x, type);    \
    TYPED_EACH(TYPED_STORE_SHORT, name, vec4, x) \
    return;                                      \
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
#define TYPED_INPUT(name, slot)                                         \
  TYPED_BUFFER(readonly, name, slot)                                    \
  vec4 load_##name##_vector(uint at, uint type) {                       \
    TYPED_LOAD_PAIRS(name)                                              \
    return name##_as_vectors[at / 4u];                                  \
  }                                                                     \
  vec4 load_##name##_steps(uint at, uint step, uint count, uint type) { \
    TYPED_LOAD_SHORTS(name)                                             \
    vec4 x = vec4(0.0);                                                 \
    TYPED_EACH(TYPED_LOAD_FLOAT, name, vec4, x)                         \
    return x;                                                           \
  }
#define TYPED_OUTPUT(name, slot)                                                 \
  TYPED_BUFFER(writeonly, name, slot)                                            \
  void store_##name##_vector(vec4 x, uint at, uint type) {                       \
    TYPED_STORE_PAIRS(name)                                                      \
    name##_as_vectors[at / 4u] = x;                                              \
  }                                                                              \
  void store_##name##_steps(vec4 x, uint at, uint step, uint count, uint type) { \
    TYPED_STORE_SHORTS(name)                                                     \
    TYPED_EACH(TYPED_STORE_FLOAT, name, vec4, x)                                 \
  }

#endif  // TESSERA_LIB_TYPED_GLSL
