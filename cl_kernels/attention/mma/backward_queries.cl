// SPDX-License-Identifier: Apache-2.0
// What     dq[i] = scale sum_j du[i,j] k[j], j over the keys that row i sees; p from scores anew and
//          log_sum_exp; du = p (do[i].v[j] - delta[i]) cap'.
// Who      Group (x, y, z): 16 QUERY_TILES rows for each warp, the last first; head; batch.
// Memory   k and v once per tile of queries, q and do once, by asynchronous copies.
// Numerics Float sums of products of f16 or bf16; keys in order; gradients of logits are rounded to
//          the storage type.
// Assumes  sm_80, ATTN_MMA_BACKWARD_VALID; enough groups in x; lengths below 2^30; ALIGNED is no lie;
//          delta (and the table of rows, POLICY=1) in the scratch buffer.
//
// mma_backward.clh draws it. A key that is not finite makes the sums of all rows of a group NaN whose
// tiles hold it. Such rows are computed again, by attention/core/exact_gradients, from the keys that they
// see alone.
#define OWN_KEYS 0
#define OWN_TILES QUERY_TILES
#define STEP QUERY_STEP
#include "attention/mma/backward.clh"
#include "attention/mma/backward_exact.clh"
MMA_STORE_ROWS(store_queries, OWN_TILES, ATTN_HEAD_STEPS, HEAD_DIM)

KERNEL void attention_mma_backward_queries(BACKWARD_QUERIES_PARAMETERS(const global float)) {
  local uchar memory[ATTN_MMA_BACKWARD_BYTES(QUERY_TILES, QUERY_STEP)] __attribute__((aligned(128)));
  const uint local_memory = LOCAL_ADDRESS(memory);
  const uint item = get_local_id(0), lane = item % 32, warp = (uint)uniform((int)(item / 32));
  // Under a causal mask the last tiles take longest, so they start first.
  const int first_row = (int)((get_num_groups(0) - 1 - get_group_id(0)) * GROUP_OWN);
  const int end_row = min(first_row + (int)GROUP_OWN, (int)a.core.q_len);
  const int warp_row = first_row + (int)(warp * WARP_OWN), row = warp_row + (int)(lane / 4);
  const uint head = get_group_id(1), kv_head = head / a.core.group;
  const size_t batch = get_group_id(2);
  Pairs pairs = {.call = &a};
  choose_head(&pairs, log_sum_exp, scratch, batch, head);
  set_logits(&pairs);

  SET_POLICIES(pairs);
  const Interval own = rows_interval(&pairs, warp_row, WARP_OWN, lane);
  const int2 seen = find_keys((local int*)memory, &pairs, own, first_row, end_row, item);
  const int begin = seen.s0, end = seen.s1;

  const uint own_q = local_memory, own_gradients = own_q + GROUP_OWN * ATTN_HEAD_PITCH;
  const uint stages = own_gradients + GROUP_OWN * ATTN_VALUE_PITCH;
  const uint values_at = STEP * ATTN_HEAD_PITCH;  // in a stage
  const MmaMatrix queries = MATRIX(q, a.core, q, head, 0, end_row, ROWS_THAT_COUNT);
  const MmaMatrix gradients =
      MATRIX(output_gradient, a.gradient, do, head, 0, end_row, ROWS_THAT_COUNT);
  const MmaMatrix keys = MATRIX(k, a.core, k, kv_head, begin, end, 0);
  const MmaMatrix values = MATRIX(v, a.core, v, kv_head, begin, end, 0);
  mma_copy_rows(own_q, queries, first_row, GROUP_OWN, HEAD_DIM, ATTN_HEAD_PITCH, item);
  mma_copy_rows(own_gradients, gradients, first_row, GROUP_OWN, VALUE_DIM, ATTN_VALUE_PITCH, item);
  const uint q_at = own_q + warp * WARP_OWN * ATTN_HEAD_PITCH + mma_place_of_a(lane, ATTN_HEAD_PITCH);
  const uint gradient_at =
      own_gradients + warp * WARP_OWN * ATTN_VALUE_PITCH + mma_place_of_a(lane, ATTN_VALUE_PITCH);

  float score[ROWS * PAIRS], gradient[ROWS * PAIRS], sum[ROWS * ATTN_HEAD_STEPS * 4];
  float shift[ROWS], delta[ROWS];
  UNROLL for (uint i = 0; i < ROWS * ATTN_HEAD_STEPS * 4; ++i) sum[i] = 0.0f;
  UNROLL for (uint r = 0; r < ROWS; ++r) {
    const int at = min(row + 8 * (int)r, (int)a.core.q_len - 1);
    shift[r] = shift_of(pairs.log_sum_exp[at]);
    delta[r] = shift[r] == -INFINITY ? 0.0f : pairs.delta[at];
  }

  uint stage = 0;
  if (begin < end) COPY_STEP(begin, stages);
  for (int first = begin; first < end; first += STEP) {
    const uint here = stages + stage * ATTN_MMA_STAGE_BYTES(STEP);
    mma_copy_wait();
    barrier(CLK_LOCAL_MEM_FENCE);
    stage ^= 1;
    if (first + (int)STEP < end)
      COPY_STEP(first + (int)STEP, stages + stage * ATTN_MMA_STAGE_BYTES(STEP));
    CLEAR_STEP(first, here);
    if (first >= own.end || first + (int)STEP <= own.first) continue;

    take_head_products(score, q_at, here + mma_place_of_b(lane, ATTN_HEAD_PITCH));
    take_value_products(gradient, gradient_at, here + values_at + mma_place_of_b(lane, ATTN_VALUE_PITCH));
    const bool hides = first < own.common_first || first + (int)STEP > own.common_end;
    differentiate_tile(score, gradient, &pairs, shift, delta, row, first + (int)(lane % 4 * 2),
                       !hides);
    add_head_rows(sum, gradient, here + mma_place_of_a(lane, ATTN_HEAD_PITCH));
  }

  global scalar* to = query_gradient + a.gradient.dq_offset + batch * a.gradient.dq_stride_batch +
                      (size_t)head * a.gradient.dq_stride_head;
  store_queries(to, a.gradient.dq_stride_row, sum, a.core.scale, row, end_row, lane);

  bool not_finite[ROWS];
  UNROLL for (uint r = 0; r < ROWS; ++r)
    not_finite[r] = isnan(mma_zero_of(sum + r * ATTN_HEAD_STEPS * 4, ATTN_HEAD_STEPS * 4));
  const uint odd = mma_odd_rows(not_finite, ROWS);
  if (odd == 0) return;
  WARP_SYNC();  // what is stored now comes after what the warp has stored
  ROLLED for (uint n = 0; n < WARP_OWN; ++n) {
    const int at = warp_row + (int)n;
    if ((odd >> n & 1) != 0 && at < end_row) EXACT_QUERY(at);
  }
}
