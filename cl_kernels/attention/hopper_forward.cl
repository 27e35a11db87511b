// SPDX-License-Identifier: Apache-2.0
// What     o[i] = sum_j p[i,j] v[j], p[i,:] = softmax of score(q[i] . k[j]), visible j; lse.
// Who      Groups that stay, one per multiprocessor; a counter deals (BLOCK_Q rows, head, batch).
// Memory   k and v once per query tile, q once, by tensor copies; o by tensor copies.
// Numerics Float sums of products of f16 or bf16; base-2 softmax with running maximum; keys from
//          the last to the first; weights are rounded to the storage type, their sum is not.
// Assumes  sm_90a (ptx_promotion.hpp), HOPPER_VALID, hopper_maps before it, at least one key.
//
// The last warpgroup copies: one of its items fills the queries, and a ring of STAGES tiles of keys
// and of values. The others multiply, 64 query rows each, with the weights in registers throughout.
//
//                  BLOCK_K keys                                 value columns
//            +----------------------+                      +----------------------+
//   64 rows  | scores: q in local   | mask, softmax,       | output: weights in   | warpgroup 0
//            | memory, k in local   | weights packed where | registers, v in      |
//            | memory               | the scores were      | local memory         |
//            +----------------------+ .................... +----------------------+
//   64 rows  |                      |                      |                      | warpgroup 1
//            +----------------------+                      +----------------------+
//
//   warpgroup 0  ... | q k' of tile t, p v of tile t + 1 | softmax of tile t | ...
//   warpgroup 1  ...       | softmax of tile t + 1 | q k' of tile t, p v of tile t + 1 | ...
//
// By default no warpgroup overlaps its exponentials with its own products: two drift into taking
// turns, one beside the other. That was fastest with 128 columns; with 64, where exponentials take
// as long as products, three that take turns explicitly were (TURNS), under a causal mask with
// OWN_OVERLAP. With 256 columns, rescaling late gained 13 % (docs/performance.md). Issuing the first
// scores of the next work beside the last outputs of this one gained nothing.
//
// Barriers FULL_... are completed by the bytes of copies, FREE_... by one arrival of every
// multiplying warp. Only `stage` and `parity` are carried around the loop of tiles: with a second
// pair the descriptors leave the uniform registers, and every wgmma waits for two moves.
//
// With POLICY=1 the table of rows says who sees whom, and two more warps of the copying warpgroup
// have work. One looks up which keys the rows of each warpgroup see, a piece of work ahead, and
// tells the others. Where a tile reaches over the keys of the group, or masks hide some of it, the
// other clears values that no row of the group sees, before the warpgroups learn that they have
// come: of keys beyond, and of keys in between whose values are not finite.
//
// A value that is not finite reaches all rows of a group if one of them sees its key, else none;
// with POLICY=0, all rows of a group whose tiles hold its key.
#if POLICY
#include "attention/policy.clh"
#else
#include "lib/prelude.clh"
#endif
#if DTYPE == DTYPE_BF16
#define WGMMA_TYPE "bf16"
#else
#define WGMMA_TYPE "f16"
#endif
#include "lib/hopper.clh"
#include "lib/wgmma.clh"
#include "operations/attention/hopper.h"
#include "operations/attention/hopper_args.h"
#include "operations/attention/score.h"

// Scores change, or keys hide, one by one.
#define PAIRS (POLICY && (FEATURES & (POLICY_HIDES | POLICY_ADDS)))
// Scores are exponents of 2 before the softmax sees them.
#define EXPONENTS (SCORE == HOPPER_GENERAL || (POLICY && (FEATURES & POLICY_ADDS)))

#define SCORES (BLOCK_K / 2)     // registers of an item: scores,
#define WEIGHTS (BLOCK_K / 4)    // pairs of weights,
#define OUTPUTS (VALUE_DIM / 2)  // and outputs
#if BLOCK_Q == 192
#define MULTIPLIER_REGISTERS "160"
#define COPIER_REGISTERS "32"
#else
#define MULTIPLIER_REGISTERS "232"
#define COPIER_REGISTERS "40"
#endif

// Powers of two: fma(x, scale, -x * scale) is exactly 0, and 2^100 times a scale of 2^-20 is still
// far beyond every score. Exponentials of a masked score less a maximum are 0 even for a row that
// has seen no key yet.
#if EXPONENTS
#define MASKED MASKED_SCORE
#define NO_MAXIMUM LOWEST_MAXIMUM
#else
#define MASKED (-0x1p100f)
#define NO_MAXIMUM (-0x1p99f)
#endif

#define FULL_K(i) (barriers + 8 * (i))
#define FULL_V(i) (barriers + 8 * (STAGES + (i)))
#define FREE_K(i) (barriers + 8 * (2 * STAGES + (i)))
#define FREE_V(i) (barriers + 8 * (3 * STAGES + (i)))
#define FULL_Q (barriers + 32 * STAGES)
#define FREE_Q (FULL_Q + 8)
#define FULL_WORK(i) (FULL_Q + 16 + 8 * (i))
#define FREE_WORK(i) (FULL_Q + 32 + 8 * (i))
#define WANT_WORK (FULL_Q + 48)
#define LOADED_V(i) (FULL_Q + 56 + 8 * (i))  // values that are still to be cleared
#define WORK(i) (local_memory + WORK_START + HOPPER_WORK_BYTES * (i))

// A query tile and the tiles of keys [first, end) that some row of it sees; at least one, seen or
// not, so that every group writes its rows.
typedef struct {
  int row, head, batch, first, end;
#if POLICY
  int first_key, end_key;  // that some row sees
#endif
} Work;

