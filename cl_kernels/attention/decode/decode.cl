// SPDX-License-Identifier: Apache-2.0
// What     Attention of few query rows per kv head over many keys: o and lse, or the partial results of a split.
// Who      Group (x, y, z): ROWS rows and a split of their keys; kv head; batch.
// Memory   k and v once per ROWS rows, 16 bytes per item and load, of codes 8 or 4, keys a step ahead;
//          ATTN_DECODE_LOCAL_BYTES.
// Numerics Float; each stream has a softmax over its own keys in order, base 2, running maximum; the streams are merged
//          in order; one rounding to DTYPE.
// Assumes  ATTN_DECODE_VALID; a grid of exactly (tiles of rows x splits) x kv heads x batch; lengths below 2^30;
//          VECTOR is no lie.
//
//   Row r of a kv head is query row r / pack of its query head r % pack, so a key is read once for all of them. LANES
//   items share a row of features, and ATTN_STREAMS such rows are under way at a time. The products of the lanes cross
//   local memory to be added up, so that each score is added up, masked and changed by one lane; it comes back to all
//   of them:
//
//     q k, ATTN_KEYS keys  ->  products  ->  lane v: the sum of score v, policies  ->  scores
//     ->  maximum, weights, p v
//
//   The scale of a code's row multiplies the score, or the weight, where one lane has it.
//   Only lanes of one stream meet there. Where PTX can say so they wait for their warp, elsewhere for the group.
//   A value that is not finite reaches the rows that see its key, and no others.
#include "lib/prelude.clh"
#define CALL_FEATURES (PAIRS ? RULE(features) : RULE(features) & ~POLICY_PAIRS)
#include "attention/core/interval.clh"
#include "attention/core/key_rows.clh"
#include "attention/core/work.clh"
#include "operations/attention_core/core/combine.h"
#include "operations/attention_core/decode/decode.h"

#if PTX
#define STREAM_SYNC() asm volatile("bar.warp.sync 0xffffffff;" ::: "memory")
#else
#define STREAM_SYNC() barrier(CLK_LOCAL_MEM_FENCE)
#endif

#if CODES
#include "attention/decode/codes.clh"
#else
// Part of a row, as it lies in memory; zeros behind the last feature.
INLINE uint4 load_part(const global scalar* row, uint feature, uint features) {
  uint4 part = (uint4)(0);
#if VECTOR >= ATTN_PART
  if (feature < features) part = *(const global uint4*)(row + feature);
#elif VECTOR == 4
  if (feature < features) part.lo = *(const global uint2*)(row + feature);
  if (feature + 4 < features) part.hi = *(const global uint2*)(row + feature + 4);
#else
  uint words[4] = {0, 0, 0, 0};
  UNROLL for (uint i = 0; i < ATTN_PART; ++i) {
    if (feature + i >= features) continue;
#if DTYPE == DTYPE_F32
    words[i] = as_uint(row[feature + i]);
#else
    words[i / 2] |= (uint)row[feature + i] << 16 * (i % 2);
#endif
  }
  part = (uint4)(words[0], words[1], words[2], words[3]);
#endif
  return part;
}

#if DTYPE == DTYPE_F16
INLINE float2 two_floats(uint word) {
  float2 x;
#if PTX
  asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %2; cvt.f32.f16 %0, lo; cvt.f32.f16 %1, hi; }"
      : "=f"(x.s0), "=f"(x.s1)
      : "r"(word));
#else
  x = vload_half2(0, (const half*)&word);
#endif
  return x;
}
#elif DTYPE == DTYPE_BF16
INLINE float2 two_floats(uint word) { return as_float2((uint2)(word << 16, word & 0xffff0000u)); }
#endif

