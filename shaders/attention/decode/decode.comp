// SPDX-License-Identifier: Apache-2.0
// What     Attention of few query rows per kv head over many keys: o and lse, or the partial results of a split.
// Who      Group (x, y, z): ROWS rows and a split of their keys; kv head; batch.
// Memory   k and v once per ROWS rows, 16 bytes per item and load, of codes 8 or 4, keys a step ahead;
//          ATTN_DECODE_LOCAL_BYTES.
// Numerics Float; each stream has a softmax over its own keys in order, base 2, running maximum; the streams are merged
//          in order; one rounding to DTYPE.
// Assumes  ATTN_DECODE_VALID; a grid of exactly (tiles of rows x splits) x kv heads x batch; lengths below 2^30;
//          VECTOR is no lie; operands below 2^32 elements. Sub-groups of any size: it does not ask for them.
//
//   Row r of a kv head is query row r / pack of its query head r % pack, so a key is read once for all of them. LANES
//   items share a row of features, and ATTN_STREAMS such rows are under way at a time. The products of the lanes cross
//   shared memory to be added up, so that each score is added up, masked and changed by one lane; it comes back to all
//   of them:
//
//     q k, ATTN_KEYS keys  ->  products  ->  lane v: the sum of score v, policies  ->  scores
//     ->  maximum, weights, p v
//
//   The scale of a code's row multiplies the score, or the weight, where one lane has it.
//   A value that is not finite reaches the rows that see its key, and no others.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/attention_core/decode/decode.def"
#define CALL_FEATURES (PAIRS != 0u ? RULE(features) : RULE(features) & ~POLICY_PAIRS)

// What each step asks of the arguments. Larger ones lie in a buffer, which keys and values that stream by drive out of
// the caches.
float soft_cap, scale;
uint k_stride_row, k_stride_page, v_stride_row, v_stride_page;
#define SOFT_CAP soft_cap
#if PAGED
#include "operations/attention_core/core/pages_args.h"
AttentionPages call_pages;
#define PAGES(name) (call_pages.name)
#endif
#include "attention/core/forward_call.glsl"
#include "operations/attention_core/decode/decode.h"

layout(std430, binding = 0) readonly buffer Queries { scalar q[]; };
#if CODES
layout(std430, binding = 1) readonly buffer Keys { uint k[]; };
layout(std430, binding = 2) readonly buffer Values { uint v[]; };
#else
layout(std430, binding = 0) readonly buffer QueryHalves { uvec2 q_halves[]; };
layout(std430, binding = 0) readonly buffer QueryParts { uvec4 q_parts[]; };
layout(std430, binding = 1) readonly buffer Keys { scalar k[]; };
layout(std430, binding = 1) readonly buffer KeyHalves { uvec2 k_halves[]; };
layout(std430, binding = 1) readonly buffer KeyParts { uvec4 k_parts[]; };
layout(std430, binding = 2) readonly buffer Values { scalar v[]; };
layout(std430, binding = 2) readonly buffer ValueHalves { uvec2 v_halves[]; };
layout(std430, binding = 2) readonly buffer ValueParts { uvec4 v_parts[]; };
#endif
layout(std430, binding = 3) writeonly buffer Output { scalar o[]; };
layout(std430, binding = 4) writeonly buffer LogSumExp { float log_sum_exp[]; };
layout(std430, binding = SCRATCH_BINDING) writeonly buffer Partials { float partials[]; };

shared float memory[4u * ATTN_DECODE_VECTORS];

#include "attention/core/few_rows.glsl"
#include "attention/core/key_rows.glsl"
#include "attention/decode/parts.glsl"

#if CODES
LOAD_KEY_PART(load_key, k)
LOAD_KEY_PART(load_value, v)
#define SCALED_BY(scale) *(scale)
#else
LOAD_FLOATS(load_query, q, q_halves, q_parts)
LOAD_FLOATS(load_key, k, k_halves, k_parts)
LOAD_FLOATS(load_value, v, v_halves, v_parts)
#define SCALED_BY(scale)
#endif

#define UNPACK_KEYS(x, part) [[unroll]] for (uint i = 0u; i < ATTN_PART; ++i) x[i] = key_float(part, i);

float score_of(ScoredRow row, int key, float product) {
#if POLICY
  // Without a branch where nothing but the row's interval and its pages is asked.
  if (PAIRS == 0u) {
    float score = product * (scale * LOG2_E);
    if (soft_cap > 0.0) score = soft_cap * LOG2_E * saturating_tanh(product * (scale / soft_cap));
    bool seen = key >= row.first && key < row.end;
#if PAGED
    if (PAGED_HIDES(row.segment)) seen = policy_sees(row, key);
#endif
    return seen ? score : MASKED_SCORE;
  }
  return policy_sees(row, key) ? policy_score(row, key, product * scale).x : MASKED_SCORE;
#else
  if (key < row.first || key >= row.end) return MASKED_SCORE;
  if (soft_cap > 0.0) return soft_cap * LOG2_E * saturating_tanh(product * (scale / soft_cap));
  return product * (scale * LOG2_E);
#endif
}

