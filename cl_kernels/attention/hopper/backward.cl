// SPDX-License-Identifier: Apache-2.0
// What     dk and dv; sums of ds k, which attention/hopper/backward_queries makes dq of.
// Who      Groups that stay, one per multiprocessor; a counter deals (ATTN_BLOCK_K keys, head, batch).
// Memory   k and v once, q and do once per key tile, by tensor copies; dq by bulk additions.
// Numerics Float sums of products of f16 or bf16; weights and ds are rounded to the storage type.
//          Every sum has one order.
// Assumes  sm_90a (ptx_promotion.hpp), ATTN_HOPPER_BACKWARD_VALID, hopper_backward_maps before it.
//
// Two warpgroups multiply, 64 keys each; keys are the rows of what they hold. The third copies: a
// warp brings tiles, one the rows' log-sum-exps and deltas, two take away a half of dq each.
//
//              BLOCK_Q query rows
//            +--------------------+--------------------+     weights and ds stay where the products
//   64 keys  | s = k q'           | dp = v do'         |     were: they are the left factors of
//            | p = exp2(s - lse)  | ds = p (dp - delta)|       dv += p do,  dk += ds q
//            +--------------------+--------------------+     and ds goes to local memory, where all
//   64 keys  |                    |                    |     128 keys meet: dq' = k' ds
//            +--------------------+--------------------+
//
// Tiles of query rows are taken from the last to the first, and their dq is added in scratch in the
// order of key tiles: a counter per half tile says how many have done so. Work is dealt in that
// order too, so whoever waits waits for somebody who runs. Neighbours are one step apart.
//
// Barriers FULL_... are completed by the bytes of copies or by the warps that write, FREE_... by one
// arrival of every reading warp. Only `stage` and `parity` are carried around the loop of steps.
//
// A value that is not finite makes the sums of all rows and keys of a group NaN whose tiles hold it.
// Such keys are computed again, by attention/core/exact_gradients, from the rows that see them alone;
// attention/hopper/backward_queries does the same for rows.
#include "attention/hopper/backward_copies.clh"
#include "attention/hopper/backward_scores.clh"
#if DTYPE == DTYPE_BF16
#define WGMMA_TYPE "bf16"
#else
#define WGMMA_TYPE "f16"
#endif
#include "lib/hopper/wgmma.clh"
#define EXACT_HEADS (DIM / 32)
#define EXACT_COLUMNS (DIM / 32)
#include "attention/core/exact_gradients.clh"

#define SUMS (DIM / 2)  // registers of an item for dk, and for dv
// With 128 columns a warpgroup makes 64 columns of dq, with 64 columns those of half the rows.
#if DIM == 128
#define DQ_ROWS BLOCK_Q
#else
#define DQ_ROWS 64
#endif

// Products of 64 keys and a step's rows, in steps of 16 features, 4 to a block of 64.
#define ISSUE_PRODUCTS(d, keys, queries)                                            \
  do {                                                                              \
    WGMMA_FENCE();                                                                  \
    WGMMA_SS_FIRST(BLOCK_Q, d, keys, queries);                                      \
    UNROLL for (uint i = 1; i < DIM / 16; ++i)                                      \
      WGMMA_SS(BLOCK_Q, d, (keys) + (i / 4 * ATTN_KEY_BLOCK_BYTES + i % 4 * 32) / 16,    \
               (queries) + (i / 4 * ATTN_QUERY_BLOCK_BYTES + i % 4 * 32) / 16);          \
    WGMMA_COMMIT();                                                                 \
  } while (0)
// dv and dk, 16 rows of the step at a time: weights are in registers, ds is in local memory.
#define ISSUE_VALUES(stage)                                                                   \
  do {                                                                                        \
    WGMMA_FENCE();                                                                            \
    UNROLL for (uint i = 0; i < BLOCK_Q / 16; ++i)                                            \
      WGMMA_RS(DIM, sum_v, weight[4 * i], weight[4 * i + 1], weight[4 * i + 2],               \
               weight[4 * i + 3], gradients + (stage) * (ATTN_Q_BYTES / 16) + i * 2048 / 16);      \
    WGMMA_COMMIT();                                                                           \
  } while (0)
