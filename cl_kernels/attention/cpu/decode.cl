// SPDX-License-Identifier: Apache-2.0
// What     Attention of few query rows per kv head over many keys: o and lse, or the partial results of a split.
// Who      A work-group is one item: split x, HEADS kv heads from y * HEADS on, batch z, all rows of their query heads;
//          of packed sequences split x / tiles, and the rows of tile x % tiles of the work list.
// Memory   k and v once per ROWS rows of a kv head, AHEAD bytes asked for ahead; ATTN_DECODE_PRIVATE_BYTES on the
//          stack.
// Numerics Float, blocks of keys in order; base-2 softmax over the running maximum; one rounding.
// Assumes  ATTN_DECODE_VALID, HEADS divides the kv heads, a grid of a.splits (tiles) x kv heads / HEADS x batch,
//          contiguous features, lengths below 2^30, a compiler that does not reassociate (no -cl flags).
//
//   Features lie in the lanes. Row r of a kv head is query row r / group of its query head r % group, so a key is read
//   once for all of them. A tile of scores is VECTOR_WIDTH dot products of TILE_HEADS heads, whose lanes are summed up
//   in one go.
//
//                  TILE_KEYS keys                                   ATTN_TILE_COLUMNS vectors of features
//              +--------------------+                                   +--------------------+
//   ATTN_TILE_ROWS  | sum over d of      |  -> mask, exp2 ->      ATTN_TILE_ROWS  | sum over j of      |
//     rows     | q[i,d] k[j,d]      |  weights p[i,j]          rows     | p[i,j] v[j,d]      |
//              +--------------------+                                   +--------------------+
//
//   The keys from the first that some row sees to the last are cut into blocks, and these into splits: no result
//   depends on the batch, the tensor's length or HEADS. attention/core/combine merges the splits in order. A block is all
//   scores, then all weights, then all values. The heads of an item take turns of TURN keys at it, because memory holds
//   the heads of a key side by side, and what comes in the order of memory comes fastest: two keys by turns took up to
//   1.5 times as long. A single row asks for nothing ahead, more rows for a little; much is harmful (EPYC, PoCL 3.1).
//   A value that is not finite reaches the rows that give its key a weight.
#include "attention/cpu/decode_tiles.clh"

#if POLICY
// Logits become scores, key by key.
INLINE void apply_policies(Head* head, int rows, const Policies* policies, Block now) {
  for (int i = now.begin; i < now.end; ++i) {
    const int key = now.first + i;
    for (int row = 0; row < rows; ++row) {
      const bool sees = policy_sees(policies, head->policies[row], key);
      head->scores[row][i] =
          sees ? policy_score(policies, head->policies[row], key, head->scores[row][i]).s0 : -INFINITY;
    }
  }
}

INLINE void apply_dropout(Head* head, int rows, const Policies* policies, Block now) {
  for (int row = 0; row < rows; ++row)
    for (int i = now.begin; i < now.end; ++i)
      head->scores[row][i] *= policy_keep(policies, head->policies[row], now.first + i);
}
#endif

// The sum of the lanes, in order.
INLINE float sum_of(floatv x) {
  float lanes[VECTOR_WIDTH], sum = 0.0f;
  vstorev(x, 0, lanes);
  UNROLL for (int i = 0; i < VECTOR_WIDTH; ++i) sum += lanes[i];
  return sum;
}

// The features of a vector of a row of partial sums.
INLINE void store_floats(floatv x, global float* to) {
#if VALUE_DIM >= VECTOR_WIDTH
  vstorev(x, 0, to);
#else
  float part[VECTOR_WIDTH];
  vstorev(x, 0, part);
  for (int i = 0; i < VALUE_DIM; ++i) to[i] = part[i];
#endif
}

// Row r of kv head `head` of this item.
INLINE uint query_row(const Work* work, uint r) { return r / work->args->group; }
INLINE uint query_head(const Work* work, uint head, uint r) {
  return (work->kv_head + head) * work->args->group + r % work->args->group;
}

