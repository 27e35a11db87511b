// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/tables/last.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/kv_cache/args.h"
#include "operations/kv_cache/tables_args.h"

layout(std430, binding = 0) buffer Scratch { int places[]; };
PUSH_ARGS(CachePlacesArgs);

#define GLOBAL_ID gl_GlobalInvocationID.x
#define ARGS(name) (args.name)
#define PLACE(n) places[n]
#define OWNER(place) places[2u * args.list + uint(place)]
#define CLAIM(place, number) atomicMax(OWNER(place), number)
#define LAST_PLACE(n) places[args.list + (n)]

void main() {
#include "operations/kv_cache/tables/last.h"
}