// Heads go in turns of heads_at_once, whose keys and values share the cache; in a turn the longest
// rows first, so that short ones fill the end.
INLINE Work place_of(const struct HopperCall* a, int number) {
  const int tiles = ((int)a->core.q_len + (int)BLOCK_Q - 1) / (int)BLOCK_Q;
  const int at_once = (int)a->heads_at_once, all = (int)(a->core.heads * a->batch);
  const int turn = number / (at_once * tiles), rest = number % (at_once * tiles);
  const int members = min(at_once, all - turn * at_once);
  const int tile = (BAND & HOPPER_BAND_HIGH) ? tiles - 1 - rest / members : rest / members;
  const int head = turn * at_once + rest % members;
  Work work;
  work.row = tile * (int)BLOCK_Q;
  work.head = head % (int)a->core.heads;
  work.batch = head / (int)a->core.heads;
  return work;
}

#define RELEASE(barrier) \
  if (lane == 0) barrier_arrive(barrier)
#if POLICY
// Keys [first, end) are seen by some row of a warpgroup, [common_first, common_end) by all of them.
typedef struct {
  int first, end, common_first, common_end;
} Interval;

// Of the rows from `row` on, by all items of a warp together.
INLINE Interval interval_of(const Policies* policies, int batch, int row, int lane) {
  Interval at = {INDEX_MAX, 0, 0, INDEX_MAX};
  UNROLL for (int i = row + lane; i < row + 64; i += 32) {
    if (i >= (int)CORE(q_len)) continue;
    const int4 entry = ROW_ENTRY(RULE(rows) + batch * CORE(q_len) + i);
    at.common_first = max(at.common_first, entry.s0);
    at.common_end = min(at.common_end, entry.s1);
    if (entry.s0 >= entry.s1) continue;
    at.first = min(at.first, entry.s0);
    at.end = max(at.end, entry.s1);
  }
  at.first = warp_min(at.first), at.end = warp_max(at.end);
  at.common_first = warp_max(at.common_first), at.common_end = warp_min(at.common_end);
  return at;
}

INLINE void take_keys(Work* work, int first_key, int end_key) {
  work->first_key = first_key, work->end_key = end_key;
  work->end = max((end_key + (int)BLOCK_K - 1) / (int)BLOCK_K, 1);
  work->first = clamp(first_key / (int)BLOCK_K, 0, work->end - 1);
}

INLINE uint tile_state(const Policies* policies, const Work* work, int tile) {
  return map_state(policies, work->batch, work->head, work->row / BLOCK_Q, tile);
}
// The tile before this one of which something may be seen; before the first: none.
INLINE int tile_before(const Policies* policies, const Work* work, int tile) {
  --tile;
  while (tile >= work->first && tile_state(policies, work, tile) == MAP_NOTHING) --tile;
  return tile;
}
#define TILE_BEFORE(tile) tile_before(policies, &work, tile)
#define LAST_TILE() max(TILE_BEFORE(work.end), work.first)

INLINE void tell_work(const struct HopperCall* a, const Policies* policies, int number, uint to,
                      int lane) {
  Work work = place_of(a, number);
  int first_key = INDEX_MAX, end_key = 0;
  for (int w = 0; w < (int)WARPGROUPS; ++w) {
    const Interval at = interval_of(policies, work.batch, work.row + w * 64, lane);
    first_key = min(first_key, at.first), end_key = max(end_key, at.end);
    if (lane != 0) continue;
    store_local(to + 16 + 16 * w, (uint)at.first), store_local(to + 20 + 16 * w, (uint)at.end);
    store_local(to + 24 + 16 * w, (uint)at.common_first);
    store_local(to + 28 + 16 * w, (uint)at.common_end);
  }
  take_keys(&work, first_key, end_key);
  if (TILE_BEFORE(work.end) < work.first) take_keys(&work, 0, 0);  // nothing is seen
  if (lane != 0) return;
  store_local(to + 4, (uint)work.first_key), store_local(to + 8, (uint)work.end_key);
}
INLINE Work hear_work(const struct HopperCall* a, int number, uint from) {
  Work work = place_of(a, number);
  take_keys(&work, (int)load_local(from + 4), (int)load_local(from + 8));
  return work;
}
INLINE Interval hear_interval(uint from, int warpgroup) {
  from += 16 + 16 * warpgroup;
  const Interval at = {(int)load_local(from), (int)load_local(from + 4), (int)load_local(from + 8),
                       (int)load_local(from + 12)};
  return at;
}

// One warp of the copying warpgroup.
INLINE void deal_work(const struct HopperCall* a, const Policies* policies,
                      volatile global int* counter, uint local_memory, uint barriers, int total,
                      int lane) {
  int slot = 0, number = (int)get_group_id(0);
  uint parity = 1, want_parity = 0;
  for (;;) {
    barrier_wait(FREE_WORK(slot), parity);
    if (number < total) tell_work(a, policies, number, WORK(slot), lane);
    if (lane == 0) store_local(WORK(slot), (uint)number);
    RELEASE(FULL_WORK(slot));
    slot ^= 1, parity ^= !slot;
    if (number >= total) break;
    barrier_wait(WANT_WORK, want_parity), want_parity ^= 1;
    int next = 0;
    if (lane == 0) next = atomic_inc(counter) + (int)get_num_groups(0);
    number = uniform(next);
  }
}

// Some values of this tile may have to be cleared.
INLINE bool has_hidden_keys(const Policies* policies, const Work* work, int tile) {
  if (tile * (int)BLOCK_K < work->first_key || (tile + 1) * (int)BLOCK_K > work->end_key)
    return true;
  return FEATURES & POLICY_HIDES ? tile_state(policies, work, tile) != MAP_ALL : false;
}

INLINE void clear_rows(uint values, int first, int end, int lane) {
  UNROLL for (int c = 0; c < VALUE_DIM / 64; ++c)
    for (int at = first * 128 + lane * 16; at < end * 128; at += 32 * 16)
      clear_local4(values + c * KEY_BLOCK_BYTES + at);
}

