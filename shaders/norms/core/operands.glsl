// SPDX-License-Identifier: Apache-2.0
// How kernels of lines of items reach operands and their work-group in GLSL.
#ifndef TESSERA_NORMS_OPERANDS_GLSL
#define TESSERA_NORMS_OPERANDS_GLSL
#include "lib/chunks.glsl"

#define INDEX uint
#define TO_INDEX(x) uint(x)
#define FLOAT4 vec4
#define MAKE_FLOAT4(x, y, z, w) vec4(x, y, z, w)
#define UINT4 uvec4
#define MAKE_UINT4(x, y, z, w) uvec4(x, y, z, w)
#define UINT3 uvec3
#define MAKE_UINT3(x, y, z) uvec3(x, y, z)
#define RSQRT(x) inversesqrt(x)
#define UNROLL [[unroll]]
#define LOCAL_ID_X gl_LocalInvocationID.x
#define LOCAL_ID_Y gl_LocalInvocationID.y
#define GROUP_ID_X gl_WorkGroupID.x
#define GROUP_ID_Y gl_WorkGroupID.y
#define GROUP_COUNT_X gl_NumWorkGroups.x
#define GROUP_COUNT_Y gl_NumWorkGroups.y

#define NORM_PARAMETERS
#define NORM_ARGUMENTS
#define NORM_SPACE(i) line_space[(i) / 4u][(i) % 4u]
#define NORM_SPACE4(i) line_space[i]
#define NORM_BARRIER() barrier()
#define NORM_WARPS 0u
#define NORM_WARP_SUM(x) (x)
#ifndef ARGS
#define ARGS(name) (args.name)
#endif

// NORM_VECTORS: of four floats, of a work-group.
shared vec4 line_space[NORM_VECTORS];

// A row of weights or of their gradients, which may be float beside 16-bit operands.
#if DTYPE == DTYPE_F32
#define LOAD_ANY_COLUMN(name, elements, vectors, floats, flag) LOAD_COLUMN(name, elements, vectors)
#else
#define LOAD_ANY_COLUMN(name, elements, vectors, floats, flag)    \
  LOAD_COLUMN(name##_stored, elements, vectors)                   \
  vec4 name(uint at, uint left) {                                 \
    if ((ARGS(features) & flag) == 0u) return name##_stored(at, left); \
    return vec4(floats[at], left > 1u ? floats[at + 1u] : 0.0,    \
                left > 2u ? floats[at + 2u] : 0.0, left > 3u ? floats[at + 3u] : 0.0); \
  }
#endif

#endif  // TESSERA_NORMS_OPERANDS_GLSL
