// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/attention_states/backward.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#define ARGS(name) (args.merge.name)
#include "attention_states/states.glsl"

layout(std430, binding = 4) readonly buffer GradOutput { scalar gradient_elements[]; };
layout(std430, binding = 4) readonly buffer GradOutputVectors { scalar4 gradient_vectors[]; };
layout(std430, binding = 5) readonly buffer GradMerged { float grad_merged[]; };
layout(std430, binding = 6) writeonly buffer GradOutputs { scalar parts_elements[]; };
layout(std430, binding = 6) writeonly buffer GradOutputsVectors { scalar4 parts_vectors[]; };
layout(std430, binding = 7) writeonly buffer GradSums { float grad_sums[]; };
layout(std430, binding = 8) writeonly buffer GradOther { scalar rest_elements[]; };
layout(std430, binding = 8) writeonly buffer GradOtherVectors { scalar4 rest_vectors[]; };
layout(std430, binding = 9) writeonly buffer GradOtherSum { float grad_other_sum[]; };
BUFFER_ARGS(MergeStatesBackwardArgs, 10);
STATE_READERS
LOAD_COLUMN(load_gradient, gradient_elements, gradient_vectors)
STORE_COLUMN(store_parts, parts_elements, parts_vectors)
STORE_COLUMN(store_rest, rest_elements, rest_vectors)

#define LOAD_GRADIENT(i) load_gradient(ROW_OF(ARGS(result), 0u) + (i), dim - (i))
#define GRAD_MERGED grad_merged[ROW_OF(ARGS(merged), 0u)]
#define STORE_GRAD_SUM(x, p)                                  \
  if ((p) < ARGS(parts)) {                                    \
    grad_sums[ROW_OF(args.grad_sums, p)] = (x);               \
  } else {                                                    \
    grad_other_sum[ROW_OF(args.grad_other_sum, 0u)] = (x);    \
  }
#define STORE_GRAD_PART(x, p, i)                                                     \
  if ((p) < ARGS(parts)) {                                                           \
    store_parts(x, ROW_OF(args.grad_outputs, p) + (i), dim - (i));                   \
  } else {                                                                           \
    store_rest(x, ROW_OF(args.grad_other, 0u) + (i), dim - (i));                     \
  }

// Every item of the work-group comes here.
shared float space[WG_X];
float SUM_LINE(float x) {
  const uint item = gl_LocalInvocationID.x, lane = item % LANES;
  space[item] = x;
  for (uint width = LANES / 2u; width > 0u; width /= 2u) {
    barrier();
    if (lane < width) space[item] += space[item + width];
  }
  barrier();
  const float all = space[item - lane];
  barrier();
  return all;
}

void main() {
#include "operations/merge_attention_states/backward.h"
}