#if FEATURES & POLICY_HIDES
// By all items of a warp together.
INLINE bool is_seen(const Policies* policies, const Work* work, int key, int lane) {
  const int end = min(work->row + (int)BLOCK_Q, (int)CORE(q_len));
  bool seen = false;
  for (int row = work->row + lane; row < end; row += 32)
    seen = seen || policy_sees(policies, policy_row(policies, work->batch, work->head, row), key);
  return warp_votes(seen) != 0;
}

// Eight items look at a key: one at each chunk of its row of every block.
INLINE void clear_unseen(const Policies* policies, const Work* work, uint values, int start,
                         int lane) {
  ROLLED for (int first = 0; first < (int)BLOCK_K; first += 4) {
    bool odd = false;
    UNROLL for (int c = 0; c < VALUE_DIM / 64; ++c)
      odd = odd || has_nonfinite(load_local4(values + c * KEY_BLOCK_BYTES + first * 128 + lane * 16));
    const uint votes = warp_votes(odd);
    if (votes == 0) continue;
    ROLLED for (int n = 0; n < 4; ++n)
      if ((votes >> 8 * n & 0xff) != 0 && !is_seen(policies, work, start + first + n, lane))
        clear_rows(values, first + n, first + n + 1, lane);
  }
}
#endif

// One warp of the copying warpgroup.
INLINE void clear_values(const struct HopperCall* a, const Policies* policies, uint local_memory,
                         uint barriers, int total, int lane) {
  int stage = 0, slot = 0;
  uint parities = 0, work_parity = 0;  // parities: one bit for each stage
  for (;;) {
    barrier_wait(FULL_WORK(slot), work_parity);
    const int number = (int)load_local(WORK(slot));
    if (number >= total) break;
    const Work work = hear_work(a, number, WORK(slot));
    WARP_SYNC();
    RELEASE(FREE_WORK(slot));
    slot ^= 1, work_parity ^= !slot;
    const int last = LAST_TILE();
    for (int tile = last; tile >= work.first; tile = TILE_BEFORE(tile)) {
      if (has_hidden_keys(policies, &work, tile)) {
        const uint values = local_memory + V_START + stage * V_BYTES;
        const int start = tile * (int)BLOCK_K;
        barrier_wait(LOADED_V(stage), parities >> stage & 1), parities ^= 1u << stage;
        clear_rows(values, 0, min(work.first_key - start, (int)BLOCK_K), lane);
        clear_rows(values, max(work.end_key - start, 0), (int)BLOCK_K, lane);
#if FEATURES & POLICY_HIDES
        WARP_SYNC();
        clear_unseen(policies, &work, values, start, lane);
#endif
        FENCE_LOCAL();
        WARP_SYNC();
        RELEASE(FULL_V(stage));
      }
      if (++stage == STAGES) stage = 0;
    }
  }
}
#else
#define TILE_BEFORE(tile) ((tile)-1)
#define LAST_TILE() (work.end - 1)

INLINE Work work_of(const struct HopperCall* a, int number) {
  Work work = place_of(a, number);
  const int last_row = min(work.row + (int)BLOCK_Q, (int)a->core.q_len) - 1;
  int end = (int)a->keys;
  if (BAND & HOPPER_BAND_HIGH) end = clamp(last_row + 1 + a->core.band_high, 1, end);
  work.end = (end + (int)BLOCK_K - 1) / (int)BLOCK_K;
  work.first = 0;
  if (BAND & HOPPER_BAND_LOW)
    work.first = clamp((work.row + a->core.band_low) / (int)BLOCK_K, 0, work.end - 1);
  return work;
}
#endif