// The features of a part.
INLINE void unpack(uint4 part, float* x) {
#if DTYPE == DTYPE_F32
  vstore4(as_float4(part), 0, x);
#else
  const float2 a = two_floats(part.s0), b = two_floats(part.s1), c = two_floats(part.s2), d = two_floats(part.s3);
  x[0] = a.s0, x[1] = a.s1, x[2] = b.s0, x[3] = b.s1, x[4] = c.s0, x[5] = c.s1, x[6] = d.s0, x[7] = d.s1;
#endif
}

typedef uint4 KeyPart;
#define load_key_part load_part
#define unpack_keys unpack
#define LOAD_QUERY(to, row, feature) unpack(load_part(row, feature, HEAD_DIM), to);
#endif

// The keys or values of one (batch, kv head). In bytes: an address is one multiplication.
typedef struct {
  const global uchar* data;
  KeyPlaces places;
} Rows;

// Key c of a stream in the step at `first`.
#define STREAM_KEY(first, last, c) (uint)min((first) + (int)(stream + ATTN_STREAMS * (c)), last)
#if PAGED
// Whoever reads the table waits for it before he can ask for keys, so a step's places are looked up a step before.
#define PLACE_OF_KEY(rows, first, last, c) place_at(rows.places, place[c])
#define LOOK_UP(first, last) \
  UNROLL for (uint c = 0; c < ATTN_KEYS; ++c) place[c] = key_place(keys.places, STREAM_KEY(first, last, c));
#else
#define PLACE_OF_KEY(rows, first, last, c) key_at(rows.places, STREAM_KEY(first, last, c))
#define LOOK_UP(first, last)
#endif

// A stream's keys of the step at `first`. Nothing may be read that no row sees: keys past the last one repeat it, and
// their scores are masked.
#define FETCH(to, rows, first, last, parts, features)                                                      \
  UNROLL for (uint c = 0; c < ATTN_KEYS; ++c) {                                                                \
    const global key_scalar* row = (const global key_scalar*)(rows.data + PLACE_OF_KEY(rows, first, last, c)); \
    UNROLL for (uint n = 0; n < parts; ++n)                                                               \
      to[c * parts + n] = load_key_part(row, (n * LANES + lane) * ATTN_PART, features);                        \
  }

// The keys of one split: whole steps, but for the last. Depends on nothing but the rows and the number of splits.
INLINE Interval share_of(Interval at, uint split, uint splits) {
  const ulong steps = (max(at.end - at.first, 0) + (int)BLOCK_K - 1) / (int)BLOCK_K;
  const int begin = at.first;
  at.first = begin + (int)(steps * split / splits) * (int)BLOCK_K;
  at.end = min(at.end, begin + (int)(steps * (split + 1) / splits) * (int)BLOCK_K);
  return at;
}

// What a score depends on beside its key.
#if POLICY
typedef RowPolicy ScoredRow;
#else
typedef struct {
  int first, end;
} ScoredRow;
#endif

// What a group works on.
typedef struct {
  const struct AttentionArgs* args;
#if POLICY
  const Policies* policies;
#endif
  uint batch, first_head, first_row, end_row;  // rows of the kv head
} Work;

INLINE uint query_row(const Work* work, uint row) { return row / work->args->pack; }
INLINE uint query_head(const Work* work, uint row) { return work->first_head + row % work->args->pack; }

// Rows past the last one see nothing.
INLINE ScoredRow scored_row(const Work* work, uint row) {
  const uint at = min(row, work->end_row - 1);
#if POLICY
  ScoredRow scored = policy_row(work->policies, work->batch, query_head(work, at), query_row(work, at));
#else
  const struct AttentionArgs* a = work->args;
  ScoredRow scored = {max((int)query_row(work, at) + a->band_low, 0),
                      min((int)query_row(work, at) + 1 + a->band_high, (int)a->kv_len)};
#endif
  if (row >= work->end_row) scored.end = scored.first;
  return scored;
}

