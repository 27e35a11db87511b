// SPDX-License-Identifier: Apache-2.0
// What     dk[j] = scale sum_i du[i,j] q[i], dv[j] = sum_i p[i,j] do[i], i over rows and heads that
//          see key j; p from scores anew and log_sum_exp; du = p (do[i].v[j] - delta[i]) cap'.
// Who      Group (x, y, z): 16 KEY_TILES keys for each warp, key/value head, batch.
// Memory   q and do once per tile of keys, k and v once, by asynchronous copies.
// Numerics Float sums of products of f16 or bf16; rows in order, the heads of a group one after the
//          other; weights and gradients of logits are rounded to the storage type.
// Assumes  sm_80, ATTN_MMA_BACKWARD_VALID; enough groups in x; lengths below 2^30; ALIGNED is no lie;
//          delta (and the table of rows, POLICY=1) in the scratch buffer.
//
// mma_backward.clh draws it. A row of queries that is not finite makes the sums of all keys of a group
// NaN whose tiles hold it. Such keys are computed again, by attention/core/exact_gradients, from the rows
// that see them alone.
#define OWN_KEYS 1
#define OWN_TILES KEY_TILES
#define STEP KEY_STEP
#include "attention/mma/backward.clh"
#include "attention/mma/backward_exact.clh"
MMA_STORE_ROWS(store_keys, OWN_TILES, ATTN_HEAD_STEPS, HEAD_DIM)
MMA_STORE_ROWS(store_values, OWN_TILES, ATTN_VALUE_STEPS, VALUE_DIM)