INLINE void begin_pass(Pass* pass, const Work* work, const global scalar* q, uint first, uint rows, KeyRange share) {
  const struct AttentionArgs* a = work->args;
  const float factor = scored_by_key(work) ? a->scale : a->soft_cap > 0.0f ? a->scale / a->soft_cap : a->scale * LOG2_E;
  pass->rows = (min(rows - first, (uint)ROWS) + ATTN_TILE_ROWS - 1) / ATTN_TILE_ROWS * ATTN_TILE_ROWS;
  KeyRange some = {0, 0}, every = share;
  for (int i = 0; i < pass->rows; ++i) {
    const uint r = min(first + i, rows - 1), row = query_row(work, r);
    pass->sees[i] = interval_of(work, row);
    some = hull(some, pass->sees[i]);
    every = common(every, pass->sees[i].begin, pass->sees[i].end);
    for (uint h = 0; h < HEADS; ++h) {
      Head* to = &pass->heads[h];
      const uint head = query_head(work, h, r);
      const global scalar* query = q + a->q_offset + (size_t)work->batch * a->q_stride_batch +
                                   (size_t)head * a->q_stride_head + (size_t)row * a->q_stride_row;
      for (int n = 0; n < ATTN_HEAD_VECTORS; ++n) to->queries[i][n] = load_new_features(query, n, HEAD_DIM) * factor;
      for (int n = 0; n < ATTN_VALUE_SPAN; ++n) to->sums[i][n] = 0.0f;
      to->top[i] = LOWEST_MAXIMUM;
      to->total[i] = 0.0f;
#if POLICY
      to->policies[i] = policy_row(work->policies, work->batch, head, row);
#endif
    }
  }
  pass->all = common(some, share.begin, share.end);
  pass->every = every;
}

#if CODES
// Of a key's code and its query a score is made by the key's scale.
INLINE void scale_scores(Pass* pass, PanelRows keys, PanelRows values, Block now) {
  for (uint h = 0; h < HEADS; ++h) {
    Head* head = &pass->heads[h];
    for (int i = 0; i < BLOCK_K; ++i) {
      const bool is_there = i >= now.begin && i < now.end;
      const uint key = now.first + clamp(i, now.begin, now.end - 1);
      head->key_scales[i] = is_there ? panel_scale(keys, h, key) : 0.0f;
      head->value_scales[i] = is_there ? panel_scale(values, h, key) : 0.0f;
    }
    for (int row = 0; row < pass->rows; ++row)
      for (int i = 0; i < BLOCK_K; i += VECTOR_WIDTH)
        vstorev(vloadv(0, &head->scores[row][i]) * vloadv(0, &head->key_scales[i]), 0, &head->scores[row][i]);
  }
}

// And of a weight what multiplies codes of values. What nobody sees may have any scale.
INLINE void scale_weights(Head* head, int rows) {
  for (int row = 0; row < rows; ++row)
    for (int i = 0; i < BLOCK_K; i += VECTOR_WIDTH) {
      const floatv weight = vloadv(0, &head->scores[row][i]);
      const floatv scaled = weight * vloadv(0, &head->value_scales[i]);
      vstorev(weight == 0.0f ? (floatv)(0.0f) : scaled, 0, &head->scores[row][i]);
    }
}
#endif

// Scores of a block become weights.
INLINE void weigh_head(Pass* pass, Head* head, const Work* work, Block now) {
  const bool by_key = scored_by_key(work);
#if POLICY
  if (by_key) apply_policies(head, pass->rows, work->policies, now);
#endif
  for (int row = 0; row < pass->rows; ++row)
    weigh_row(head, row, pass->sees[row], now, by_key ? 0.0f : work->args->soft_cap);
#if POLICY
  if ((work->policies->policy->features & POLICY_DROPOUT) != 0) apply_dropout(head, pass->rows, work->policies, now);
#endif
#if CODES
  scale_weights(head, pass->rows);
#endif
}

INLINE void take_block(Pass* pass, const Work* work, PanelRows keys, PanelRows values, Block now) {
  bool hides = PAGES_HIDE(work) || now.first + now.begin < pass->every.begin || now.first + now.end > pass->every.end;
#if POLICY
  hides = hides || (work->policies->policy->features & (POLICY_HIDES | POLICY_BIAS)) != 0;
#endif
  score_block(pass, keys, now);
#if CODES
  scale_scores(pass, keys, values, now);
#endif
  for (uint h = 0; h < HEADS; ++h) weigh_head(pass, &pass->heads[h], work, now);
  if (hides) {
    add_block(pass, values, now, true);
  } else {
    add_block(pass, values, now, false);
  }
}

// Row i of a pass, which is row r of kv head h.
INLINE void store_partial(const Head* from, uint i, const Work* work, global float* partials, uint h, uint r) {
  const struct AttentionArgs* a = work->args;
  const size_t lines = (size_t)get_num_groups(2) * a->heads * a->q_len;
  const size_t line = work->split * lines + ((size_t)work->batch * a->heads + query_head(work, h, r)) * a->q_len +
                      query_row(work, r);
  for (int n = 0; n < ATTN_VALUE_VECTORS; ++n)
    store_floats(from->sums[i][n], partials + line * VALUE_DIM + feature_of(n, VALUE_DIM));
  vstore2((float2)(from->top[i], sum_of(from->total[i])), line, partials + a->splits * lines * VALUE_DIM);
}

