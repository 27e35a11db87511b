// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/kv_cache/rows/copy.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "kv_cache/rows/copy.glsl"

layout(std430, binding = 2) readonly buffer Scratch { int list[]; };
PUSH_ARGS(CacheCopyArgs);

#define ARGS(name) (args.name)
#define LIST(i) list[i]

void main() {
  take_side(args);
#include "operations/kv_cache/rows/copy.h"
}
