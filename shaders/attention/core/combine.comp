// SPDX-License-Identifier: Apache-2.0
// What     Merges the partial results of split keys into output and lse.
// Who      Item (x, y, z): COMBINE_FEATURES features of row x / COMBINE_PARTS of head y, batch z.
// Memory   The partial results, output and lse once.
// Numerics Float, splits in order; one rounding to DTYPE.
// Assumes  A grid of exactly heads x batch in y and z; operations/attention_core/core/combine.h says where
//          the partial results lie; more than one item in a work-group.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/attention_core/core/policy_args.h"
#define SCRATCH_BINDING 2
#if POLICY
BUFFER_ARGS(AttentionCall, 9);
#include "attention/core/policy.glsl"
#else
BUFFER_ARGS(AttentionCall, 3);
#include "operations/attention_core/core/score.h"
#endif
CONSTANT(9, VALUE_DIM, 64)
#include "operations/attention_core/core/combine.h"

layout(std430, binding = 0) writeonly buffer Output { scalar o[]; };
layout(std430, binding = 1) writeonly buffer LogSumExp { float log_sum_exp[]; };
layout(std430, binding = SCRATCH_BINDING) readonly buffer Parts { float parts[]; };

void main() {
  const uint row = gl_GlobalInvocationID.x / COMBINE_PARTS;
  const uint head = gl_GlobalInvocationID.y, batch = gl_GlobalInvocationID.z;
  const uint column = gl_GlobalInvocationID.x % COMBINE_PARTS * COMBINE_FEATURES;
  if (row >= args.core.q_len) return;
  const uint lines = gl_NumWorkGroups.z * args.core.heads * args.core.q_len;
  const uint line = (batch * args.core.heads + head) * args.core.q_len + row;
  const uint sums = args.core.partials + line * VALUE_DIM;
  const uint statistics = args.core.partials + args.core.splits * lines * VALUE_DIM + 2u * line;

  float before = LOWEST_MAXIMUM, total = 0.0;
  vec4 sum = vec4(0.0);
  for (uint split = 0u; split < args.core.splits; ++split) {
    const uint at = statistics + 2u * split * lines;
    if (parts[at + 1u] != 0.0) before = max(before, parts[at]);
  }
  for (uint split = 0u; split < args.core.splits; ++split) {
    const uint at = statistics + 2u * split * lines;
    if (parts[at + 1u] == 0.0) continue;
    const float factor = exp2(parts[at] - before);
    total = fma(parts[at + 1u], factor, total);
    const uint from = sums + split * lines * VALUE_DIM;
    [[unroll]] for (uint d = 0u; d < COMBINE_FEATURES; ++d) sum[d] =
        fma(parts[from + min(column + d, VALUE_DIM - 1u)], factor, sum[d]);
  }

  vec2 end = vec2(before, total);
#if POLICY
  end = policy_sinks(head, end.x, end.y);
#endif
  const uint features = args.policy.features;
  const vec2 result = row_result(before, end.x, end.y, (features & POLICY_UNNORMALIZED) == 0u,
                                 (features & POLICY_FAR) != 0u, uintBitsToFloat(0xff800000u));
  const uint to = args.core.o_offset + batch * args.core.o_stride_batch +
                  head * args.core.o_stride_head + row * args.core.o_stride_row;
  [[unroll]] for (uint d = 0u; d < COMBINE_FEATURES; ++d) if (column + d < VALUE_DIM)
      o[to + column + d] = store_scalar(sum[d] * result.x);
  if (args.core.write_lse != 0u && column == 0u)
    log_sum_exp[args.core.lse_offset + batch * args.core.lse_stride_batch +
                head * args.core.lse_stride_head + row] = result.y;
}
