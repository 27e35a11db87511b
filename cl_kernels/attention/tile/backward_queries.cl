// SPDX-License-Identifier: Apache-2.0
// What     dq[i] = scale sum_j du[i,j] k[j], j over the keys that row i sees; p from scores anew
//          and log_sum_exp; du = p (do[i].v[j] - delta[i]) cap'. If wanted, bias gradients.
// Who      Group (x, y, z): BLOCK_Q rows, the last first; head; batch. tile_backward.clh draws it.
// Memory   v once per tile of queries, k twice; q and do per step.
// Numerics Float; keys in order; one rounding to DTYPE. Bias gradients stay float.
// Assumes  ATTN_TILE_BACKWARD_VALID; ceil(q_len / BLOCK_Q) groups in x; lengths below 2^30; ALIGNED is no lie;
//          delta (and the table of rows, POLICY=1) in the scratch buffer.
//
// A key whose memory is not finite reaches the rows that give it a weight.
#define BLOCK_OWN BLOCK_Q
#define BLOCK_STEP BLOCK_K
#include "attention/tile/backward.clh"
STORE_ROWS(store_queries, ATTN_ITEM_HEADS, HEAD_DIM)

// The keys that rows [first_row, end_row) may see.
#if POLICY
INLINE void find_keys(local int* range, const Pairs* pairs, int first_row, int end_row, uint item) {
  clear_range(range, item);
  const global int4* rows = pairs->policies.rows + pairs->call->policy.rows +
                            (size_t)pairs->batch * pairs->call->core.q_len;
  for (int row = first_row + (int)item; row < end_row; row += WG_X) {
    const int4 entry = rows[row];
    if (entry.s0 < entry.s1) {
      atomic_min(range, entry.s0);
      atomic_max(range + 1, entry.s1);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
#else
INLINE void find_keys(local int* range, const Pairs* pairs, int first_row, int end_row, uint item) {
  if (item == 0) {
    range[0] = max(first_row + pairs->call->core.band_low, 0);
    range[1] = min(end_row + pairs->call->core.band_high, (int)pairs->call->core.kv_len);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
#endif

#if POLICY
// Bias gradients of keys [first_key, end_key), which no row of the group sees.
INLINE void clear_ds(global float* ds, size_t kv_len, int first_row, int end_row, int first_key,
                     int end_key, uint item) {
  for (int row = first_row; row < end_row; ++row)
    for (int key = first_key + (int)item; key < end_key; key += WG_X)
      ds[row * kv_len + key] = 0.0f;
}
#endif

// In place: do.v to the gradients of the logits. ds is null, or where bias gradients go.
INLINE void differentiate(const float* score, float* gradient, local uint* seen, global float* ds,
                          const Pairs* pairs, int first_row, int first_key, uint item) {
  float s[PAIRS], g[PAIRS];
  UNROLL for (uint i = 0; i < PAIRS; ++i) {
    s[i] = score[i];
    g[i] = gradient[i];
  }
  uint found = 0;
  bool hidden = false;
  EACH_PAIR for (uint r = 0; r < ITEM_ROWS; ++r) {
    const int index = first_row + (int)(item / ATTN_LANES_STEP + ATTN_LANES_OWN * r);
    const Row row = load_row(pairs, index);
    EACH_PAIR for (uint c = 0; c < ATTN_ITEM_STEPS; ++c) {
      const uint i = r * ATTN_ITEM_STEPS + c;
      const int key = first_key + (int)((item % ATTN_LANES_STEP + c / 4 * ATTN_LANES_STEP) * 4 + c % 4);
      const Pair pair = pair_of(pairs, &row, key, s[i], g[i]);
      g[i] = pair.logit;
      found |= pair.seen ? 1u << c : 0u;
      hidden = hidden || !pair.seen;
#if POLICY
      const uint kv_len = pairs->call->core.kv_len;
      if (ds && index < (int)pairs->call->core.q_len && key < (int)kv_len)
        ds[(size_t)index * kv_len + key] = pair.bias;
#endif
    }
  }
  UNROLL for (uint i = 0; i < PAIRS; ++i) gradient[i] = g[i];
  UNROLL for (uint c = 0; c < ATTN_ITEM_STEPS; ++c)  // all that write a word write the same
    if (found >> c & 1) seen[(item % ATTN_LANES_STEP + c / 4 * ATTN_LANES_STEP) * 4 + c % 4] = 1;
  if (hidden) seen[SOME_HIDDEN] = 1;
}

KERNEL void attention_tile_backward_queries(BACKWARD_QUERIES_PARAMETERS(global float)) {
  local float4 memory[ATTN_TILE_BACKWARD_VECTORS];
  local uint seen[BLOCK_STEP + 1];  // keys of the step that a row of this group sees
  local int range[2];

  const uint item = get_local_id(0);
  // Under a causal mask the last tiles take longest, so they start first.
  const int first_row = (int)((get_num_groups(0) - 1 - get_group_id(0)) * BLOCK_Q);
  const int end_row = min(first_row + (int)BLOCK_Q, (int)a.core.q_len);
  const size_t head = get_group_id(1), batch = get_group_id(2), kv_head = head / a.core.group;
  const size_t line = (batch * a.core.heads + head) * a.core.q_len;
  Pairs pairs = {.call = &a,
                 .log_sum_exp = log_sum_exp + a.core.lse_offset + batch * a.core.lse_stride_batch +
                                head * a.core.lse_stride_head,
                 .delta = scratch + a.gradient.delta + line,
                 .batch = (uint)batch,
                 .head = (uint)head};
  global float* ds = 0;
#if POLICY
  const Policies policies = MAKE_POLICIES(a, scratch);
  pairs.policies = policies;
  if (a.gradient.write_ds) ds = scratch + a.gradient.ds + line * a.core.kv_len;
#endif

  find_keys(range, &pairs, first_row, end_row, item);
  const int begin_key = range[0], end_key = range[1];
  const Rows queries = {
      q + a.core.q_offset + batch * a.core.q_stride_batch + head * a.core.q_stride_head,
      a.core.q_stride_row, HEAD_DIM, end_row};
  const Rows gradients = {output_gradient + a.gradient.do_offset +
                              batch * a.gradient.do_stride_batch + head * a.gradient.do_stride_head,
                          a.gradient.do_stride_row, VALUE_DIM, end_row};
  const Rows keys = {
      k + a.core.k_offset + batch * a.core.k_stride_batch + kv_head * a.core.k_stride_head,
      a.core.k_stride_row, HEAD_DIM, end_key};
  const Rows values = {
      v + a.core.v_offset + batch * a.core.v_stride_batch + kv_head * a.core.v_stride_head,
      a.core.v_stride_row, VALUE_DIM, end_key};

  float score[ITEM_ROWS * ATTN_ITEM_STEPS], gradient[ITEM_ROWS * ATTN_ITEM_STEPS];
  float4 sum[ITEM_ROWS * ATTN_ITEM_HEADS];
  UNROLL for (uint i = 0; i < ITEM_ROWS * ATTN_ITEM_HEADS; ++i) sum[i] = (float4)(0.0f);
  int first_key = begin_key;
  for (; UNIFORM(first_key < end_key); first_key += BLOCK_K) {
    multiply(score, memory, queries, first_row, keys, first_key, ATTN_HEAD_SLICES, item);
    for (uint i = item; i <= SOME_HIDDEN; i += WG_X) seen[i] = 0;
    multiply(gradient, memory, gradients, first_row, values, first_key, ATTN_VALUE_SLICES, item);
    differentiate(score, gradient, seen, ds, &pairs, first_row, first_key, item);
    store_weights(memory, gradient, item);
    add_head_rows(sum, memory, seen, keys, first_key, item);
  }

#if POLICY
  if (ds) {
    const int kv_len = (int)a.core.kv_len;
    clear_ds(ds, kv_len, first_row, end_row, 0, min(begin_key, kv_len), item);
    clear_ds(ds, kv_len, first_row, end_row, max(first_key, 0), kv_len, item);
  }
#endif
  store_queries(query_gradient + a.gradient.dq_offset + batch * a.gradient.dq_stride_batch +
                    head * a.gradient.dq_stride_head,
                a.gradient.dq_stride_row, sum, a.core.scale, first_row, end_row, item);
}
