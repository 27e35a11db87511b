// SPDX-License-Identifier: Apache-2.0
// What     dk[j] = scale sum_i du[i,j] q[i], dv[j] = sum_i p[i,j] do[i], i over rows and heads that
//          see key j; p from scores anew and log_sum_exp; du = p (do[i].v[j] - delta[i]) cap'.
// Who      Group (x, y, z): BLOCK_K keys, key/value head, batch. tile_backward.clh draws it.
// Memory   q and do once per tile of keys and again for each of the two sums; k and v per step.
// Numerics Float; rows in order, the heads of a group one after the other; one rounding to DTYPE.
// Assumes  ATTN_TILE_BACKWARD_VALID; ceil(kv_len / BLOCK_K) groups in x; lengths below 2^30; ALIGNED is no lie;
//          delta (and the table of rows, POLICY=1) in the scratch buffer.
//
// A row of queries whose memory is not finite reaches the keys that it gives a weight.
#define BLOCK_OWN BLOCK_K
#define BLOCK_STEP BLOCK_Q
#include "attention/tile/backward.clh"
STORE_ROWS(store_keys, ATTN_ITEM_HEADS, HEAD_DIM)
STORE_ROWS(store_values, ATTN_ITEM_VALUES, VALUE_DIM)

// The query rows that may see keys [first_key, end_key).
#if POLICY
INLINE void find_rows(local int* range, const Pairs* pairs, int first_key, int end_key, uint item) {
  clear_range(range, item);
  const int q_len = (int)pairs->call->core.q_len;
  const global int4* rows =
      pairs->policies.rows + pairs->call->policy.rows + (size_t)pairs->batch * q_len;
  int first = INDEX_MAX, end = 0;
  for (int row = (int)item; row < q_len; row += WG_X) {
    const int4 entry = rows[row];
    if (entry.s0 < end_key && entry.s1 > first_key) {
      first = min(first, row);
      end = row + 1;
    }
  }
  if (end > 0) {
    atomic_min(range, first);
    atomic_max(range + 1, end);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
#else
INLINE void find_rows(local int* range, const Pairs* pairs, int first_key, int end_key, uint item) {
  if (item == 0) {
    range[0] = max(first_key - pairs->call->core.band_high, 0);
    range[1] = min(end_key - pairs->call->core.band_low, (int)pairs->call->core.q_len);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
#endif

// In place: q.k to the weights of do, and do.v to the gradients of the logits, those of q.
INLINE void differentiate(float* weight, float* gradient, local uint* seen, const Pairs* pairs,
                          int first_key, int first_row, uint item) {
  float w[PAIRS], g[PAIRS];
  UNROLL for (uint i = 0; i < PAIRS; ++i) {
    w[i] = weight[i];
    g[i] = gradient[i];
  }
  bool hidden = false;
  EACH_PAIR for (uint c = 0; c < ATTN_ITEM_STEPS; ++c) {
    const uint column = (item % ATTN_LANES_STEP + c / 4 * ATTN_LANES_STEP) * 4 + c % 4;
    const Row row = load_row(pairs, first_row + (int)column);
    bool found = false;
    EACH_PAIR for (uint r = 0; r < ITEM_ROWS; ++r) {
      const uint i = r * ATTN_ITEM_STEPS + c;
      const int key = first_key + (int)(item / ATTN_LANES_STEP + ATTN_LANES_OWN * r);
      const Pair pair = pair_of(pairs, &row, key, w[i], g[i]);
      w[i] = pair.weight;
      g[i] = pair.logit;
      found = found || pair.seen;
      hidden = hidden || !pair.seen;
    }
    if (found) seen[column] = 1;  // all that write it write the same
  }
  if (hidden) seen[SOME_HIDDEN] = 1;
  UNROLL for (uint i = 0; i < PAIRS; ++i) {
    weight[i] = w[i];
    gradient[i] = g[i];
  }
}

KERNEL void attention_tile_backward_keys(BACKWARD_KEYS_PARAMETERS) {
  local float4 memory[ATTN_TILE_BACKWARD_VECTORS];
  local uint seen[BLOCK_STEP + 1];  // rows of the step that see a key of this group
  local int range[2];

  const uint item = get_local_id(0);
  const int first_key = (int)(get_group_id(0) * BLOCK_K);
  const int end_key = min(first_key + (int)BLOCK_K, (int)a.core.kv_len);
  const size_t kv_head = get_group_id(1), batch = get_group_id(2);
  const Rows keys = {
      k + a.core.k_offset + batch * a.core.k_stride_batch + kv_head * a.core.k_stride_head,
      a.core.k_stride_row, HEAD_DIM, end_key};
  const Rows values = {
      v + a.core.v_offset + batch * a.core.v_stride_batch + kv_head * a.core.v_stride_head,
      a.core.v_stride_row, VALUE_DIM, end_key};
  Pairs pairs = {.call = &a, .batch = (uint)batch};
#if POLICY
  const Policies policies = MAKE_POLICIES(a, scratch);
  pairs.policies = policies;
#endif

  find_rows(range, &pairs, first_key, end_key, item);
  const int begin_row = range[0], end_row = range[1];
  float weight[ITEM_ROWS * ATTN_ITEM_STEPS], gradient[ITEM_ROWS * ATTN_ITEM_STEPS];
  float4 key_sum[ITEM_ROWS * ATTN_ITEM_HEADS], value_sum[ITEM_ROWS * ATTN_ITEM_VALUES];
  UNROLL for (uint i = 0; i < ITEM_ROWS * ATTN_ITEM_HEADS; ++i) key_sum[i] = (float4)(0.0f);
  UNROLL for (uint i = 0; i < ITEM_ROWS * ATTN_ITEM_VALUES; ++i) value_sum[i] = (float4)(0.0f);

  for (uint g = 0; UNIFORM(g < a.core.group); ++g) {
    const size_t head = kv_head * a.core.group + g;
    pairs.head = (uint)head;
    pairs.log_sum_exp = log_sum_exp + a.core.lse_offset + batch * a.core.lse_stride_batch +
                        head * a.core.lse_stride_head;
    pairs.delta = scratch + a.gradient.delta + (batch * a.core.heads + head) * a.core.q_len;
    const Rows queries = {
        q + a.core.q_offset + batch * a.core.q_stride_batch + head * a.core.q_stride_head,
        a.core.q_stride_row, HEAD_DIM, end_row};
    const Rows gradients = {output_gradient + a.gradient.do_offset +
                                batch * a.gradient.do_stride_batch +
                                head * a.gradient.do_stride_head,
                            a.gradient.do_stride_row, VALUE_DIM, end_row};
    for (int first_row = begin_row; UNIFORM(first_row < end_row); first_row += BLOCK_Q) {
      multiply(weight, memory, keys, first_key, queries, first_row, ATTN_HEAD_SLICES, item);
      for (uint i = item; i <= SOME_HIDDEN; i += WG_X) seen[i] = 0;
      multiply(gradient, memory, values, first_key, gradients, first_row, ATTN_VALUE_SLICES, item);
      differentiate(weight, gradient, seen, &pairs, first_key, first_row, item);
      store_weights(memory, weight, item);
      add_value_rows(value_sum, memory, seen, gradients, first_row, item);
      store_weights(memory, gradient, item);
      add_head_rows(key_sum, memory, seen, queries, first_row, item);
    }
  }

  store_keys(key_gradient + a.gradient.dk_offset + batch * a.gradient.dk_stride_batch +
                 kv_head * a.gradient.dk_stride_head,
             a.gradient.dk_stride_row, key_sum, a.core.scale, first_key, end_key, item);
  store_values(value_gradient + a.gradient.dv_offset + batch * a.gradient.dv_stride_batch +
                   kv_head * a.gradient.dv_stride_head,
               a.gradient.dv_stride_row, value_sum, 1.0f, first_key, end_key, item);
}
