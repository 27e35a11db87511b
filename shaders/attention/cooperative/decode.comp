// SPDX-License-Identifier: Apache-2.0
// What     Attention of few query rows per kv head over many keys by matrices: o and lse, or the partial results of a split.
// Who      Group (x, y, z): MATRIX_N rows and a split of their keys; kv head; batch.
// Memory   k and v once per MATRIX_N rows, 16 bytes per item and load, a step ahead; ATTN_FEW_LOCAL_BYTES.
// Numerics Products of DTYPE, sums in float; each sub-group has a softmax over its own keys in order, base 2, running maximum;
//          sub-groups are merged in order; weights are rounded to DTYPE, their sum is not. Codes are factors as they are;
//          weights times the scales of their values are rounded in units of the largest of them (of e5m2, where scales are within 2^10).
// Assumes  ATTN_FEW_VALID; full sub-groups of LANES; the device has the shape MATRIX_M x MATRIX_N x MATRIX_K for sub-groups with
//          float sums; a grid of exactly (tiles of rows x splits) x kv heads x batch; lengths below 2^30; rows whose parts are
//          aligned; no policies of pairs; operands below 2^32 elements.
//
// A sub-group takes KEYS keys of a step and asks no other before the last one. Who holds which element of a matrix is the
// driver's secret, so keys, then values, cross the sub-group's place in local memory, where codes become elements. Loops over
// arrays of matrices have one level, as drivers move arrays to memory that they can't unroll.
//
//   [keys][features] x [features][rows]  ->  scores, softmax, rounded  ->  [columns][keys] x [keys][rows]
//
// A row whose sums are not finite, or whose scales are too far apart, is computed again, without matrices, from the keys that it sees alone.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_vote : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "abi/shared.h"
#if DTYPE == DTYPE_F16
#define ELEMENT float16_t
#else
#extension GL_EXT_bfloat16 : require
#define ELEMENT bfloat16_t
#endif
#include "lib/prelude.glsl"
#include "operations/attention_core/cooperative/decode.def"
#define CALL_FEATURES (RULE(features) & ~POLICY_PAIRS)

// What each step asks of the arguments. Larger ones lie in a buffer, which keys and values that stream by drive out of
// the caches.
uint k_stride_row, k_stride_page, v_stride_row, v_stride_page;  // in parts
#if PAGED
#include "operations/attention_core/core/pages_args.h"
AttentionPages call_pages;
#define PAGES(name) (call_pages.name)
#endif
#include "attention/core/forward_call.glsl"
#if CODES
#define ATTN_KEY_BITS (CODE_TYPE == DTYPE_I4 ? 4u : 8u)
AttentionScales key_scales, value_scales;
#else
#define ATTN_KEY_BITS 16u
#endif
#include "operations/attention_core/cooperative/decode.h"
#include "lib/cooperative/products.glsl"
#include "attention/cooperative/codes.glsl"
#include "lib/cooperative/elements.glsl"

layout(std430, binding = 0) readonly buffer Queries { scalar q[]; };
#if CODES
layout(std430, binding = 1) readonly buffer Keys { uint k[]; };
layout(std430, binding = 2) readonly buffer Values { uint v[]; };
#else
layout(std430, binding = 1) readonly buffer Keys { scalar k[]; };
layout(std430, binding = 2) readonly buffer Values { scalar v[]; };
#endif
layout(std430, binding = 1) readonly buffer KeyParts { uvec4 k_parts[]; };
layout(std430, binding = 2) readonly buffer ValueParts { uvec4 v_parts[]; };
layout(std430, binding = 3) writeonly buffer Output { scalar o[]; };
layout(std430, binding = 4) writeonly buffer LogSumExp { float log_sum_exp[]; };
layout(std430, binding = SCRATCH_BINDING) writeonly buffer Partials { float partials[]; };

