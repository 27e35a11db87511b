// SPDX-License-Identifier: Apache-2.0
// What     dq[i] = scale sum_j du[i,j] k[j], j over the keys that row i sees; p from scores anew
//          and log_sum_exp; du = p (do[i].v[j] - delta[i]) cap'. If wanted, bias gradients.
// Who      Group (x, y, z): BLOCK_Q rows, the last first; head; batch. tile_backward.glsl draws it.
// Memory   v once per tile of queries, k twice; q and do per step.
// Numerics Float; keys in order; one rounding to DTYPE. Bias gradients stay float.
// Assumes  ATTN_TILE_BACKWARD_VALID; ceil(q_len / BLOCK_Q) groups in x; lengths below 2^30; ALIGNED is no lie;
//          operands below 2^32 elements; delta (and the table of rows, POLICY=1) in scratch.
//
// A key whose memory is not finite reaches the rows that give it a weight.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BLOCK_OWN BLOCK_Q
#define BLOCK_STEP BLOCK_K
#define SCRATCH_BINDING 6
#include "attention/tile/backward.glsl"

layout(std430, binding = 5) writeonly buffer QueryGradient { scalar dq[]; };
layout(std430, binding = 5) writeonly buffer QueryGradientVectors { scalar4 dq4[]; };

vec4 query_sum[ITEM_ROWS * ATTN_ITEM_HEADS];
MULTIPLY(multiply_heads, stage_heads, add_heads, weight, load_query, load_key, ATTN_HEAD_SLICES)
MULTIPLY(multiply_values, stage_values, add_values, gradient, load_gradient, load_value,
         ATTN_VALUE_SLICES)
STORE_WEIGHTS(store_gradients, gradient)
ADD_ROWS(add_head_rows, query_sum, ATTN_ITEM_HEADS, ATTN_HEAD_STRIDE, load_key, end_key)
STORE_ROWS(store_queries, dq, dq4, query_sum, ATTN_ITEM_HEADS, HEAD_DIM)

#include "attention/core/group_range.glsl"

#if POLICY
// Bias gradients of keys [first_key, last_key), which no row of the group sees.
void clear_ds(uint ds, int first_row, int first_key, int last_key) {
  for (int row = first_row; row < end_row; ++row)
    for (int key = first_key + int(item); key < last_key; key += int(WG_X))
      scratch[ds + uint(row) * args.core.kv_len + uint(key)] = 0.0;
}
#endif

// In place: do.v to the gradients of the logits. Those of the bias, if wanted, go to scratch at ds.
void differentiate(uint ds, int first_row, int first_key) {
  float s[PAIRS], g[PAIRS];
  [[unroll]] for (uint i = 0u; i < PAIRS; ++i) {
    s[i] = weight[i];
    g[i] = gradient[i];
  }
  uint found = 0u;
  bool hidden = false;
  EACH_PAIR for (uint r = 0u; r < ITEM_ROWS; ++r) {
    const int index = first_row + int(lane_own + ATTN_LANES_OWN * r);
    const Row row = load_row(index);
    EACH_PAIR for (uint c = 0u; c < ATTN_ITEM_STEPS; ++c) {
      const uint i = r * ATTN_ITEM_STEPS + c;
      const int key = first_key + int((lane_step + c / 4u * ATTN_LANES_STEP) * 4u + c % 4u);
      const Pair pair = pair_of(row, key, s[i], g[i]);
      g[i] = pair.logit;
      found |= pair.seen ? 1u << c : 0u;
      hidden = hidden || !pair.seen;
#if POLICY
      const int kv_len = int(args.core.kv_len);
      if (args.gradient.write_ds != 0u && index < int(args.core.q_len) && key < kv_len)
        scratch[ds + uint(index) * uint(kv_len) + uint(key)] = pair.bias;
#endif
    }
  }
  [[unroll]] for (uint i = 0u; i < PAIRS; ++i) gradient[i] = g[i];
  [[unroll]] for (uint c = 0u; c < ATTN_ITEM_STEPS; ++c)  // all that write a word write the same
    if ((found >> c & 1u) != 0u)
      seen[(lane_step + c / 4u * ATTN_LANES_STEP) * 4u + c % 4u] = 1u;
  if (hidden) seen[SOME_HIDDEN] = 1u;
}

void main() {
  place_item();
  // Under a causal mask the last tiles take longest, so they start first.
  const int first_row = int((gl_NumWorkGroups.x - 1u - gl_WorkGroupID.x) * BLOCK_Q);
  end_row = min(first_row + int(BLOCK_Q), int(args.core.q_len));
  enter_head(gl_WorkGroupID.y);
  const uint ds = args.gradient.ds +
                  (batch * args.core.heads + head) * args.core.q_len * args.core.kv_len;

  find_keys(first_row);
  const int begin_key = range[0];
  end_key = range[1];
  [[unroll]] for (uint i = 0u; i < ITEM_ROWS * ATTN_ITEM_HEADS; ++i) query_sum[i] = vec4(0.0);
  int first_key = begin_key;
  for (; first_key < end_key; first_key += int(BLOCK_K)) {
    for (uint i = item; i <= SOME_HIDDEN; i += WG_X) seen[i] = 0u;
    multiply_heads(first_row, first_key);
    multiply_values(first_row, first_key);
    differentiate(ds, first_row, first_key);
    store_gradients();
    add_head_rows(first_key);
  }

#if POLICY
  if (args.gradient.write_ds != 0u) {
    const int kv_len = int(args.core.kv_len);
    clear_ds(ds, first_row, 0, min(begin_key, kv_len));
    clear_ds(ds, first_row, first_key, kv_len);
  }
#endif
  store_queries(args.gradient.dq_offset + batch * args.gradient.dq_stride_batch +
                    head * args.gradient.dq_stride_head,
                args.gradient.dq_stride_row, args.core.scale, first_row, end_row);
}
