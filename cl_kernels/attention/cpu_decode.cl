// SPDX-License-Identifier: Apache-2.0
// What     Attention of few query rows per kv head over many keys: o and lse, or the partial results of a split.
// Who      A work-group is one item: split x, HEADS kv heads from y * HEADS on, batch z, all rows of their query heads.
// Memory   k and v once per ROWS rows of a kv head, asked for AHEAD bytes ahead; DECODE_PRIVATE_BYTES on the stack.
// Numerics Float, blocks of keys in order; base-2 softmax over the running maximum; one rounding.
// Assumes  DECODE_VALID, HEADS divides the kv heads, a grid of exactly a.splits x kv heads / HEADS x batch, contiguous
//          features, lengths below 2^30, a compiler that does not reassociate (no -cl flags).
//
//   Features lie in the lanes. Row r of a kv head is query row r / group of its query head r % group, so a key is read
//   once for all of them. A tile of scores is VECTOR_WIDTH dot products of TILE_HEADS heads, whose lanes are summed up
//   in one go.
//
//                  TILE_KEYS keys                                   TILE_COLUMNS vectors of features
//              +--------------------+                                   +--------------------+
//   TILE_ROWS  | sum over d of      |  -> mask, exp2 ->      TILE_ROWS  | sum over j of      |
//     rows     | q[i,d] k[j,d]      |  weights p[i,j]          rows     | p[i,j] v[j,d]      |
//              +--------------------+                                   +--------------------+
//
//   The keys from the first that some row sees to the last are cut into blocks, and these into splits: no result
//   depends on the batch, the tensor's length or HEADS. A block is all scores, then all weights, then all values. The
//   heads of an item take turns of TURN keys at it, because memory holds the heads of a key side by side, and what comes
//   in the order of memory comes fastest: little asking ahead is needed, and much of it is harmful (EPYC, PoCL 3.1).
//   A value that is not finite reaches the rows that give its key a weight.
#include "lib/vector_math.clh"
#include "operations/attention/cpu_decode.h"
#include "attention/policy.clh"
#include "operations/attention/combine.h"

// The rows of HEADS kv heads of one batch.
typedef struct {
  const global scalar* data;
  uint stride_head, stride;
} Rows;

INLINE const global scalar* row_of(Rows rows, uint head, int row) {
  return rows.data + (size_t)head * rows.stride_head + (size_t)row * rows.stride;
}

// Keys [begin, end).
typedef struct {
  int begin, end;
} Interval;

INLINE Interval common(Interval a, int begin, int end) {
  const Interval both = {max(a.begin, begin), min(a.end, end)};
  return both;
}

INLINE Interval hull(Interval a, Interval b) {
  const Interval both = {min(a.begin, b.begin), max(a.end, b.end)};
  return b.begin >= b.end ? a : a.begin >= a.end ? b : both;
}

// What an item works on: HEADS kv heads from kv_head on, this share of their keys.
typedef struct {
  const struct AttentionArgs* args;
#if POLICY
  const Policies* policies;
#endif
  uint batch, kv_head, split;
} Work;

INLINE Interval interval_of(const Work* work, uint row) {
#if POLICY
  const Policies* policies = work->policies;
  const int4 entry = ROW_ENTRY(RULE(rows) + work->batch * CORE(q_len) + row);
  const Interval sees = {entry.x, entry.y};
#else
  const struct AttentionArgs* a = work->args;
  const Interval sees = {max(0, (int)row + a->band_low), min((int)a->kv_len, (int)row + 1 + a->band_high)};
#endif
  return sees;
}

// The keys of this split: whole blocks, but for the last.
INLINE Interval share_of(const Work* work) {
  Interval every = {0, 0};
  for (uint row = 0; row < work->args->q_len; ++row) every = hull(every, interval_of(work, row));
  const uint splits = work->args->splits;
  const ulong blocks = (every.end - every.begin + BLOCK_K - 1) / BLOCK_K;
  return common(every, every.begin + (int)(blocks * work->split / splits) * BLOCK_K,
                every.begin + (int)(blocks * (work->split + 1) / splits) * BLOCK_K);
}

// Scores that policy.h makes, key by key. Others need a factor and a cap.
INLINE bool scored_by_key(const Work* work) {
#if POLICY
  return (work->policies->policy->features & (POLICY_HIDES | POLICY_ADDS)) != 0;
#else
  return false;
#endif
}