shared uvec4 memory[ATTN_FEW_SUBGROUPS * ATTN_FEW_OWN];
shared uvec2 weight_fours[ATTN_FEW_SUBGROUPS * ATTN_FEW_WEIGHTS];
// Of each sub-group and row: what its sums shrink by; and at the end the largest score, the largest of scores and scales of
// values, and the sum of weights.
shared float factors[ATTN_FEW_SUBGROUPS * MATRIX_N];
shared vec3 statistics[ATTN_FEW_SUBGROUPS * MATRIX_N];
#if CODES
// Of each sub-group's keys, by fours: what scores are multiplied by, and log2 of the scale of the value.
shared vec4 score_scales[ATTN_FEW_SUBGROUPS * KEYS / 4u], weight_exponents[ATTN_FEW_SUBGROUPS * KEYS / 4u];
float key_scale_ahead, value_scale_ahead;
// Of scales of values, log2. A weight times a scale is a half in units of the largest: where scales are much smaller, it holds
// nothing of them, and of e5m2 their codes may be as much larger. Rows of such keys are computed again.
float least_exponent = 128.0, largest_exponent = -150.0;
const float kFarExponents = 10.0;
#define CODES_MAY_OUTDO_SCALES (CODE_TYPE == DTYPE_E5M2)
uint odd_code = 0u;
#endif
shared uint odd_rows;  // a bit for each row that is computed again

uint lane, subgroup, own;  // own: the sub-group's place in memory
uint k_base, v_base;       // of the kv head, in elements
float inner, outer;        // a score in base 2 is inner x, or outer tanh(inner x) where it is capped
int begin_key, end_key;    // of the split

#include "attention/core/few_rows.glsl"
#include "attention/core/key_rows.glsl"
#include "attention/cooperative/exact.glsl"

COOPERATIVE_RIGHT query[ATTN_FEW_HEAD_STEPS];
COOPERATIVE_SUM product[ATTN_FEW_KEY_TILES], total[ATTN_FEW_VALUE_TILES];
uvec4 key_part[ATTN_FEW_KEY_COPIES], value_part[ATTN_FEW_VALUE_COPIES];
ScoredRow own_row;
float most = LOWEST_MAXIMUM, most_scaled = LOWEST_MAXIMUM, sum = 0.0;  // of row lane / ATTN_FEW_ROW_LANES

// Where the keys of the step at `first` lie: with WHOLE_PAGES=1 the first of them, else key lane % KEYS.
struct StepPlace {
  uint page, slot;
};
int step_key(int first, uint n) { return clamp(first + int(n), begin_key, end_key - 1); }

StepPlace step_place(int first) {
#if PAGED
  const uint key = uint(WHOLE_PAGES != 0u ? clamp(first, 0, end_key - 1) : step_key(first, lane % KEYS));
  const uint number = page_number(key);
  const uint slot = WHOLE_PAGES != 0u ? uint(first) : key;
  return StepPlace(page_in_table(sequence, number), slot - number * PAGES(page_size));
#else
  return StepPlace(0u, uint(first));
#endif
}

// Tokens of no page are hidden: any page of the pool will do.
#if PAGED
#define PAGE_OF(place) min(place.page, PAGES(pages) - 1u)
#else
#define PAGE_OF(place) 0u
#endif

// Key n of a step: its place in units of the strides, of which `at` is that of the place.
uint place_of_key(uint at, uint row_stride, int first, uint n) {
  return WHOLE_PAGES != 0u ? at + uint(step_key(first, n) - first) * row_stride : subgroupShuffle(at, n);
}

// Whether all keys of a step are the split's: then none stands in for another.
// Over codes, which are longer in the making than on their way, it gained nothing.
bool is_whole_step(int first) {
#if CODES
  return false;
#else
  return WHOLE_PAGES != 0u && first >= begin_key && first + int(KEYS) <= end_key;
#endif
}

