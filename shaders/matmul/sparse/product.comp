// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/matmul/sparse/product.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/typed.glsl"
#include "operations/grouped_core/args.h"
#include "operations/sparse_core/sparse/elements.def"

TYPED_INPUT(a, 0)
TYPED_INPUT(b, 1)
layout(std430, binding = 2) readonly buffer List { uvec4 list[]; };
layout(std430, binding = 2) readonly buffer Words { uint words[]; };
TYPED_OUTPUT(result, 3)
PUSH_ARGS(GroupedArgs);

#define UINT4 uvec4
#define GLOBAL_ID_X gl_GlobalInvocationID.x
#define GLOBAL_SIZE_X (gl_NumWorkGroups.x * WG_X)
#define ARGS(name) (args.name)
#define LIST(i) list[i]
#define TABLE(i) words[args.table + (i)]
#define LOAD_A(at) load_a_steps(at, 1u, 1u, A_TYPE).x
#define LOAD_B(at) load_b_steps(at, 1u, 1u, B_TYPE).x
#define STORE_RESULT(x, at) store_result_steps(vec4(x, 0.0, 0.0, 0.0), at, 1u, 1u, args.result_type)

void main() {
#include "operations/sparse_core/sparse/product.h"
}
