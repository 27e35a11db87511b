// SPDX-License-Identifier: Apache-2.0
// What     dk[j] = scale sum_i du[i,j] q[i], dv[j] = sum_i p[i,j] do[i], i over rows and heads that
//          see key j; p from scores anew and log_sum_exp; du = p (do[i].v[j] - delta[i]) cap'.
// Who      Group (x, y, z): BLOCK_K keys, key/value head, batch. tile_backward.glsl draws it.
// Memory   q and do once per tile of keys and again for each of the two sums; k and v per step.
// Numerics Float; rows in order, the heads of a group one after the other; one rounding to DTYPE.
// Assumes  ATTN_TILE_BACKWARD_VALID; ceil(kv_len / BLOCK_K) groups in x; lengths below 2^30; ALIGNED is no lie;
//          operands below 2^32 elements; delta (and the table of rows, POLICY=1) in scratch.
//
// A row of queries whose memory is not finite reaches the keys that it gives a weight.
#version 450
#extension GL_GOOGLE_include_directive : require
#define BLOCK_OWN BLOCK_K
#define BLOCK_STEP BLOCK_Q
#define SCRATCH_BINDING 7
#include "attention/tile/backward.glsl"

layout(std430, binding = 5) writeonly buffer KeyGradient { scalar dk[]; };
layout(std430, binding = 5) writeonly buffer KeyGradientVectors { scalar4 dk4[]; };
layout(std430, binding = 6) writeonly buffer ValueGradient { scalar dv[]; };
layout(std430, binding = 6) writeonly buffer ValueGradientVectors { scalar4 dv4[]; };

vec4 key_sum[ITEM_ROWS * ATTN_ITEM_HEADS], value_sum[ITEM_ROWS * ATTN_ITEM_VALUES];
MULTIPLY(multiply_heads, stage_heads, add_heads, weight, load_key, load_query, ATTN_HEAD_SLICES)
MULTIPLY(multiply_values, stage_values, add_values, gradient, load_value, load_gradient,
         ATTN_VALUE_SLICES)
STORE_WEIGHTS(store_weights, weight)
STORE_WEIGHTS(store_gradients, gradient)
ADD_ROWS(add_value_rows, value_sum, ATTN_ITEM_VALUES, ATTN_VALUE_STRIDE, load_gradient, end_row)
ADD_ROWS(add_head_rows, key_sum, ATTN_ITEM_HEADS, ATTN_HEAD_STRIDE, load_query, end_row)
STORE_ROWS(store_keys, dk, dk4, key_sum, ATTN_ITEM_HEADS, HEAD_DIM)
STORE_ROWS(store_values, dv, dv4, value_sum, ATTN_ITEM_VALUES, VALUE_DIM)

#include "attention/core/group_range.glsl"

// In place: q.k to the weights of do, and do.v to the gradients of the logits, those of q.
void differentiate(int first_key, int first_row) {
  float w[PAIRS], g[PAIRS];
  [[unroll]] for (uint i = 0u; i < PAIRS; ++i) {
    w[i] = weight[i];
    g[i] = gradient[i];
  }
  bool hidden = false;
  EACH_PAIR for (uint c = 0u; c < ATTN_ITEM_STEPS; ++c) {
    const uint column = (lane_step + c / 4u * ATTN_LANES_STEP) * 4u + c % 4u;
    const Row row = load_row(first_row + int(column));
    bool found = false;
    EACH_PAIR for (uint r = 0u; r < ITEM_ROWS; ++r) {
      const uint i = r * ATTN_ITEM_STEPS + c;
      const int key = first_key + int(lane_own + ATTN_LANES_OWN * r);
      const Pair pair = pair_of(row, key, w[i], g[i]);
      w[i] = pair.weight;
      g[i] = pair.logit;
      found = found || pair.seen;
      hidden = hidden || !pair.seen;
    }
    if (found) seen[column] = 1u;  // all that write it write the same
  }
  if (hidden) seen[SOME_HIDDEN] = 1u;
  [[unroll]] for (uint i = 0u; i < PAIRS; ++i) {
    weight[i] = w[i];
    gradient[i] = g[i];
  }
}

void main() {
  place_item();
  const int first_key = int(gl_WorkGroupID.x * BLOCK_K);
  const uint kv_head = gl_WorkGroupID.y;
  end_key = min(first_key + int(BLOCK_K), int(args.core.kv_len));

  find_rows(first_key);
  const int begin_row = range[0];
  end_row = range[1];
  [[unroll]] for (uint i = 0u; i < ITEM_ROWS * ATTN_ITEM_HEADS; ++i) key_sum[i] = vec4(0.0);
  [[unroll]] for (uint i = 0u; i < ITEM_ROWS * ATTN_ITEM_VALUES; ++i) value_sum[i] = vec4(0.0);

  for (uint n = 0u; n < args.core.group; ++n) {
    enter_head(kv_head * args.core.group + n);
    for (int first_row = begin_row; first_row < end_row; first_row += int(BLOCK_Q)) {
      for (uint i = item; i <= SOME_HIDDEN; i += WG_X) seen[i] = 0u;
      multiply_heads(first_key, first_row);
      multiply_values(first_key, first_row);
      differentiate(first_key, first_row);
      store_weights();
      add_value_rows(first_row);
      store_gradients();
      add_head_rows(first_row);
    }
  }

  store_keys(args.gradient.dk_offset + batch * args.gradient.dk_stride_batch +
                 kv_head * args.gradient.dk_stride_head,
             args.gradient.dk_stride_row, args.core.scale, first_key, end_key);
  store_values(args.gradient.dv_offset + batch * args.gradient.dv_stride_batch +
                   kv_head * args.gradient.dv_stride_head,
               args.gradient.dv_stride_row, 1.0, first_key, end_key);
}
