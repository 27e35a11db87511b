// SPDX-License-Identifier: Apache-2.0
// What     o[i] = sum_j p[i,j] v[j]; p[i,:] = softmax of score(q[i] . k[j]) over the visible j; lse[i] = ln sum exp.
// Who      A work-group is one item. It owns BLOCK_Q rows of one (batch, head): PANELS panels with a row in every lane.
// Memory   k and v once per BLOCK_Q rows, q once; CPU_PRIVATE_BYTES on the stack, which should fit the second cache.
// Numerics Float, keys in order; softmax in base 2 over a whole number per row, so moving it is exact; one rounding.
// Assumes  CPU_VALID, contiguous features, lengths below 2^30, a compiler that does not reassociate (no -cl flags).
//
//   Maxima, sums and masks stay in their lanes. Keys and values are broadcast from row-major tiles of floats; only q
//   and o are transposed, once each.
//                     LANES queries                                              LANES queries
//                  +-----------------+                                        +-----------------+
//       KEY_ROWS   |  sum over d of  |  -> mask, exp2 ->        VALUE_COLUMNS |  sum over j of  |
//         keys     |  k[j,d] q[d,i]  |  weights p[j,i]            features    |  v[j,d] p[j,i]  |
//                  +-----------------+                                        +-----------------+
//         KEY_ROWS * VECTORS accumulators                    VALUE_COLUMNS * VECTORS accumulators
//
//   The panels take turns at each block of BLOCK_K keys. The first one that needs a key converts its row to float.
//   Blocks begin at multiples of BLOCK_K, and hidden keys add exact zeros: a row's bits do not depend on other rows. A
//   value that is not finite reaches the rows that give its key a weight.
//
//   With POLICY=1 the table of rows says which keys a row may see, and policies change scores and weights. Tiles that
//   all rows see, where nothing is added, go the same way as with POLICY=0.
#include "attention/cpu_rows.clh"
#if POLICY
#define LANES_ARE_ROWS 1
#include "attention/cpu_policy.clh"
#endif
#include "operations/attention/args.h"
#include "operations/attention/cpu.h"

// LANES query rows. first and end are the keys that each may see, none in lanes past the last row.
typedef struct {
  floatv query[HEAD_SPAN][VECTORS], output[VALUE_SPAN][VECTORS];
  // The softmax so far: weights are exp2(score - shift), total is their sum. Shifts are whole numbers.
  floatv shift[VECTORS], total[VECTORS];
  intv first[VECTORS], end[VECTORS];
#if POLICY
  floatv top[VECTORS];  // the largest score
#endif
  int row;                     // of lane 0
  int begin, stop;             // keys that some row may see: [begin, stop)
  int every_begin, every_end;  // keys that every row may see
} Panel;

// The (batch, head) of an item.
typedef struct {
  const struct AttentionArgs* args;
#if POLICY
  const Policies* policies;
  HeadPolicy policy;
#endif
  int last;  // row of the item
} Item;

// A panel and a block of keys. Keys count from the block's first.
typedef struct {
  int block;                   // its first key
  int begin, end;              // keys that some row of the panel may see: [begin, end)
  int tile_begin, tile_end;    // the same, grown to whole tiles
  int every_begin, every_end;  // keys that every row of the panel may see
  bool special;                // no tile of the block goes the short way
  bool hides;                  // policies hide single keys
} Meeting;

// Which keys the rows of a panel may see.
INLINE void find_keys(Panel* panel, const Item* item) {
  panel->begin = panel->every_begin = panel->stop = 0;
  panel->every_end = item->args->kv_len;
  for (int j = 0; j < VECTORS; ++j) {
    const int row = panel->row + j * VECTOR_WIDTH;
#if POLICY
    const RowPolicies rows = policy_rows(item->policies, &item->policy, row, item->last);
    panel->first[j] = rows.first;
    panel->end[j] = rows.end;
#else
    const intv rows = row + LANE_INDEX;
    panel->first[j] = max(rows + item->args->band_low, (intv)(0));
    panel->end[j] = min(rows + item->args->band_high + 1, (intv)(item->args->kv_len));
    panel->end[j] = rows > item->last ? panel->first[j] : panel->end[j];
#endif
    int first[VECTOR_WIDTH], end[VECTOR_WIDTH];
    vstorev(panel->first[j], 0, first);
    vstorev(panel->end[j], 0, end);
    for (int i = 0; i < VECTOR_WIDTH && row + i <= item->last; ++i) {
      panel->every_begin = max(panel->every_begin, first[i]);
      panel->every_end = min(panel->every_end, end[i]);
      if (first[i] >= end[i]) continue;
      panel->begin = panel->stop == 0 ? first[i] : min(panel->begin, first[i]);
      panel->stop = max(panel->stop, end[i]);
    }
  }
}

