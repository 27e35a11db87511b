// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/attention_states/states.clh. Bindings 0 to 3 are those of both directions.
#ifndef TESSERA_ATTENTION_STATES_GLSL
#define TESSERA_ATTENTION_STATES_GLSL
#include "lib/prelude.glsl"
#include "lib/columns.glsl"
#include "operations/merge_attention_states/args.h"
#include "operations/merge_attention_states/tunables.def"
#include "operations/merge_attention_states/weights.h"

layout(std430, binding = 0) readonly buffer Outputs { scalar outputs_elements[]; };
layout(std430, binding = 0) readonly buffer OutputsVectors { scalar4 outputs_vectors[]; };
layout(std430, binding = 1) readonly buffer Sums { float sums[]; };
layout(std430, binding = 2) readonly buffer Other { scalar other_elements[]; };
layout(std430, binding = 2) readonly buffer OtherVectors { scalar4 other_vectors[]; };
layout(std430, binding = 3) readonly buffer OtherSum { float other_sum[]; };
LOAD_COLUMN(load_outputs, outputs_elements, outputs_vectors)
LOAD_COLUMN(load_other, other_elements, other_vectors)

#define LOCAL_ID gl_LocalInvocationID.x
#define GROUP_ID gl_WorkGroupID.x
#define GROUP_COUNT gl_NumWorkGroups.x
#define FLOAT4 vec4
#define MAKE_FLOAT4(x, y, z, w) vec4(x, y, z, w)
#define ROW_OF(at, p)                                                                                     \
  ((at).offset + (p) * (at).part + n / ARGS(seq) * (at).batch + n % ARGS(seq) * (at).token + head * (at).head)
#define LOG_SUM(p) log_sum(p, n, head)
#define LOAD_PART(p, i) load_part(p, n, head, i, dim - (i))
#define STATE_READERS                                                                                     \
  float log_sum(uint p, uint n, uint head) {                                                              \
    if (p < ARGS(parts)) return sums[ROW_OF(ARGS(sums), p)];                                              \
    return other_sum[ROW_OF(ARGS(other_sum), 0u)];                                                        \
  }                                                                                                       \
  vec4 load_part(uint p, uint n, uint head, uint i, uint left) {                                          \
    if (p < ARGS(parts)) return load_outputs(ROW_OF(ARGS(outputs), p) + i, left);                         \
    return load_other(ROW_OF(ARGS(other), 0u) + i, left);                                                 \
  }

#endif  // TESSERA_ATTENTION_STATES_GLSL
