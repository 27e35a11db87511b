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
// OWN_OVERLAP. H200, f16, 16384 tokens, maps included: 660 TFLOP/s at dim 128 and 530 at dim 64 for
// rows of 16384 keys, 1.00 to 1.16 of cuDNN 9.19 (benchmarks/attention_gpu.py). Issuing the first
// scores of the next work beside the last outputs of this one gained nothing.
//
// Barriers FULL_... are completed by the bytes of copies, FREE_... by one arrival of every
// multiplying warp. Only `stage` and `parity` are carried around the loop of tiles: with a second
// pair the descriptors leave the uniform registers, and every wgmma waits for two moves.
//
// A value that is not finite reaches all rows of a group whose tiles hold its key.
#include "lib/prelude.clh"
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
#define MASKED (-0x1p100f)
#define NO_MAXIMUM (-0x1p99f)

#define FULL_K(i) (barriers + 8 * (i))
#define FULL_V(i) (barriers + 8 * (STAGES + (i)))
#define FREE_K(i) (barriers + 8 * (2 * STAGES + (i)))
#define FREE_V(i) (barriers + 8 * (3 * STAGES + (i)))
#define FULL_Q (barriers + 32 * STAGES)
#define FREE_Q (FULL_Q + 8)
#define FULL_WORK(i) (FULL_Q + 16 + 8 * (i))
#define FREE_WORK(i) (FULL_Q + 32 + 8 * (i))
#define WORK(i) (FULL_Q + 48 + 4 * (i))

// A query tile and the tiles of keys [first, end) that some row of it sees; at least one, seen or
// not, so that every group writes its rows.
typedef struct {
  int row, head, batch, first, end;
} Work;

// Heads go in turns of heads_at_once, whose keys and values share the cache; in a turn the longest
// rows first, so that short ones fill the end.
INLINE Work work_of(const struct HopperCall* a, int number) {
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
  const int last_row = min(work.row + (int)BLOCK_Q, (int)a->core.q_len) - 1;
  int end = (int)a->keys;
  if (BAND & HOPPER_BAND_HIGH) end = clamp(last_row + 1 + a->core.band_high, 1, end);
  work.end = (end + (int)BLOCK_K - 1) / (int)BLOCK_K;
  work.first = 0;
  if (BAND & HOPPER_BAND_LOW)
    work.first = clamp((work.row + a->core.band_low) / (int)BLOCK_K, 0, work.end - 1);
  return work;
}

