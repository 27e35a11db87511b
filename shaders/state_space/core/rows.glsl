// SPDX-License-Identifier: Apache-2.0
// How kernels of the family reach rows of channels and their work-group in GLSL. The shader has `args`, with `types` and
// `features`, and the bindings that its macros name; its family of arguments says what SPACE_ALIGNED is.
#ifndef TESSERA_STATE_SPACE_CORE_ROWS_GLSL
#define TESSERA_STATE_SPACE_CORE_ROWS_GLSL
#include "operations/state_space_core/find.h"
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
// Below -104 nothing of a float is left; functions of devices need not say so. NaN stays NaN.
#define SPACE_EXP4(x) mix(exp(x), vec4(0.0), lessThan(x, vec4(-104.0)))
#define SPACE_SILU4(of) vec4(space_silu(of.x), space_silu(of.y), space_silu(of.z), space_silu(of.w))
#define SPACE_SILU_SLOPE4(of) \
  vec4(space_silu_slope(of.x), space_silu_slope(of.y), space_silu_slope(of.z), space_silu_slope(of.w))
#define ORDERED(i) ordered[i]
#define SHARE(i) scratch_vectors[i]
#define NUMBER(i) scratch_numbers[i]

#define TYPE_OF(shift) ((args.types >> (shift)) & 3u)
#define IS_ALIGNED ((args.features & SPACE_ALIGNED) != 0u)
#define LOAD_ROW(name, at, left, rows, shift)             \
  (IS_ALIGNED ? load_##name##_vector(at, TYPE_OF(shift)) \
              : load_##name##_steps(at, args.rows.feature, left, TYPE_OF(shift)))
#define STORE_ROW(x, name, at, left, rows, shift)                            \
  {                                                                          \
    if (IS_ALIGNED) {                                                        \
      store_##name##_vector(x, at, TYPE_OF(shift));                          \
    } else {                                                                 \
      store_##name##_steps(x, at, args.rows.feature, left, TYPE_OF(shift)); \
    }                                                                        \
  }
#define LOAD_STEPS(name, at, step, left, shift) load_##name##_steps(at, step, left, TYPE_OF(shift))
#define STORE_STEPS(x, name, at, step, left, shift) store_##name##_steps(x, at, step, left, TYPE_OF(shift))

#endif  // TESSERA_STATE_SPACE_CORE_ROWS_GLSL
