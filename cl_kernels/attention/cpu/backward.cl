// SPDX-License-Identifier: Apache-2.0
// What     dv[j] = sum_i p[i,j] do[i]; dq[i] = scale sum_j ds[i,j] k[j]; dk[j] = scale sum_i ds[i,j] q[i], where
//          ds[i,j] = p[i,j] (do[i] . v[j] - delta[i]) score'(i,j), delta[i] = do[i] . o[i]; p comes back from lse.
// Who      A work-group is one item. It owns every splits-th block of ATTN_BLOCK_KEYS keys of one (batch, kv head), as
//          panels with a key in every lane.
// Memory   k, v, dk, dv once; packed q and do, partial dq once per block of keys; ATTN_CPU_PRIVATE_BYTES on the stack.
// Numerics Float; queries and splits in order, no atomics: the same bits on any number of threads. One rounding.
// Assumes  ATTN_CPU_VALID, contiguous features, lengths below 2^30, a compiler that does not reassociate (no -cl
//          flags).
//
//   Grid: splits, kv heads, batch. In the scratch buffer, attention/cpu/backward_rows leaves packed rows and delta before,
//   and makes dq of the partial sums afterwards; ds is there if it is wanted.
//
//                    ATTN_LANES keys                             ATTN_LANES keys                      features
//                 +--------------+                       +--------------+               +--------------+
//     QUERY_ROWS  |  q k -> p    |             FEATURES  |  p do -> dv  |   QUERY_ROWS  |   ds k       |
//       queries   |  do v -> ds  |             features  |  ds q -> dk  |     queries   |    -> dq     |
//                 +--------------+                       +--------------+               +--------------+
//   do . v starts at -delta: the softmax is one exp2, ds one product. The factor that makes exponents of
//   scores is in the panels of keys; `scale` comes with the last rounding. The heads of a group are added up. A value
//   that is not finite reaches what it has a weight for.
//
//   With POLICY=1 the table of rows says which keys a row may see, and policies change scores and weights. Tiles that
//   are seen as a whole, where nothing is added, go the same way as with POLICY=0.
#include "attention/cpu/backward_tiles.clh"

#if POLICY
#define POLICY_OPERANDS POLICY_KERNEL_PARAMETERS,
#else
#define POLICY_OPERANDS
#endif