INLINE Interval interval_of(const Work* work) {
  Interval at = interval_of_no_row();
  for (uint row = query_row(work, work->first_row); UNIFORM(row <= query_row(work, work->end_row - 1)); ++row) {
#if POLICY
    const Policies* policies = work->policies;
    interval_add_entry(&at, ROW_ENTRY(RULE(rows) + work->batch * CORE(q_len) + row));
#else
    const int first = max((int)row + work->args->band_low, 0);
    const int end = min((int)row + 1 + work->args->band_high, (int)work->args->kv_len);
    interval_add_row(&at, first, end);
#endif
  }
  at.first = min(at.first, at.end);
  return at;
}

INLINE float score_of(const Work* work, const ScoredRow* row, int key, float dot) {
  const struct AttentionArgs* a = work->args;
#if POLICY
  if (!policy_sees(work->policies, *row, key)) return MASKED_SCORE;
  return policy_score(work->policies, *row, key, dot * a->scale).s0;
#else
  if (key < row->first || key >= row->end) return MASKED_SCORE;
  if (a->soft_cap > 0.0f) return a->soft_cap * LOG2_E * saturating_tanh(dot * (a->scale / a->soft_cap));
  return dot * (a->scale * LOG2_E);
#endif
}

// The scores of a step that a lane adds up: number n is score i of the stream.
#define FOR_LANE_SCORES(n, i)                                                     \
  UNROLL for (uint n = 0, i = lane; n < ATTN_LANE_SCORES; ++n, i += LANES)             \
    if (ATTN_SCORES % LANES == 0 || i < ATTN_SCORES)
#define KEY_OF(i) (first + (int)(stream + ATTN_STREAMS * ((i) % ATTN_KEYS)))

#if CODES
// The scales of a step that a lane multiplies by, each for the score of the same number.
#define FETCH_SCALES(first, last)                                        \
  FOR_LANE_SCORES(n, i) {                                                \
    const uint key = STREAM_KEY(first, last, i % ATTN_KEYS);             \
    score_scale[n] = key_scale_at(key_scales, key);                      \
    weight_scale[n] = key_scale_at(value_scales, key);                   \
  }
#define SCALED_BY(scale) *scale
#else
#define SCALED_BY(scale)
#endif

// The weight of a key that its row does not see. Others are not negative, or have a scale that is finite.
#if CODES
#define HIDDEN (-INFINITY)
#else
#define HIDDEN (-1.0f)
#endif

// sums += weights x values, where `visible` holds.
#define ADD_VALUES(visible)                                                                 \
  UNROLL for (uint c = 0; c < ATTN_KEYS; ++c)                                                    \
    UNROLL for (uint n = 0; n < ATTN_VALUE_PARTS; ++n) {                                         \
      float x[ATTN_PART];                                                                        \
      unpack_keys(value_part[c * ATTN_VALUE_PARTS + n], x);                                           \
      UNROLL for (uint r = 0; r < ROWS; ++r)                                                \
        if (visible)                                                                        \
          UNROLL for (uint i = 0; i < ATTN_PART; ++i)                                            \
            sum[r][n * ATTN_PART + i] = fma(score[r * ATTN_KEYS + c], x[i], sum[r][n * ATTN_PART + i]);    \
    }