// This item's parts of a step. Of key `number` / parts, `key_at` says where it lies.
#define FETCH_PARTS(to, parts_of, copies, parts, features, key_at)                                         \
  [[unroll]] for (uint i = 0u; i < (copies); ++i) {                                                        \
    const uint number = lane + i * LANES, part = number % (parts);                                         \
    to[i] = uvec4(0u);                                                                                     \
    if (part * ATTN_FEW_PART < (features) && number < KEYS * (parts)) to[i] = parts_of[(key_at) + part];   \
  }
#define FETCH(name, to, parts_of, base, row_stride, page_stride, copies, parts, features)                  \
  void name(StepPlace place, int first) {                                                                  \
    const uint at = base / ATTN_FEW_PART + PAGE_OF(place) * page_stride + place.slot * row_stride;         \
    if (is_whole_step(first)) {                                                                            \
      FETCH_PARTS(to, parts_of, copies, parts, features, at + number / (parts) % KEYS * row_stride)        \
    } else {                                                                                               \
      FETCH_PARTS(to, parts_of, copies, parts, features,                                                   \
                  place_of_key(at, row_stride, first, number / (parts) % KEYS))                            \
    }                                                                                                      \
  }
FETCH(fetch_key_parts, key_part, k_parts, k_base, k_stride_row, k_stride_page, ATTN_FEW_KEY_COPIES, ATTN_FEW_KEY_PARTS,
      HEAD_DIM)
FETCH(fetch_values, value_part, v_parts, v_base, v_stride_row, v_stride_page, ATTN_FEW_VALUE_COPIES, ATTN_FEW_VALUE_PARTS,
      VALUE_DIM)

#if CODES
// Of key lane % KEYS of a step; 0 of tokens of no page.
#define SCALE_OF(buffer, scales)                                                                           \
  buffer[(scales).offset + KEYS_OF(batch) * (scales).stride_batch + kv_head * (scales).stride_head +       \
         PAGE_OF(place) * (scales).stride_batch + slot * (scales).stride_row]
void fetch_scales(StepPlace place, int first) {
  const uint slot =
      WHOLE_PAGES != 0u ? place.slot + uint(step_key(first, lane % KEYS) - first) : place.slot;
  key_scale_ahead = 0.0;
  value_scale_ahead = 0.0;
#if PAGED
  if (place.page >= PAGES(pages)) return;
#endif
  key_scale_ahead = SCALE_OF(key_scale, key_scales);
  value_scale_ahead = SCALE_OF(value_scale, value_scales);
}
void store_scales() {
  if (lane >= KEYS) return;
  const uint four = (subgroup * KEYS + lane) / 4u;
  const float exponent = log2(value_scale_ahead);
  score_scales[four][lane % 4u] = key_scale_ahead * kCodeUnit;
  weight_exponents[four][lane % 4u] = exponent + log2(kCodeUnit);
  if (!CODES_MAY_OUTDO_SCALES || value_scale_ahead == 0.0) return;
  least_exponent = min(least_exponent, exponent);
  largest_exponent = max(largest_exponent, exponent);
}
#else
#define fetch_scales(place, first)
#define store_scales()
#endif

void fetch_keys(StepPlace place, int first) {
  fetch_key_parts(place, first);
  fetch_scales(place, first);
}

#if CODES
#define LOOK_FOR_ODD(part)                                                                               \
  if (ODD_CODES && !ODD_CODES_ARE_INFINITE)                                                              \
    odd_code |= odd_codes(part.x) | odd_codes(part.y) | odd_codes(part.z) | odd_codes(part.w);
#else
#define LOOK_FOR_ODD(part)
#endif

// From there to the tile.
#define STORE(name, from, copies, parts, stride)                                                                    \
  void name() {                                                                                                     \
    [[unroll]] for (uint i = 0u; i < (copies); ++i) {                                                               \
      const uint number = lane + i * LANES;                                                                         \
      if (KEYS * (parts) % LANES != 0u && number >= KEYS * (parts)) continue;                                       \
      LOOK_FOR_ODD(from[i])                                                                                         \
      [[unroll]] for (uint j = 0u; j < ATTN_FEW_PART / 8u; ++j)                                                     \
        memory[own + number / (parts) * (stride) + number % (parts) + j * (parts)] = part_vector(from[i], j);       \
    }                                                                                                               \
  }
