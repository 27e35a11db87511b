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
//   A value that is not finite reaches all rows of a panel if one of them sees its key, and none otherwise.
#include "attention/cpu_rows.clh"
#include "operations/flash_attention/args.h"
#include "operations/flash_attention/cpu.h"

// A panel and a block of keys. Keys count from the block's first.
typedef struct {
  int first_row;              // of the panel
  int block, count;           // the block's first key, and its number of keys
  int begin, end;             // keys that some row of the panel sees: [begin, end)
  int tile_begin, tile_end;   // the same, grown to whole tiles
  int every_begin, every_end; // keys that every row of the panel sees
} Meeting;

INLINE Meeting meeting(int first_row, int last_row, int block, int count, int band_low, int band_high) {
  Meeting at;
  at.first_row = first_row;
  at.block = block;
  at.count = count;
  at.begin = max(0, first_row + band_low - block);
  at.end = min(count, last_row + 1 + band_high - block);
  at.tile_begin = at.begin / KEY_ROWS * KEY_ROWS;
  at.tile_end = (at.end + KEY_ROWS - 1) / KEY_ROWS * KEY_ROWS;
  at.every_begin = last_row + band_low - block;
  at.every_end = min(count, first_row + 1 + band_high - block);
  return at;
}

// Soft cap and mask of a tile of scores, in place: the way of the few tiles that need either.
INLINE void finish_scores(floatv (*scores)[VECTORS], int key, Meeting at, const struct FlashAttentionArgs* a) {
  for (int r = 0; r < KEY_ROWS; ++r) {
    const int distance = at.block + key + r - at.first_row;
    UNROLL for (int j = 0; j < VECTORS; ++j) {
      floatv x = scores[r][j];
      if (a->soft_cap > 0.0f) x = tanh_vector(x) * (a->soft_cap * M_LOG2E_F);
      const intv from_row = distance - j * VECTOR_WIDTH - LANE_INDEX;
      x = from_row < a->band_low || from_row > a->band_high ? (floatv)(-INFINITY) : x;
      scores[r][j] = key + r < at.count ? x : (floatv)(-INFINITY);
    }
  }
}

// Scores of the panel with the KEY_ROWS keys from `key` on, and their maxima. `ahead` are rows that the next block will
// convert: the second cache is asked for them here, line by line, where waiting for them costs nothing.
INLINE void score_tile(const floatv (*queries)[VECTORS], const float* keys, const global scalar** ahead, int key,
                       Meeting at, const struct FlashAttentionArgs* a, floatv (*scores)[VECTORS], floatv* top) {
  floatv sum[KEY_ROWS][VECTORS];
  UNROLL for (int r = 0; r < KEY_ROWS; ++r) UNROLL for (int j = 0; j < VECTORS; ++j) sum[r][j] = 0.0f;
  for (int d = 0; d < HEAD_DIM; ++d) {
    UNROLL for (int n = 0; n < 2 * ROWS_AHEAD; ++n) PREFETCH_FAR(ahead[n] + d);
    UNROLL for (int r = 0; r < KEY_ROWS; ++r) {
      const floatv k = keys[r * KEY_STRIDE + d];
      UNROLL for (int j = 0; j < VECTORS; ++j) sum[r][j] = fma(k, queries[d][j], sum[r][j]);
    }
  }
  UNROLL for (int r = 0; r < KEY_ROWS; ++r) UNROLL for (int j = 0; j < VECTORS; ++j) scores[r][j] = sum[r][j];
  if (key < at.every_begin || key + KEY_ROWS > at.every_end || a->soft_cap > 0.0f) {
    finish_scores(scores, key, at, a);
    UNROLL for (int r = 0; r < KEY_ROWS; ++r) UNROLL for (int j = 0; j < VECTORS; ++j) sum[r][j] = scores[r][j];
  }
  UNROLL for (int r = 0; r < KEY_ROWS; ++r) UNROLL for (int j = 0; j < VECTORS; ++j) top[j] = larger(top[j], sum[r][j]);
}

// The softmax of a panel so far: weights are exp2(score - shift), total is their sum. Shifts are whole numbers.
typedef struct {
  floatv shift[VECTORS], total[VECTORS];
} Softmax;

// What exp2_from() needs in a block, and the factor of everything that was summed up before it.
typedef struct {
  floatv origin[VECTORS], lowest[VECTORS], decay[VECTORS];
} Exponents;

