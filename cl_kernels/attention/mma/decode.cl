// SPDX-License-Identifier: Apache-2.0
// What     Attention of few query rows per kv head over many keys by matrix instructions: o and lse, or the partial results
//          of a split.
// Who      Group (x, y, z): ROWS rows and a split of their keys; kv head; batch.
// Memory   k and v once per ROWS rows, from memory to registers, keys a step ahead; ATTN_FEW_LOCAL_BYTES.
// Numerics Float sums of products of f16 or bf16; each warp has a softmax over its own keys in order, base 2, running
//          maximum; warps are merged in order; weights are rounded to the storage type, their sum is not. Codes are factors
//          as they are, and weights times the scales of their values sums of two bf16.
// Assumes  sm_80, ATTN_FEW_VALID; a grid of exactly (tiles of rows x splits) x kv heads x batch; lengths below 2^30; rows
//          whose parts are aligned; no policies but sinks, packed sequences and pages.
//
//   Row r of a kv head is query row r / pack of its query head r % pack, so a key is read once for all of them. A warp
//   takes sixteen keys of a step:
//
//     [rows][features] x [features][keys]  ->  scores, softmax, rounded  ->  [columns][keys] x [keys][rows]
//
//   Sums do not depend on the order in which an instruction takes features, keys and columns, so items hold what they read
//   with wide loads: of a key, parts lane % 4 + 4 n of its row; of four values, parts lane / 4 + 8 n. Scores that one
//   product leaves in an item are what the other takes there.
//
//   A row whose sums are not finite is computed again, by attention/core/exact_row, from the keys that it sees alone.
#include "attention/core/interval.clh"
#include "attention/core/work.clh"
#include "operations/attention_core/core/combine.h"
#if DTYPE == DTYPE_BF16
#define MMA_TYPES MMA_BF16
#else
#define MMA_TYPES MMA_F16
#endif
#include "attention/mma/decode_keys.clh"
#include "attention/mma/decode_codes.clh"
#include "attention/core/exact_row.clh"
#if CODES
#define ATTN_KEY_BITS (CODE_TYPE == DTYPE_I4 ? 4u : 8u)
#else
#define ATTN_KEY_BITS 16u
#endif
#include "operations/attention_core/mma/decode.h"

#define ROW_TILES ATTN_FEW_ROW_TILES
#define VALUE_TILES ATTN_FEW_VALUE_TILES
#define KEY_REGISTERS (ATTN_FEW_KEY_PARTS * ATTN_FEW_KEY_WORDS)
#define VALUE_REGISTERS (ATTN_FEW_VALUE_PARTS * ATTN_FEW_VALUE_WORDS)
// Codes take half the registers or less, so there is room for those of two steps.
#define TURNS (CODES ? 2 : 1)

// What a group works on: rows of a kv head.
typedef struct {
  const struct AttentionArgs* args;
#if POLICY
  const Policies* policies;
#endif
  uint batch, first_head, first_row, end_row;
} Work;

INLINE uint query_row(const Work* work, uint row) { return row / work->args->pack; }
INLINE uint query_head(const Work* work, uint row) { return work->first_head + row % work->args->pack; }

// {first, end, 0, whether some of the keys are in no page}; rows past the last one see nothing.
INLINE int4 keys_of_row(const Work* work, uint row) {
  const uint at = min(row, work->end_row - 1);
#if POLICY
  const Policies* policies = work->policies;
  int4 entry = ROW_ENTRY(RULE(rows) + work->batch * CORE(q_len) + query_row(work, at));
#if PAGED
  entry.s3 = PAGED_HIDES(entry.s3);
#endif
#else
  const struct AttentionArgs* a = work->args;
  int4 entry = (int4)(max((int)query_row(work, at) + a->band_low, 0),
                      min((int)query_row(work, at) + 1 + a->band_high, (int)a->kv_len), 0, 0);
#endif
  if (row >= work->end_row) entry.s1 = entry.s0;
  return entry;
}