// A kv head's rows of a pass: the softmax so far.
typedef struct {
  float scores[ROWS][BLOCK_K];  // of a block; later its weights
  float top[ROWS];     // the largest score
  floatv total[ROWS];  // the sum of the weights, spread over lanes
  floatv decay[ROWS];  // factor of what was summed up before this block
  floatv queries[ROWS][HEAD_VECTORS], sums[ROWS][VALUE_SPAN];
#if POLICY
  RowPolicy policies[ROWS];
#endif
} Head;

// Rows that go through a share of the keys together.
typedef struct {
  int rows;             // of each head, in whole tiles; rows past the last one repeat it
  Interval all, every;  // keys of the share that some row may see, and that every row may see
  Interval sees[ROWS];  // and that each of them may see
  Head heads[HEADS];
} Pass;

// The keys of a block that some row may see; they count from the block's first.
typedef struct {
  int first, begin, end;
} Block;

// The first feature of vector n of a row.
INLINE int feature_of(int n, int features) { return max(0, min(n * VECTOR_WIDTH, features - VECTOR_WIDTH)); }

INLINE floatv load_features(const global scalar* row, int n, int features) {
  return load_part(row + feature_of(n, features), features);
}

// The same with zeros for what the vectors before it hold already.
INLINE floatv load_new_features(const global scalar* row, int n, int features) {
  const floatv x = load_features(row, n, features);
  return LANE_INDEX < n * VECTOR_WIDTH - feature_of(n, features) ? (floatv)(0.0f) : x;
}

// Lane i of the result is the sum of the lanes of x[i]. Pairs of lanes move as one word, or compilers make horizontal
// adds of it, which are slow.
INLINE floatv sum_lanes(floatv* x) {
  UNROLL for (int left = VECTOR_WIDTH / 2; left > 1; left /= 2) {
    UNROLL for (int i = 0; i < left; ++i) {
      const pairv a = as_pairv(x[2 * i]), b = as_pairv(x[2 * i + 1]);
      x[i] = as_floatv((pairv)(a.even, b.even)) + as_floatv((pairv)(a.odd, b.odd));
    }
  }
  return (floatv)(x[0].even, x[1].even) + (floatv)(x[0].odd, x[1].odd);
}

// Asks the second cache for the line in which vector n of a row begins, if no vector before it did.
INLINE void ask_for(const global scalar* row, int n, int features) {
  const int line = 64 / sizeof(scalar), feature = feature_of(n, features);
  if (n == 0 || feature / line != feature_of(n - 1, features) / line) PREFETCH_FAR(row + feature);
}

// From a key to the one that is asked for meanwhile, in elements. Tiles of rows after the first find all in the cache.
INLINE size_t ahead_of(Rows rows, int row, int features) {
  return row == 0 ? (size_t)max(1, AHEAD / (int)(HEADS * features * sizeof(scalar))) * rows.stride : 0;
}

// Scores of TILE_ROWS rows of TILE_HEADS heads with TILE_KEYS keys.
INLINE void score_tile(Head* heads, int row, int key, const global scalar** keys, Rows rows) {
  const size_t ahead = ahead_of(rows, row, HEAD_DIM);
  floatv sum[VECTOR_WIDTH];
  UNROLL for (int i = 0; i < VECTOR_WIDTH; ++i) sum[i] = 0.0f;
  UNROLL for (int c = 0; c < TILE_KEYS; ++c) {
    UNROLL for (int h = 0; h < TILE_HEADS; ++h) {
      const global scalar* at = keys[c] + (size_t)h * rows.stride_head;
      UNROLL for (int n = 0; n < HEAD_VECTORS; ++n) {
        ask_for(at + ahead, n, HEAD_DIM);
        const floatv x = load_new_features(at, n, HEAD_DIM);
        UNROLL for (int r = 0; r < TILE_ROWS; ++r) {
          const int i = (h * TILE_ROWS + r) * TILE_KEYS + c;
          sum[i] = fma(x, heads[h].queries[row + r][n], sum[i]);
        }
      }
    }
  }
  float lanes[VECTOR_WIDTH];
  vstorev(sum_lanes(sum), 0, lanes);
  UNROLL for (int h = 0; h < TILE_HEADS; ++h)
    UNROLL for (int r = 0; r < TILE_ROWS; ++r)
      JOIN(vstore, TILE_KEYS)(JOIN(vload, TILE_KEYS)(h * TILE_ROWS + r, lanes), 0, &heads[h].scores[row + r][key]);
}

// The part of a block that begins with its key `first`.
INLINE Block part_of(Block now, int first, int keys) {
  const Block part = {now.first, max(now.begin, first), min(now.end, first + keys)};
  return part;
}

