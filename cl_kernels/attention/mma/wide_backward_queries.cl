// SPDX-License-Identifier: Apache-2.0
// What     dq[i] = scale sum_j du[i,j] k[j], j over the keys that row i sees; p from scores anew and
//          log_sum_exp; du = p (do[i].v[j] - delta[i]) cap'.
// Who      Group (x, y, z): QUERIES rows, the last first; head; batch.
// Memory   k and v once per tile of queries, q and do once, by asynchronous copies.
// Numerics Float sums of products of f16 or bf16; keys in order; gradients of logits are rounded to
//          the storage type.
// Assumes  sm_80, ATTN_MMA_WIDE_VALID; enough groups in x; lengths below 2^30; ALIGNED is no lie;
//          delta (and the table of rows, POLICY=1) in the scratch buffer.
//
// mma_wide_backward.clh draws it. Warps 0 to 3 add up the first half of the rows, the others the
// second. A key that is not finite makes the sums of all rows of a group NaN whose tiles hold it. Such
// rows are computed again, by attention/core/exact_gradients, from the keys that they see alone.
#define OWN_KEYS 0
#define OWN QUERIES
#define STEP QUERY_STEP
#define SUM_ROWS (QUERIES / 2)
#define SUM_PITCH ATTN_HEAD_PITCH
#include "attention/mma/wide_backward.clh"
#include "attention/mma/backward_exact.clh"

KERNEL void attention_mma_wide_backward_queries(BACKWARD_QUERIES_PARAMETERS(const global float)) {
  local uchar memory[ATTN_MMA_WIDE_BYTES(OWN, STEP)] __attribute__((aligned(128)));
  const uint local_memory = LOCAL_ADDRESS(memory);
  const uint item = get_local_id(0), lane = item % 32, warp = (uint)uniform((int)(item / 32));
  // Under a causal mask the last tiles take longest, so they start first.
  const int first_row = (int)((get_num_groups(0) - 1 - get_group_id(0)) * OWN);
  const int end_row = min(first_row + (int)OWN, (int)a.core.q_len);
  const uint head = get_group_id(1), kv_head = head / a.core.group;
  const size_t batch = get_group_id(2);
  Pairs pairs = {.call = &a};
  choose_head(&pairs, log_sum_exp, scratch, batch, head);
  set_logits(&pairs);

  const uint own_q = local_memory, own_gradients = own_q + OWN * ATTN_HEAD_PITCH;
  const uint weights = own_gradients + OWN * ATTN_VALUE_PITCH;
  const uint stages = weights + ATTN_MMA_WEIGHT_BYTES(OWN, STEP);
  const uint values_at = STEP * ATTN_HEAD_PITCH;  // in a stage
  const Tile tile = tile_of(warp, lane, weights);
  const int tile_row = first_row + (int)tile.own, row = tile_row + (int)(lane / 4);

  SET_POLICIES(pairs);
  const Interval own = rows_interval(&pairs, tile_row, TILE_OWN, lane);
  const int2 seen = find_keys((local int*)memory, &pairs, own, first_row, end_row, item);
  const int begin = seen.s0, end = seen.s1;

  const MmaMatrix queries = MATRIX(q, a.core, q, head, 0, end_row, ROWS_THAT_COUNT);
  const MmaMatrix gradients =
      MATRIX(output_gradient, a.gradient, do, head, 0, end_row, ROWS_THAT_COUNT);
  const MmaMatrix keys = MATRIX(k, a.core, k, kv_head, begin, end, 0);
  const MmaMatrix values = MATRIX(v, a.core, v, kv_head, begin, end, 0);
  mma_copy_rows(own_q, queries, first_row, OWN, HEAD_DIM, ATTN_HEAD_PITCH, item);
  mma_copy_rows(own_gradients, gradients, first_row, OWN, VALUE_DIM, ATTN_VALUE_PITCH, item);

  const uint own_pitch = tile.second ? ATTN_VALUE_PITCH : ATTN_HEAD_PITCH;
  const uint own_at = (tile.second ? own_gradients : own_q) + tile.own * own_pitch +
                      mma_place_of_a(lane, own_pitch);
  const uint step_at =
      (tile.second ? values_at : 0) + tile.step * own_pitch + mma_place_of_b(lane, own_pitch);
  const uint quarter = warp % 4, sum_row = warp / 4 * SUM_ROWS;
  const uint factors_at = GRADIENT_OF(weights + sum_row * ATTN_MMA_WEIGHT_PITCH +
                                      mma_place_of_a(lane, ATTN_MMA_WEIGHT_PITCH));
  const uint rows_at = mma_place_of_a(lane, ATTN_HEAD_PITCH) ^ quarter * 32;
  float sum[SUMS], shift[ROWS], delta[ROWS];
  UNROLL for (uint i = 0; i < SUMS; ++i) sum[i] = 0.0f;
  UNROLL for (uint r = 0; r < ROWS; ++r) {
    const int at = min(row + 8 * (int)r, (int)a.core.q_len - 1);
    shift[r] = shift_of(pairs.log_sum_exp[at]);
    delta[r] = shift[r] == -INFINITY ? 0.0f : pairs.delta[at];
  }

  uint stage = 0;
  if (begin < end) COPY_STEP(begin, stages);
  for (int first = begin; first < end; first += STEP) {
    const uint here = stages + stage * ATTN_MMA_STAGE_BYTES(STEP);
    const int next = first + (int)STEP;
    mma_copy_wait();
    barrier(CLK_LOCAL_MEM_FENCE);
    if (STAGES == 2) {
      stage ^= 1;
      if (next < end) COPY_STEP(next, stages + stage * ATTN_MMA_STAGE_BYTES(STEP));
    }
    CLEAR_STEP(first, here);
    float product[ROWS * 2 * PAIRS], score[ROWS * PAIRS], gradient[ROWS * PAIRS];
    take_products(product, own_at, here + step_at, tile.second);
    swap_halves(score, gradient, product, &tile);
    const bool hides = first < own.common_first || next > own.common_end;
    differentiate_tile(score, gradient, &pairs, shift, delta, row,
                       first + (int)(tile.column + lane % 4 * 2), !hides);
    store_pairs(score, gradient, &tile);
    barrier(CLK_LOCAL_MEM_FENCE);
    add_rows(sum, factors_at, here + rows_at, ATTN_HEAD_PITCH);
    if (STAGES == 1) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (next < end) COPY_STEP(next, here);
    }
  }

  global scalar* to = query_gradient + a.gradient.dq_offset + batch * a.gradient.dq_stride_batch +
                      (size_t)head * a.gradient.dq_stride_head;
  store_sums(to, a.gradient.dq_stride_row, sum, a.core.scale,
             first_row + (int)(sum_row + lane / 4), end_row, quarter, HEAD_DIM, lane);

  mma_copy_wait();  // tiles have arrived, needed or not, and make room
  barrier(CLK_LOCAL_MEM_FENCE);
  local uint* odd = (local uint*)memory;
  if (item < OWN / 32) odd[item] = 0;
  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  note_odd_rows(odd, sum, sum_row, quarter, HEAD_DIM, lane);
  barrier(CLK_LOCAL_MEM_FENCE);
  ROLLED for (uint n = warp; n < OWN; n += WG_X / 32) {
    const int at = first_row + (int)n;
    if ((odd[n / 32] >> n % 32 & 1) != 0 && at < end_row) EXACT_QUERY(at);
  }
}