INLINE void store_result(const Head* from, uint i, const Work* work, global scalar* output, global float* log_sum_exp,
                         uint h, uint r) {
  const struct AttentionArgs* a = work->args;
  const uint row = query_row(work, r), head = query_head(work, h, r);
  const float total = sum_of(from->total[i]);
  float2 end = (float2)(from->top[i], total);
  bool normalize = true, far = false;
#if POLICY
  end = policy_sinks(work->policies, head, end.s0, end.s1);
  normalize = (work->policies->policy->features & POLICY_UNNORMALIZED) == 0;
  far = (work->policies->policy->features & POLICY_FAR) != 0;
#endif
  const float2 result = row_result(from->top[i], end.s0, end.s1, normalize, far, -INFINITY);
  output += a->o_offset + (size_t)work->batch * a->o_stride_batch + (size_t)head * a->o_stride_head +
            (size_t)row * a->o_stride_row;
  for (int n = 0; n < ATTN_VALUE_VECTORS; ++n)  // of a row that saw nothing, sums may be no numbers
    store_part(total == 0.0f ? (floatv)(0.0f) : from->sums[i][n] * result.s0, output + feature_of(n, VALUE_DIM),
               VALUE_DIM);
  if (a->write_lse)
    log_sum_exp[a->lse_offset + (size_t)work->batch * a->lse_stride_batch + (size_t)head * a->lse_stride_head + row] =
        result.s1;
}

KERNEL void attention_cpu_decode(const global scalar* restrict q, const global key_scalar* restrict k,
                                 const global key_scalar* restrict v, global scalar* restrict output,
                                 global float* restrict log_sum_exp, global float* restrict scratch, CALL_PARAMETERS) {
  const uint kv_head = get_group_id(1) * HEADS, batch = get_group_id(2);
#if POLICY
  const struct AttentionArgs a = call.core;
  MAKE_PAGING(call)
  const Policies policies = MAKE_POLICIES(call, scratch);
  const uint tiles = get_num_groups(0) / a.splits;
  Tile tile = {0, a.group * a.q_len, batch, 0};
  if ((call.policy.features & POLICY_WORK) != 0)
    tile = spread_tile((const global int4*)scratch, call.policy.map, get_group_id(0) % tiles, tiles);
#if PAGED
  const bool hides = pages_hide(&policies, batch, tile);
  const Work work = {&a, &policies, batch, kv_head, get_group_id(0) / tiles, tile, hides};
#else
  const Work work = {&a, &policies, batch, kv_head, get_group_id(0) / tiles, tile};
#endif
#else
  const Work work = {&a, batch, kv_head, get_group_id(0), {0, a.group * a.q_len, batch, 0}};
#endif
  const PanelRows keys = {
      KEY_ELEMENTS(k, a.k_offset + (size_t)KEYS_OF(batch) * a.k_stride_batch + (size_t)kv_head * a.k_stride_head),
      a.k_stride_head, KEY_PLACES(a.k_stride_row, a.k_stride_batch, work.tile.sequence)
      PANEL_SCALES(key_scale, call.key_scales)};
  const PanelRows values = {
      KEY_ELEMENTS(v, a.v_offset + (size_t)KEYS_OF(batch) * a.v_stride_batch + (size_t)kv_head * a.v_stride_head),
      a.v_stride_head, KEY_PLACES(a.v_stride_row, a.v_stride_batch, work.tile.sequence)
      PANEL_SCALES(value_scale, call.value_scales)};

  Pass pass;
  const KeyRange share = share_of(&work);
  const uint rows = work.tile.end;
  for (uint first = work.tile.first; first < rows; first += ROWS) {
    begin_pass(&pass, &work, q, first, rows, share);
    for (int block = share.begin; block < pass.all.end; block += BLOCK_K) {
      const Block now = {block, max(pass.all.begin - block, 0), min(pass.all.end - block, BLOCK_K)};
      if (now.begin >= now.end) continue;
      take_block(&pass, &work, keys, values, now);
    }
    for (uint h = 0; h < HEADS; ++h) {
      for (uint r = first; r < min(first + ROWS, rows); ++r) {
        if (a.splits > 1) {
          store_partial(&pass.heads[h], r - first, &work, scratch + a.partials, h, r);
        } else {
          store_result(&pass.heads[h], r - first, &work, output, log_sum_exp, h, r);
        }
      }
    }
  }
}
