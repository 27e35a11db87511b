// SPDX-License-Identifier: Apache-2.0
// What     dv[j] = sum_i p[i,j] do[i]; dq[i] = scale sum_j ds[i,j] k[j]; dk[j] = scale sum_i ds[i,j] q[i], where
//          ds[i,j] = p[i,j] (do[i] . v[j] - delta[i]) score'(i,j), delta[i] = do[i] . o[i]; p comes back from lse.
// Who      A work-group is one item. It owns every splits-th block of BLOCK_KEYS keys of one (batch, kv head), as panels
//          with a key in every lane.
// Memory   k, v, dk, dv once; q, do, partial dq once per block of keys; CPU_PRIVATE_BYTES on the stack.
// Numerics Float; queries and splits in order, no atomics: the same bits on any number of threads. One rounding.
// Assumes  CPU_VALID, contiguous features, lengths below 2^30, a compiler that does not reassociate (no -cl flags).
//
//   Grid: splits, kv heads, batch. attention/cpu_backward_rows makes delta before, of CPU_DELTA_FLOATS in the scratch
//   buffer, and dq of the partial sums afterwards, of CPU_PARTIAL_FLOATS; ds is there if it is wanted.
//
//                    LANES keys                             LANES keys                      features
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
#include "attention/cpu_rows.clh"
#if POLICY
#define LANES_ARE_ROWS 0
#include "attention/cpu_policy.clh"
#endif
#include "operations/attention/backward_args.h"
#include "operations/attention/cpu_backward.h"

// LANES keys, transposed.
typedef struct {
  floatv key[HEAD_SPAN][VECTORS], dk[HEAD_SPAN][VECTORS];
  floatv value[VALUE_SPAN][VECTORS], dv[VALUE_SPAN][VECTORS];
  int first, end;  // keys
  bool wild;       // some feature is not finite
} Panel;

// The keys that some row of a tile may see, at most, and those that every row may see.
typedef struct {
  int begin, end, every_begin, every_end;
} TileKeys;

// BLOCK_Q query rows as floats, and what they make of the keys.
typedef struct {
  floatv query[BLOCK_Q][QUERY_STRIDE / VECTOR_WIDTH], gradient[BLOCK_Q][GRADIENT_STRIDE / VECTOR_WIDTH];
  float start[BLOCK_Q], delta[BLOCK_Q];     // start: -lse in base 2
  int begin[BLOCK_Q], end[BLOCK_Q];         // the keys that a row may see
  TileKeys tiles[QUERY_TILES];
  floatv p[BLOCK_Q][VECTORS];               // of one panel; scores at first
  floatv ds[BLOCK_Q][KEY_PANELS][VECTORS];  // slopes of the soft cap at first, in tiles that are special
  int first, rows;
  bool wild;
} Block;

// A panel and a block. Rows count from the block's first.
typedef struct {
  int panel;                 // its number
  int begin, end;            // rows that may see some key of the panel: [begin, end)
  int tile_begin, tile_end;  // the same, grown to whole tiles
  bool special;              // no tile goes the short way
  bool hides;                // policies hide single keys
} Meeting;

// A (batch, head) of queries.
typedef struct {
  const struct AttentionArgs* args;
  Rows queries, gradients;
  const global float *lse, *delta;
  global float *dq, *ds;  // ds: 0 if it is not wanted
#if POLICY
  const Policies* policies;
  HeadPolicy policy;
#endif
} Head;

#if POLICY
#define HAS(head, bits) ((head->policies->policy->features & (bits)) != 0u)
#else
#define HAS(head, bits) false
#endif