#define ISSUE_KEYS(stage)                                                                     \
  do {                                                                                        \
    WGMMA_FENCE();                                                                            \
    UNROLL for (uint i = 0; i < BLOCK_Q / 16; ++i)                                            \
      WGMMA_ST(DIM, sum_k, own_pairs + (i / 4 * ATTN_KEY_BLOCK_BYTES + i % 4 * 32) / 16,           \
               queries + (stage) * (ATTN_Q_BYTES / 16) + i * 2048 / 16);                           \
    WGMMA_COMMIT();                                                                           \
  } while (0)
// Query gradients, in steps of 16 keys.
#define ISSUE_QUERIES(d)                                                        \
  do {                                                                          \
    WGMMA_FENCE();                                                              \
    WGMMA_TS_FIRST(DQ_ROWS, d, keys_across, ds_across);                         \
    UNROLL for (uint i = 1; i < ATTN_BLOCK_K / 16; ++i)                              \
      WGMMA_TS(DQ_ROWS, d, keys_across + i * 2048 / 16, ds_across + i * 2048 / 16); \
    WGMMA_COMMIT();                                                             \
  } while (0)

#define ISSUE_SCORES(stage) ISSUE_PRODUCTS(score, keys, queries + (stage) * (ATTN_Q_BYTES / 16))
#define ISSUE_GRADIENTS(stage) ISSUE_PRODUCTS(ds, values, gradients + (stage) * (ATTN_Q_BYTES / 16))
#define STAGE_AFTER (stage + 1 == STAGES ? 0 : stage + 1)
#define PARITY_AFTER (parity ^ (stage + 1 == STAGES))

// Bit n: key n of the warp's 16 has a sum that is not finite.
INLINE uint odd_keys(const float* sum_k, const float* sum_v) {
  float zero = 0.0f, zero8 = 0.0f;
  UNROLL for (uint j = 0; j < SUMS; ++j) {
    float* of = j / 2 % 2 == 0 ? &zero : &zero8;
    *of = fma(sum_v[j], 0.0f, fma(sum_k[j], 0.0f, *of));
  }
  const uint votes = warp_votes(isnan(zero)), votes8 = warp_votes(isnan(zero8));
  uint keys = 0;
  if ((votes | votes8) == 0) return keys;
  ROLLED for (uint i = 0; i < 8; ++i) {
    if ((votes >> 4 * i & 15) != 0) keys |= 1u << i;
    if ((votes8 >> 4 * i & 15) != 0) keys |= 0x100u << i;
  }
  return keys;
}