// Raises the shifts to the maxima of a block's scores. Scores so far out that whole numbers are not exact any more are
// brought near 0 instead.
INLINE void raise_shifts(Softmax* softmax, const floatv* top, floatv (*scores)[VECTORS], Meeting at, Exponents* use) {
  UNROLL for (int j = 0; j < VECTORS; ++j) {
    const floatv before = softmax->shift[j], after = larger(before, rint(top[j]));
    floatv shift = after == -INFINITY ? (floatv)(0.0f) : after;  // where no key was seen yet
    use->decay[j] = exp2_from(larger((floatv)(-127.0f), before - shift), (floatv)(EXP2_ORIGIN));
    softmax->shift[j] = after;
    if (any(fabs(shift) > 0x1p21f)) {
      for (int i = at.tile_begin; i < at.tile_end; ++i) scores[i][j] -= shift;
      shift = 0.0f;
    }
    use->origin[j] = EXP2_ORIGIN - shift;
    use->lowest[j] = shift - 127.0f;
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

KERNEL void flash_attention_cpu(const global scalar* restrict q, const global scalar* restrict k,
                                const global scalar* restrict v, global scalar* restrict output,
                                global float* restrict log_sum_exp, const struct FlashAttentionArgs a) {
  const int head = get_group_id(1), kv_head = head / a.group;
  const size_t batch = get_group_id(2);
  const Rows queries = {q + a.q_offset + batch * a.q_stride_batch + (size_t)head * a.q_stride_head, a.q_stride_row};
  const Rows keys = {k + a.k_offset + batch * a.k_stride_batch + (size_t)kv_head * a.k_stride_head, a.k_stride_row};
  const Rows values = {v + a.v_offset + batch * a.v_stride_batch + (size_t)kv_head * a.v_stride_head, a.v_stride_row};
  output += a.o_offset + batch * a.o_stride_batch + (size_t)head * a.o_stride_head;
  if (a.write_lse) log_sum_exp += a.lse_offset + batch * a.lse_stride_batch + (size_t)head * a.lse_stride_head;

  floatv query_panels[PANELS][HEAD_SPAN][VECTORS], output_panels[PANELS][VALUE_SPAN][VECTORS];
  floatv key_tile[BLOCK_K][KEY_STRIDE / VECTOR_WIDTH], value_tile[BLOCK_K][VALUE_STRIDE / VECTOR_WIDTH];
  floatv weights[BLOCK_K][VECTORS];  // scores at first
  Softmax softmax[PANELS];

  const int first = get_group_id(0) * BLOCK_Q, last = min((int)a.q_len, first + BLOCK_Q) - 1;
  const int panels = (last - first) / LANES + 1;
  const float factor = a.soft_cap > 0.0f ? a.scale / a.soft_cap : a.scale * M_LOG2E_F;
  for (int p = 0; p < panels; ++p) {
    load_panel(queries, first + p * LANES, last, HEAD_DIM, factor, query_panels[p]);
    clear_panel(output_panels[p], VALUE_SPAN);
    UNROLL for (int j = 0; j < VECTORS; ++j) softmax[p].shift[j] = -INFINITY;
    UNROLL for (int j = 0; j < VECTORS; ++j) softmax[p].total[j] = 0.0f;
  }

  const int begin = max(0, first + a.band_low), end = min((int)a.kv_len, last + 1 + a.band_high);
  for (int block = begin; block < end; block += BLOCK_K) {
    int keys_ready = -1, values_ready = -1;  // rows before are converted, or no panel will need them; -1: none yet
    for (int p = 0; p < panels; ++p) {
      const int first_row = first + p * LANES, last_row = min(first_row + LANES - 1, last);
      const Meeting at = meeting(first_row, last_row, block, min(BLOCK_K, end - block), a.band_low, a.band_high);
      if (at.begin >= at.end) continue;
      if (keys_ready < 0) keys_ready = values_ready = at.tile_begin;

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
        score_tile(query_panels[p], (const float*)key_tile[key], ahead, key, at, &a, &weights[key], top);
      }

      Exponents use;
      raise_shifts(&softmax[p], top, weights, at, &use);
      UNROLL for (int j = 0; j < VECTORS; ++j) sum[j] = 0.0f;
      for (int i = at.tile_begin; i < at.tile_end; ++i) {
        UNROLL for (int j = 0; j < VECTORS; ++j) {
          const floatv weight = exp2_from(larger(use.lowest[j], weights[i][j]), use.origin[j]);
          weights[i][j] = weight;
          sum[j] += weight;
        }
        if (i >= values_ready) {
          convert_row(row_of(values, min(block + i, end - 1)), VALUE_DIM, value_tile[i]);
          values_ready = i + 1;
        }
      }
      UNROLL for (int j = 0; j < VECTORS; ++j)
        softmax[p].total[j] = fma(softmax[p].total[j], use.decay[j], sum[j]);

      // Only keys that some row sees: beyond them weights are 0, but 0 * NaN is NaN.
      for (int d = 0; d < VALUE_DIM; d += VALUE_COLUMNS)
        accumulate_tile(&weights[at.begin], (const float*)value_tile[at.begin] + d, at.end - at.begin, use.decay,
                        &output_panels[p][d]);
    }
  }

  for (int row = first, p = 0; p < panels; ++p) {
    for (int j = 0; j < VECTORS; ++j, row += VECTOR_WIDTH) {
      const floatv total = softmax[p].total[j];
      const floatv factors = total == 0.0f ? (floatv)(0.0f) : 1.0f / total;  // of rows that see no key: 0
      store_panel(output_panels[p], j, factors, VALUE_DIM, output, a.o_stride_row, row, last);
      if (!a.write_lse) continue;
      const floatv lse = fma(softmax[p].shift[j], (floatv)(M_LN2_F), log(total));
      float lanes[VECTOR_WIDTH];
      vstorev(total == 0.0f ? (floatv)(-INFINITY) : lse, 0, lanes);
      for (int i = 0; i < VECTOR_WIDTH && row + i <= last; ++i) log_sum_exp[row + i] = lanes[i];
    }
  }
}
