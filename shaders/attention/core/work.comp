// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/attention/core/work.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/attention_core/core/work.h"

layout(std430, binding = 0) buffer Scratch { ivec4 scratch[]; };
layout(std430, binding = 1) readonly buffer CuQ { int cu_q[]; };
PUSH_ARGS(AttentionWorkArgs);

shared int begins[2][WG_X];  // rows of a kv head
shared int behind;           // where the sequence behind the round's last one begins
shared int ends[2][WG_X];    // tiles of the round up to each sequence

#define LOCAL_ID int(gl_LocalInvocationID.x)
#define ARGS(name) (args.name)
#define CU_Q(n) cu_q[args.rows.cu_q_offset + uint(n) * args.rows.cu_q_stride]
#define TABLE(row) scratch[args.rows.rows + uint(row)]
#define LIST(n) scratch[args.list + uint(n)]
#define BEGINS(turn, item) begins[turn][item]
#define BEHIND behind
#define ENDS(turn, item) ends[turn][item]
#define BARRIER() barrier()

void main() {
#include "operations/attention_core/core/work_list.h"
}