// The keys that each row of a block may see; rows whose lse is -inf see none, and count for no tile. Returns whether
// some row may see one of the keys [first_key, end_key).
INLINE bool find_keys(Block* block, const Head* head, int first_key, int end_key) {
  bool meets = false;
  for (int t = 0; t < QUERY_TILES; ++t) {
    TileKeys keys = {INDEX_MAX, 0, 0, INDEX_MAX};
    for (int i = t * QUERY_ROWS; i < (t + 1) * QUERY_ROWS; ++i) {
      const int row = block->first + i;
      int begin = 0, end = 0;
      if (i < block->rows && head->lse[row] != -INFINITY) {
#if POLICY
        const Policies* policies = head->policies;
        const int4 entry = ROW_ENTRY(head->policy.rows + (u32)row);
        begin = entry.x;
        end = entry.y;
#else
        begin = max(0, row + head->args->band_low);
        end = min((int)head->args->kv_len, row + head->args->band_high + 1);
#endif
        keys.every_begin = max(keys.every_begin, begin);
        keys.every_end = min(keys.every_end, end);
        if (begin < end) {
          keys.begin = min(keys.begin, begin);
          keys.end = max(keys.end, end);
        }
      }
      block->begin[i] = begin;
      block->end[i] = end;
    }
    block->tiles[t] = keys;
    meets |= keys.begin < end_key && keys.end > first_key;
  }
  return meets;
}

INLINE void load_block(Block* block, const Head* head) {
  floatv wild = 0.0f;
  for (int i = 0; i < BLOCK_Q && i < CPU_ROUND_UP(block->rows, QUERY_ROWS); ++i) {
    const int row = block->first + i;
    if (i >= block->rows || head->lse[row] == -INFINITY) {  // all is 0: q and do may be anything, and 0 * NaN is NaN
      block->start[i] = -INFINITY;
      block->delta[i] = 0.0f;
      for (int d = 0; d < QUERY_STRIDE / VECTOR_WIDTH; ++d) block->query[i][d] = 0.0f;
      for (int d = 0; d < GRADIENT_STRIDE / VECTOR_WIDTH; ++d) block->gradient[i][d] = 0.0f;
    } else {
      block->start[i] = head->lse[row] * -M_LOG2E_F;
      block->delta[i] = head->delta[row];
      wild += convert_row(row_of(head->queries, row), HEAD_DIM, block->query[i]);
      wild += convert_row(row_of(head->gradients, row), VALUE_DIM, block->gradient[i]);
    }
  }
  block->wild = any(wild != wild);
}

INLINE bool row_meets(const Block* block, int row, const Panel* panel) {
  return max(block->begin[row], panel->first) < min(block->end[row], panel->end);
}

INLINE Meeting meeting(const Block* block, const Panel* panel, int number, const Head* head) {
  Meeting at;
  at.panel = number;
  at.begin = 0;
  at.end = block->rows;
  at.special = panel->wild || head->args->soft_cap > 0.0f || head->ds != 0;
  at.hides = false;
#if POLICY
  const Policies* policies = head->policies;
  at.hides = (RULE(features) & POLICY_HIDES) != 0u;
  if ((RULE(features) & POLICY_MAP) != 0u) {
    const u32 tile = policy_map(policies, &head->policy, block->first / BLOCK_Q, panel->first / LANES);
    if (tile == MAP_NOTHING) at.end = 0;
    if (tile == MAP_ALL) at.hides = false;
  }
  at.special |= at.hides || (RULE(features) & (POLICY_ADDS | POLICY_DROPOUT)) != 0u;
#endif
  while (at.begin < at.end && !row_meets(block, at.begin, panel)) ++at.begin;
  while (at.begin < at.end && !row_meets(block, at.end - 1, panel)) --at.end;
  at.tile_begin = at.begin / QUERY_ROWS * QUERY_ROWS;
  at.tile_end = CPU_ROUND_UP(at.end, QUERY_ROWS);
  return at;
}

// Whether the tile from `row` on takes the long way.
INLINE bool is_special(const Block* block, int row, const Panel* panel, const Meeting* at) {
  const TileKeys* keys = &block->tiles[row / QUERY_ROWS];
  return at->special || keys->every_begin > panel->first || keys->every_end < panel->end;
}

