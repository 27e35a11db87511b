// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/matmul/sparse/list.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/bytes.glsl"
#include "lib/errors.glsl"
#include "operations/sparse_core/args.h"

layout(std430, binding = 0) readonly buffer Indices { int indices[]; };
layout(std430, binding = 1) readonly buffer Mask { uint mask_words[]; };
layout(std430, binding = 2) coherent buffer List { uvec4 list[]; };
layout(std430, binding = 2) coherent buffer Words { uint words[]; };
layout(std430, binding = 3) buffer Errors { uint errors[]; };
PUSH_ARGS(SparseListArgs);

#define LOCAL_ID_X gl_LocalInvocationID.x
#define ARGS(name) (args.name)
#define INDEX(at) indices[at]
#define MASK(at) LOAD_BYTE(mask_words, at)
#define RAISE(error, index) RAISE_ERROR(errors, ARGS(errors), error, index)
#define LIST(i) list[i]
#define WORD(i) words[i]
#define COUNT_UP(i) atomicAdd(words[i], 1u)
#define SPACE(i) space[i]
#define MAKE_UINT4(x, y, z, w) uvec4(x, y, z, w)
#define GROUP_BARRIER() barrier()
#define MEMORY_BARRIER() \
  memoryBarrierBuffer(); \
  barrier()

shared uint space[2 * WG_X];

void main() {
#include "operations/sparse_core/list.h"
}
