// SPDX-License-Identifier: Apache-2.0
// How kernels of the family reach rows of channels and their work-group in GLSL. The shader has `args`, with `types` and
// `features`, and the bindings that its macros name; its family of arguments says what SPACE_ALIGNED is.
#ifndef TESSERA_STATE_SPACE_CORE_ROWS_GLSL
#define TESSERA_STATE_SPACE_CORE_ROWS_GLSL
#include "operations/state_space_core/find.h"
#define SPACE_BITS(x) floatBitsToUint(x)
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
#define ORDERED(i) ordered[i]
#define SHARE(i) scratch_vectors[i]

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