// sum[r] += rows[r] * panel for QUERY_ROWS rows of `stride` floats. `ahead` are rows that the next block will convert:
// the second cache is asked for them here, line by line, where waiting for them costs nothing.
INLINE void multiply_tile(const float* rows, int stride, const floatv (*panel)[VECTORS], int features,
                          const global scalar** ahead, floatv (*sum)[VECTORS]) {
  for (int d = 0; d < features; ++d) {
    UNROLL for (int n = 0; n < ROWS_AHEAD; ++n) PREFETCH_FAR(ahead[n] + d);
    UNROLL for (int r = 0; r < QUERY_ROWS; ++r) {
      const floatv x = rows[r * stride + d];
      UNROLL for (int j = 0; j < VECTORS; ++j) sum[r][j] = fma(x, panel[d][j], sum[r][j]);
    }
  }
}

// A panel's share of the rows from `row` on, for multiply_tile().
INLINE void rows_ahead(Rows rows, int row, int share, int last, const global scalar** ahead) {
  UNROLL for (int n = 0; n < ROWS_AHEAD; ++n)
    ahead[n] = row_of(rows, min(row + min(share * ROWS_AHEAD + n, QUERY_ROWS - 1), last));
}

INLINE floatv weight(floatv x) { return exp2_from(larger((floatv)(-127.0f), x), (floatv)(EXP2_ORIGIN)); }

// The long way from scores to p: what is added to scores, soft cap and mask. With a soft cap the scores are tanh's
// argument. p of a hidden key is 0; ds becomes the slope of the cap, 1 without one.
INLINE void weigh_specially(Block* block, int row, const Panel* panel, const Meeting* at, const Head* head) {
  const float cap = head->args->soft_cap;
  for (int i = row; i < row + QUERY_ROWS; ++i) {
#if POLICY
    const RowPolicies policies =
        policy_rows(head->policies, &head->policy, block->first + i, block->first + block->rows - 1);
#endif
    for (int j = 0; j < VECTORS; ++j) {
      const int key = panel->first + j * VECTOR_WIDTH;
      intv seen = key + LANE_INDEX >= block->begin[i] && key + LANE_INDEX < block->end[i];
      floatv x = block->p[i][j], slope = 1.0f;
#if POLICY
      floatv after;
      const floatv bias = policy_bias(head->policies, &head->policy, &policies, key, seen);
      const floatv before = policy_addends(head->policies, &head->policy, &policies, key, seen, bias, &after);
      x = fma(before, (floatv)(cap > 0.0f ? 1.0f / cap : M_LOG2E_F), x);
      if (at->hides) {
        const intv mask = policy_mask(head->policies, &head->policy, &policies, key, seen);
        seen = policy_sees(head->policies, &head->policy, &policies, key, seen, mask);
      }
#endif
      if (cap > 0.0f) {
        const floatv t = tanh_vector(x);
        x = fma(t, (floatv)(cap * M_LOG2E_F), (floatv)(block->start[i]));
        slope = fma(-t, t, (floatv)(1.0f));
      } else {
        x += block->start[i];
      }
#if POLICY
      x = fma(after, (floatv)(M_LOG2E_F), x);
#endif
      block->p[i][j] = seen ? weight(x) : (floatv)(0.0f);
      block->ds[i][at->panel][j] = slope;
    }
  }
}