INLINE void score_block(Pass* pass, Rows keys, Block now) {
  for (int first = now.begin / KEY_TURN * KEY_TURN; first < now.end; first += KEY_TURN) {
    const Block turn = part_of(now, first, KEY_TURN);
    for (uint h = 0; h < HEADS; h += TILE_HEADS) {
      // Tiles of rows outside: inside, compilers would take loads of keys for invariant and tear them to pieces.
      for (int row = 0; row < pass->rows; row += TILE_ROWS) {
        for (int i = turn.begin / TILE_KEYS * TILE_KEYS; i < turn.end; i += TILE_KEYS) {
          const global scalar* at[TILE_KEYS];
          // Nothing may be read that no row sees: at the ends a tile repeats keys, and their scores are masked.
          UNROLL for (int c = 0; c < TILE_KEYS; ++c)
            at[c] = row_of(keys, h, now.first + clamp(i + c, turn.begin, turn.end - 1));
          score_tile(&pass->heads[h], row, i, at, keys);
        }
      }
    }
  }
}

INLINE float largest_lane(floatv x) {
#if VECTOR_WIDTH == 16
  const float8 y = x.lo > x.hi ? x.lo : x.hi;
#elif VECTOR_WIDTH == 8
  const float8 y = x;
#endif
#if VECTOR_WIDTH == 4
  const float4 z = x;
#else
  const float4 z = y.lo > y.hi ? y.lo : y.hi;
#endif
  const float2 two = z.lo > z.hi ? z.lo : z.hi;
  return two.s0 > two.s1 ? two.s0 : two.s1;
}

// Scores of a row become weights; its maximum and its total take them in. No cap: 0.
INLINE void weigh_row(Head* head, int row, Interval sees, Block now, float cap) {
  sees = common(sees, now.first + now.begin, now.first + now.end);
  floatv top = head->top[row], sum = 0.0f;
  for (int i = 0; i < BLOCK_K; i += VECTOR_WIDTH) {
    const intv key = now.first + i + LANE_INDEX;
    floatv x = vloadv(0, &head->scores[row][i]);
    if (cap > 0.0f) x = tanh_vector(x) * (cap * LOG2_E);
    x = key < sees.begin || key >= sees.end ? (floatv)(-INFINITY) : x;
    vstorev(x, 0, &head->scores[row][i]);
    top = larger(top, x);
  }
  const float largest = largest_lane(top);

  for (int i = 0; i < BLOCK_K; i += VECTOR_WIDTH) {
    const floatv x = vloadv(0, &head->scores[row][i]) - largest;
    const floatv weight = exp2_from(larger((floatv)(-127.0f), x), (floatv)(EXP2_ORIGIN));
    vstorev(weight, 0, &head->scores[row][i]);
    sum += weight;
  }
  const floatv step = head->top[row] - largest;
  const floatv decay = exp2_from(larger((floatv)(-127.0f), step), (floatv)(EXP2_ORIGIN));
  head->decay[row] = decay;
  head->total[row] = fma(head->total[row], decay, sum);
  head->top[row] = largest;
}

// sums = sums * decay + weights * values of TILE_ROWS rows and the vectors from `column` on. With `hides`, some rows may
// not see some keys: their weight is 0, but 0 * NaN is NaN.
INLINE void add_values(Head* head, int row, int column, const global scalar* values, Rows rows, Block turn, bool decays,
                       bool hides) {
  const size_t ahead = ahead_of(rows, row, VALUE_DIM);
  floatv sum[TILE_ROWS][TILE_COLUMNS];
  UNROLL for (int r = 0; r < TILE_ROWS; ++r) {
    const floatv decay = decays ? head->decay[row + r] : (floatv)(1.0f);
    UNROLL for (int c = 0; c < TILE_COLUMNS; ++c) sum[r][c] = head->sums[row + r][column + c] * decay;
  }
  for (int i = turn.begin; i < turn.end; ++i) {
    const global scalar* at = values + (size_t)(turn.first + i) * rows.stride;
    UNROLL for (int c = 0; c < TILE_COLUMNS; ++c) {
      ask_for(at + ahead, column + c, VALUE_DIM);
      const floatv x = load_features(at, column + c, VALUE_DIM);
      UNROLL for (int r = 0; r < TILE_ROWS; ++r) {
        const floatv weight = head->scores[row + r][i];
        sum[r][c] = fma(hides && weight == 0.0f ? (floatv)(0.0f) : x, weight, sum[r][c]);
      }
    }
  }
  UNROLL for (int r = 0; r < TILE_ROWS; ++r)
    UNROLL for (int c = 0; c < TILE_COLUMNS; ++c) head->sums[row + r][column + c] = sum[r][c];
}