STORE(store_keys, key_part, ATTN_FEW_KEY_COPIES, ATTN_FEW_KEY_PARTS, ATTN_FEW_KEY_STRIDE)
STORE(store_values, value_part, ATTN_FEW_VALUE_COPIES, ATTN_FEW_VALUE_PARTS, ATTN_FEW_VALUE_STRIDE)

// Rows past the last one are zeros.
void load_queries() {
  const uint vectors = ATTN_FEW_KEY_COLUMNS / 8u;
  [[dont_unroll]] for (uint n = lane; n < MATRIX_N * vectors; n += LANES) {
    const uint row = tile_first + n / vectors, number = n % vectors;
    const uint from = query_at(min(row, tile_end - 1u));
    uvec4 part = uvec4(0u);
    [[unroll]] for (uint i = 0u; i < 8u; ++i) {
      const uint feature = FEATURE_AT(number, i, ATTN_FEW_KEY_PARTS, ATTN_FEW_PART);
      if (row < tile_end && feature < HEAD_DIM) part[i / 2u] |= uint(q[from + feature]) << i % 2u * 16u;
    }
    memory[own + n / vectors * ATTN_FEW_KEY_STRIDE + number] = part;
  }
  subgroupBarrier();
  [[unroll]] for (uint d = 0u; d < ATTN_FEW_HEAD_STEPS; ++d)
    coopMatLoad(query[d], memory, own + d * MATRIX_K / 8u, ATTN_FEW_KEY_STRIDE, kColumnMajor);
  subgroupBarrier();
}

void multiply_keys() {
  [[unroll]] for (uint n = 0u; n < ATTN_FEW_KEY_TILES; ++n) product[n] = COOPERATIVE_SUM(0.0);
  [[unroll]] for (uint i = 0u; i < ATTN_FEW_HEAD_STEPS * ATTN_FEW_KEY_TILES; ++i) {
    const uint d = i / ATTN_FEW_KEY_TILES, n = i % ATTN_FEW_KEY_TILES;
    COOPERATIVE_LEFT keys;
    coopMatLoad(keys, memory, own + n * MATRIX_M * ATTN_FEW_KEY_STRIDE + d * MATRIX_K / 8u, ATTN_FEW_KEY_STRIDE, kRowMajor);
    product[n] = coopMatMulAdd(keys, query[d], product[n]);
  }
  [[unroll]] for (uint n = 0u; n < ATTN_FEW_KEY_TILES; ++n)
    coopMatStore(product[n], memory, own + ATTN_FEW_TILE + n * MATRIX_M / 4u, ATTN_FEW_SCORE_STRIDE, kColumnMajor);
}

void add_values() {
  COOPERATIVE_RIGHT weight[ATTN_FEW_KEY_STEPS];
  [[unroll]] for (uint n = 0u; n < ATTN_FEW_KEY_STEPS; ++n)
    coopMatLoad(weight[n], weight_fours, subgroup * ATTN_FEW_WEIGHTS + n * MATRIX_K / 4u, ATTN_FEW_WEIGHT_STRIDE, kColumnMajor);
  [[unroll]] for (uint i = 0u; i < ATTN_FEW_KEY_STEPS * ATTN_FEW_VALUE_TILES; ++i) {
    const uint n = i / ATTN_FEW_VALUE_TILES, t = i % ATTN_FEW_VALUE_TILES;
    COOPERATIVE_LEFT values;
    coopMatLoad(values, memory, own + n * MATRIX_K * ATTN_FEW_VALUE_STRIDE + t * MATRIX_M / 8u, ATTN_FEW_VALUE_STRIDE,
                kColumnMajor);
    total[t] = coopMatMulAdd(values, weight[n], total[t]);
  }
}