// p of a tile.
INLINE void weigh_tile(Block* block, int row, const Panel* panel, const Meeting* at, const global scalar** ahead,
                       const Head* head) {
  floatv sum[QUERY_ROWS][VECTORS];
  UNROLL for (int r = 0; r < QUERY_ROWS; ++r) UNROLL for (int j = 0; j < VECTORS; ++j) sum[r][j] = 0.0f;
  multiply_tile((const float*)block->query[row], QUERY_STRIDE, panel->key, HEAD_DIM, ahead, sum);
  if (is_special(block, row, panel, at)) {
    UNROLL for (int r = 0; r < QUERY_ROWS; ++r) UNROLL for (int j = 0; j < VECTORS; ++j)
      block->p[row + r][j] = sum[r][j];
    weigh_specially(block, row, panel, at, head);
  } else {
    UNROLL for (int r = 0; r < QUERY_ROWS; ++r) UNROLL for (int j = 0; j < VECTORS; ++j)
      block->p[row + r][j] = weight(sum[r][j] + block->start[row + r]);
  }
}

// The first `count` floats to p.
INLINE void store_floats(floatv x, global float* p, int count) {
  if (count >= VECTOR_WIDTH) {
    vstorev(x, 0, p);
    return;
  }
  float part[VECTOR_WIDTH];
  vstorev(x, 0, part);
  for (int i = 0; i < count; ++i) p[i] = part[i];
}

// The long way from do . v - delta to ds. With dropout, which joins here, without -delta; then p is what dv needs.
INLINE void differentiate_specially(Block* block, int row, const Panel* panel, const Meeting* at, const Head* head,
                                    floatv (*products)[VECTORS]) {
  for (int r = 0; r < QUERY_ROWS; ++r) {
    const int i = row + r;
    for (int j = 0; j < VECTORS; ++j) {
      const int key = panel->first + j * VECTOR_WIDTH;
      const floatv p = block->p[i][j], slope = block->ds[i][at->panel][j];
      floatv product = products[r][j];
#if POLICY
      if (HAS(head, POLICY_DROPOUT)) {
        RowPolicies policies;
        policies.row = block->first + i;
        const floatv keep = policy_keep(head->policies, &head->policy, &policies, key);
        product = fma(keep, product, (floatv)(-block->delta[i]));
        block->p[i][j] = p * keep;
      }
#endif
      const floatv score = p == 0.0f ? p : p * product;  // 0 hides what a hidden v may hold
      const floatv logit = p == 0.0f ? p : score * slope;
      block->ds[i][at->panel][j] = logit;
      if (head->ds != 0 && i < block->rows)
        store_floats(HAS(head, POLICY_BIAS_AFTER_CAP) ? score : logit,
                     head->ds + (size_t)(block->first + i) * head->args->kv_len + key, panel->end - key);
    }
  }
}

// ds of a tile.
INLINE void differentiate_tile(Block* block, int row, Panel* panel, const Meeting* at, const global scalar** ahead,
                               const Head* head) {
  floatv sum[QUERY_ROWS][VECTORS];
  UNROLL for (int r = 0; r < QUERY_ROWS; ++r) {
    const float start = HAS(head, POLICY_DROPOUT) ? 0.0f : -block->delta[row + r];
    UNROLL for (int j = 0; j < VECTORS; ++j) sum[r][j] = start;
  }
  multiply_tile((const float*)block->gradient[row], GRADIENT_STRIDE, panel->value, VALUE_DIM, ahead, sum);
  if (is_special(block, row, panel, at)) {
    floatv products[QUERY_ROWS][VECTORS];
    UNROLL for (int r = 0; r < QUERY_ROWS; ++r) UNROLL for (int j = 0; j < VECTORS; ++j) products[r][j] = sum[r][j];
    differentiate_specially(block, row, panel, at, head, products);
  } else {
    UNROLL for (int r = 0; r < QUERY_ROWS; ++r) UNROLL for (int j = 0; j < VECTORS; ++j)
      block->ds[row + r][at->panel][j] = block->p[row + r][j] * sum[r][j];
  }
}