KERNEL void attention_decode(const global scalar* restrict q, const global key_scalar* restrict k,
                             const global key_scalar* restrict v, global scalar* restrict output,
                             global float* restrict log_sum_exp, global float* scratch, CALL_PARAMETERS) {
  local float4 memory[ATTN_DECODE_VECTORS];
  const uint item = get_local_id(0), lane = item % LANES, stream = item / LANES;
  local float* products = (local float*)memory + stream * ATTN_PRODUCTS;
  local float* scores = (local float*)memory + ATTN_STREAMS * ATTN_PRODUCTS + stream * ATTN_SCORES;
  local float* all_weights = (local float*)memory + ATTN_DECODE_SHARED_FLOATS;
  local float* weights = all_weights + stream * ATTN_WEIGHTS;
#if POLICY
  const struct AttentionArgs a = call.core;
  MAKE_PAGING(call)
  const Policies policies = MAKE_POLICIES(call, scratch);
  const bool hides = PAIRS && (call.policy.features & (POLICY_HIDES | POLICY_BIAS)) != 0;
#else
  const bool hides = false;
#endif
  uint slot = get_group_id(0), kv_head = get_group_id(1);
  const uint tiles = get_num_groups(0) / a.splits, batch = get_group_id(2);
#if POLICY
  // All heads of a sequence before the next one: they lie side by side in memory.
  const bool listed = (call.policy.features & POLICY_WORK) != 0;
  if (listed) {
    const uint heads = get_num_groups(1), number = kv_head * get_num_groups(0) + slot;
    slot = number / heads, kv_head = number % heads;
  }
#endif
  const uint split = slot / tiles;
  Tile tile = {slot % tiles * ROWS, 0, batch, 0};
  tile.end = min(tile.first + (uint)ROWS, a.q_len * a.pack);
#if POLICY
  if (listed) tile = listed_tile((const global int4*)scratch, call.policy.map, slot % tiles);
#endif
  const uint first_row = tile.first;
  const Work work = {&a,
#if POLICY
                     &policies,
#endif
                     batch, kv_head * a.group, tile.first, max(tile.end, tile.first + 1)};
  Interval at = share_of(interval_of(&work), split, a.splits);
  if (tile.first >= tile.end) at.end = at.first;  // beyond the work list

  const Rows keys = {
      (const global uchar*)KEY_ELEMENTS(
          k, a.k_offset + (size_t)KEYS_OF(batch) * a.k_stride_batch + (size_t)kv_head * a.k_stride_head),
      KEY_PLACES(KEY_BYTES(a.k_stride_row), KEY_BYTES(a.k_stride_batch), tile.sequence)};
  const Rows values = {
      (const global uchar*)KEY_ELEMENTS(
          v, a.v_offset + (size_t)KEYS_OF(batch) * a.v_stride_batch + (size_t)kv_head * a.v_stride_head),
      KEY_PLACES(KEY_BYTES(a.v_stride_row), KEY_BYTES(a.v_stride_batch), tile.sequence)};
#if CODES
  const KeyScales key_scales = KEY_SCALES(key_scale, call.key_scales, batch, kv_head, tile.sequence);
  const KeyScales value_scales = KEY_SCALES(value_scale, call.value_scales, batch, kv_head, tile.sequence);
  float score_scale[ATTN_LANE_SCORES], weight_scale[ATTN_LANE_SCORES];
  if (at.first < at.end) FETCH_SCALES(at.first, at.end - 1)
#endif
  KeyPart key_part[ATTN_KEYS * ATTN_HEAD_PARTS], value_part[ATTN_KEYS * ATTN_VALUE_PARTS];
#if PAGED
  KeyPlace place[ATTN_KEYS];
  if (at.first < at.end) LOOK_UP(at.first, at.end - 1)
#endif
  if (at.first < at.end) FETCH(key_part, keys, at.first, at.end - 1, ATTN_HEAD_PARTS, HEAD_DIM)

  float query[ROWS][ATTN_HEAD_PARTS * ATTN_PART], sum[ROWS][ATTN_VALUE_PARTS * ATTN_PART];
  UNROLL for (uint r = 0; r < ROWS; ++r) {
    const uint row = min(first_row + r, work.end_row - 1);
    const global scalar* from = q + a.q_offset + (size_t)batch * a.q_stride_batch +
                                (size_t)query_head(&work, row) * a.q_stride_head +
                                (size_t)query_row(&work, row) * a.q_stride_row;
    UNROLL for (uint n = 0; n < ATTN_HEAD_PARTS; ++n)
      LOAD_QUERY(&query[r][n * ATTN_PART], from, (n * LANES + lane) * ATTN_PART)
    UNROLL for (uint i = 0; i < ATTN_VALUE_PARTS * ATTN_PART; ++i) sum[r][i] = 0.0f;
  }
  ScoredRow scored[ATTN_LANE_SCORES];
  float top[ATTN_LANE_SCORES], total[ATTN_LANE_SCORES];
  UNROLL for (uint n = 0; n < ATTN_LANE_SCORES; ++n) {
    scored[n] = scored_row(&work, first_row + (lane + n * LANES) / ATTN_KEYS);
    top[n] = LOWEST_MAXIMUM;
    total[n] = 0.0f;
  }

  for (int first = at.first; UNIFORM(first < at.end); first += BLOCK_K) {
    FETCH(value_part, values, first, at.end - 1, ATTN_VALUE_PARTS, VALUE_DIM)
    LOOK_UP(first + (int)BLOCK_K, at.end - 1)

    float score[ATTN_SCORES];  // this lane's products; later the weights
    UNROLL for (uint i = 0; i < ATTN_SCORES; ++i) score[i] = 0.0f;
    UNROLL for (uint c = 0; c < ATTN_KEYS; ++c) {
      UNROLL for (uint n = 0; n < ATTN_HEAD_PARTS; ++n) {
        float x[ATTN_PART];
        unpack_keys(key_part[c * ATTN_HEAD_PARTS + n], x);
        UNROLL for (uint r = 0; r < ROWS; ++r)
          UNROLL for (uint i = 0; i < ATTN_PART; ++i)
            score[r * ATTN_KEYS + c] = fma(x[i], query[r][n * ATTN_PART + i], score[r * ATTN_KEYS + c]);
      }
    }
    UNROLL for (uint i = 0; i < ATTN_SCORES; ++i) products[i * ATTN_PRODUCT_STRIDE + lane] = score[i];
    if (first + (int)BLOCK_K < at.end)
      FETCH(key_part, keys, first + (int)BLOCK_K, at.end - 1, ATTN_HEAD_PARTS, HEAD_DIM)
    STREAM_SYNC();

    FOR_LANE_SCORES(n, i) {
      const local float4* from = (const local float4*)(products + i * ATTN_PRODUCT_STRIDE);
      float4 part = from[0];
      UNROLL for (uint j = 1; j < LANES / 4; ++j) part += from[j];
      scores[i] = score_of(&work, &scored[n], KEY_OF(i), ((part.s0 + part.s1) + (part.s2 + part.s3)) SCALED_BY(score_scale[n]));
    }
    STREAM_SYNC();

    FOR_LANE_SCORES(n, i) {
      float largest = top[n];
      UNROLL for (uint c = 0; c < ATTN_KEYS; ++c) largest = fmax(largest, scores[i / ATTN_KEYS * ATTN_KEYS + c]);
      const float score = scores[i], decay = exp2(top[n] - largest);
      float weight = exp2(score - largest);
      total[n] = fma(total[n], decay, weight);
      top[n] = largest;
#if POLICY
      weight *= policy_keep(&policies, scored[n], KEY_OF(i));
#endif
      weights[i] = score == MASKED_SCORE ? HIDDEN : weight SCALED_BY(weight_scale[n]);
      if (i % ATTN_KEYS == 0) weights[ATTN_SCORES + i / ATTN_KEYS] = decay;
    }
    STREAM_SYNC();
#if CODES
    if (first + (int)BLOCK_K < at.end) FETCH_SCALES(first + (int)BLOCK_K, at.end - 1)
#endif

    bool decays = false;
    UNROLL for (uint r = 0; r < ROWS; ++r) decays = decays || weights[ATTN_SCORES + r] != 1.0f;
    if (decays) {
      UNROLL for (uint r = 0; r < ROWS; ++r)
        UNROLL for (uint i = 0; i < ATTN_VALUE_PARTS * ATTN_PART; ++i) sum[r][i] *= weights[ATTN_SCORES + r];
    }
    UNROLL for (uint i = 0; i < ATTN_SCORES; i += 4) vstore4(((const local float4*)weights)[i / 4], 0, &score[i]);
    if (!hides && first >= at.common_first && first + (int)BLOCK_K <= min(at.end, at.common_end)) {
      ADD_VALUES(true)
    } else {
      ADD_VALUES(score[r * ATTN_KEYS + c] != HIDDEN)
    }
  }

  // Every stream leaves its sums, maxima and totals; then the items merge them, a column at a time.
  local float* sums = (local float*)memory;
  barrier(CLK_LOCAL_MEM_FENCE);
  FOR_LANE_SCORES(n, i) {
    weights[i] = total[n];
    if (i % ATTN_KEYS == 0) weights[ATTN_SCORES + i / ATTN_KEYS] = top[n];
  }
  UNROLL for (uint r = 0; r < ROWS; ++r)
    UNROLL for (uint n = 0; n < ATTN_VALUE_PARTS; ++n)
      UNROLL for (uint i = 0; i < ATTN_PART; i += 4)
        ((local float4*)sums)[((stream * ROWS + r) * ATTN_VALUE_SPAN + (n * LANES + lane) * ATTN_PART + i) / 4] =
            vload4(0, &sum[r][n * ATTN_PART + i]);
  STREAM_SYNC();
  FOR_LANE_SCORES(n, i) {
    if (i % ATTN_KEYS != 0) continue;
    UNROLL for (uint c = 1; c < ATTN_KEYS; ++c) total[n] += weights[i + c];
    weights[i] = total[n];  // of the row
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  const size_t lines = (size_t)get_num_groups(2) * a.heads * a.q_len;
  for (uint n = item; n < ROWS * ATTN_VALUE_SPAN; n += WG_X) {
    const uint r = n / ATTN_VALUE_SPAN, column = n % ATTN_VALUE_SPAN;
    if (first_row + r >= tile.end || column >= VALUE_DIM) continue;
    float largest = LOWEST_MAXIMUM, all = 0.0f, o = 0.0f;
    UNROLL for (uint s = 0; s < ATTN_STREAMS; ++s)
      largest = fmax(largest, all_weights[s * ATTN_WEIGHTS + ATTN_SCORES + r]);
    UNROLL for (uint s = 0; s < ATTN_STREAMS; ++s) {
      const float factor = exp2(all_weights[s * ATTN_WEIGHTS + ATTN_SCORES + r] - largest);
      all = fma(all_weights[s * ATTN_WEIGHTS + r * ATTN_KEYS], factor, all);
      o = fma(sums[(s * ROWS + r) * ATTN_VALUE_SPAN + column], factor, o);
    }
    const uint row = query_row(&work, first_row + r), head = query_head(&work, first_row + r);
    if (a.splits > 1) {
      const size_t line = split * lines + ((size_t)batch * a.heads + head) * a.q_len + row;
      scratch[a.partials + line * VALUE_DIM + column] = o;
      if (column == 0) vstore2((float2)(largest, all), line, scratch + a.partials + a.splits * lines * VALUE_DIM);
      continue;
    }
    float2 end = (float2)(largest, all);
    bool normalize = true, far = false;
#if POLICY
    end = policy_sinks(&policies, head, end.s0, end.s1);
    normalize = (call.policy.features & POLICY_UNNORMALIZED) == 0;
    far = (call.policy.features & POLICY_FAR) != 0;
#endif
    const float2 result = row_result(largest, end.s0, end.s1, normalize, far, -INFINITY);
    store_scalar(o * result.s0,
                 output + a.o_offset + (size_t)batch * a.o_stride_batch + (size_t)head * a.o_stride_head +
                     (size_t)row * a.o_stride_row,
                 column);
    if (a.write_lse && column == 0)
      log_sum_exp[a.lse_offset + (size_t)batch * a.lse_stride_batch + (size_t)head * a.lse_stride_head + row] =
          result.s1;
  }
}