float largest_of_row(float x) {
  [[unroll]] for (uint away = 1u; away < ATTN_FEW_ROW_LANES; away *= 2u) x = max(x, subgroupShuffleXor(x, away));
  return x;
}

// Scores of a step become weights. Whether sums shrink by the row's factor.
bool weigh(int first, bool all_visible) {
  const uint row = lane / ATTN_FEW_ROW_LANES;
  vec4 score[ATTN_FEW_FOURS];
  float top = most;
  [[unroll]] for (uint i = 0u; i < ATTN_FEW_FOURS; ++i) {
    const uint four = lane % ATTN_FEW_ROW_LANES + ATTN_FEW_ROW_LANES * i;
    vec4 x = uintBitsToFloat(memory[own + ATTN_FEW_TILE + row * ATTN_FEW_SCORE_STRIDE + four]);
#if CODES
    if (ODD_CODES_ARE_INFINITE) odd_code = max(odd_code, floatBitsToUint((x.x + x.y) + (x.z + x.w)) & 0x7f800000u);
    x *= score_scales[subgroup * (KEYS / 4u) + four];
#endif
    x *= inner;
    if (CAPPED != 0u)
      [[unroll]] for (uint c = 0u; c < 4u; ++c) x[c] = outer * saturating_tanh(x[c]);
    if (!all_visible) {
      [[unroll]] for (int c = 0; c < 4; ++c) {
        const int key = first + int(four) * 4 + c;
        bool seen = key >= own_row.first && key < min(own_row.end, end_key);
#if POLICY
        seen = seen && key >= begin_key && policy_sees(own_row, key);
#else
        seen = seen && key >= begin_key;
#endif
        if (!seen) x[c] = MASKED_SCORE;
      }
    }
    top = max(top, max(max(x.x, x.y), max(x.z, x.w)));
    score[i] = x;
  }
  top = largest_of_row(top);
  const float decay = exp2(most - top);
  most = top;
  sum *= decay;
#if CODES
  // Weights times scales have a maximum of their own: halves hold the largest whatever the scales are.
  vec4 scaled[ATTN_FEW_FOURS];
  top = most_scaled;
  [[unroll]] for (uint i = 0u; i < ATTN_FEW_FOURS; ++i) {
    const uint four = lane % ATTN_FEW_ROW_LANES + ATTN_FEW_ROW_LANES * i;
    scaled[i] = score[i] + weight_exponents[subgroup * (KEYS / 4u) + four];
    top = max(top, max(max(scaled[i].x, scaled[i].y), max(scaled[i].z, scaled[i].w)));
  }
  top = largest_of_row(top);
  const float factor = exp2(most_scaled - top);
  most_scaled = top;
#else
  most_scaled = most;
  const float factor = decay;
#define scaled score
#endif
  [[unroll]] for (uint i = 0u; i < ATTN_FEW_FOURS; ++i) {
    const uint four = lane % ATTN_FEW_ROW_LANES + ATTN_FEW_ROW_LANES * i;
    const vec4 weight = exp2(score[i] - most), scaled_weight = exp2(scaled[i] - most_scaled);
    sum += (weight.x + weight.y) + (weight.z + weight.w);
    weight_fours[subgroup * ATTN_FEW_WEIGHTS + row * ATTN_FEW_WEIGHT_STRIDE + four] =
        uvec2(narrow_pair(scaled_weight.xy), narrow_pair(scaled_weight.zw));
  }
  if (lane % ATTN_FEW_ROW_LANES == 0u) factors[subgroup * MATRIX_N + row] = factor;
  return factor != 1.0;
}