// p and ds of the rows [begin, end) that see no key of a panel.
INLINE void clear_rows(Block* block, int begin, int end, const Panel* panel, int number, const Head* head) {
  for (int i = begin; i < end; ++i) {
    for (int j = 0; j < VECTORS; ++j) {
      const int key = panel->first + j * VECTOR_WIDTH;
      block->p[i][j] = block->ds[i][number][j] = 0.0f;
      if (head->ds != 0 && i < block->rows)
        store_floats((floatv)(0.0f), head->ds + (size_t)(block->first + i) * head->args->kv_len + key,
                     panel->end - key);
    }
  }
}

// sums += rows^T * weights for FEATURES features from `rows` on. `step` is in vectors.
INLINE void accumulate_tile(const floatv* weights, int step, const float* rows, int stride, int count,
                            floatv (*sums)[VECTORS]) {
  floatv sum[FEATURES][VECTORS];
  UNROLL for (int c = 0; c < FEATURES; ++c) UNROLL for (int j = 0; j < VECTORS; ++j) {
    sum[c][j] = sums[c][j];
    PREFETCH(&sums[FEATURES + c][j]);
  }
  for (int i = 0; i < count; ++i) {
    UNROLL for (int c = 0; c < FEATURES; ++c) {
      const floatv x = rows[i * stride + c];
      UNROLL for (int j = 0; j < VECTORS; ++j) sum[c][j] = fma(x, weights[i * step + j], sum[c][j]);
    }
  }
  UNROLL for (int c = 0; c < FEATURES; ++c) UNROLL for (int j = 0; j < VECTORS; ++j) sums[c][j] = sum[c][j];
}

// The same for all features where some are not finite: a weight of 0 hides them.
INLINE void accumulate_wild(const floatv* weights, int step, const float* rows, int stride, int count, int features,
                            floatv (*sums)[VECTORS]) {
  for (int d = 0; d < features; ++d) {
    for (int j = 0; j < VECTORS; ++j) {
      floatv sum = sums[d][j];
      for (int i = 0; i < count; ++i) {
        const floatv w = weights[i * step + j];
        sum = w == 0.0f ? sum : fma((floatv)(rows[i * stride + d]), w, sum);
      }
      sums[d][j] = sum;
    }
  }
}

// What a block of query rows adds to dk and dv at a panel. Only rows that see some key of it.
INLINE void add_key_gradients(Block* block, Panel* panel, const Meeting* at) {
  const int rows = at->end - at->begin, ds_step = KEY_PANELS * VECTORS;
  const floatv *p = block->p[at->begin], *ds = block->ds[at->begin][at->panel];
  const float *queries = (const float*)block->query[at->begin], *gradients = (const float*)block->gradient[at->begin];
  if (block->wild) {
    accumulate_wild(p, VECTORS, gradients, GRADIENT_STRIDE, rows, VALUE_DIM, panel->dv);
    accumulate_wild(ds, ds_step, queries, QUERY_STRIDE, rows, HEAD_DIM, panel->dk);
    return;
  }
  for (int d = 0; d < VALUE_DIM; d += FEATURES)
    accumulate_tile(p, VECTORS, gradients + d, GRADIENT_STRIDE, rows, &panel->dv[d]);
  for (int d = 0; d < HEAD_DIM; d += FEATURES)
    accumulate_tile(ds, ds_step, queries + d, QUERY_STRIDE, rows, &panel->dk[d]);
}

// dq += ds * k for a tile of rows, DQ_VECTORS vectors of features and `count` keys.
INLINE void query_gradient_tile(const float* ds, const floatv (*keys)[KEY_STRIDE / VECTOR_WIDTH], int count,
                                global float* dq) {
  floatv sum[QUERY_ROWS][DQ_VECTORS];
  UNROLL for (int r = 0; r < QUERY_ROWS; ++r) UNROLL for (int j = 0; j < DQ_VECTORS; ++j) {
    sum[r][j] = vloadv(r * DQ_WIDTH + j, dq);
    PREFETCH(dq + ((QUERY_ROWS + r) * DQ_WIDTH + j) * VECTOR_WIDTH);
  }
  for (int i = 0; i < count; ++i) {
    UNROLL for (int r = 0; r < QUERY_ROWS; ++r) {
      const floatv x = ds[r * BLOCK_KEYS + i];
      UNROLL for (int j = 0; j < DQ_VECTORS; ++j) sum[r][j] = fma(x, keys[i][j], sum[r][j]);
    }
  }
  UNROLL for (int r = 0; r < QUERY_ROWS; ++r) UNROLL for (int j = 0; j < DQ_VECTORS; ++j)
    vstorev(sum[r][j], r * DQ_WIDTH + j, dq);
}

