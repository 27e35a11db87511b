// SPDX-License-Identifier: Apache-2.0
// What     dk[j] = scale sum_i du[i,j] q[i], dv[j] = sum_i p[i,j] do[i], i over rows and heads that
//          see key j; p from scores anew and log_sum_exp; du = p (do[i].v[j] - delta[i]) cap'.
// Who      Group (x, y, z): KEYS keys, key/value head, batch.
// Memory   q and do once per tile of keys, k and v once, by asynchronous copies.
// Numerics Float sums of products of f16 or bf16; rows in order, the heads of a group one after the
//          other; weights and gradients of logits are rounded to the storage type.
// Assumes  sm_80, ATTN_MMA_WIDE_VALID; enough groups in x; lengths below 2^30; ALIGNED is no lie;
//          delta (and the table of rows, POLICY=1) in the scratch buffer.
//
// mma_wide_backward.clh draws it. Warps 0 to 3 add up dk, the others dv. A row of queries that
// is not finite makes the sums of all keys of a group NaN whose tiles hold it. Such keys are computed
// again, by attention/core/exact_gradients, from the rows that see them alone.
#define OWN_KEYS 1
#define OWN KEYS
#define STEP KEY_STEP
#define SUM_ROWS KEYS
#define SUM_PITCH ATTN_MMA_MOST_PITCH
#include "attention/mma/wide_backward.clh"
#include "attention/mma/backward_exact.clh"

KERNEL void attention_mma_wide_backward_keys(BACKWARD_KEYS_PARAMETERS) {
  local uchar memory[ATTN_MMA_WIDE_BYTES(OWN, STEP)] __attribute__((aligned(128)));
  const uint local_memory = LOCAL_ADDRESS(memory);
  const uint item = get_local_id(0), lane = item % 32, warp = (uint)uniform((int)(item / 32));
  const int first_key = (int)(get_group_id(0) * OWN);
  const int end_key = min(first_key + (int)OWN, (int)a.core.kv_len);
  const uint kv_head = get_group_id(1);
  const size_t batch = get_group_id(2);
  Pairs pairs = {.call = &a, .batch = (uint)batch};
  set_logits(&pairs);
  SET_POLICIES(pairs);
  const int2 rows = find_rows((local int*)memory, &pairs, first_key, end_key, item);
  const int begin = rows.s0, end = rows.s1;

  const uint own_k = local_memory, own_v = own_k + OWN * ATTN_HEAD_PITCH;
  const uint weights = own_v + OWN * ATTN_VALUE_PITCH;
  const uint stages = weights + ATTN_MMA_WEIGHT_BYTES(OWN, STEP);
  // In a stage.
  const uint gradients_at = STEP * ATTN_HEAD_PITCH, numbers_at = STEP * ATTN_MMA_PAIR_PITCH;
  const MmaMatrix keys = MATRIX(k, a.core, k, kv_head, 0, end_key, 0);
  const MmaMatrix values = MATRIX(v, a.core, v, kv_head, 0, end_key, 0);
  mma_copy_rows(own_k, keys, first_key, OWN, HEAD_DIM, ATTN_HEAD_PITCH, item);
  mma_copy_rows(own_v, values, first_key, OWN, VALUE_DIM, ATTN_VALUE_PITCH, item);

  const Tile tile = tile_of(warp, lane, weights);
  const int tile_key = first_key + (int)tile.own, key = tile_key + (int)(lane / 4);
  const uint own_pitch = tile.second ? ATTN_VALUE_PITCH : ATTN_HEAD_PITCH;
  const uint own_at =
      (tile.second ? own_v : own_k) + tile.own * own_pitch + mma_place_of_a(lane, own_pitch);
  const uint step_at = (tile.second ? gradients_at : 0) + tile.step * own_pitch +
                       mma_place_of_b(lane, own_pitch);

  const bool of_values = warp >= 4;
  const uint quarter = warp % 4, sum_pitch = of_values ? ATTN_VALUE_PITCH : ATTN_HEAD_PITCH;
  const uint weight_at = weights + mma_place_of_a(lane, ATTN_MMA_WEIGHT_PITCH);
  const uint factors_at = of_values ? weight_at : GRADIENT_OF(weight_at);
  const uint rows_at =
      (of_values ? gradients_at : 0) + (mma_place_of_a(lane, sum_pitch) ^ quarter * 32);
  float sum[SUMS];
  UNROLL for (uint i = 0; i < SUMS; ++i) sum[i] = 0.0f;

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
      const int next = row + (int)STEP;
      mma_copy_wait();
      barrier(CLK_LOCAL_MEM_FENCE);
      if (STAGES == 2) {
        stage ^= 1;
        if (next < end) COPY_STEP(next, stages + stage * ATTN_MMA_STAGE_BYTES(STEP));
      }
      CLEAR_STEP(row, here);
      const Interval at = step_interval(&pairs, row, lane);
      if (at.first < end_key && at.end > first_key) {
        float product[ROWS * 2 * PAIRS], weight[ROWS * PAIRS], gradient[ROWS * PAIRS];
        take_products(product, own_at, here + step_at, tile.second);
        swap_halves(weight, gradient, product, &tile);
        // Behind the last row stand zeros, and zero times a key that is NaN is NaN.
        const bool ends = next > (int)a.core.q_len;
        const bool hides =
            ends || tile_key < at.common_first || tile_key + (int)TILE_OWN > at.common_end;
        const uint column = tile.column + lane % 4 * 2;
        differentiate_tile(weight, gradient, &pairs, here + numbers_at + column * 4, key,
                           row + (int)column, !hides);
        store_pairs(weight, gradient, &tile);
        barrier(CLK_LOCAL_MEM_FENCE);
        add_rows(sum, factors_at, here + rows_at, sum_pitch);
      }
      if (STAGES == 1) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (next < end) COPY_STEP(next, here);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  global scalar* to_keys = key_gradient + a.gradient.dk_offset +
                           batch * a.gradient.dk_stride_batch +
                           (size_t)kv_head * a.gradient.dk_stride_head;
  global scalar* to_values = value_gradient + a.gradient.dv_offset +
                             batch * a.gradient.dv_stride_batch +
                             (size_t)kv_head * a.gradient.dv_stride_head;
  const int row = first_key + (int)(lane / 4);
  if (of_values) {
    store_sums(to_values, a.gradient.dv_stride_row, sum, 1.0f, row, end_key, quarter, VALUE_DIM,
               lane);
  } else {
    store_sums(to_keys, a.gradient.dk_stride_row, sum, a.core.scale, row, end_key, quarter,
               HEAD_DIM, lane);
  }

  mma_copy_wait();  // tiles have arrived, needed or not, and make room
  barrier(CLK_LOCAL_MEM_FENCE);
  local uint* odd = (local uint*)memory;
  if (item < OWN / 32) odd[item] = 0;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  note_odd_rows(odd, sum, 0, quarter, of_values ? VALUE_DIM : HEAD_DIM, lane);
  barrier(CLK_LOCAL_MEM_FENCE);
  ROLLED for (uint n = warp; n < OWN; n += WG_X / 32) {
    const int at = first_key + (int)n;
    if ((odd[n / 32] >> n % 32 & 1) != 0 && at < end_key) EXACT_KEY(at);
  }
}