INLINE void add_block(Pass* pass, Rows values, Block now, bool hides) {
  for (int first = now.begin / TURN * TURN; first < now.end; first += TURN) {
    const Block turn = part_of(now, first, TURN);
    const bool decays = turn.begin == now.begin;
    for (uint h = 0; h < HEADS; ++h) {
      const global scalar* at = row_of(values, h, 0);
      for (int row = 0; row < pass->rows; row += TILE_ROWS)
        UNROLL for (int column = 0; column < VALUE_SPAN; column += TILE_COLUMNS)
          add_values(&pass->heads[h], row, column, at, values, turn, decays, hides);
    }
  }
}

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

INLINE void begin_pass(Pass* pass, const Work* work, const global scalar* q, uint first, uint rows, Interval share) {
  const struct AttentionArgs* a = work->args;
  const float factor = scored_by_key(work) ? a->scale : a->soft_cap > 0.0f ? a->scale / a->soft_cap : a->scale * LOG2_E;
  pass->rows = (min(rows - first, (uint)ROWS) + TILE_ROWS - 1) / TILE_ROWS * TILE_ROWS;
  Interval some = {0, 0}, every = share;
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
      for (int n = 0; n < HEAD_VECTORS; ++n) to->queries[i][n] = load_new_features(query, n, HEAD_DIM) * factor;
      for (int n = 0; n < VALUE_SPAN; ++n) to->sums[i][n] = 0.0f;
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
}

INLINE void take_block(Pass* pass, const Work* work, Rows keys, Rows values, Block now) {
  bool hides = now.first + now.begin < pass->every.begin || now.first + now.end > pass->every.end;
#if POLICY
  hides = hides || (work->policies->policy->features & POLICY_HIDES) != 0;
#endif
  score_block(pass, keys, now);
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
  for (int n = 0; n < VALUE_VECTORS; ++n)
    store_floats(from->sums[i][n], partials + line * VALUE_DIM + feature_of(n, VALUE_DIM));
  vstore2((float2)(from->top[i], sum_of(from->total[i])), line, partials + a->splits * lines * VALUE_DIM);
}

INLINE void store_result(const Head* from, uint i, const Work* work, global scalar* output, global float* log_sum_exp,
                         uint h, uint r) {
  const struct AttentionArgs* a = work->args;
  const uint row = query_row(work, r), head = query_head(work, h, r);
  const float total = sum_of(from->total[i]);
  float2 end = (float2)(from->top[i], total);
  bool normalize = true;
#if POLICY
  end = policy_sinks(work->policies, head, end.s0, end.s1);
  normalize = (work->policies->policy->features & POLICY_UNNORMALIZED) == 0;
#endif
  const float2 result = row_result(from->top[i], end.s0, end.s1, normalize, -INFINITY);
  output += a->o_offset + (size_t)work->batch * a->o_stride_batch + (size_t)head * a->o_stride_head +
            (size_t)row * a->o_stride_row;
  for (int n = 0; n < VALUE_VECTORS; ++n)  // of a row that saw nothing, sums may be no numbers
    store_part(total == 0.0f ? (floatv)(0.0f) : from->sums[i][n] * result.s0, output + feature_of(n, VALUE_DIM),
               VALUE_DIM);
  if (a->write_lse)
    log_sum_exp[a->lse_offset + (size_t)work->batch * a->lse_stride_batch + (size_t)head * a->lse_stride_head + row] =
        result.s1;
}

KERNEL void attention_cpu_decode(const global scalar* restrict q, const global scalar* restrict k,
                                 const global scalar* restrict v, global scalar* restrict output,
                                 global float* restrict log_sum_exp, global float* restrict scratch, CALL_PARAMETERS) {
  const uint split = get_group_id(0), kv_head = get_group_id(1) * HEADS, batch = get_group_id(2);
#if POLICY
  const struct AttentionArgs a = call.core;
  const Policies policies = MAKE_POLICIES(call, scratch);
  const Work work = {&a, &policies, batch, kv_head, split};
#else
  const Work work = {&a, batch, kv_head, split};
#endif
  const Rows keys = {k + a.k_offset + (size_t)batch * a.k_stride_batch + (size_t)kv_head * a.k_stride_head,
                     a.k_stride_head, a.k_stride_row};
  const Rows values = {v + a.v_offset + (size_t)batch * a.v_stride_batch + (size_t)kv_head * a.v_stride_head,
                       a.v_stride_head, a.v_stride_row};

  Pass pass;
  const Interval share = share_of(&work);
  const uint rows = a.group * a.q_len;
  for (uint first = 0; first < rows; first += ROWS) {
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