KERNEL void attention_backward_cpu(const global scalar* restrict k, const global scalar* restrict v,
                                         const global float* restrict log_sum_exp, global float* restrict scratch,
                                         global scalar* restrict dk, global scalar* restrict dv,
                                         POLICY_OPERANDS const struct AttentionBackwardCall call) {
  const struct AttentionArgs a = call.core;
  const struct AttentionGradientArgs g = call.gradient;
#if POLICY
  const Policies policies = MAKE_POLICIES(call, scratch);
#endif
  const int split = get_group_id(0), splits = a.splits, q_len = a.q_len, kv_len = a.kv_len;
  const size_t kv_head = get_group_id(1), batch = get_group_id(2), batches = get_num_groups(2);
  const PanelRows keys = {k + a.k_offset + batch * a.k_stride_batch + kv_head * a.k_stride_head, a.k_stride_row};
  const PanelRows values = {v + a.v_offset + batch * a.v_stride_batch + kv_head * a.v_stride_head, a.v_stride_row};
  dk += g.dk_offset + batch * g.dk_stride_batch + kv_head * g.dk_stride_head;
  dv += g.dv_offset + batch * g.dv_stride_batch + kv_head * g.dv_stride_head;
  const size_t padded_rows = ATTN_CPU_PADDED_ROWS((size_t)q_len);
  global float* partials = scratch + g.partials + ATTN_CPU_PACKED_FLOATS(batches, a.heads, (size_t)q_len);
  const float key_factor = a.soft_cap > 0.0f ? a.scale / a.soft_cap : a.scale * M_LOG2E_F;
  Panel panels[KEY_PANELS];
  floatv key_rows[ATTN_BLOCK_KEYS][ATTN_KEY_STRIDE / VECTOR_WIDTH];
  Block block;

  // The splits take the blocks of keys in turns, and every other round backwards: under a causal mask, where early keys
  // have more rows, all of them get about the same work.
  for (int round = 0; round == 0 || round * splits * ATTN_BLOCK_KEYS < kv_len; ++round) {
    const int first_key = (round * splits + (round % 2 == 0 ? split : splits - 1 - split)) * ATTN_BLOCK_KEYS;
    const int end_key = min(first_key + ATTN_BLOCK_KEYS, kv_len),
        panel_count = (end_key - first_key + ATTN_LANES - 1) / ATTN_LANES;
    bool wild = false;
    for (int p = 0; p < panel_count; ++p) {
      Panel* panel = &panels[p];
      panel->first = first_key + p * ATTN_LANES;
      panel->end = min(panel->first + ATTN_LANES, kv_len);
      load_panel(keys, panel->first, kv_len - 1, HEAD_DIM, key_factor, panel->key);
      load_panel(values, panel->first, kv_len - 1, VALUE_DIM, 1.0f, panel->value);
      clear_panel(panel->dk, ATTN_HEAD_SPAN);
      clear_panel(panel->dv, ATTN_VALUE_SPAN);
      floatv not_finite = 0.0f;
      for (int key = panel->first; key < panel->end; ++key) {
        floatv* row = key_rows[key - first_key];
        for (int d = HEAD_DIM / VECTOR_WIDTH; d < ATTN_DQ_WIDTH; ++d) row[d] = 0.0f;
        not_finite += convert_row(panel_row(keys, key), HEAD_DIM, row);
        not_finite += wildness(panel_row(values, key), VALUE_DIM);
      }
      panel->wild = any(not_finite != not_finite);
      wild |= panel->wild;
    }

    // Rows that may see some of these keys.
#if POLICY
    const int first_block = 0, end_row = q_len;
#else
    const int begin_row = g.write_ds ? 0 : max(first_key - a.band_high, 0), first_block = begin_row / BLOCK_Q * BLOCK_Q;
    const int end_row = round == 0 || g.write_ds ? q_len : min(end_key - a.band_low, q_len);
#endif

    for (size_t number = kv_head * a.group; number < (kv_head + 1) * a.group; ++number) {
      Head head;
      head.args = &a;
      head.lse = log_sum_exp + a.lse_offset + batch * a.lse_stride_batch + number * a.lse_stride_head;
      const size_t line = batch * a.heads + number;
      head.delta = scratch + g.delta + line * q_len;
      head.packed = scratch + g.partials + line * padded_rows * ATTN_PACKED_STRIDE;
      head.dq = partials + (split * batches * a.heads + line) * padded_rows * ATTN_DQ_WIDTH * VECTOR_WIDTH;
      head.ds = g.write_ds ? scratch + g.ds + line * q_len * kv_len : 0;
#if POLICY
      head.policies = &policies;
      head.policy = policy_head(&policies, batch, number);
      head.peaks = policies.rows + g.peaks + line * q_len;
#endif

      for (int first = round == 0 ? 0 : first_block; first < end_row; first += BLOCK_Q) {
        block.first = first;
        block.rows = min(BLOCK_Q, q_len - first);
        global float* dq = head.dq + (size_t)first * ATTN_DQ_WIDTH * VECTOR_WIDTH;
        if (round == 0)
          for (int i = 0; i < block.rows * ATTN_DQ_WIDTH; ++i) vstorev((floatv)(0.0f), i, dq);
        if (!find_keys(&block, &head, first_key, end_key) && head.ds == 0) continue;
        load_block(&block, &head);
        for (int p = 0; p < panel_count; ++p) {
          Panel* panel = &panels[p];
          const Meeting at = meeting(&block, panel, p, &head);
          if (at.begin >= at.end) {
            clear_rows(&block, 0, BLOCK_Q, panel, p, &head);
            continue;
          }
          clear_rows(&block, 0, at.tile_begin, panel, p, &head);
          clear_rows(&block, at.tile_end, BLOCK_Q, panel, p, &head);
          for (int i = at.tile_begin; i < at.tile_end; i += QUERY_ROWS) weigh_tile(&block, i, panel, &at, &head);
          for (int i = at.tile_begin; i < at.tile_end; i += QUERY_ROWS)
            differentiate_tile(&block, i, panel, &at, &head);
          add_key_gradients(&block, panel, &at);
        }
        add_query_gradients(&block, key_rows, first_key, end_key, wild, dq);
      }
    }

    for (int p = 0; p < panel_count; ++p) {
      for (int j = 0; j < VECTORS; ++j) {
        const int key = panels[p].first + j * VECTOR_WIDTH;
        store_panel(panels[p].dk, j, (floatv)(a.scale), (intv)(-1), HEAD_DIM, dk, g.dk_stride_row, key, kv_len - 1);
        store_panel(panels[p].dv, j, (floatv)(1.0f), (intv)(-1), VALUE_DIM, dv, g.dv_stride_row, key, kv_len - 1);
      }
    }
  }
}