INLINE Meeting meeting(const Panel* panel, int block, const Item* item) {
  Meeting at;
  at.block = block;
  at.begin = max(0, panel->begin - block);
  at.end = min(BLOCK_K, panel->stop - block);
  at.special = item->args->soft_cap > 0.0f;
  at.hides = false;
#if POLICY
  const Policies* policies = item->policies;
  at.hides = (RULE(features) & POLICY_HIDES) != 0u;
  if ((RULE(features) & POLICY_MAP) != 0u && at.begin < at.end) {
    const uint tile = policy_map(policies, &item->policy, panel->row / LANES, block / BLOCK_K);
    if (tile == MAP_NOTHING) at.end = at.begin;
    if (tile == MAP_ALL) at.hides = false;
  }
  at.special |= at.hides || (RULE(features) & POLICY_ADDS) != 0u;
#endif
  at.tile_begin = at.begin / KEY_ROWS * KEY_ROWS;
  at.tile_end = (at.end + KEY_ROWS - 1) / KEY_ROWS * KEY_ROWS;
  at.every_begin = panel->every_begin - block;
  at.every_end = panel->every_end - block;
  return at;
}

// What is added to the scores of the keys [begin, end), soft cap and mask, in place, and the maxima: the way of the few
// tiles that need any of them, and of whole blocks that are special.
INLINE void finish_scores(floatv (*scores)[VECTORS], int begin, int end, const Panel* panel, const Meeting* at,
                          const Item* item, floatv* top) {
  const float cap = item->args->soft_cap;
  for (int j = 0; j < VECTORS; ++j) {
#if POLICY
    const RowPolicies rows = policy_rows(item->policies, &item->policy, panel->row + j * VECTOR_WIDTH, item->last);
    intv masks[VECTOR_WIDTH];
    floatv biases[VECTOR_WIDTH];
    for (int i = 0; i < VECTOR_WIDTH; ++i) masks[i] = 1;
    for (int i = 0; i < VECTOR_WIDTH; ++i) biases[i] = 0.0f;
#endif
    for (int i = begin; i < end; ++i) {
      const int number = at->block + i;
      intv seen = number >= panel->first[j] && number < panel->end[j];
      floatv x = scores[i][j];
#if POLICY
      const int n = (i - begin) % VECTOR_WIDTH;
      if (n == 0) policy_square(item->policies, &item->policy, &rows, number, masks, biases);
      floatv after;
      const floatv before = policy_addends(item->policies, &item->policy, &rows, number, seen, biases[n], &after);
      x = fma(before, (floatv)(cap > 0.0f ? 1.0f / cap : M_LOG2E_F), x);
      if (cap > 0.0f) x = tanh_vector(x) * (cap * M_LOG2E_F);
      x = fma(after, (floatv)(M_LOG2E_F), x);
      if (at->hides) seen = policy_sees(item->policies, &item->policy, &rows, number, seen, masks[n]);
#else
      if (cap > 0.0f) x = tanh_vector(x) * (cap * M_LOG2E_F);
#endif
      x = seen ? x : (floatv)(-INFINITY);
      scores[i][j] = x;
      top[j] = larger(top[j], x);
    }
  }
}