// The weight of a key that its row does not see: no weight is -inf.
#define HIDDEN 0xff800000u

// Key c of a stream in the step at `first`. Nothing may be read that no row sees: keys past the last one repeat it, and
// their scores are masked.
#define STREAM_KEY(first, c) uint(min((first) + int(stream + ATTN_STREAMS * (c)), last))
#if PAGED
// Whoever reads the table waits for it before he can ask for keys, so a step's places are looked up two steps before.
#define PLACE_OF_KEY(first, c, row, page) place_at(place[c], row, page)
#define LOOK_UP(place, first) [[unroll]] for (uint c = 0u; c < ATTN_KEYS; ++c) place[c] = key_place(STREAM_KEY(first, c));
#else
#define PLACE_OF_KEY(first, c, row, page) key_at(STREAM_KEY(first, c), row, page)
#define LOOK_UP(place, first)
#endif

// A stream's keys, or values, of the step at `first`.
#define FETCH(to, load, base, row_stride, page_stride, first, parts, features)           \
  [[unroll]] for (uint c = 0u; c < ATTN_KEYS; ++c) {                                     \
    const uint row_at = base + PLACE_OF_KEY(first, c, row_stride, page_stride);          \
    [[unroll]] for (uint n = 0u; n < parts; ++n)                                         \
      to[c * parts + n] = load(row_at, (n * LANES + lane) * ATTN_PART, features);        \
  }
#define FETCH_KEYS(first) \
  FETCH(key_part, load_key, k_base, k_stride_row, k_stride_page, first, ATTN_HEAD_PARTS, HEAD_DIM)
#define FETCH_VALUES(first) \
  FETCH(value_part, load_value, v_base, v_stride_row, v_stride_page, first, ATTN_VALUE_PARTS, VALUE_DIM)

// The scores of a step that a lane adds up: number n is score SCORE(n) of the stream.
#define SCORE(n) (lane + LANES * (n))
#define FOR_LANE_SCORES(n)                                \
  [[unroll]] for (uint n = 0u; n < ATTN_LANE_SCORES; ++n) \
    if (ATTN_SCORES % LANES == 0u || SCORE(n) < ATTN_SCORES)
#define KEY_OF(first, i) ((first) + int(stream + ATTN_STREAMS * ((i) % ATTN_KEYS)))

#if CODES
// The scales of a step that a lane multiplies by, each for the score of the same number.
#define FETCH_SCALES(first)                                               \
  FOR_LANE_SCORES(n) {                                                    \
    const uint key = STREAM_KEY(first, SCORE(n) % ATTN_KEYS);             \
    score_scale[n] = SCALE_AT(key_scale, key_scales, key);           \
    weight_scale[n] = SCALE_AT(value_scale, value_scales, key);      \
  }
#else
#define FETCH_SCALES(first)
#endif

// sums += weights x values, where `visible` holds.
#define ADD_VALUES(visible)                                                                     \
  [[unroll]] for (uint c = 0u; c < ATTN_KEYS; ++c)                                              \
    [[unroll]] for (uint n = 0u; n < ATTN_VALUE_PARTS; ++n) {                                   \
      float x[ATTN_PART];                                                                       \
      UNPACK_KEYS(x, value_part[c * ATTN_VALUE_PARTS + n])                                      \
      [[unroll]] for (uint r = 0u; r < ROWS; ++r)                                               \
        if (visible)                                                                            \
          [[unroll]] for (uint i = 0u; i < ATTN_PART; ++i)                                      \
            sum[(r * ATTN_VALUE_PARTS + n) * ATTN_PART + i] =                                   \
                fma(score[r * ATTN_KEYS + c], x[i], sum[(r * ATTN_VALUE_PARTS + n) * ATTN_PART + i]); \
    }

