// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/tables/few.cl.
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
layout(std430, binding = 4) readonly buffer Boundaries { int boundaries_of[]; };
layout(std430, binding = 5) writeonly buffer Scratch { int scratch[]; };
layout(std430, binding = 6) buffer Errors { uint errors[]; };
PUSH_ARGS(CacheFewArgs);

shared int highest_of[WG_X], starts_of[CACHE_FEW + 1u], place_of[CACHE_FEW];

#define LOCAL_ID gl_LocalInvocationID.x
#define LOAD_BOUNDARY(i) boundaries_of[args.boundaries.offset + (i)*args.boundaries.stride]
#define HIGHEST(item) highest_of[item]
#define RESULT(i) starts_of[i]
#define BARRIER() barrier()
#define SLOT(i) slots[args.places.slots_offset + (i)]
#define TABLE(sequence, page) \
  tables[args.places.tables_offset + uint(sequence) * args.places.tables_stride + uint(page)]
#define LENGTH(sequence) lengths[args.places.lengths_offset + uint(sequence)]
#define START(sequence) starts_of[sequence]
#define COUNT count_of[args.places.count_offset]
#define PLACE(n) place_of[n]
#define LAST_PLACE(n) scratch[args.places.list + (n)]
#define RAISE(kind, index) RAISE_ERROR(errors, args.places.errors, kind, index)

void main() {
#include "operations/kv_cache/tables/few.h"
}