// Scores of the panel with the KEY_ROWS keys from `key` on, and their maxima, unless the block is special. `ahead` are
// rows that the next block will convert: the second cache is asked for them here, line by line, where waiting for them
// costs nothing.
INLINE void score_tile(const Panel* panel, const float* keys, const global scalar** ahead, int key, const Meeting* at,
                       const Item* item, floatv (*scores)[VECTORS], floatv* top) {
  floatv sum[KEY_ROWS][VECTORS];
  UNROLL for (int r = 0; r < KEY_ROWS; ++r) UNROLL for (int j = 0; j < VECTORS; ++j) sum[r][j] = 0.0f;
  for (int d = 0; d < HEAD_DIM; ++d) {
    UNROLL for (int n = 0; n < 2 * ROWS_AHEAD; ++n) PREFETCH_FAR(ahead[n] + d);
    UNROLL for (int r = 0; r < KEY_ROWS; ++r) {
      const floatv k = keys[r * KEY_STRIDE + d];
      UNROLL for (int j = 0; j < VECTORS; ++j) sum[r][j] = fma(k, panel->query[d][j], sum[r][j]);
    }
  }
  UNROLL for (int r = 0; r < KEY_ROWS; ++r) UNROLL for (int j = 0; j < VECTORS; ++j) scores[key + r][j] = sum[r][j];
  if (at->special) return;
  if (key < at->every_begin || key + KEY_ROWS > at->every_end) {
    finish_scores(scores, key, key + KEY_ROWS, panel, at, item, top);
    return;
  }
  UNROLL for (int r = 0; r < KEY_ROWS; ++r) UNROLL for (int j = 0; j < VECTORS; ++j) top[j] = larger(top[j], sum[r][j]);
}

// What exp2_from() needs in a block, and the factor of everything that was summed up before it.
typedef struct {
  floatv origin[VECTORS], lowest[VECTORS], decay[VECTORS];
} Exponents;

// Raises the shifts to the maxima of a block's scores. Scores so far out that whole numbers are not exact any more are
// brought near 0 instead.
INLINE void raise_shifts(Panel* panel, const floatv* top, floatv (*scores)[VECTORS], const Meeting* at,
                         Exponents* use) {
  UNROLL for (int j = 0; j < VECTORS; ++j) {
    const floatv before = panel->shift[j], after = larger(before, rint(top[j]));
    floatv shift = after == -INFINITY ? (floatv)(0.0f) : after;  // where no key was seen yet
    use->decay[j] = exp2_from(larger((floatv)(-127.0f), before - shift), (floatv)(EXP2_ORIGIN));
    panel->shift[j] = after;
    const intv far = fabs(shift) > 0x1p21f;
    if (any(far)) {
      const floatv nearer = far ? shift : (floatv)(0.0f);
      for (int i = at->tile_begin; i < at->tile_end; ++i) scores[i][j] -= nearer;
      shift -= nearer;
    }
    use->origin[j] = EXP2_ORIGIN - shift;
    use->lowest[j] = shift - 127.0f;
#if POLICY
    panel->top[j] = larger(panel->top[j], top[j]);
#endif
  }
}

// output = output * decay + v^T p for the VALUE_COLUMNS features from `values` on.
INLINE void accumulate_tile(const floatv (*weights)[VECTORS], const float* values, int keys, const floatv* decay,
                            floatv (*output)[VECTORS]) {
  floatv sum[VALUE_COLUMNS][VECTORS];
  UNROLL for (int c = 0; c < VALUE_COLUMNS; ++c) {
    UNROLL for (int j = 0; j < VECTORS; ++j) {
      sum[c][j] = output[c][j] * decay[j];
      PREFETCH(&output[VALUE_COLUMNS + c][j]);
    }
  }
  for (int i = 0; i < keys; ++i) {
    UNROLL for (int c = 0; c < VALUE_COLUMNS; ++c) {
      const floatv v = values[i * VALUE_STRIDE + c];
      UNROLL for (int j = 0; j < VECTORS; ++j) sum[c][j] = fma(v, weights[i][j], sum[c][j]);
    }
  }
  UNROLL for (int c = 0; c < VALUE_COLUMNS; ++c) UNROLL for (int j = 0; j < VECTORS; ++j) output[c][j] = sum[c][j];
}

// The same where some value is not finite: a weight of 0 hides it.
INLINE void accumulate_wild(const floatv (*weights)[VECTORS], const float* values, int keys, const floatv* decay,
                            floatv (*output)[VECTORS]) {
  for (int d = 0; d < VALUE_DIM; ++d) {
    for (int j = 0; j < VECTORS; ++j) {
      floatv sum = output[d][j] * decay[j];
      for (int i = 0; i < keys; ++i) {
        const floatv w = weights[i][j];
        sum = w == 0.0f ? sum : fma((floatv)(values[i * VALUE_STRIDE + d]), w, sum);
      }
      output[d][j] = sum;
    }
  }
}

