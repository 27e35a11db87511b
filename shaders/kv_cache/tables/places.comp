// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/tables/places.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/errors.glsl"
#include "operations/kv_cache/args.h"
#include "operations/kv_cache/tables_args.h"

layout(std430, binding = 0) readonly buffer Slots { int slots[]; };
layout(std430, binding = 1) readonly buffer Tables { int tables[]; };
layout(std430, binding = 2) readonly buffer Lengths { int lengths[]; };
layout(std430, binding = 3) readonly buffer Count { int count_of[]; };
layout(std430, binding = 4) buffer Scratch { int scratch[]; };
layout(std430, binding = 5) buffer Errors { uint errors[]; };
PUSH_ARGS(CachePlacesArgs);

#define GLOBAL_ID gl_GlobalInvocationID.x
#define ARGS(name) (args.name)
#define SLOT(i) slots[args.slots_offset + (i)]
#define TABLE(sequence, page) tables[args.tables_offset + uint(sequence) * args.tables_stride + uint(page)]
#define LENGTH(sequence) lengths[args.lengths_offset + uint(sequence)]
#define START(sequence) scratch[args.boundaries + uint(sequence)]
#define COUNT count_of[args.count_offset]
#define PLACE(n) scratch[n]
#define RAISE(kind, index) RAISE_ERROR(errors, args.errors, kind, index)

void main() {
#include "operations/kv_cache/places.h"
}
