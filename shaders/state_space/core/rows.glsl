// SPDX-License-Identifier: Apache-2.0
// How kernels of the family reach rows of channels and their work-group in GLSL. The shader has `args`, with `types` and
// `features`, and the bindings that its macros name; its family of arguments says what SPACE_ALIGNED is.
#ifndef TESSERA_STATE_SPACE_CORE_ROWS_GLSL
#define TESSERA_STATE_SPACE_CORE_ROWS_GLSL
#include "operations/state_space_core/find.h"

#define SPACE_EXP2(x) exp2(x)
#define SPACE_EXP2_4(x) exp2(x)
#define SPACE_RECIPROCAL(x) (1.0 / (x))
#include "operations/state_space_core/functions.h"

#define FLOAT4 vec4
#define MAKE_FLOAT4(x, y, z, w) vec4(x, y, z, w)
#define UNROLL [[unroll]]
#define LOCAL_ID_X gl_LocalInvocationID.x
#define LOCAL_ID_Y gl_LocalInvocationID.y
#define GROUP_ID_X gl_WorkGroupID.x
#define GROUP_ID_Y gl_WorkGroupID.y
#define GROUP_COUNT_X gl_NumWorkGroups.x
#define ARGS(name) (args.name)
#define SPACE_BARRIER() barrier()
#define SPACE_SILU4(of) vec4(space_silu(of.x), space_silu(of.y), space_silu(of.z), space_silu(of.w))
#define SPACE_SILU_SLOPE4(of) \
  vec4(space_silu_slope(of.x), space_silu_slope(of.y), space_silu_slope(of.z), space_silu_slope(of.w))
#define ORDERED(i) ordered[i]
#define SHARE(i) scratch_vectors[i]
#define NUMBER(i) scratch_numbers[i]

// An element as its bits, for shaders that know the storage type when they are built.
#if STORAGE16
#define BITS_AT(name, at, type) \
  ((type) == DTYPE_F32 ? floatBitsToUint(name##_as_floats[at]) : uint(name##_as_shorts[at]))
#else
#define BITS_AT(name, at, type) floatBitsToUint(name##_as_floats[at])
#endif
float widen_bits(uint bits, uint type) {
  if (type == DTYPE_F32) return uintBitsToFloat(bits);
  return type == DTYPE_F16 ? unpackHalf2x16(bits).x : uintBitsToFloat(bits << 16);
}

// Sixteen bytes of elements side by side: four floats, or the eight of 16 bits of which `f` is the first or second half.
#define UINT4 uvec4
#define MAKE_UINT4(x, y, z, w) uvec4(x, y, z, w)
vec4 widen_vector(uvec4 words, uint f, uint type) {
  return type == DTYPE_F32 ? uintBitsToFloat(words) : widen_typed(f == 0u ? words.xy : words.zw, type);
}
// Of bfloat16 the bits, rounded, stand above 16 that are dropped.
uint bfloat16_above(float x) {
  const uint u = floatBitsToUint(x);
  return FLOAT_IS_NAN(x) ? u | 0x400000u : u + 0x7fffu + ((u >> 16) & 1u);
}
uvec2 narrow_pairs(vec4 x, uint type) {
  if (type == DTYPE_F16) {
    const uvec4 bits = narrow_typed(x, type);
    return uvec2(bits.x | bits.y << 16, bits.z | bits.w << 16);
  }
  return uvec2(bfloat16_above(x.x) >> 16 | (bfloat16_above(x.y) & 0xffff0000u),
               bfloat16_above(x.z) >> 16 | (bfloat16_above(x.w) & 0xffff0000u));
}
uvec4 narrow_vector(vec4 low, vec4 high, uint type) {
  return type == DTYPE_F32 ? floatBitsToUint(low) : uvec4(narrow_pairs(low, type), narrow_pairs(high, type));
}
#define WIDEN_VECTOR(words, f, type) widen_vector(words, f, type)
#define NARROW_VECTOR(low, high, type) narrow_vector(low, high, type)

#define TYPE_OF(shift) ((args.types >> (shift)) & 3u)
#define IS_ALIGNED ((args.features & SPACE_ALIGNED) != 0u)
#define LOAD_FOUR(name, at, step, left, type, aligned) \
  ((aligned) ? load_##name##_vector(at, type) : load_##name##_steps(at, step, left, type))
#define STORE_FOUR(x, name, at, step, left, type, aligned) \
  {                                                        \
    if (aligned) {                                         \
      store_##name##_vector(x, at, type);                  \
    } else {                                               \
      store_##name##_steps(x, at, step, left, type);       \
    }                                                      \
  }
#define LOAD_ROW(name, at, left, rows, shift) LOAD_FOUR(name, at, args.rows.feature, left, TYPE_OF(shift), IS_ALIGNED)
#define STORE_ROW(x, name, at, left, rows, shift) \
  STORE_FOUR(x, name, at, args.rows.feature, left, TYPE_OF(shift), IS_ALIGNED)
#define LOAD_STEPS(name, at, step, left, shift) load_##name##_steps(at, step, left, TYPE_OF(shift))
#define STORE_STEPS(x, name, at, step, left, shift) store_##name##_steps(x, at, step, left, TYPE_OF(shift))

#endif  // TESSERA_STATE_SPACE_CORE_ROWS_GLSL