// All sub-groups take as many steps, the last one with nothing but hidden keys where there are no more: a driver may take the
// barriers of a sub-group for those of the group.
void attend(Interval at) {
  int step = begin_key / int(KEYS) * int(KEYS);
  int first = step + int(subgroup * KEYS);
  StepPlace place, next_place;
  if (step < end_key) {
    place = step_place(first);
    fetch_keys(place, first);
    fetch_values(place, first);
    place = step_place(first + int(ATTN_FEW_STEP));
  }
  load_queries();
  [[unroll]] for (uint t = 0u; t < ATTN_FEW_VALUE_TILES; ++t) total[t] = COOPERATIVE_SUM(0.0);
  for (; step < end_key; step += int(ATTN_FEW_STEP)) {
    const int next = first + int(ATTN_FEW_STEP);
    const bool more = step + int(ATTN_FEW_STEP) < end_key;
    store_keys();
    store_scales();
    next_place = step_place(next + int(ATTN_FEW_STEP));
    subgroupBarrier();
    if (more) fetch_keys(place, next);
    multiply_keys();
    subgroupBarrier();
    store_values();
    if (more) fetch_values(place, next);
    const bool shrinks =
        weigh(first, first >= max(at.common_first, begin_key) && first + int(KEYS) <= min(at.common_end, end_key));
    subgroupBarrier();
    if (subgroupAny(shrinks)) {
      COOPERATIVE_SUM shrink;
      coopMatLoad(shrink, factors, subgroup * MATRIX_N, 0u, kRowMajor);
      [[unroll]] for (uint t = 0u; t < ATTN_FEW_VALUE_TILES; ++t) total[t] = total[t] * shrink;
    }
    add_values();
    subgroupBarrier();
    place = next_place;
    first = next;
  }
}

// {largest score, sum of weights} of a row, by all sub-groups.
vec2 row_statistics(uint row) {
  vec2 all = vec2(LOWEST_MAXIMUM, 0.0);
  [[unroll]] for (uint s = 0u; s < ATTN_FEW_SUBGROUPS; ++s) all.x = max(all.x, statistics[s * MATRIX_N + row].x);
  [[unroll]] for (uint s = 0u; s < ATTN_FEW_SUBGROUPS; ++s) {
    const vec3 part = statistics[s * MATRIX_N + row];
    all.y = fma(part.z, exp2(part.x - all.x), all.y);
  }
  return all;
}

// A column of a row's sums, in units of its largest score.
float sum_of_column(uint row, uint column, float largest) {
  float all = 0.0;
  [[unroll]] for (uint s = 0u; s < ATTN_FEW_SUBGROUPS; ++s)
    all = fma(uintBitsToFloat(memory[s * ATTN_FEW_OWN + row * ATTN_FEW_SUM_STRIDE + column / 4u][column % 4u]),
              exp2(statistics[s * MATRIX_N + row].y - largest), all);
  return all;
}

