// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/tables/pairs.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/errors.glsl"
#include "operations/kv_cache/args.h"
#include "operations/kv_cache/tables_args.h"

layout(std430, binding = 0) readonly buffer Sources { int sources[]; };
layout(std430, binding = 1) readonly buffer Targets { int targets[]; };
layout(std430, binding = 2) buffer Scratch { int lists[]; };
layout(std430, binding = 3) buffer Errors { uint errors[]; };
PUSH_ARGS(CachePairsArgs);

#define GLOBAL_ID gl_GlobalInvocationID.x
#define ARGS(name) (args.name)
#define SOURCE(i) sources[args.sources_offset + (i)]
#define TARGET(i) targets[args.targets_offset + (i)]
#define LIST(part, i) lists[(part) * args.pairs + (i)]
#define OWNER(page) lists[args.owners + uint(page)]
#define CLAIM(page, number) atomicMax(OWNER(page), number)
#define RAISE(kind, index) RAISE_ERROR(errors, args.errors, kind, index)

void main() {
#include "operations/kv_cache/tables/pairs.h"
}
