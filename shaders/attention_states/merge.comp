// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/attention_states/merge.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#define ARGS(name) (args.name)
#include "attention_states/states.glsl"

layout(std430, binding = 4) writeonly buffer Output { scalar output_elements[]; };
layout(std430, binding = 4) writeonly buffer OutputVectors { scalar4 output_vectors[]; };
layout(std430, binding = 5) writeonly buffer Merged { float merged[]; };
BUFFER_ARGS(MergeStatesArgs, 6);
STATE_READERS
STORE_COLUMN(store_output, output_elements, output_vectors)

#define STORE_MERGED(x) merged[ROW_OF(ARGS(merged), 0u)] = (x)
#define STORE_OUTPUT(x, i) store_output(x, ROW_OF(ARGS(result), 0u) + (i), dim - (i))

void main() {
#include "operations/merge_attention_states/forward.h"
}
