// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/tables/last.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/kv_cache/args.h"
#include "operations/kv_cache/tables_args.h"

layout(std430, binding = 0) readonly buffer Fours { ivec4 fours_of_places[]; };
layout(std430, binding = 0) writeonly buffer Scratch { int places[]; };
PUSH_ARGS(CachePlacesArgs);

#define GLOBAL_ID gl_GlobalInvocationID.x
#define ARGS(name) (args.name)
#define FOUR_PLACES(i) fours_of_places[i]
#define LAST_PLACE(n) places[args.list + (n)]

void main() {
#include "operations/kv_cache/tables/last.h"
}