KERNEL void attention_hopper_backward(const global scalar* restrict q,
                                      const global scalar* restrict k,
                                      const global scalar* restrict v,
                                      const global scalar* restrict output_gradient,
                                      const global float* restrict log_sum_exp,
                                      global scalar* restrict dk, global scalar* restrict dv,
                                      global uchar* restrict all_scratch,
                                      const struct HopperBackwardCall call) {
  local uchar memory[ATTN_HOPPER_BACKWARD_LOCAL_BYTES] __attribute__((aligned(1024)));
  const uint local_memory = LOCAL_ADDRESS(memory), barriers = local_memory + ATTN_BARRIERS_START;
  const struct HopperBackwardCall* a = &call;
  global uchar* scratch = all_scratch + (size_t)a->gradient.partials * 4;
  const int item = (int)get_local_id(0), lane = item % 32;
  const int total = key_tiles(a) * (int)(a->core.heads / a->core.group * a->batch);
  if (item == 0) {
    UNROLL for (int i = 0; i < STAGES; ++i) {
      barrier_init(FULL_Q(i), 2), barrier_init(FREE_Q(i), MULTIPLYING_WARPS);
      barrier_init(FULL_DO(i), 1), barrier_init(FREE_DO(i), MULTIPLYING_WARPS);
    }
    barrier_init(FULL_KV, 1), barrier_init(FREE_KV, MULTIPLYING_WARPS);
    for (int i = 0; i < 2; ++i) {
      barrier_init(FULL_DQ(i), 4), barrier_init(FREE_DQ(i), 1);
      barrier_init(FULL_WORK(i), 1), barrier_init(FREE_WORK(i), READERS_OF_WORK);
    }
    FENCE_LOCAL();
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  if (item >= 256) {
    PTX("//@ setmaxnreg.dec.sync.aligned.u32 24;");
    const int role = uniform(item / 32) - MULTIPLYING_WARPS;
    if (role == 0) {
      if (lane == 0) copy_tiles(a, scratch, local_memory, barriers, total);
    } else if (role == 1) {
      copy_rows(a, log_sum_exp, (const global float*)all_scratch + a->gradient.delta, local_memory,
                barriers, total, lane);
    } else if (lane == 0) {
      add_queries(a, scratch, (global float*)all_scratch + a->dq, local_memory, barriers, total,
                  role - 2);
    }
    return;
  }

  PTX("//@ setmaxnreg.inc.sync.aligned.u32 240;");
  const int warpgroup = uniform(item / 128), t = item % 128;
  const int own_key = warpgroup * 64 + t / 32 * 16 + lane / 4;
  const ulong keys = wgmma_matrix(local_memory + warpgroup * 8192, 16);
  const ulong values = wgmma_matrix(local_memory + ATTN_V_START + warpgroup * 8192, 16);
  const ulong queries = wgmma_matrix(local_memory + ATTN_Q_START, ATTN_QUERY_BLOCK_BYTES);
  const ulong gradients = wgmma_matrix(local_memory + ATTN_DO_START, ATTN_QUERY_BLOCK_BYTES);
  const ulong keys_across =
      wgmma_matrix(local_memory + (DIM == 128 ? warpgroup * ATTN_KEY_BLOCK_BYTES : 0), ATTN_KEY_BLOCK_BYTES);
  const ulong ds_across = wgmma_matrix(
      local_memory + ATTN_DS_START + (DIM == 128 ? 0 : warpgroup * ATTN_KEY_BLOCK_BYTES), ATTN_KEY_BLOCK_BYTES);
  const ulong own_pairs = wgmma_matrix(local_memory + ATTN_DS_START + warpgroup * 8192, 16);
  // Where this item's row of ds begins, and the chunk that it writes there: store_matrices().
  const uint own_ds = local_memory + ATTN_DS_START +
                      (warpgroup * 64 + t / 32 * 16 + lane / 8 % 2 * 8 + lane % 8) * 128;
  const uint own_chunk = (lane / 16 ^ lane % 8) * 16;
  const uint own_dq = local_memory + ATTN_DQ_START + warpgroup * ATTN_DQ_HALF_BYTES + t * 16;
  const uint own_rows = local_memory + ATTN_ROWS_START + lane % 4 * 8;
  const float inner = a->core.soft_cap > 0.0f ? a->core.scale / a->core.soft_cap
                                              : a->core.scale * LOG2_E;
  const float scale = GENERAL_SCORE ? 1.0f : inner, outer = a->core.soft_cap * LOG2_E;
  const bool capped = a->core.soft_cap > 0.0f;
  float score[SCORES], ds[SCORES], sum_k[SUMS], sum_v[SUMS];
  float* dq = ds;  // they are never needed at the same time
  uint weight[WEIGHTS];
  int stage = 0, slot = 0;
  uint parity = 0, work_parity = 0, kv_parity = 0, dq_parity = 1;
  GROUP_ARRIVE(DS_FREE(1 - warpgroup), 256);

// Weights of step `tile`, and gradients of weights.
#define TAKE_SCORES()                                                             \
  do {                                                                            \
    WGMMA_WAIT(BLOCK_Q, 1, score);                                                \
    if (GENERAL_SCORE) finish_scores(score, inner, outer, capped);                \
    const int key = work.tile * (int)ATTN_BLOCK_K, row = tile * (int)BLOCK_Q;          \
    if (is_masked(a, key, row))                                                   \
      mask_scores(a, score, key + own_key, row + lane % 4 * 2);                   \
    if (!GENERAL_SCORE) take_exponentials(score, scale, own_rows + stage * ATTN_ROW_BYTES); \
    if (!GENERAL_SCORE) pack_pairs(weight, score);                                \
    WGMMA_WAIT(BLOCK_Q, 0, ds);                                                   \
  } while (0)
// What follows from them: dv, ds, and with the other warpgroup's ds, dq; dk.
#define ISSUE_STEP()                                                                \
  do {                                                                              \
    if (!GENERAL_SCORE) ISSUE_VALUES(stage);                                        \
    take_gradients(ds, score, own_rows + stage * ATTN_ROW_BYTES, capped, outer);         \
    if (GENERAL_SCORE) {                                                            \
      pack_pairs(weight, score);                                                    \
      ISSUE_VALUES(stage);                                                          \
    }                                                                               \
    GROUP_SYNC(DS_FREE(warpgroup), 256);                                            \
    UNROLL for (uint j = 0; j < SCORES; j += 8)                                     \
      store_matrices(own_ds + j / 32 * ATTN_KEY_BLOCK_BYTES + (j % 32 * 4 ^ own_chunk),  \
                     pack_scalars(ds[j], ds[j + 1]), pack_scalars(ds[j + 2], ds[j + 3]),  \
                     pack_scalars(ds[j + 4], ds[j + 5]), pack_scalars(ds[j + 6], ds[j + 7])); \
    FENCE_LOCAL();                                                                  \
    GROUP_SYNC(DS_WRITTEN, 256);                                                    \
    ISSUE_QUERIES(dq);                                                              \
    ISSUE_KEYS(stage);                                                              \
  } while (0)
// Query gradients, when but `pending` groups of products are done, to who adds them; dv and whatever
// reads ds came before.
#define GIVE_QUERIES(pending)                                                     \
  do {                                                                            \
    WGMMA_WAIT(DQ_ROWS, pending, dq);                                             \
    RELEASE(FREE_DO(stage));                                                      \
    GROUP_ARRIVE(DS_FREE(1 - warpgroup), 256);                                    \
    barrier_wait(FREE_DQ(warpgroup), dq_parity), dq_parity ^= 1;                  \
    UNROLL for (uint j = 0; j < DQ_ROWS / 2; j += 4) store_floats4(own_dq + j * 512, dq + j); \
    FENCE_LOCAL();                                                                \
    WARP_SYNC();                                                                  \
    RELEASE(FULL_DQ(warpgroup));                                                  \
  } while (0)

  for (;;) {
    TAKE_WORK();
    UNROLL for (uint j = 0; j < SUMS; ++j) sum_k[j] = 0.0f, sum_v[j] = 0.0f;
    int steps = (work.end - work.first) * (int)a->core.group, tile = work.end - 1;
    if (steps > 0) {
      barrier_wait(FULL_KV, kv_parity), kv_parity ^= 1;
      barrier_wait(FULL_Q(stage), parity);
      ISSUE_SCORES(stage);
      barrier_wait(FULL_DO(stage), parity);
      ISSUE_GRADIENTS(stage);
      TAKE_SCORES();
      // No product is under way where the loop closes, or ptxas serializes all of them.
      for (; steps > 1; --steps) {
        ISSUE_STEP();
        const int next = STAGE_AFTER;
        const uint next_parity = PARITY_AFTER;
        barrier_wait(FULL_Q(next), next_parity);
        // The next scores are under way beside dk and while dq is given away. With 64 columns, where
        // they have twice the registers, not beside dk: ptxas would serialize all products.
        if (DIM == 64) WGMMA_WAIT(DIM, 0, sum_k);
        ISSUE_SCORES(next);
        GIVE_QUERIES(2);
        barrier_wait(FULL_DO(next), next_parity);
        ISSUE_GRADIENTS(next);
        WGMMA_WAIT(DIM, 2, sum_k);
        RELEASE(FREE_Q(stage));
        stage = next, parity = next_parity;
        tile = tile == work.first ? work.end - 1 : tile - 1;
        TAKE_SCORES();
      }
      ISSUE_STEP();
      GIVE_QUERIES(1);
      WGMMA_WAIT(DIM, 0, sum_k);
      RELEASE(FREE_Q(stage));
      NEXT_STAGE();
      RELEASE(FREE_KV);
    }

    const int key = work.tile * (int)ATTN_BLOCK_K + own_key;
    UNROLL for (int i = 0; i < 2; ++i) {
      if (key + 8 * i >= (int)a->core.kv_len) break;
      global scalar* to_k = dk + a->gradient.dk_offset +
                            (size_t)work.batch * a->gradient.dk_stride_batch +
                            (size_t)work.head * a->gradient.dk_stride_head +
                            (size_t)(key + 8 * i) * a->gradient.dk_stride_row;
      global scalar* to_v = dv + a->gradient.dv_offset +
                            (size_t)work.batch * a->gradient.dv_stride_batch +
                            (size_t)work.head * a->gradient.dv_stride_head +
                            (size_t)(key + 8 * i) * a->gradient.dv_stride_row;
      UNROLL for (int j = 0; j < SUMS; j += 4) {
        const int column = 2 * j + lane % 4 * 2;
        store_pair(to_k, column, (int)a->head_dim, sum_k[j + 2 * i] * a->core.scale,
                   sum_k[j + 2 * i + 1] * a->core.scale);
        store_pair(to_v, column, (int)a->value_dim, sum_v[j + 2 * i], sum_v[j + 2 * i + 1]);
      }
    }

    const uint odd = odd_keys(sum_k, sum_v);
    if (odd == 0) continue;
    WARP_SYNC();  // what is stored now comes after what the warp has stored
    ROLLED for (int n = 0; n < 16; ++n) {
      const int at = key - lane / 4 + n;
      if ((odd >> n & 1) == 0 || at >= (int)a->core.kv_len) continue;
      float exact_k[EXACT_HEADS], exact_v[EXACT_COLUMNS];
      UNROLL for (uint c = 0; c < EXACT_HEADS; ++c) exact_k[c] = 0.0f, exact_v[c] = 0.0f;
      const int first = max((int)a->first_row, at - a->core.band_high);
      const int end = min((int)(a->first_row + a->rows), at - a->core.band_low + 1);
      ROLLED for (int g = 0; g < (int)a->core.group; ++g) {
        const int head = work.head * (int)a->core.group + g;
        const ExactPairs exact = EXACT_PAIRS(*a, (const global float*)all_scratch, work.batch, head,
                                             a->head_dim, a->value_dim);
        exact_key(exact_k, exact_v, &exact, at, first, end, (uint)lane);
      }
      exact_store(dk + a->gradient.dk_offset + (size_t)work.batch * a->gradient.dk_stride_batch +
                      (size_t)work.head * a->gradient.dk_stride_head +
                      (size_t)at * a->gradient.dk_stride_row,
                  exact_k, EXACT_HEADS, a->head_dim, a->core.scale, (uint)lane);
      exact_store(dv + a->gradient.dv_offset + (size_t)work.batch * a->gradient.dv_stride_batch +
                      (size_t)work.head * a->gradient.dv_stride_head +
                      (size_t)at * a->gradient.dv_stride_row,
                  exact_v, EXACT_COLUMNS, a->value_dim, 1.0f, (uint)lane);
    }
  }
}