void main() {
  const uint item = gl_LocalInvocationIndex, lane = item % LANES, stream = item / LANES;
  const uint products = stream * ATTN_PRODUCTS;
  const uint scores = ATTN_STREAMS * ATTN_PRODUCTS + stream * ATTN_SCORES;
  const uint weights = ATTN_DECODE_SHARED_FLOATS + stream * ATTN_WEIGHTS;
#if POLICY
  const bool hides = (CALL_FEATURES & (POLICY_HIDES | POLICY_BIAS)) != 0u;
#else
  const bool hides = false;
#endif
  if (!take_tile(ROWS)) return;
  soft_cap = CALL.soft_cap;
  scale = CALL.scale;
  k_stride_row = CALL.k_stride_row;
  k_stride_page = CALL.k_stride_batch;
  v_stride_row = CALL.v_stride_row;
  v_stride_page = CALL.v_stride_batch;
#if CODES
  const AttentionScales key_scales = args.key_scales, value_scales = args.value_scales;
#endif
#if PAGED
  key_sequence = sequence;
  call_pages = args.pages;
#endif
  Interval at = interval_of_rows();
  at = share_of(at, at.first, BLOCK_K);
  const int last = at.end - 1;

  const uint k_base = CALL.k_offset + KEYS_OF(batch) * CALL.k_stride_batch + kv_head * CALL.k_stride_head;
  const uint v_base = CALL.v_offset + KEYS_OF(batch) * CALL.v_stride_batch + kv_head * CALL.v_stride_head;
#if CODES
  float score_scale[ATTN_LANE_SCORES], weight_scale[ATTN_LANE_SCORES];
#endif
#if PAGED
  KeyPlace place[ATTN_KEYS], next_place[ATTN_KEYS];
#endif
  uvec4 key_part[ATTN_KEYS * ATTN_HEAD_PARTS], value_part[ATTN_KEYS * ATTN_VALUE_PARTS];
  if (at.first < at.end) {
    FETCH_SCALES(at.first)
    LOOK_UP(place, at.first)
    LOOK_UP(next_place, at.first + int(BLOCK_K))
    FETCH_KEYS(at.first)
  }

  float query[ROWS * ATTN_HEAD_PARTS * ATTN_PART], sum[ROWS * ATTN_VALUE_PARTS * ATTN_PART];
  [[unroll]] for (uint r = 0u; r < ROWS; ++r) {
    const uint row = min(tile_first + r, tile_end - 1u);
    const uint from = query_at(row);
    [[unroll]] for (uint n = 0u; n < ATTN_HEAD_PARTS; ++n) {
      const uint to = (r * ATTN_HEAD_PARTS + n) * ATTN_PART, feature = (n * LANES + lane) * ATTN_PART;
#if CODES
      [[unroll]] for (uint i = 0u; i < ATTN_PART; ++i)
        query[to + i] = feature + i < HEAD_DIM ? load_scalar(q[from + feature + i]) : 0.0;
#else
      const uvec4 part = load_query(from, feature, HEAD_DIM);
      [[unroll]] for (uint i = 0u; i < ATTN_PART; ++i) query[to + i] = float_of_part(part, i);
#endif
    }
    [[unroll]] for (uint i = 0u; i < ATTN_VALUE_PARTS * ATTN_PART; ++i) sum[r * ATTN_VALUE_PARTS * ATTN_PART + i] = 0.0;
  }
  ScoredRow scored[ATTN_LANE_SCORES];
  float top[ATTN_LANE_SCORES], total[ATTN_LANE_SCORES];
  [[unroll]] for (uint n = 0u; n < ATTN_LANE_SCORES; ++n) {
    scored[n] = scored_row(tile_first + SCORE(n) / ATTN_KEYS);
    top[n] = LOWEST_MAXIMUM;
    total[n] = 0.0;
  }

  for (int first = at.first; first < at.end; first += int(BLOCK_K)) {
    const int next = first + int(BLOCK_K);
    FETCH_VALUES(first)
#if PAGED
    [[unroll]] for (uint c = 0u; c < ATTN_KEYS; ++c) place[c] = next_place[c];
    LOOK_UP(next_place, next + int(BLOCK_K))
#endif

    float score[ATTN_SCORES];  // this lane's products; later the weights
    [[unroll]] for (uint i = 0u; i < ATTN_SCORES; ++i) score[i] = 0.0;
    [[unroll]] for (uint c = 0u; c < ATTN_KEYS; ++c)
      [[unroll]] for (uint n = 0u; n < ATTN_HEAD_PARTS; ++n) {
        float x[ATTN_PART];
        UNPACK_KEYS(x, key_part[c * ATTN_HEAD_PARTS + n])
        [[unroll]] for (uint r = 0u; r < ROWS; ++r)
          [[unroll]] for (uint i = 0u; i < ATTN_PART; ++i)
            score[r * ATTN_KEYS + c] =
                fma(x[i], query[(r * ATTN_HEAD_PARTS + n) * ATTN_PART + i], score[r * ATTN_KEYS + c]);
      }
    [[unroll]] for (uint i = 0u; i < ATTN_SCORES; ++i) memory[products + i * ATTN_PRODUCT_STRIDE + lane] = score[i];
    if (next < at.end) FETCH_KEYS(next)
    barrier();

    FOR_LANE_SCORES(n) {
      const uint from = products + SCORE(n) * ATTN_PRODUCT_STRIDE;
      vec4 part = vec4(0.0);
      [[unroll]] for (uint j = 0u; j < LANES; j += 4u)
        part += vec4(memory[from + j], memory[from + j + 1u], memory[from + j + 2u], memory[from + j + 3u]);
      memory[scores + SCORE(n)] = score_of(scored[n], KEY_OF(first, SCORE(n)),
                                           ((part.x + part.y) + (part.z + part.w)) SCALED_BY(score_scale[n]));
    }
    barrier();

    FOR_LANE_SCORES(n) {
      const uint i = SCORE(n);
      float largest = top[n];
      [[unroll]] for (uint c = 0u; c < ATTN_KEYS; ++c)
        largest = max(largest, memory[scores + i / ATTN_KEYS * ATTN_KEYS + c]);
      const float own = memory[scores + i], decay = exp2(top[n] - largest);
      float weight = exp2(own - largest);
      total[n] = fma(total[n], decay, weight);
      top[n] = largest;
#if POLICY
      weight *= policy_keep(scored[n], KEY_OF(first, i));
#endif
      memory[weights + i] = own == MASKED_SCORE ? uintBitsToFloat(HIDDEN) : weight SCALED_BY(weight_scale[n]);
      if (i % ATTN_KEYS == 0u) memory[weights + ATTN_SCORES + i / ATTN_KEYS] = decay;
    }
    barrier();
    if (next < at.end) {
      FETCH_SCALES(next)
    }

    bool decays = false;
    [[unroll]] for (uint r = 0u; r < ROWS; ++r) decays = decays || memory[weights + ATTN_SCORES + r] != 1.0;
    if (decays) {
      [[unroll]] for (uint r = 0u; r < ROWS; ++r)
        [[unroll]] for (uint i = 0u; i < ATTN_VALUE_PARTS * ATTN_PART; ++i)
          sum[r * ATTN_VALUE_PARTS * ATTN_PART + i] *= memory[weights + ATTN_SCORES + r];
    }
    [[unroll]] for (uint i = 0u; i < ATTN_SCORES; ++i) score[i] = memory[weights + i];
    if (!hides && first >= at.common_first && next <= min(at.end, at.common_end)) {
      ADD_VALUES(true)
    } else {
      ADD_VALUES(floatBitsToUint(score[r * ATTN_KEYS + c]) != HIDDEN)
    }
  }

  // Every stream leaves its sums, maxima and totals; then the items merge them, a column at a time.
  barrier();
  FOR_LANE_SCORES(n) {
    memory[weights + SCORE(n)] = total[n];
    if (SCORE(n) % ATTN_KEYS == 0u) memory[weights + ATTN_SCORES + SCORE(n) / ATTN_KEYS] = top[n];
  }
  [[unroll]] for (uint r = 0u; r < ROWS; ++r)
    [[unroll]] for (uint n = 0u; n < ATTN_VALUE_PARTS; ++n)
      [[unroll]] for (uint i = 0u; i < ATTN_PART; ++i)
        memory[(stream * ROWS + r) * ATTN_VALUE_SPAN + (n * LANES + lane) * ATTN_PART + i] =
            sum[(r * ATTN_VALUE_PARTS + n) * ATTN_PART + i];
  barrier();

  for (uint n = item; n < ROWS * ATTN_VALUE_SPAN; n += WG_X) {
    const uint r = n / ATTN_VALUE_SPAN, column = n % ATTN_VALUE_SPAN;
    if (tile_first + r >= tile_end || column >= VALUE_DIM) continue;
    float largest = LOWEST_MAXIMUM, all = 0.0, result = 0.0;
    [[dont_unroll]] for (uint s = 0u; s < ATTN_STREAMS; ++s)
      largest = max(largest, memory[ATTN_DECODE_SHARED_FLOATS + s * ATTN_WEIGHTS + ATTN_SCORES + r]);
    [[dont_unroll]] for (uint s = 0u; s < ATTN_STREAMS; ++s) {
      const uint from = ATTN_DECODE_SHARED_FLOATS + s * ATTN_WEIGHTS;
      const float factor = exp2(memory[from + ATTN_SCORES + r] - largest);
      float part = 0.0;
      [[unroll]] for (uint c = 0u; c < ATTN_KEYS; ++c) part += memory[from + r * ATTN_KEYS + c];
      all = fma(part, factor, all);
      result = fma(memory[(s * ROWS + r) * ATTN_VALUE_SPAN + column], factor, result);
    }
    store_result(tile_first + r, column, result, largest, all);
  }
}