// The same where some key is not finite: 0 in ds hides it.
INLINE void query_gradient_wild(const float* ds, const floatv (*keys)[KEY_STRIDE / VECTOR_WIDTH], int count,
                                global float* dq) {
  for (int r = 0; r < QUERY_ROWS; ++r) {
    for (int j = 0; j < DQ_VECTORS; ++j) {
      floatv sum = vloadv(r * DQ_WIDTH + j, dq);
      for (int i = 0; i < count; ++i) {
        const float x = ds[r * BLOCK_KEYS + i];
        if (x != 0.0f) sum = fma((floatv)(x), keys[i][j], sum);
      }
      vstorev(sum, r * DQ_WIDTH + j, dq);
    }
  }
}

// What the keys [first_key, end_key) add to dq of a block. dq begins at the block's first row.
INLINE void add_query_gradients(const Block* block, const floatv (*keys)[KEY_STRIDE / VECTOR_WIDTH], int first_key,
                                int end_key, bool wild, global float* dq) {
  for (int d = 0; d < DQ_WIDTH; d += DQ_VECTORS) {
    for (int t = 0; t < QUERY_TILES; ++t) {
      const int begin = max(block->tiles[t].begin - first_key, 0);
      const int count = min(block->tiles[t].end, end_key) - first_key - begin;
      if (count <= 0) continue;
      const int row = t * QUERY_ROWS;
      const float* ds = (const float*)block->ds[row] + begin;
      const floatv(*from)[KEY_STRIDE / VECTOR_WIDTH] = (const floatv(*)[KEY_STRIDE / VECTOR_WIDTH]) & keys[begin][d];
      global float* to = dq + (row * DQ_WIDTH + d) * VECTOR_WIDTH;
      if (wild) {
        query_gradient_wild(ds, from, count, to);
      } else {
        query_gradient_tile(ds, from, count, to);
      }
    }
  }
}

#if POLICY
#define POLICY_OPERANDS POLICY_KERNEL_PARAMETERS,
#else
#define POLICY_OPERANDS
#endif