INLINE void copy_tiles(const struct HopperCall* a, const global uchar* maps,
                       volatile global int* counter, uint local_memory, uint barriers, int total) {
  int stage = 0, slot = 0, number = (int)get_group_id(0);
  uint parity = 1, work_parity = 1, q_parity = 1;
  for (;;) {
    barrier_wait(FREE_WORK(slot), work_parity);
    store_local(WORK(slot), (uint)number);
    barrier_arrive(FULL_WORK(slot));
    slot ^= 1, work_parity ^= !slot;
    if (number >= total) break;
    const int next = atomic_inc(counter) + (int)get_num_groups(0);
    const Work work = work_of(a, number);
    const int kv_head = work.head / (int)a->core.group;
    for (int tile = work.end - 1; tile >= work.first; --tile) {
      barrier_wait(FREE_K(stage), parity);
      barrier_expect(FULL_K(stage), K_BYTES);
      UNROLL for (int c = 0; c < HEAD_DIM / 64; ++c)
        tensor_load(local_memory + K_START + stage * K_BYTES + c * KEY_BLOCK_BYTES,
                    maps + HOPPER_MAP_BYTES, c * 64, kv_head, tile * (int)BLOCK_K, work.batch,
                    FULL_K(stage));
      if (tile == work.end - 1) {
        barrier_wait(FREE_Q, q_parity), q_parity ^= 1;
        barrier_expect(FULL_Q, Q_BYTES);
        UNROLL for (int w = 0; w < (int)WARPGROUPS; ++w)
          UNROLL for (int c = 0; c < HEAD_DIM / 64; ++c)
            tensor_load(local_memory + w * Q_STRIDE + c * Q_BLOCK_BYTES, maps, c * 64,
                        work.head, work.row + w * 64, work.batch, FULL_Q);
      }
      barrier_wait(FREE_V(stage), parity);
      barrier_expect(FULL_V(stage), V_BYTES);
      UNROLL for (int c = 0; c < VALUE_DIM / 64; ++c)
        tensor_load(local_memory + V_START + stage * V_BYTES + c * KEY_BLOCK_BYTES,
                    maps + 2 * HOPPER_MAP_BYTES, c * 64, kv_head, tile * (int)BLOCK_K, work.batch,
                    FULL_V(stage));
      if (++stage == STAGES) stage = 0, parity ^= 1;
    }
    number = next;
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

// What the scores are before the softmax multiplies them by `scale`.
INLINE void finish_scores(float* score, float inner, float outer, bool capped) {
#if GENERAL_SCORE
  if (capped) {
    UNROLL for (uint j = 0; j < SCORES; ++j) score[j] = outer * saturating_tanh(inner * score[j]);
  } else {
    UNROLL for (uint j = 0; j < SCORES; ++j) score[j] *= inner;
  }
#endif
}

// Keys [low, high] from the tile's first on, and those of the row 8 below, are seen.
INLINE void mask_scores(float* score, int low, int high, int low8, int high8) {
  UNROLL for (int j = 0; j < (int)SCORES; j += 4) {
    UNROLL for (int i = 0; i < 2; ++i) {
      const int key = 2 * j + i;
      bool hidden = key > high, hidden8 = key > high8;
      if (BAND & HOPPER_BAND_LOW) hidden = hidden || key < low, hidden8 = hidden8 || key < low8;
      score[j + i] = hidden ? MASKED : score[j + i];
      score[j + 2 + i] = hidden8 ? MASKED : score[j + 2 + i];
    }
  }
}

// State of the two rows of an item: running maxima and sums, and what the sums and outputs of
// earlier tiles must be scaled by.
typedef struct {
  float most, most8, sum, sum8, shrink, shrink8;
} Rows;

INLINE void take_maxima(Rows* rows, const float* score, float scale) {
  float a = fmax(score[0], score[1]), a8 = fmax(score[2], score[3]);
  float b = fmax(score[4], score[5]), b8 = fmax(score[6], score[7]);
  UNROLL for (uint j = 8; j < SCORES; j += 8) {
    a = fmax(a, fmax(score[j], score[j + 1])), a8 = fmax(a8, fmax(score[j + 2], score[j + 3]));
    b = fmax(b, fmax(score[j + 4], score[j + 5])), b8 = fmax(b8, fmax(score[j + 6], score[j + 7]));
  }
  const float most = fmax(rows->most, quad_max(fmax(a, b)));
  const float most8 = fmax(rows->most8, quad_max(fmax(a8, b8)));
  rows->shrink = fast_exp2((rows->most - most) * scale);
  rows->shrink8 = fast_exp2((rows->most8 - most8) * scale);
  rows->most = most, rows->most8 = most8;
}

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

#define RELEASE(barrier) \
  if (lane == 0) barrier_arrive(barrier)
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

KERNEL void attention_hopper(const global scalar* restrict q, const global scalar* restrict k,
                             const global scalar* restrict v, global scalar* restrict o,
                             global float* restrict log_sum_exp, global uchar* restrict scratch,
                             const struct HopperCall a) {
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
      barrier_init(FULL_WORK(i), 1), barrier_init(FREE_WORK(i), WARPGROUPS * 4);
    FENCE_LOCAL();
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  if (item >= (int)WARPGROUPS * 128) {
    PTX("//@ setmaxnreg.dec.sync.aligned.u32 " COPIER_REGISTERS ";");
    if (item == (int)WARPGROUPS * 128)
      copy_tiles(&a, scratch, (volatile global int*)(scratch + HOPPER_COUNTER), local_memory,
                 barriers, total);
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
  const float scale = GENERAL_SCORE ? 1.0f : inner, outer = a.core.soft_cap * LOG2_E;
  float score[SCORES], output[OUTPUTS];
  uint weight[WEIGHTS];
  int stage = 0, slot = 0;  // stage: of the tile whose keys are next
  uint parity = 0, work_parity = 0, q_parity = 0;
#if TURNS
  if (warpgroup == (int)WARPGROUPS - 1) GROUP_ARRIVE(1, 256);  // warpgroup 0 goes first
#endif
#define MASK(tile)                                                                      \
  do {                                                                                  \
    const int row = row0 + own_row, start = (tile) * (int)BLOCK_K + 2 * (lane % 4);     \
    int high = (int)a.keys - 1, high8 = high;                                           \
    if (BAND & HOPPER_BAND_HIGH)                                                        \
      high = min(high, row + a.core.band_high), high8 = min(high8, row + 8 + a.core.band_high); \
    mask_scores(score, row + a.core.band_low - start, high - start,                     \
                row + 8 + a.core.band_low - start, high8 - start);                      \
  } while (0)

  for (;;) {
    barrier_wait(FULL_WORK(slot), work_parity);
    const int number = (int)load_local(WORK(slot));
    WARP_SYNC();
    RELEASE(FREE_WORK(slot));
    slot ^= 1, work_parity ^= !slot;
    if (number >= total) break;
    const Work work = work_of(&a, number);
    const int row0 = work.row + warpgroup * 64;
    Rows rows = {NO_MAXIMUM, NO_MAXIMUM, 0.0f, 0.0f, 1.0f, 1.0f};
    UNROLL for (uint j = 0; j < OUTPUTS; ++j) output[j] = 0.0f;

    int tile = work.end - 1;
    barrier_wait(FULL_Q, q_parity), q_parity ^= 1;
#if BAND & HOPPER_BAND_INSIDE
    // Tiles that only rows of later warpgroups see.
    for (; tile > work.first && tile * (int)BLOCK_K > row0 + 63 + a.core.band_high; --tile) {
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
    finish_scores(score, inner, outer, a.core.soft_cap > 0.0f);
    if (BAND || a.keys % BLOCK_K) MASK(tile);
    take_maxima(&rows, score, scale);
    take_exponentials(&rows, score, scale);
    pack_weights(weight, score);

    // With OWN_OVERLAP the wait for the next keys stands between the exponentials and the wait for
    // the outputs: it is a loop, which keeps ptxas from moving that wait before the exponentials.
    if (OWN_OVERLAP && tile > work.first) barrier_wait(FULL_K(STAGE_AFTER), PARITY_AFTER);
    while (--tile >= work.first) {
      const uint v_stage = stage, v_parity = parity;  // values lag one tile behind
      NEXT_STAGE();
      if (!OWN_OVERLAP) barrier_wait(FULL_K(stage), parity);
      TURN_BEGIN();
      ISSUE_SCORES(keys + stage * (K_BYTES / 16));
      if (LATE_RESCALE) rescale(output, &rows);
      barrier_wait(FULL_V(v_stage), v_parity);
      ISSUE_OUTPUTS(values + v_stage * (V_BYTES / 16));
      TURN_END();
      WGMMA_WAIT(BLOCK_K, 1, score);
      RELEASE(FREE_K(stage));
      finish_scores(score, inner, outer, a.core.soft_cap > 0.0f);
#if BAND & HOPPER_BAND_INSIDE
      if (((BAND & HOPPER_BAND_HIGH) &&
           tile * (int)BLOCK_K + (int)BLOCK_K - 1 > row0 + a.core.band_high) ||
          ((BAND & HOPPER_BAND_LOW) && tile * (int)BLOCK_K < row0 + 63 + a.core.band_low))
        MASK(tile);
#endif
      take_maxima(&rows, score, scale);
      take_exponentials(&rows, score, scale);
      if (OWN_OVERLAP && tile > work.first) barrier_wait(FULL_K(STAGE_AFTER), PARITY_AFTER);
      WGMMA_WAIT(VALUE_DIM, 0, output);
      RELEASE(FREE_V(v_stage));
      if (!LATE_RESCALE) rescale(output, &rows);
      pack_weights(weight, score);
    }
    if (LATE_RESCALE) rescale(output, &rows);
    if (!SHARE_Q) RELEASE(FREE_Q);
    barrier_wait(FULL_V(stage), parity);
    ISSUE_OUTPUTS(values + stage * (V_BYTES / 16));

    // A row that saw nothing has the sum 0; a NaN in the sum must show in both results.
    const float sum = quad_sum(rows.sum), sum8 = quad_sum(rows.sum8);
    const float norm = sum == 0.0f ? 0.0f : 1.0f / sum, norm8 = sum8 == 0.0f ? 0.0f : 1.0f / sum8;
    if (a.core.write_lse && lane % 4 == 0) {
      global float* to = log_sum_exp + a.core.lse_offset +
                         (size_t)work.batch * a.core.lse_stride_batch +
                         (size_t)work.head * a.core.lse_stride_head;
      const int row = row0 + own_row;
      if (row < (int)a.core.q_len)
        to[row] = sum == 0.0f ? -INFINITY : (rows.most * scale + log2(sum)) * LN_2;
      if (row + 8 < (int)a.core.q_len)
        to[row + 8] = sum8 == 0.0f ? -INFINITY : (rows.most8 * scale + log2(sum8)) * LN_2;
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
        tensor_store(scratch + 3 * HOPPER_MAP_BYTES, c * 64, work.head, row0, work.batch,
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
