// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/matmul/grouped/list.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/errors.glsl"
#include "operations/grouped_core/args.h"

layout(std430, binding = 0) readonly buffer Sizes { int sizes[]; };
layout(std430, binding = 1) coherent buffer List { uvec4 list[]; };
layout(std430, binding = 1) coherent buffer Words { uint words[]; };
layout(std430, binding = 2) buffer Errors { uint errors[]; };
PUSH_ARGS(GroupedListArgs);

#define LOCAL_ID_X gl_LocalInvocationID.x
#define ARGS(name) (args.name)
#define SIZE(g) sizes[ARGS(sizes) + (g) * ARGS(sizes_step)]
#define RAISE(error, g) RAISE_ERROR(errors, ARGS(errors), error, g)
#define END(g) words[ARGS(ends) + (g)]
#define LIST(i) list[i]
#define SPACE(i) space[i]
#define MAKE_UINT4(x, y, z, w) uvec4(x, y, z, w)
#define GROUP_BARRIER() barrier()
#define MEMORY_BARRIER() \
  memoryBarrierBuffer(); \
  barrier()

shared uint space[2 * WG_X];

void main() {
#include "operations/grouped_core/list.h"
}