INLINE Interval interval_of(const Work* work) {
  Interval at = interval_of_no_row();
  for (uint row = query_row(work, work->first_row); row <= query_row(work, work->end_row - 1); ++row) {
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

// The scores of an item: keys COLUMN_OF(i) of a step, rows lane / 4 + 8 r.
#define SCORE_COLUMN(i) ((i) / 2 * 8 + lane % 4 * 2 + (i) % 2)

KERNEL void attention_mma_decode(const global scalar* restrict q, const global key_scalar* restrict k,
                                 const global key_scalar* restrict v, global scalar* restrict output,
                                 global float* restrict log_sum_exp, global float* scratch, CALL_PARAMETERS) {
  local float memory[ATTN_FEW_LOCAL_BYTES / 4] __attribute__((aligned(16)));
  local float* statistics = memory + ATTN_FEW_SUMS;
  local uint* odd_rows = (local uint*)(statistics + 2 * ATTN_FEW_WARPS * ROWS);
  const uint item = get_local_id(0), lane = item % 32, warp = (uint)uniform((int)(item / 32));
#if POLICY
  const struct AttentionArgs a = call.core;
  MAKE_PAGING(call)
  const Policies policies = MAKE_POLICIES(call, scratch);
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
                     batch, kv_head * a.group, first_row, max(tile.end, first_row + 1)};
  Interval at = interval_of(&work);
  if (tile.first >= tile.end) at.end = at.first;  // beyond the work list
  // One split's share, in whole steps. Depends on nothing but the rows and the number of splits.
  const int aligned = at.first & ~(int)(ATTN_FEW_KEYS - 1);
  const ulong steps = (ulong)((max(at.end - aligned, 0) + (int)ATTN_FEW_STEP - 1) / (int)ATTN_FEW_STEP);
  const int begin = at.first, last_end = at.end;
  int step = aligned + (int)(steps * split / a.splits) * (int)ATTN_FEW_STEP;
  const int share_begin = max(step, begin);
  const int end = min(last_end, aligned + (int)(steps * (split + 1) / a.splits) * (int)ATTN_FEW_STEP);
  step += (int)(warp * ATTN_FEW_KEYS);

  const KeyRows keys = {(const global uchar*)KEY_ELEMENTS(k, a.k_offset + (size_t)KEYS_OF(batch) * a.k_stride_batch +
                                                                (size_t)kv_head * a.k_stride_head),
                        KEY_BYTES(a.k_stride_row), KEY_BYTES(a.k_stride_batch)};
  const KeyRows values = {(const global uchar*)KEY_ELEMENTS(v, a.v_offset + (size_t)KEYS_OF(batch) * a.v_stride_batch +
                                                                  (size_t)kv_head * a.v_stride_head),
                          KEY_BYTES(a.v_stride_row), KEY_BYTES(a.v_stride_batch)};
#if PAGED
  StepPlace place, next_place;
#define LOOK_UP(to, first) to = step_place(&paging, tile.sequence, first, begin, end, lane);
#else
#define LOOK_UP(to, first)
#endif
  uint key[TURNS][2 * KEY_REGISTERS], value[TURNS][4 * VALUE_REGISTERS];
#if CODES
  const KeyScales all_key_scales = KEY_SCALES(key_scale, call.key_scales, batch, kv_head, tile.sequence);
  const KeyScales all_value_scales = KEY_SCALES(value_scale, call.value_scales, batch, kv_head, tile.sequence);
  const global float *key_scales = all_key_scales.data, *value_scales = all_value_scales.data;
  float score_scale[TURNS][4], weight_scale[TURNS][4];
  uint odd_code = 0;
#define FETCH_SCALES(to, data, args, place, first) \
  UNROLL for (uint i = 0; i < 4; ++i)              \
    to[i] = read_scale(data, args, STEP_KEY(place, SCORE_COLUMN(i), first, begin, end));
#define FETCH_KEY_SCALES(turn, place, first) FETCH_SCALES(score_scale[turn], key_scales, call.key_scales, place, first)
#define FETCH_VALUE_SCALES(turn, place, first) FETCH_SCALES(weight_scale[turn], value_scales, call.value_scales, place, first)
#else
#define FETCH_KEY_SCALES(turn, place, first)
#define FETCH_VALUE_SCALES(turn, place, first)
#endif
#define FETCH_KEYS(turn, place, first)                                                                             \
  UNROLL for (uint n = 0; n < 2; ++n)                                                                        \
    read_row(key[turn] + n * KEY_REGISTERS, keys, STEP_KEY(place, lane / 4 + 8 * n, first, begin, end), lane % 4, 4, \
             ATTN_FEW_KEY_PARTS, ATTN_FEW_KEY_PART, ATTN_FEW_KEY_WORDS, HEAD_DIM);                           \
  FETCH_KEY_SCALES(turn, place, first)
#define FETCH_VALUES(turn, place, first)                                                                           \
  UNROLL for (uint n = 0; n < 4; ++n)                                                                        \
    read_row(value[turn] + n * VALUE_REGISTERS, values, STEP_KEY(place, SCORE_COLUMN(n), first, begin, end), lane / 4, 8, \
             ATTN_FEW_VALUE_PARTS, ATTN_FEW_VALUE_PART, ATTN_FEW_VALUE_WORDS, VALUE_DIM);                    \
  FETCH_VALUE_SCALES(turn, place, first)

  if (step < end) {
    LOOK_UP(place, step)
    FETCH_KEYS(0, place, step)
#if CODES
    FETCH_VALUES(0, place, step)
#endif
    LOOK_UP(next_place, step + (int)ATTN_FEW_STEP)
  }

  uint query[ROW_TILES * 2 * ATTN_FEW_HEAD_STEPS];
  UNROLL for (uint r = 0; r < ROW_TILES; ++r) {
    const uint row = min(first_row + lane / 4 + 8 * r, work.end_row - 1);
    const global scalar* from = q + a.q_offset + (size_t)batch * a.q_stride_batch +
                                (size_t)query_head(&work, row) * a.q_stride_head +
                                (size_t)query_row(&work, row) * a.q_stride_row;
    UNROLL for (uint p = 0; p < ATTN_FEW_KEY_PARTS; ++p) {
      uint part[ATTN_FEW_KEY_PART / 2];
      const uint feature = (4 * p + lane % 4) * ATTN_FEW_KEY_PART;
      UNROLL for (uint i = 0; i < ATTN_FEW_KEY_PART / 2; i += 4)
        read_words(part + i, (const global uchar*)(from + feature + 2 * i), 4, feature < HEAD_DIM);
      UNROLL for (uint s = 0; s < ATTN_FEW_KEY_PART / 4; ++s)
        query_factors(query + (r * ATTN_FEW_HEAD_STEPS + p * ATTN_FEW_KEY_PART / 4 + s) * 2, part, s);
    }
  }
  int4 sees[ROW_TILES];
  float most[ROW_TILES], total[ROW_TILES], sum[ROW_TILES * VALUE_TILES * 4];
  UNROLL for (uint r = 0; r < ROW_TILES; ++r) {
    sees[r] = keys_of_row(&work, first_row + lane / 4 + 8 * r);
    most[r] = LOWEST_MAXIMUM, total[r] = 0.0f;
  }
  UNROLL for (uint i = 0; i < ROW_TILES * VALUE_TILES * 4; ++i) sum[i] = 0.0f;

  const float scale = a.scale * CODE_FACTOR;
  while (step < end) UNROLL for (uint turn = 0; turn < TURNS; ++turn) {
    if (turn > 0 && step >= end) break;
    const int next = step + (int)ATTN_FEW_STEP;
#if !CODES
    FETCH_VALUES(0, place, step)
#endif
#if PAGED
    place = next_place;
#endif
    LOOK_UP(next_place, next + (int)ATTN_FEW_STEP)
#if CODES
    if (next < end) {
      FETCH_KEYS(1 - turn, place, next)
      FETCH_VALUES(1 - turn, place, next)
    }
#endif

    float product[2][4];
    UNROLL for (uint n = 0; n < 2; ++n) {
      UNROLL for (uint i = 0; i < 4; ++i) product[n][i] = 0.0f;
      UNROLL for (uint p = 0; p < ATTN_FEW_KEY_PARTS; ++p)
        UNROLL for (uint s = 0; s < ATTN_FEW_KEY_PART / 4; ++s) {
          const uint* rows = query + (p * ATTN_FEW_KEY_PART / 4 + s) * 2;
          const uint* rows8 = rows + 2 * ATTN_FEW_HEAD_STEPS;
          const uint left[4] = {rows[0], ROW_TILES > 1 ? rows8[0] : 0, rows[1], ROW_TILES > 1 ? rows8[1] : 0};
          uint right[2];
          key_factors(right, key[turn] + n * KEY_REGISTERS + p * ATTN_FEW_KEY_WORDS, s);
          mma_multiply_add(product[n], product[n] + 2, left, right[0], right[1]);
        }
    }
    float score[ROW_TILES][4];
    UNROLL for (uint r = 0; r < ROW_TILES; ++r)
      UNROLL for (uint i = 0; i < 4; ++i) score[r][i] = product[i / 2][2 * r + i % 2];
#if CODES
    UNROLL for (uint i = 0; i < 2 * KEY_REGISTERS; ++i) odd_code |= odd_codes(key[turn][i]);
    UNROLL for (uint r = 0; r < ROW_TILES; ++r)
      UNROLL for (uint i = 0; i < 4; ++i) score[r][i] *= score_scale[turn][i];
#endif
#if !CODES
    if (next < end) {
      FETCH_KEYS(0, place, next)
    }
#endif
    UNROLL for (uint r = 0; r < ROW_TILES; ++r) {
      if (a.soft_cap > 0.0f) {
        UNROLL for (uint i = 0; i < 4; ++i)
          score[r][i] = a.soft_cap * LOG2_E * saturating_tanh(score[r][i] * (scale / a.soft_cap));
      } else {
        UNROLL for (uint i = 0; i < 4; ++i) score[r][i] *= scale * LOG2_E;
      }
    }
    if (step < at.common_first || step + (int)ATTN_FEW_KEYS > min(end, at.common_end)) {
      UNROLL for (uint r = 0; r < ROW_TILES; ++r)
        UNROLL for (uint i = 0; i < 4; ++i) {
          const int own = step + (int)SCORE_COLUMN(i);
          bool seen = own >= sees[r].s0 && own < sees[r].s1;
#if PAGED
          if (seen && sees[r].s3 != 0) seen = page_is_there(&paging, tile.sequence, (uint)own);
#endif
          if (!seen) score[r][i] = MASKED_SCORE;
        }
    }

    uint weight[ROW_TILES][2];
#if CODES
    uint weight_rest[ROW_TILES][2];
#endif
    float shrink[ROW_TILES], least = 1.0f;
    UNROLL for (uint r = 0; r < ROW_TILES; ++r) {
      const float largest = fmax(fmax(score[r][0], score[r][1]), fmax(score[r][2], score[r][3]));
      const float now = fmax(most[r], quad_max(largest));
      shrink[r] = fast_exp2(most[r] - now);
      most[r] = now;
      UNROLL for (uint i = 0; i < 4; ++i) score[r][i] = fast_exp2(score[r][i] - now);
      total[r] = fma(total[r], shrink[r], (score[r][0] + score[r][1]) + (score[r][2] + score[r][3]));
      least = fmin(least, shrink[r]);
#if CODES
      UNROLL for (uint i = 0; i < 4; ++i) score[r][i] *= weight_scale[turn][i];
      UNROLL for (uint i = 0; i < 2; ++i) {
        weight[r][i] = pack_bf16(score[r][2 * i], score[r][2 * i + 1]);
        weight_rest[r][i] = pack_bf16(score[r][2 * i] - as_float(weight[r][i] << 16),
                                      score[r][2 * i + 1] - as_float(weight[r][i] & 0xffff0000u));
      }
#else
      UNROLL for (uint i = 0; i < 2; ++i) weight[r][i] = pack_scalars(score[r][2 * i], score[r][2 * i + 1]);
#endif
    }
    if (warp_some_differ(least, 1.0f)) {
      UNROLL for (uint r = 0; r < ROW_TILES; ++r) {
        const float even = warp_take(shrink[r], lane % 4 * 8), odd = warp_take(shrink[r], lane % 4 * 8 + 4);
        UNROLL for (uint i = 0; i < VALUE_TILES * 4; ++i) sum[r * VALUE_TILES * 4 + i] *= i % 2 == 0 ? even : odd;
      }
    }
#if CODES
    UNROLL for (uint i = 0; i < 4 * VALUE_REGISTERS; ++i) odd_code |= odd_codes(value[turn][i]);
#endif
    UNROLL for (uint p = 0; p < ATTN_FEW_VALUE_PARTS; ++p)
      UNROLL for (uint t = 0; t < ATTN_FEW_VALUE_PART / 2; ++t) {
        const uint* part = value[turn] + p * ATTN_FEW_VALUE_WORDS;
        uint left[4];
        value_factors(&left[0], &left[1], part, part + VALUE_REGISTERS, t);
        value_factors(&left[2], &left[3], part + 2 * VALUE_REGISTERS, part + 3 * VALUE_REGISTERS, t);
        UNROLL for (uint r = 0; r < ROW_TILES; ++r) {
          float* to = sum + (r * VALUE_TILES + p * (ATTN_FEW_VALUE_PART / 2) + t) * 4;
#if CODES
          multiply_add_bf16(to, to + 2, left, weight[r][0], weight[r][1]);
          multiply_add_bf16(to, to + 2, left, weight_rest[r][0], weight_rest[r][1]);
#else
          mma_multiply_add(to, to + 2, left, weight[r][0], weight[r][1]);
#endif
        }
      }
    step = next;
  }

  // Every warp leaves its sums, maxima and totals; then the items merge them, a column at a time.
  if (item == 0) *odd_rows = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
#if CODES
  if ((odd_code & 0x80808080u) != 0) atomic_or(odd_rows, (1u << ROWS) - 1);
#endif
  UNROLL for (uint r = 0; r < ROW_TILES; ++r) {
    const float all = quad_sum(total[r]);
    if (lane % 4 == 0) {
      statistics[(warp * ROWS + 8 * r + lane / 4) * 2] = most[r];
      statistics[(warp * ROWS + 8 * r + lane / 4) * 2 + 1] = all;
    }
    UNROLL for (uint p = 0; p < ATTN_FEW_VALUE_PARTS; ++p)
      UNROLL for (uint t = 0; t < ATTN_FEW_VALUE_PART / 2; ++t) {
        const float* from = sum + (r * VALUE_TILES + p * (ATTN_FEW_VALUE_PART / 2) + t) * 4;
        local float* to = memory + (warp * ROWS + 8 * r + lane % 4 * 2) * ATTN_FEW_SPAN +
                          (p * 8 + lane / 4) * ATTN_FEW_VALUE_PART + 2 * t;
        *(local float2*)to = (float2)(from[0], from[2]);
        *(local float2*)(to + ATTN_FEW_SPAN) = (float2)(from[1], from[3]);
      }
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  const size_t lines = (size_t)get_num_groups(2) * a.heads * a.q_len;
  global float* totals = scratch + a.partials + a.splits * lines * VALUE_DIM;
  for (uint n = item; n < ROWS * VALUE_DIM; n += WG_X) {
    const uint r = n / VALUE_DIM, column = n % VALUE_DIM;
    if (first_row + r >= tile.end) break;
    float largest = LOWEST_MAXIMUM, all = 0.0f, o = 0.0f;
    UNROLL for (uint w = 0; w < ATTN_FEW_WARPS; ++w) largest = fmax(largest, statistics[(w * ROWS + r) * 2]);
    UNROLL for (uint w = 0; w < ATTN_FEW_WARPS; ++w) {
      const float factor = exp2(statistics[(w * ROWS + r) * 2] - largest);
      all = fma(statistics[(w * ROWS + r) * 2 + 1], factor, all);
      o = fma(memory[(w * ROWS + r) * ATTN_FEW_SPAN + column], factor, o);
    }
    if (isnan(o * 0.0f) && !isnan(all)) atomic_or(odd_rows, 1u << r);
    const uint row = query_row(&work, first_row + r), head = query_head(&work, first_row + r);
    if (a.splits > 1) {
      const size_t line = split * lines + ((size_t)batch * a.heads + head) * a.q_len + row;
      scratch[a.partials + line * VALUE_DIM + column] = o;
      if (column == 0) vstore2((float2)(largest, all), line, totals);
      continue;
    }
    float2 ending = (float2)(largest, all);
    bool normalize = true, far = false;
#if POLICY
    ending = policy_sinks(&policies, head, ending.s0, ending.s1);
    normalize = (call.policy.features & POLICY_UNNORMALIZED) == 0;
    far = (call.policy.features & POLICY_FAR) != 0;
#endif
    const float2 result = row_result(largest, ending.s0, ending.s1, normalize, far, -INFINITY);
    store_scalar(o * result.s0,
                 output + a.o_offset + (size_t)batch * a.o_stride_batch + (size_t)head * a.o_stride_head +
                     (size_t)row * a.o_stride_row,
                 column);
    if (a.write_lse && column == 0)
      log_sum_exp[a.lse_offset + (size_t)batch * a.lse_stride_batch + (size_t)head * a.lse_stride_head + row] = result.s1;
  }

  barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
  const uint odd = *odd_rows;
  if (odd == 0) return;
  ROLLED for (uint r = warp; r < ROWS; r += ATTN_FEW_WARPS) {
    if ((odd >> r & 1) == 0 || first_row + r >= tile.end) continue;
    const uint row = query_row(&work, first_row + r), head = query_head(&work, first_row + r);
    const int4 own = keys_of_row(&work, first_row + r);
    ExactRow exact = {.query = q + a.q_offset + (size_t)batch * a.q_stride_batch + (size_t)head * a.q_stride_head +
                               (size_t)row * a.q_stride_row,
                      .keys = (const global key_scalar*)keys.data,
                      .values = (const global key_scalar*)values.data,
                      .key_stride = a.k_stride_row,
                      .value_stride = a.v_stride_row,
                      .head_dim = HEAD_DIM,
                      .value_dim = VALUE_DIM,
                      .first = max(own.s0, share_begin),
                      .end = min(own.s1, end),
                      .scale = a.scale,
                      .soft_cap = a.soft_cap};
#if POLICY
    exact.policies = &policies;
    exact.policy = policy_row(&policies, batch, head, row);
#endif
#if PAGED
    const KeyPlaces key_places = KEY_PLACES(KEY_UNITS(a.k_stride_row), KEY_UNITS(a.k_stride_batch), tile.sequence);
    const KeyPlaces value_places = KEY_PLACES(KEY_UNITS(a.v_stride_row), KEY_UNITS(a.v_stride_batch), tile.sequence);
    exact.key_places = key_places, exact.value_places = value_places;
#endif
#if CODES
    exact.key_scales = all_key_scales, exact.value_scales = all_value_scales;
#endif
    float row_sums[EXACT_COLUMNS];
    const float2 found = exact_row(row_sums, &exact, lane);
    float2 ending = found;
    bool normalize = true, far = false;
#if POLICY
    ending = policy_sinks(&policies, head, ending.s0, ending.s1);
    normalize = (call.policy.features & POLICY_UNNORMALIZED) == 0;
    far = (call.policy.features & POLICY_FAR) != 0;
#endif
    const float2 result = row_result(found.s0, ending.s0, ending.s1, normalize, far, -INFINITY);
    const size_t line = split * lines + ((size_t)batch * a.heads + head) * a.q_len + row;
    UNROLL for (uint c = 0; c < EXACT_COLUMNS; ++c) {
      const uint column = lane + 32 * c;
      if (column >= VALUE_DIM) continue;
      if (a.splits > 1)
        scratch[a.partials + line * VALUE_DIM + column] = row_sums[c];
      else
        store_scalar(row_sums[c] * result.s0,
                     output + a.o_offset + (size_t)batch * a.o_stride_batch + (size_t)head * a.o_stride_head +
                         (size_t)row * a.o_stride_row,
                     column);
    }
    if (lane != 0) continue;
    if (a.splits > 1)
      vstore2(found, line, totals);
    else if (a.write_lse)
      log_sum_exp[a.lse_offset + (size_t)batch * a.lse_stride_batch + (size_t)head * a.lse_stride_head + row] = result.s1;
  }
}