#if POLICY
INLINE void drop_weights(floatv (*weights)[VECTORS], const Panel* panel, const Meeting* at, const Item* item) {
  for (int j = 0; j < VECTORS; ++j) {
    RowPolicies rows;
    rows.row = panel->row + j * VECTOR_WIDTH;
    for (int i = at->begin; i < at->end; ++i)
      weights[i][j] *= policy_keep(item->policies, &item->policy, &rows, at->block + i);
  }
}
#endif

// Output and log-sum-exp of vector j of a panel.
INLINE void store_rows(Panel* panel, int j, const Item* item, global scalar* output, global float* log_sum_exp) {
  const int row = panel->row + j * VECTOR_WIDTH;
  floatv shift = panel->shift[j], total = panel->total[j], factor;
#if POLICY
  const Policies* policies = item->policies;
  floatv top = panel->top[j];
  const floatv decay = policy_sinks(policies, get_group_id(1), &shift, &total, &top);
  factor = total == 0.0f ? (floatv)(0.0f) : decay / total;  // of rows that see no key: 0
  if ((RULE(features) & POLICY_UNNORMALIZED) != 0u)
    factor = total == 0.0f ? (floatv)(0.0f) : exp2(panel->shift[j] - top);
#else
  factor = total == 0.0f ? (floatv)(0.0f) : 1.0f / total;  // of rows that see no key: 0
#endif
  store_panel(panel->output, j, factor, VALUE_DIM, output, item->args->o_stride_row, row, item->last);
  if (!item->args->write_lse) return;
  const floatv lse = fma(shift, (floatv)(M_LN2_F), log(total));
  float lanes[VECTOR_WIDTH];
  vstorev(total == 0.0f ? (floatv)(-INFINITY) : lse, 0, lanes);
  for (int i = 0; i < VECTOR_WIDTH && row + i <= item->last; ++i) log_sum_exp[row + i] = lanes[i];
}

#if POLICY
#define CALL POLICY_KERNEL_PARAMETERS, const struct AttentionCall call
#else
#define CALL const struct AttentionArgs call
#endif

