// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/moe/ffn/gate.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/typed.glsl"
#include "operations/matmul_core/core/args.h"
#include "operations/moe/ffn/args.h"
#include "operations/moe/ffn/ffn.def"

#define ACT_VALUES vec4
#define ACT_SPLAT(x) vec4(x)
#define ACT_EXP(x) exp(x)
#define ACT_ABS(x) abs(x)
#define ACT_BELOW(x, a, b) mix(b, a, lessThan(x, vec4(0.0)))
#define ACT_CLAMP(x, limit) clamp(x, vec4(-(limit)), vec4(limit))
#include "operations/matmul_core/core/activation.h"

TYPED_INPUT(from, 0)
TYPED_OUTPUT(to, 1)
PUSH_ARGS(MoeFfnArgs);

#define FLOAT4 vec4
#define MAKE_FLOAT4(x, y, z, w) vec4(x, y, z, w)
#define ARGS(name) (args.name)
#define UNROLL [[unroll]]
#define GLOBAL_ID gl_GlobalInvocationID.x
#define GLOBAL_COUNT (gl_NumWorkGroups.x * WG_X)
#define LOAD(at, count) load_four(at, count)
#define STORE(x, at, count) store_four(x, at, count)

vec4 load_four(uint at, uint count) {
  return args.is_vector != 0u ? load_from_vector(at, args.type) : load_from_steps(at, 1u, count, args.type);
}
void store_four(vec4 x, uint at, uint count) {
  if (args.is_vector != 0u) {
    store_to_vector(x, at, args.type);
  } else {
    store_to_steps(x, at, 1u, count, args.type);
  }
}

void main() {
#include "operations/moe/ffn/gate.h"
}