KERNEL void attention_backward_cpu(const global scalar* restrict q, const global scalar* restrict k,
                                         const global scalar* restrict v, const global scalar* restrict output_gradient,
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
  const Rows keys = {k + a.k_offset + batch * a.k_stride_batch + kv_head * a.k_stride_head, a.k_stride_row};
  const Rows values = {v + a.v_offset + batch * a.v_stride_batch + kv_head * a.v_stride_head, a.v_stride_row};
  dk += g.dk_offset + batch * g.dk_stride_batch + kv_head * g.dk_stride_head;
  dv += g.dv_offset + batch * g.dv_stride_batch + kv_head * g.dv_stride_head;
  const float key_factor = a.soft_cap > 0.0f ? a.scale / a.soft_cap : a.scale * M_LOG2E_F;
  Panel panels[KEY_PANELS];
  floatv key_rows[BLOCK_KEYS][KEY_STRIDE / VECTOR_WIDTH];
  Block block;

  // The splits take the blocks of keys in turns, and every other round backwards: under a causal mask, where early keys
  // have more rows, all of them get about the same work.
  for (int round = 0; round == 0 || round * splits * BLOCK_KEYS < kv_len; ++round) {
    const int first_key = (round * splits + (round % 2 == 0 ? split : splits - 1 - split)) * BLOCK_KEYS;
    const int end_key = min(first_key + BLOCK_KEYS, kv_len), panel_count = (end_key - first_key + LANES - 1) / LANES;
    bool wild = false;
    for (int p = 0; p < panel_count; ++p) {
      Panel* panel = &panels[p];
      panel->first = first_key + p * LANES;
      panel->end = min(panel->first + LANES, kv_len);
      load_panel(keys, panel->first, kv_len - 1, HEAD_DIM, key_factor, panel->key);
      load_panel(values, panel->first, kv_len - 1, VALUE_DIM, 1.0f, panel->value);
      clear_panel(panel->dk, HEAD_SPAN);
      clear_panel(panel->dv, VALUE_SPAN);
      floatv not_finite = 0.0f;
      for (int key = panel->first; key < panel->end; ++key) {
        floatv* row = key_rows[key - first_key];
        for (int d = HEAD_DIM / VECTOR_WIDTH; d < DQ_WIDTH; ++d) row[d] = 0.0f;
        not_finite += convert_row(row_of(keys, key), HEAD_DIM, row);
        not_finite += wildness(row_of(values, key), VALUE_DIM);
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
      head.queries.data = q + a.q_offset + batch * a.q_stride_batch + number * a.q_stride_head;
      head.queries.stride = a.q_stride_row;
      head.gradients.data = output_gradient + g.do_offset + batch * g.do_stride_batch + number * g.do_stride_head;
      head.gradients.stride = g.do_stride_row;
      head.lse = log_sum_exp + a.lse_offset + batch * a.lse_stride_batch + number * a.lse_stride_head;
      const size_t line = batch * a.heads + number;
      head.delta = scratch + g.delta + line * q_len;
      head.dq = scratch + g.partials +
                (split * batches * a.heads + line) * CPU_PARTIAL_ROWS((size_t)q_len) * DQ_WIDTH * VECTOR_WIDTH;
      head.ds = g.write_ds ? scratch + g.ds + line * q_len * kv_len : 0;
#if POLICY
      head.policies = &policies;
      head.policy = policy_head(&policies, batch, number);
#endif

      for (int first = round == 0 ? 0 : first_block; first < end_row; first += BLOCK_Q) {
        block.first = first;
        block.rows = min(BLOCK_Q, q_len - first);
        global float* dq = head.dq + (size_t)first * DQ_WIDTH * VECTOR_WIDTH;
        if (round == 0)
          for (int i = 0; i < block.rows * DQ_WIDTH; ++i) vstorev((floatv)(0.0f), i, dq);
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
          const global scalar* ahead[ROWS_AHEAD];
          for (int i = at.tile_begin; i < at.tile_end; i += QUERY_ROWS) {
            rows_ahead(head.queries, block.first + BLOCK_Q + i, p, q_len - 1, ahead);
            weigh_tile(&block, i, panel, &at, ahead, &head);
          }
          for (int i = at.tile_begin; i < at.tile_end; i += QUERY_ROWS) {
            rows_ahead(head.gradients, block.first + BLOCK_Q + i, p, q_len - 1, ahead);
            differentiate_tile(&block, i, panel, &at, ahead, &head);
          }
          add_key_gradients(&block, panel, &at);
        }
        add_query_gradients(&block, key_rows, first_key, end_key, wild, dq);
      }
    }

    for (int p = 0; p < panel_count; ++p) {
      for (int j = 0; j < VECTORS; ++j) {
        const int key = panels[p].first + j * VECTOR_WIDTH;
        store_panel(panels[p].dk, j, (floatv)(a.scale), HEAD_DIM, dk, g.dk_stride_row, key, kv_len - 1);
        store_panel(panels[p].dv, j, (floatv)(1.0f), VALUE_DIM, dv, g.dv_stride_row, key, kv_len - 1);
      }
    }
  }
}