KERNEL void attention_cpu(const global scalar* restrict q, const global scalar* restrict k,
                                const global scalar* restrict v, global scalar* restrict output,
                                global float* restrict log_sum_exp, global float* restrict scratch,
                                CALL) {
#if POLICY
  const struct AttentionArgs a = call.core;
  const Policies policies = MAKE_POLICIES(call, scratch);
#else
  const struct AttentionArgs a = call;
#endif
  const int head = get_group_id(1), kv_head = head / a.group;
  const size_t batch = get_group_id(2);
  const Rows queries = {q + a.q_offset + batch * a.q_stride_batch + (size_t)head * a.q_stride_head, a.q_stride_row};
  const Rows keys = {k + a.k_offset + batch * a.k_stride_batch + (size_t)kv_head * a.k_stride_head, a.k_stride_row};
  const Rows values = {v + a.v_offset + batch * a.v_stride_batch + (size_t)kv_head * a.v_stride_head, a.v_stride_row};
  output += a.o_offset + batch * a.o_stride_batch + (size_t)head * a.o_stride_head;
  if (a.write_lse) log_sum_exp += a.lse_offset + batch * a.lse_stride_batch + (size_t)head * a.lse_stride_head;

  Panel panel_list[PANELS];
  floatv key_tile[BLOCK_K][KEY_STRIDE / VECTOR_WIDTH], value_tile[BLOCK_K][VALUE_STRIDE / VECTOR_WIDTH];
  floatv weights[BLOCK_K][VECTORS];  // scores at first

  const int first = get_group_id(0) * BLOCK_Q;
  Item item;
  item.args = &a;
  item.last = min((int)a.q_len, first + BLOCK_Q) - 1;
#if POLICY
  item.policies = &policies;
  item.policy = policy_head(&policies, batch, head);
#endif
  const int panels = (item.last - first) / LANES + 1;
  const float factor = a.soft_cap > 0.0f ? a.scale / a.soft_cap : a.scale * M_LOG2E_F;
  int begin = a.kv_len, end = 0;
  for (int p = 0; p < panels; ++p) {
    Panel* panel = &panel_list[p];
    panel->row = first + p * LANES;
    find_keys(panel, &item);
    if (panel->begin < panel->stop) begin = min(begin, panel->begin);
    end = max(end, panel->stop);
    load_panel(queries, panel->row, item.last, HEAD_DIM, factor, panel->query);
    clear_panel(panel->output, VALUE_SPAN);
    UNROLL for (int j = 0; j < VECTORS; ++j) {
      panel->shift[j] = -INFINITY;
      panel->total[j] = 0.0f;
#if POLICY
      panel->top[j] = -INFINITY;
#endif
    }
  }

  for (int block = begin / BLOCK_K * BLOCK_K; block < end; block += BLOCK_K) {
    int ready = BLOCK_K;  // rows before are converted, or no panel will need them
    for (int p = 0; p < panels; ++p) {
      const Meeting at = meeting(&panel_list[p], block, &item);
      if (at.begin < at.end) ready = min(ready, at.tile_begin);
    }
    int keys_ready = ready, values_ready = ready;
    floatv wild = 0.0f;  // NaN if a value of the block is not finite
    for (int p = 0; p < panels; ++p) {
      Panel* panel = &panel_list[p];
      const Meeting at = meeting(panel, block, &item);
      if (at.begin >= at.end) continue;

      floatv top[VECTORS], sum[VECTORS];
      UNROLL for (int j = 0; j < VECTORS; ++j) top[j] = -INFINITY;
      for (int key = at.tile_begin; key < at.tile_end; key += KEY_ROWS) {
        // Rows past the end repeat the last one: nothing may be read that no row sees. Their scores are masked.
        for (; keys_ready < key + KEY_ROWS; ++keys_ready)
          convert_row(row_of(keys, min(block + keys_ready, end - 1)), HEAD_DIM, key_tile[keys_ready]);
        const global scalar* ahead[2 * ROWS_AHEAD];
        UNROLL for (int n = 0; n < ROWS_AHEAD; ++n) {
          const int row = min(block + BLOCK_K + key + min(p * ROWS_AHEAD + n, KEY_ROWS - 1), end - 1);
          ahead[2 * n] = row_of(keys, row);
          ahead[2 * n + 1] = row_of(values, row);
        }
        score_tile(panel, (const float*)key_tile[key], ahead, key, &at, &item, weights, top);
      }
      if (at.special) finish_scores(weights, at.tile_begin, at.tile_end, panel, &at, &item, top);

      Exponents use;
      raise_shifts(panel, top, weights, &at, &use);
      UNROLL for (int j = 0; j < VECTORS; ++j) sum[j] = 0.0f;
      for (int i = at.tile_begin; i < at.tile_end; ++i) {
        UNROLL for (int j = 0; j < VECTORS; ++j) {
          const floatv weight = exp2_from(larger(use.lowest[j], weights[i][j]), use.origin[j]);
          weights[i][j] = weight;
          sum[j] += weight;
        }
        for (; values_ready <= i; ++values_ready)
          wild += convert_row(row_of(values, min(block + values_ready, end - 1)), VALUE_DIM, value_tile[values_ready]);
      }
      UNROLL for (int j = 0; j < VECTORS; ++j) panel->total[j] = fma(panel->total[j], use.decay[j], sum[j]);
#if POLICY
      if ((policies.policy->features & POLICY_DROPOUT) != 0u) drop_weights(weights, panel, &at, &item);
#endif

      const float* block_values = (const float*)value_tile[at.begin];
      if (any(wild != wild)) {
        accumulate_wild(&weights[at.begin], block_values, at.end - at.begin, use.decay, panel->output);
        continue;
      }
      for (int d = 0; d < VALUE_DIM; d += VALUE_COLUMNS)
        accumulate_tile(&weights[at.begin], block_values + d, at.end - at.begin, use.decay, &panel->output[d]);
    }
  }

  for (int p = 0; p < panels; ++p)
    for (int j = 0; j < VECTORS; ++j) store_rows(&panel_list[p], j, &item, output, log_sum_exp);
}
