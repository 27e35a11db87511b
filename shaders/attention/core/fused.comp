// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/attention/core/fused.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/typed.glsl"
#include "lib/errors.glsl"
#include "abi/storage.h"
#include "operations/attention_core/fused_args.h"

layout(std430, binding = 0) readonly buffer Ends { int ends[]; };
layout(std430, binding = 1) readonly buffer Starts { int starts[]; };
layout(std430, binding = 2) buffer Errors { uint errors[]; };
TYPED_INPUT(from, 3)
TYPED_OUTPUT(to, 4)
PUSH_ARGS(AttentionFusedArgs);

#define GLOBAL_ID gl_GlobalInvocationID.x
#define ARGS(name) (args.name)
#define END(n) ends[args.distribution.offset + uint(n) * args.distribution.stride]
#define START(n) starts[args.distribution.starts_offset + uint(n) * args.distribution.starts_stride]
#define RAISE(kind, index) RAISE_ERROR(errors, args.distribution.errors, kind, index)
#define LOAD(at) load_from_steps(at, 1u, 1u, args.type).x
#define STORE(x, at) store_to_steps(vec4(x, 0.0, 0.0, 0.0), at, 1u, 1u, args.type)
#define PAIR(n) to_as_floats[n]

void main() {
#include "operations/attention_core/core/fused.h"
}