// One item. Without policies it also deals the work.
INLINE void copy_tiles(const struct HopperCall* a,
#if POLICY
                       const Policies* policies,
#endif
                       const global uchar* maps, volatile global int* counter, uint local_memory,
                       uint barriers, int total) {
  int stage = 0, slot = 0, number = (int)get_group_id(0);
  uint parity = 1, work_parity = POLICY ? 0 : 1, q_parity = 1;
  for (;;) {
#if POLICY
    barrier_wait(FULL_WORK(slot), work_parity);
    number = (int)load_local(WORK(slot));
    if (number >= total) break;
    const Work work = hear_work(a, number, WORK(slot));
    slot ^= 1, work_parity ^= !slot;
    bool wants_work = true;
#else
    barrier_wait(FREE_WORK(slot), work_parity);
    store_local(WORK(slot), (uint)number);
    barrier_arrive(FULL_WORK(slot));
    slot ^= 1, work_parity ^= !slot;
    if (number >= total) break;
    const int next = atomic_inc(counter) + (int)get_num_groups(0);
    const Work work = work_of(a, number);
#endif
    const int kv_head = work.head / (int)a->core.group;
    const int last = LAST_TILE();
    for (int tile = last; tile >= work.first; tile = TILE_BEFORE(tile)) {
#if POLICY
      // Soon enough for the next, late enough for all groups to end together.
      if (wants_work && tile < work.first + 3) barrier_arrive(WANT_WORK), wants_work = false;
#endif
      barrier_wait(FREE_K(stage), parity);
      barrier_expect(FULL_K(stage), K_BYTES);
      UNROLL for (int c = 0; c < HEAD_DIM / 64; ++c)
        tensor_load(local_memory + K_START + stage * K_BYTES + c * KEY_BLOCK_BYTES,
                    maps + HOPPER_MAP_BYTES, c * 64, kv_head, tile * (int)BLOCK_K, work.batch,
                    FULL_K(stage));
      if (tile == last) {
        barrier_wait(FREE_Q, q_parity), q_parity ^= 1;
        barrier_expect(FULL_Q, Q_BYTES);
        UNROLL for (int w = 0; w < (int)WARPGROUPS; ++w)
          UNROLL for (int c = 0; c < HEAD_DIM / 64; ++c)
            tensor_load(local_memory + w * Q_STRIDE + c * Q_BLOCK_BYTES, maps, c * 64,
                        work.head, work.row + w * 64, work.batch, FULL_Q);
      }
      barrier_wait(FREE_V(stage), parity);
      uint full = FULL_V(stage);
#if POLICY
      if (has_hidden_keys(policies, &work, tile)) full = LOADED_V(stage);
#endif
      barrier_expect(full, V_BYTES);
      UNROLL for (int c = 0; c < VALUE_DIM / 64; ++c)
        tensor_load(local_memory + V_START + stage * V_BYTES + c * KEY_BLOCK_BYTES,
                    maps + 2 * HOPPER_MAP_BYTES, c * 64, kv_head, tile * (int)BLOCK_K, work.batch,
                    full);
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
#if POLICY
    if (wants_work) barrier_arrive(WANT_WORK);
#else
    number = next;
#endif
  }
}

// Scores, in steps of 16 features, 4 to a block of 64.
#define ISSUE_SCORES(keys)                                                                     \
  do {                                                                                         \
    WGMMA_FENCE();                                                                             \
    WGMMA_SS_FIRST(BLOCK_K, score, queries, (keys));                                           \
    UNROLL for (uint i = 1; i < HEAD_DIM / 16; ++i)                                            \
      WGMMA_SS(BLOCK_K, score, queries + (i / 4 * Q_BLOCK_BYTES + i % 4 * 32) / 16,            \
               (keys) + (i / 4 * KEY_BLOCK_BYTES + i % 4 * 32) / 16);                          \
    WGMMA_COMMIT();                                                                            \
  } while (0)
// Outputs, in steps of 16 keys.
#define ISSUE_OUTPUTS(values)                                                                  \
  do {                                                                                         \
    WGMMA_FENCE();                                                                             \
    UNROLL for (uint i = 0; i < BLOCK_K / 16; ++i)                                             \
      WGMMA_RS(VALUE_DIM, output, weight[4 * i], weight[4 * i + 1], weight[4 * i + 2],         \
               weight[4 * i + 3], (values) + i * 2048 / 16);                                   \
    WGMMA_COMMIT();                                                                            \
  } while (0)

#if SCORE != HOPPER_SCALED
// saturating_tanh() with the unit's own exponential and reciprocal.
INLINE float fast_tanh(float x) {
  const float e = fast_exp2(-2.0f * LOG2_E * fabs(x));
  const float away = (1.0f - e) * fast_reciprocal(1.0f + e);
  return fabs(x) < TANH_NEAR_ZERO ? tanh_near_zero(x) : copysign(away, x);
}
#endif

// What the scores are before the softmax multiplies them by `scale`.
INLINE void finish_scores(float* score, float inner, float outer, bool capped) {
#if SCORE == HOPPER_CAPPED
  UNROLL for (uint j = 0; j < SCORES; ++j) score[j] = fast_tanh(inner * score[j]);
#elif SCORE == HOPPER_GENERAL
  if (capped) {
    UNROLL for (uint j = 0; j < SCORES; ++j) score[j] = outer * fast_tanh(inner * score[j]);
  } else {
    UNROLL for (uint j = 0; j < SCORES; ++j) score[j] *= inner;
  }
#endif
}

#if !PAIRS
// Keys [low, high] from the tile's first on, and those of the row 8 below, are seen.
INLINE void mask_scores(float* score, int low, int high, int low8, int high8) {
  UNROLL for (int j = 0; j < (int)SCORES; j += 4) {
    UNROLL for (int i = 0; i < 2; ++i) {
      const int key = 2 * j + i;
      bool hidden = key > high, hidden8 = key > high8;
      if (POLICY | (BAND & HOPPER_BAND_LOW))
        hidden = hidden || key < low, hidden8 = hidden8 || key < low8;
      score[j + i] = hidden ? MASKED : score[j + i];
      score[j + 2 + i] = hidden8 ? MASKED : score[j + 2 + i];
    }
  }
}
#endif

#if POLICY
// Item keys of a row lie at `start` + 2 j + {0, 1} for j = 0, 4, 8 ...
#define OWN_KEY(start, j, i) ((start) + 2 * (j) + (i))
#if PAIRS
// Scores of the keys that the row, and the row 8 below, see.
INLINE void apply_policies(float* score, const Policies* policies, RowPolicy row, RowPolicy row8,
                           int start) {
  UNROLL for (int j = 0; j < (int)SCORES; j += 4) {
    UNROLL for (int i = 0; i < 2; ++i) {
      const int key = OWN_KEY(start, j, i);
      const bool sees = policy_sees(policies, row, key), sees8 = policy_sees(policies, row8, key);
      float *own = score + j + i, *own8 = own + 2;
#if FEATURES & POLICY_ADDS
      if (sees) *own = policy_score(policies, row, key, *own * CORE(scale)).s0;
      if (sees8) *own8 = policy_score(policies, row8, key, *own8 * CORE(scale)).s0;
#endif
      *own = sees ? *own : MASKED;
      *own8 = sees8 ? *own8 : MASKED;
    }
  }
}
#endif
#if FEATURES & POLICY_DROPOUT
INLINE void drop_weights(float* weight, const Policies* policies, RowPolicy row, RowPolicy row8,
                         int start) {
  UNROLL for (int j = 0; j < (int)SCORES; j += 4) {
    UNROLL for (int i = 0; i < 2; ++i) {
      weight[j + i] *= policy_keep(policies, row, OWN_KEY(start, j, i));
      weight[j + i + 2] *= policy_keep(policies, row8, OWN_KEY(start, j, i));
    }
  }
}
#endif
#endif

// State of the two rows of an item: running maxima and sums, and what the sums and outputs of
// earlier tiles must be scaled by.
typedef struct {
  float most, most8, sum, sum8, shrink, shrink8;
} Rows;

// Of the scores of both rows, over all items that share them.
INLINE float2 maxima_of(const float* score) {
  float a = fmax(score[0], score[1]), a8 = fmax(score[2], score[3]);
  float b = fmax(score[4], score[5]), b8 = fmax(score[6], score[7]);
  UNROLL for (uint j = 8; j < SCORES; j += 8) {
    a = fmax(a, fmax(score[j], score[j + 1])), a8 = fmax(a8, fmax(score[j + 2], score[j + 3]));
    b = fmax(b, fmax(score[j + 4], score[j + 5])), b8 = fmax(b8, fmax(score[j + 6], score[j + 7]));
  }
  return (float2)(quad_max(fmax(a, b)), quad_max(fmax(a8, b8)));
}
INLINE void take_maxima(Rows* rows, float2 maxima, float scale) {
  const float most = fmax(rows->most, maxima.s0), most8 = fmax(rows->most8, maxima.s1);
  rows->shrink = fast_exp2((rows->most - most) * scale);
  rows->shrink8 = fast_exp2((rows->most8 - most8) * scale);
  rows->most = most, rows->most8 = most8;
}

#if SCORE == HOPPER_CAPPED
// Scores are mostly far below the cap. There tanh(x) is x (1 + z (a + z (b + z c))) with z = x^2,
// and c + scale tanh(inner s) costs four operations in place of one: a minimax fit of our own for
// magnitudes of x below LOW_SCORE, error 0.05 roundings before its own arithmetic.
#define LOW_SCORE 0.25f
typedef struct {
  float one, three, five, seven;  // factors of powers of s
  float most;                     // of a sum of squares of s
} LowScores;
INLINE LowScores low_scores(float inner, float scale) {
  const float square = inner * inner, one = scale * inner;
  const LowScores low = {one, one * square * -3.33332401e-1f,
                         one * square * square * 1.33242359e-1f,
                         one * square * square * square * -5.14299328e-2f,
                         LOW_SCORE * LOW_SCORE / square};
  return low;
}
// One operation for a score: the squares of few scores together are below that of LOW_SCORE.
#define LOW_SUMS 8
INLINE bool are_low(const float* score, LowScores low) {
  float sums[LOW_SUMS];
  UNROLL for (uint j = 0; j < LOW_SUMS; ++j) sums[j] = score[j] * score[j];
  UNROLL for (uint j = LOW_SUMS; j < SCORES; ++j)
    sums[j % LOW_SUMS] = fma(score[j], score[j], sums[j % LOW_SUMS]);
  UNROLL for (uint j = 1; j < LOW_SUMS; ++j) sums[0] = fmax(sums[0], sums[j]);
  return warp_votes(sums[0] < low.most) == ~0u;
}
INLINE float low_exponential(float score, LowScores low, float c) {
  const float square = score * score;
  float factor = fma(low.seven, square, low.five);
  factor = fma(factor, square, low.three);
  return fast_exp2(fma(score, fma(factor, square, low.one), c));
}
INLINE void take_low_exponentials(Rows* rows, float* score, LowScores low, float scale) {
  const float c = rows->most * -scale, c8 = rows->most8 * -scale;
  float a = 0.0f, a8 = 0.0f, b = 0.0f, b8 = 0.0f;
  UNROLL for (uint j = 0; j < SCORES; j += 4) {
    score[j] = low_exponential(score[j], low, c);
    score[j + 1] = low_exponential(score[j + 1], low, c);
    score[j + 2] = low_exponential(score[j + 2], low, c8);
    score[j + 3] = low_exponential(score[j + 3], low, c8);
    a += score[j], b += score[j + 1], a8 += score[j + 2], b8 += score[j + 3];
  }
  rows->sum = fma(rows->sum, rows->shrink, a + b);
  rows->sum8 = fma(rows->sum8, rows->shrink8, a8 + b8);
}
#endif

INLINE void take_exponentials(Rows* rows, float* score, float scale) {
  const float c = rows->most * -scale, c8 = rows->most8 * -scale;
  float a = 0.0f, a8 = 0.0f, b = 0.0f, b8 = 0.0f;
  UNROLL for (uint j = 0; j < SCORES; j += 4) {
    score[j] = fast_exp2(fma(score[j], scale, c));
    score[j + 1] = fast_exp2(fma(score[j + 1], scale, c));
    score[j + 2] = fast_exp2(fma(score[j + 2], scale, c8));
    score[j + 3] = fast_exp2(fma(score[j + 3], scale, c8));
    a += score[j], b += score[j + 1], a8 += score[j + 2], b8 += score[j + 3];
  }
  rows->sum = fma(rows->sum, rows->shrink, a + b);
  rows->sum8 = fma(rows->sum8, rows->shrink8, a8 + b8);
}

INLINE void rescale(float* output, const Rows* rows) {
  UNROLL for (uint j = 0; j < OUTPUTS; j += 4) {
    output[j] *= rows->shrink, output[j + 1] *= rows->shrink;
    output[j + 2] *= rows->shrink8, output[j + 3] *= rows->shrink8;
  }
}

INLINE void pack_weights(uint* weight, const float* score) {
  UNROLL for (uint j = 0; j < WEIGHTS; ++j)
    weight[j] = pack_scalars(score[2 * j], score[2 * j + 1]);
}

#define NEXT_STAGE() \
  if (++stage == STAGES) stage = 0, parity ^= 1
#define STAGE_AFTER (stage + 1 == STAGES ? 0 : stage + 1)
#define PARITY_AFTER (parity ^ (stage + 1 == STAGES))
#if TURNS
#define TURN_BEGIN() GROUP_SYNC(1 + warpgroup, 256)
#define TURN_END() GROUP_ARRIVE(warpgroup == (int)WARPGROUPS - 1 ? 1 : 2 + warpgroup, 256)
#else
#define TURN_BEGIN()
#define TURN_END()
#endif

// Of a row: its weights are 2^(score - shift) and add up to `sum`, outputs so far shrink by `shrink`.
typedef struct {
  float shift, sum, shrink;
} Total;
#if POLICY
INLINE Total with_sinks(Total row, const Policies* policies, int head) {
  const float2 all = policy_sinks(policies, head, row.shift, row.sum);
  const Total total = {all.s0, all.s1, exp2(row.shift - all.s0)};
  return total;
}
#endif
INLINE float norm_of(Total row) {
  if (POLICY * (FEATURES & POLICY_UNNORMALIZED)) return row.sum == 0.0f ? 0.0f : row.shrink;
  return row.sum == 0.0f ? 0.0f : row.shrink / row.sum;
}
INLINE float log_sum_exp_of(Total row) {
  return row.sum == 0.0f ? -INFINITY : (row.shift + log2(row.sum)) * LN_2;
}

KERNEL void attention_hopper(const global scalar* restrict q, const global scalar* restrict k,
                             const global scalar* restrict v, global scalar* restrict o,
                             global float* restrict log_sum_exp, global uchar* restrict scratch,
#if POLICY
                             POLICY_KERNEL_PARAMETERS,
#endif
                             const struct HopperCall a) {
#if POLICY
  // With what is known at compile time.
  struct HopperCall call = a;
  call.policy.features = FEATURES;
  if (SCORE == HOPPER_SCALED) call.core.soft_cap = 0.0f;
  const Policies policy_operands = MAKE_POLICIES(call, scratch), *policies = &policy_operands;
#endif
  const global uchar* maps = scratch + (size_t)a.maps * HOPPER_ALIGNMENT;
  local uchar memory[HOPPER_LOCAL_BYTES] __attribute__((aligned(1024)));
  const uint local_memory = LOCAL_ADDRESS(memory), barriers = local_memory + BARRIERS_START;
  const int item = (int)get_local_id(0);
  const int total = ((int)a.core.q_len + (int)BLOCK_Q - 1) / (int)BLOCK_Q *
                    (int)(a.core.heads * a.batch);
  if (item == 0) {
    UNROLL for (int i = 0; i < STAGES; ++i) {
      barrier_init(FULL_K(i), 1), barrier_init(FREE_K(i), WARPGROUPS * 4);
      barrier_init(FULL_V(i), 1), barrier_init(FREE_V(i), WARPGROUPS * 4);
    }
    barrier_init(FULL_Q, 1), barrier_init(FREE_Q, WARPGROUPS * 4);
    for (int i = 0; i < 2; ++i)
      barrier_init(FULL_WORK(i), 1), barrier_init(FREE_WORK(i), WARPGROUPS * 4 + (POLICY ? 1 : 0));
#if POLICY
    barrier_init(WANT_WORK, 1);
    for (int i = 0; i < STAGES; ++i) barrier_init(LOADED_V(i), 1);
#endif
    FENCE_LOCAL();
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  if (item >= (int)WARPGROUPS * 128) {
    PTX("//@ setmaxnreg.dec.sync.aligned.u32 " COPIER_REGISTERS ";");
    volatile global int* counter = (volatile global int*)(maps + HOPPER_COUNTER);
#if POLICY
    const int lane = item % 32, warp = uniform(item / 32) - (int)WARPGROUPS * 4;
    if (warp == 1) deal_work(&a, policies, counter, local_memory, barriers, total, lane);
    if (warp == 2) clear_values(&a, policies, local_memory, barriers, total, lane);
    if (item == (int)WARPGROUPS * 128)
      copy_tiles(&a, policies, maps, counter, local_memory, barriers, total);
#else
    if (item == (int)WARPGROUPS * 128)
      copy_tiles(&a, maps, counter, local_memory, barriers, total);
#endif
    return;
  }

  PTX("//@ setmaxnreg.inc.sync.aligned.u32 " MULTIPLIER_REGISTERS ";");
  const int warpgroup = uniform(item / 128), t = item % 128, lane = item % 32;
  const int own_row = t / 32 * 16 + lane / 4;
  const ulong queries = wgmma_matrix(local_memory + warpgroup * (int)Q_STRIDE, 16);
  const ulong keys = wgmma_matrix(local_memory + K_START, 16);
  const ulong values = wgmma_matrix(local_memory + V_START, KEY_BLOCK_BYTES);
  const uint own_outputs = local_memory + O_START + warpgroup * (int)O_STRIDE;
  const float inner = a.core.soft_cap > 0.0f ? a.core.scale / a.core.soft_cap
                                             : a.core.scale * LOG2_E;
  const float outer = a.core.soft_cap * LOG2_E;
  const float scale = EXPONENTS ? 1.0f : SCORE == HOPPER_CAPPED ? outer : inner;
  float score[SCORES], output[OUTPUTS];
  uint weight[WEIGHTS];
  int stage = 0, slot = 0;  // stage: of the tile whose keys are next
  uint parity = 0, work_parity = 0, q_parity = 0;
#if TURNS
  if (warpgroup == (int)WARPGROUPS - 1) GROUP_ARRIVE(1, 256);  // warpgroup 0 goes first
#endif
#define START(tile) ((tile) * (int)BLOCK_K + 2 * (lane % 4))  // of the keys of an item
#if POLICY
// The keys that all rows of the warpgroup may see.
#define COMMON_FIRST own.common_first
#define COMMON_END own.common_end
#define MASK(tile)                                                                             \
  mask_scores(score, row.first - START(tile), row.end - 1 - START(tile), row8.first - START(tile), \
              row8.end - 1 - START(tile))
#define SKIPS(tile) ((tile) * (int)BLOCK_K >= own.end)
#else
#define COMMON_FIRST ((BAND & HOPPER_BAND_LOW) ? row0 + 63 + a.core.band_low : 0)
#define COMMON_END ((BAND & HOPPER_BAND_HIGH) ? row0 + 1 + a.core.band_high : (int)a.keys)
#define SKIPS(tile)                                                                            \
  (((BAND & HOPPER_BAND_INSIDE) && (tile) * (int)BLOCK_K > row0 + 63 + a.core.band_high) || \
   ((BAND & HOPPER_NO_ROWS) && row0 >= (int)a.core.q_len))
#define MASK(tile)                                                                      \
  do {                                                                                  \
    const int row = row0 + own_row, start = START(tile);                                \
    int high = (int)a.keys - 1, high8 = high;                                           \
    if (BAND & HOPPER_BAND_HIGH)                                                        \
      high = min(high, row + a.core.band_high), high8 = min(high8, row + 8 + a.core.band_high); \
    mask_scores(score, row + a.core.band_low - start, high - start,                     \
                row + 8 + a.core.band_low - start, high8 - start);                      \
  } while (0)
#endif

#define CROSSES(tile)                           \
  ((tile) * (int)BLOCK_K < COMMON_FIRST || \
   (tile) * (int)BLOCK_K + (int)BLOCK_K > COMMON_END)
// With policies the map and the table of rows say what has to be tested.
#if PAIRS
#define IS_TESTED(tile, masked)               \
  ((FEATURES & POLICY_ADDS) || (masked) || \
   tile_state(policies, &work, tile) != MAP_ALL)
#define TEST_KEYS(tile) apply_policies(score, policies, row, row8, START(tile))
#else
#define IS_TESTED(tile, masked) (masked)
#define TEST_KEYS(tile) MASK(tile)
#endif
// From scores to weights; `masked` says whether the tile reaches over what some row may see.
#define TAKE_WEIGHTS(tile, masked)                                \
  do {                                                            \
    if (!(FEATURES & POLICY_ADDS))                                \
      finish_scores(score, inner, outer, a.core.soft_cap > 0.0f); \
    if (IS_TESTED(tile, masked)) TEST_KEYS(tile);                 \
    take_maxima(&rows, maxima_of(score), scale);                  \
    take_exponentials(&rows, score, scale);                       \
  } while (0)
#if SCORE == HOPPER_CAPPED && !(FEATURES & POLICY_ADDS)
  const LowScores low = low_scores(inner, scale);
#define SOFTMAX(tile, masked)                                                              \
  do {                                                                                     \
    if (!(IS_TESTED(tile, masked)) && are_low(score, low)) {                               \
      const float2 most = maxima_of(score);                                                \
      take_maxima(&rows,                                                                   \
                  (float2)(tanh_near_zero(inner * most.s0), tanh_near_zero(inner * most.s1)), \
                  scale);                                                                  \
      take_low_exponentials(&rows, score, low, scale);                                     \
    } else {                                                                               \
      TAKE_WEIGHTS(tile, masked);                                                          \
    }                                                                                      \
  } while (0)
#else
#define SOFTMAX(tile, masked) TAKE_WEIGHTS(tile, masked)
#endif
#if POLICY && (FEATURES & POLICY_DROPOUT)
#define DROP_WEIGHTS(tile) drop_weights(score, policies, row, row8, START(tile))
#else
#define DROP_WEIGHTS(tile)
#endif

  for (;;) {
    barrier_wait(FULL_WORK(slot), work_parity);
    const int number = (int)load_local(WORK(slot));
#if POLICY
    if (number >= total) break;
    const Work work = hear_work(&a, number, WORK(slot));
    const Interval own = hear_interval(WORK(slot), warpgroup);
#endif
    WARP_SYNC();
    RELEASE(FREE_WORK(slot));
    slot ^= 1, work_parity ^= !slot;
#if !POLICY
    if (number >= total) break;
    const Work work = work_of(&a, number);
#endif
    const int row0 = work.row + warpgroup * 64;
#if POLICY
    const int end_row = (int)a.core.q_len - 1;
    const RowPolicy row = policy_row(policies, work.batch, work.head, min(row0 + own_row, end_row));
    const RowPolicy row8 =
        policy_row(policies, work.batch, work.head, min(row0 + own_row + 8, end_row));
#endif
    Rows rows = {NO_MAXIMUM, NO_MAXIMUM, 0.0f, 0.0f, 1.0f, 1.0f};
    UNROLL for (uint j = 0; j < OUTPUTS; ++j) output[j] = 0.0f;

    int tile = LAST_TILE();
    barrier_wait(FULL_Q, q_parity), q_parity ^= 1;
#if POLICY || (BAND & (HOPPER_BAND_INSIDE | HOPPER_NO_ROWS))
    // Tiles that only rows of other warpgroups see.
    for (; TILE_BEFORE(tile) >= work.first && SKIPS(tile); tile = TILE_BEFORE(tile)) {
      TURN_BEGIN();
      TURN_END();
      barrier_wait(FULL_K(stage), parity);
      WARP_SYNC();
      RELEASE(FREE_K(stage));
      barrier_wait(FULL_V(stage), parity);
      WARP_SYNC();
      RELEASE(FREE_V(stage));
      NEXT_STAGE();
    }
#endif
    barrier_wait(FULL_K(stage), parity);
    ISSUE_SCORES(keys + stage * (K_BYTES / 16));
    WGMMA_WAIT(BLOCK_K, 0, score);
    RELEASE(FREE_K(stage));
    SOFTMAX(tile, POLICY ? CROSSES(tile) : (BAND & ~HOPPER_NO_ROWS) || a.keys % BLOCK_K);
    DROP_WEIGHTS(tile);
    pack_weights(weight, score);

    // With OWN_OVERLAP the wait for the next keys stands between the exponentials and the wait for
    // the outputs: it is a loop, which keeps ptxas from moving that wait before the exponentials.
    if (OWN_OVERLAP && TILE_BEFORE(tile) >= work.first)
      barrier_wait(FULL_K(STAGE_AFTER), PARITY_AFTER);
#define STEP(masked)                                                              \
  do {                                                                            \
    const uint v_stage = stage, v_parity = parity; /* values lag one tile behind */ \
    NEXT_STAGE();                                                                 \
    if (!OWN_OVERLAP) barrier_wait(FULL_K(stage), parity);                        \
    TURN_BEGIN();                                                                 \
    ISSUE_SCORES(keys + stage * (K_BYTES / 16));                                  \
    if (LATE_RESCALE) rescale(output, &rows);                                     \
    barrier_wait(FULL_V(v_stage), v_parity);                                      \
    ISSUE_OUTPUTS(values + v_stage * (V_BYTES / 16));                             \
    TURN_END();                                                                   \
    WGMMA_WAIT(BLOCK_K, 1, score);                                                \
    RELEASE(FREE_K(stage));                                                       \
    SOFTMAX(tile, masked);                                                        \
    DROP_WEIGHTS(tile);                                                           \
    if (OWN_OVERLAP && TILE_BEFORE(tile) >= work.first)                           \
      barrier_wait(FULL_K(STAGE_AFTER), PARITY_AFTER);                            \
    WGMMA_WAIT(VALUE_DIM, 0, output);                                             \
    RELEASE(FREE_V(v_stage));                                                     \
    if (!LATE_RESCALE) rescale(output, &rows);                                    \
    pack_weights(weight, score);                                                  \
  } while (0)
    tile = TILE_BEFORE(tile);
#if !PAIRS && (POLICY || (BAND & HOPPER_BAND_INSIDE))
    // A loop without tests for the tiles that all rows of the warpgroup see: tests in the middle of
    // it keep ptxas from mixing exponentials with what comes before and after.
    const int common_end = max(work.first, max(COMMON_END, 0) / (int)BLOCK_K);
    const int common_first = (max(COMMON_FIRST, 0) + (int)BLOCK_K - 1) / (int)BLOCK_K;
    for (; tile >= common_end; tile = TILE_BEFORE(tile)) STEP(true);
    for (; tile >= max(work.first, common_first); tile = TILE_BEFORE(tile)) STEP(false);
    for (; tile >= work.first; tile = TILE_BEFORE(tile)) STEP(true);
#else
    for (; tile >= work.first; tile = TILE_BEFORE(tile)) STEP(PAIRS && CROSSES(tile));
#endif
    if (LATE_RESCALE) rescale(output, &rows);
    if (!SHARE_Q) RELEASE(FREE_Q);
    barrier_wait(FULL_V(stage), parity);
    ISSUE_OUTPUTS(values + stage * (V_BYTES / 16));

    // A row that saw nothing has the sum 0; a NaN in the sum must show in both results.
    Total all = {rows.most * scale, quad_sum(rows.sum), 1.0f};
    Total all8 = {rows.most8 * scale, quad_sum(rows.sum8), 1.0f};
#if POLICY
    all = with_sinks(all, policies, work.head), all8 = with_sinks(all8, policies, work.head);
#endif
    const float norm = norm_of(all), norm8 = norm_of(all8);
    if (a.core.write_lse && lane % 4 == 0) {
      global float* to = log_sum_exp + a.core.lse_offset +
                         (size_t)work.batch * a.core.lse_stride_batch +
                         (size_t)work.head * a.core.lse_stride_head;
      const int at = row0 + own_row;
      if (at < (int)a.core.q_len) to[at] = log_sum_exp_of(all);
      if (at + 8 < (int)a.core.q_len) to[at + 8] = log_sum_exp_of(all8);
    }
    if (t == 0) PTX("cp.async.bulk.wait_group.read 0;");  // the outputs before have left
    WGMMA_WAIT(VALUE_DIM, 0, output);
    RELEASE(FREE_V(stage));
    NEXT_STAGE();
    GROUP_SYNC(8 + warpgroup, 128);
    UNROLL for (uint j = 0; j < OUTPUTS; j += 4) {
      const uint chunk = j / 4;
      const uint to = own_outputs + chunk / 8 * Q_BLOCK_BYTES + own_row * 128 +
                      ((chunk % 8) ^ (own_row % 8)) * 16 + lane % 4 * 4;
      store_local(to, pack_scalars(output[j] * norm, output[j + 1] * norm));
      store_local(to + 8 * 128, pack_scalars(output[j + 2] * norm8, output[j + 3] * norm8));
    }
    FENCE_LOCAL();
    GROUP_SYNC(8 + warpgroup, 128);
    if (t == 0) {
      UNROLL for (int c = 0; c < VALUE_DIM / 64; ++c)
        tensor_store(maps + 3 * HOPPER_MAP_BYTES, c * 64, work.head, row0, work.batch,
                     own_outputs + c * Q_BLOCK_BYTES);
      PTX("cp.async.bulk.commit_group;");
    }
#if SHARE_Q
    if (t == 0) PTX("cp.async.bulk.wait_group.read 0;");
    GROUP_SYNC(8 + warpgroup, 128);
    RELEASE(FREE_Q);
#endif
  }
  if (t == 0) PTX("cp.async.bulk.wait_group 0;");
}
