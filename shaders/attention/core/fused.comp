// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/attention/core/fused.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/typed.glsl"
#include "abi/storage.h"
#include "operations/attention_core/fused_args.h"

TYPED_INPUT(from, 0)
TYPED_OUTPUT(to, 1)
PUSH_ARGS(AttentionFusedArgs);

#define GLOBAL_ID gl_GlobalInvocationID.x
#define ARGS(name) (args.name)
#define LOAD(at) load_from_steps(at, 1u, 1u, args.type).x
#define STORE(x, at) store_to_steps(vec4(x, 0.0, 0.0, 0.0), at, 1u, 1u, args.type)
#define PAIR(n) to_as_floats[n]

void main() {
#include "operations/attention_core/core/fused.h"
}