KERNEL void attention_mma_backward_keys(BACKWARD_KEYS_PARAMETERS) {
  local uchar memory[ATTN_MMA_BACKWARD_BYTES(KEY_TILES, KEY_STEP)] __attribute__((aligned(128)));
  const uint local_memory = LOCAL_ADDRESS(memory);
  const uint item = get_local_id(0), lane = item % 32, warp = (uint)uniform((int)(item / 32));
  const int first_key = (int)(get_group_id(0) * GROUP_OWN);
  const int end_key = min(first_key + (int)GROUP_OWN, (int)a.core.kv_len);
  const int warp_key = first_key + (int)(warp * WARP_OWN), key = warp_key + (int)(lane / 4);
  const uint kv_head = get_group_id(1);
  const size_t batch = get_group_id(2);
  Pairs pairs = {.call = &a, .batch = (uint)batch};
  set_logits(&pairs);
  SET_POLICIES(pairs);
  const int2 rows = find_rows((local int*)memory, &pairs, first_key, end_key, item);
  const int begin = rows.s0, end = rows.s1;

  const uint own_k = local_memory, own_v = own_k + GROUP_OWN * ATTN_HEAD_PITCH;
  const uint stages = own_v + GROUP_OWN * ATTN_VALUE_PITCH;
  // In a stage.
  const uint gradients_at = STEP * ATTN_HEAD_PITCH, numbers_at = STEP * ATTN_MMA_PAIR_PITCH;
  const MmaMatrix keys = MATRIX(k, a.core, k, kv_head, 0, end_key, 0);
  const MmaMatrix values = MATRIX(v, a.core, v, kv_head, 0, end_key, 0);
  mma_copy_rows(own_k, keys, first_key, GROUP_OWN, HEAD_DIM, ATTN_HEAD_PITCH, item);
  mma_copy_rows(own_v, values, first_key, GROUP_OWN, VALUE_DIM, ATTN_VALUE_PITCH, item);
  const uint k_at = own_k + warp * WARP_OWN * ATTN_HEAD_PITCH + mma_place_of_a(lane, ATTN_HEAD_PITCH);
  const uint v_at = own_v + warp * WARP_OWN * ATTN_VALUE_PITCH + mma_place_of_a(lane, ATTN_VALUE_PITCH);

  float weight[ROWS * PAIRS], gradient[ROWS * PAIRS];
  float key_sum[ROWS * ATTN_HEAD_STEPS * 4], value_sum[ROWS * ATTN_VALUE_STEPS * 4];
  UNROLL for (uint i = 0; i < ROWS * ATTN_HEAD_STEPS * 4; ++i) key_sum[i] = 0.0f;
  UNROLL for (uint i = 0; i < ROWS * ATTN_VALUE_STEPS * 4; ++i) value_sum[i] = 0.0f;

  uint stage = 0;
  for (uint g = 0; g < a.core.group; ++g) {
    const size_t head = (size_t)kv_head * a.core.group + g;
    choose_head(&pairs, log_sum_exp, scratch, batch, head);
    const MmaMatrix queries = MATRIX(q, a.core, q, head, begin, end, ROWS_THAT_COUNT);
    const MmaMatrix gradients =
        MATRIX(output_gradient, a.gradient, do, head, begin, end, ROWS_THAT_COUNT);
    if (begin < end) COPY_STEP(begin, stages + stage * ATTN_MMA_STAGE_BYTES(STEP));
    for (int row = begin; row < end; row += STEP) {
      const uint here = stages + stage * ATTN_MMA_STAGE_BYTES(STEP);
      mma_copy_wait();
      barrier(CLK_LOCAL_MEM_FENCE);
      stage ^= 1;
      if (row + (int)STEP < end)
        COPY_STEP(row + (int)STEP, stages + stage * ATTN_MMA_STAGE_BYTES(STEP));
      CLEAR_STEP(row, here);
      const Interval at = step_interval(&pairs, row, lane);
      const int last_key = warp_key + (int)WARP_OWN;
      if (at.first >= last_key || at.end <= warp_key) continue;

      const uint queries_at = here, rows_at = here + gradients_at;
      take_head_products(weight, k_at, queries_at + mma_place_of_b(lane, ATTN_HEAD_PITCH));
      take_value_products(gradient, v_at, rows_at + mma_place_of_b(lane, ATTN_VALUE_PITCH));
      // Behind the last row stand zeros, and zero times a key that is NaN is NaN.
      const bool ends = row + (int)STEP > (int)a.core.q_len;
      const bool hides = ends || warp_key < at.common_first || last_key > at.common_end;
      differentiate_tile(weight, gradient, &pairs, here + numbers_at + lane % 4 * 8, key,
                         row + (int)(lane % 4 * 2), !hides);
      add_value_rows(value_sum, weight, rows_at + mma_place_of_a(lane, ATTN_VALUE_PITCH));
      add_head_rows(key_sum, gradient, queries_at + mma_place_of_a(lane, ATTN_HEAD_PITCH));
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  global scalar* to_keys = key_gradient + a.gradient.dk_offset +
                           batch * a.gradient.dk_stride_batch +
                           (size_t)kv_head * a.gradient.dk_stride_head;
  global scalar* to_values = value_gradient + a.gradient.dv_offset +
                             batch * a.gradient.dv_stride_batch +
                             (size_t)kv_head * a.gradient.dv_stride_head;
  store_keys(to_keys, a.gradient.dk_stride_row, key_sum, a.core.scale, key, end_key, lane);
  store_values(to_values, a.gradient.dv_stride_row, value_sum, 1.0f, key, end_key, lane);

  bool not_finite[ROWS];
  UNROLL for (uint r = 0; r < ROWS; ++r)
    not_finite[r] = isnan(mma_zero_of(key_sum + r * ATTN_HEAD_STEPS * 4, ATTN_HEAD_STEPS * 4) +
                          mma_zero_of(value_sum + r * ATTN_VALUE_STEPS * 4, ATTN_VALUE_STEPS * 4));
  const uint odd = mma_odd_rows(not_finite, ROWS);
  if (odd == 0) return;
  WARP_SYNC();  // what is stored now comes after what the warp has stored
  ROLLED for (uint n = 0; n < WARP_OWN; ++n) {
    const int at = warp_key + (int)n;
    if ((odd >> n & 1) != 0 && at < end_key) EXACT_KEY(at);
  }
}