// Every sub-group leaves its sums, maxima and totals; then the items merge them, a column at a time.
void store_rows() {
  [[unroll]] for (uint t = 0u; t < ATTN_FEW_VALUE_TILES; ++t)
    coopMatStore(total[t], memory, own + t * MATRIX_M / 4u, ATTN_FEW_SUM_STRIDE, kColumnMajor);
  [[unroll]] for (uint away = 1u; away < ATTN_FEW_ROW_LANES; away *= 2u) sum += subgroupShuffleXor(sum, away);
  if (lane % ATTN_FEW_ROW_LANES == 0u)
    statistics[subgroup * MATRIX_N + lane / ATTN_FEW_ROW_LANES] = vec3(most, most_scaled, sum);
  barrier();
#if CODES
  const bool far = CODES_MAY_OUTDO_SCALES &&
                   all_lanes(largest_exponent, false) + all_lanes(-least_exponent, false) > kFarExponents;
  if (far || (ODD_CODES_ARE_INFINITE ? odd_code == 0x7f800000u : (odd_code & 0x80808080u) != 0u)) atomicOr(odd_rows, ~0u);
#endif
  const uint rows = min(tile_end - tile_first, MATRIX_N), item = subgroup * LANES + lane;
  [[dont_unroll]] for (uint n = item; n < rows * ATTN_FEW_VALUE_COLUMNS; n += WG_X) {
    const uint row = n / ATTN_FEW_VALUE_COLUMNS, exponents = 0x7f800000u;  // all of them: not finite
    const vec2 all = row_statistics(row);
    const float result = sum_of_column(row, n % ATTN_FEW_VALUE_COLUMNS, all.x);
    if ((floatBitsToUint(result) & exponents) == exponents && !isnan(all.y)) atomicOr(odd_rows, 1u << row);
  }
  barrier();
  const uint odd = odd_rows;
  [[dont_unroll]] for (uint n = item; n < rows * ATTN_FEW_VALUE_COLUMNS; n += WG_X) {
    const uint row = n / ATTN_FEW_VALUE_COLUMNS, column = n % ATTN_FEW_VALUE_COLUMNS;
    const uint feature = FEATURE_AT(column / 8u, column % 8u, ATTN_FEW_VALUE_PARTS, ATTN_FEW_PART);
    if (feature >= VALUE_DIM || (odd >> row & 1u) != 0u) continue;
    const vec2 all = row_statistics(row);
    store_result(tile_first + row, feature, sum_of_column(row, column, all.x), all.x, all.y);
  }
  if (odd == 0u) return;
  barrier();  // the sub-group's place is its own again
  [[dont_unroll]] for (uint n = subgroup; n < rows; n += ATTN_FEW_SUBGROUPS) {
    if ((odd >> n & 1u) == 0u) continue;
    const uint row = tile_first + n;
    const ScoredRow seen = scored_row(row);
    const vec2 all = exact_row(query_head(row), query_row(row), query_at(row), max(seen.first, begin_key),
                               min(seen.end, end_key));
    [[unroll]] for (uint c = 0u; c < EXACT_COLUMNS; ++c)
      memory[own + lane + LANES * (c / 4u)][c % 4u] = floatBitsToUint(exact_sums[c]);
    [[dont_unroll]] for (uint c = 0u; lane + LANES * c < VALUE_DIM; ++c)
      store_result(row, lane + LANES * c, uintBitsToFloat(memory[own + lane + LANES * (c / 4u)][c % 4u]), all.x, all.y);
  }
}

void main() {
  lane = gl_SubgroupInvocationID;
  subgroup = gl_SubgroupID;
  own = subgroup * ATTN_FEW_OWN;
  if (subgroup == 0u && lane == 0u) odd_rows = 0u;
  if (!take_tile(MATRIX_N)) return;
  inner = CAPPED != 0u ? CALL.scale / CALL.soft_cap : CALL.scale * LOG2_E;
  outer = CALL.soft_cap * LOG2_E;
  k_stride_row = CALL.k_stride_row / ATTN_FEW_PART;
  k_stride_page = CALL.k_stride_batch / ATTN_FEW_PART;
  v_stride_row = CALL.v_stride_row / ATTN_FEW_PART;
  v_stride_page = CALL.v_stride_batch / ATTN_FEW_PART;
#if CODES
  key_scales = args.key_scales;
  value_scales = args.value_scales;
#endif
#if PAGED
  key_sequence = sequence;
  call_pages = args.pages;
#endif
  k_base = CALL.k_offset + KEYS_OF(batch) * CALL.k_stride_batch + kv_head * CALL.k_stride_head;
  v_base = CALL.v_offset + KEYS_OF(batch) * CALL.v_stride_batch + kv_head * CALL.v_stride_head;

  // Steps begin at multiples of KEYS, which are in one page.
  Interval at = interval_of_rows();
  at = share_of(at, at.first / int(KEYS) * int(KEYS), ATTN_FEW_STEP);
  begin_key = at.first;
  end_key = at.end;
  own_row = scored_row(tile_first + lane / ATTN_FEW_ROW_LANES);
  attend(at);
  store_rows();
}
