// SPDX-License-Identifier: Apache-2.0
// What     o[i] = sum_j p[i,j] v[j], p[i,:] = softmax of score(q[i] . k[j]), visible j; lse.
// Who      Groups that stay, one per multiprocessor; a counter deals (BLOCK_Q rows, head, batch).
// Memory   k and v once per query tile, q once, by tensor copies; o by tensor copies.
// Numerics Float sums of products of f16 or bf16; base-2 softmax with running maximum; keys from
//          the last to the first; weights are rounded to the storage type, their sum is not.
// Assumes  sm_90a (ptx_promotion.hpp), ATTN_HOPPER_VALID, hopper_maps before it, at least one key.
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
// OWN_OVERLAP. With 256 columns, rescaling late gained 13 %. Issuing the first scores of the next
// work beside the last outputs of this one gained nothing (docs/performance/attention_versions.md).
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
// A value that is not finite makes the sums of all rows of a warpgroup NaN whose tiles hold its key.
// Such rows are computed again, by attention/core/exact_row, from the keys that they see alone.
//
// With PAGED=1 groups take items of the work list, whose rows are of one sequence, and keys are copied in boxes of
// BOX_KEYS, each from one page. What lies in no page is zeros, and the rows that would see it are computed again, too.
#include "attention/hopper/forward_copies.clh"
#include "attention/hopper/forward_softmax.clh"
#include "attention/core/exact_row.clh"
#if DTYPE == DTYPE_BF16
#define WGMMA_TYPE "bf16"
#else
#define WGMMA_TYPE "f16"
#endif
#include "lib/hopper/wgmma.clh"

#if BLOCK_Q == 192
#define MULTIPLIER_REGISTERS "160"
#define COPIER_REGISTERS "32"
#else
#define MULTIPLIER_REGISTERS "232"
#define COPIER_REGISTERS "40"
#endif

// Scores, in steps of 16 features, 4 to a block of 64.
#define ISSUE_SCORES(keys)                                                                     \
  do {                                                                                         \
    WGMMA_FENCE();                                                                             \
    WGMMA_SS_FIRST(BLOCK_K, score, queries, (keys));                                           \
    UNROLL for (uint i = 1; i < HEAD_DIM / 16; ++i)                                            \
      WGMMA_SS(BLOCK_K, score, queries + (i / 4 * ATTN_Q_BLOCK_BYTES + i % 4 * 32) / 16,            \
               (keys) + (i / 4 * ATTN_KEY_BLOCK_BYTES + i % 4 * 32) / 16);                          \
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

#define NEXT_STAGE() \
  if (++stage == STAGES) stage = 0, parity ^= 1
#define STAGE_AFTER (stage + 1 == STAGES ? 0 : stage + 1)
#define PARITY_AFTER (parity ^ (stage + 1 == STAGES))
#if TURNS
#define TURN_BEGIN() GROUP_SYNC(1 + warpgroup, 256)
#define TURN_END() GROUP_ARRIVE(warpgroup == (int)ATTN_WARPGROUPS - 1 ? 1 : 2 + warpgroup, 256)
#else
#define TURN_BEGIN()
#define TURN_END()
#endif

// Bit n: row n of the warp's 16 has an output that is not finite, though its weights are; where
// scores are NATURAL, whatever they are.
INLINE uint odd_rows(const float* output, float sum, float sum8) {
  float zero = 0.0f, zero8 = 0.0f;
  UNROLL for (uint j = 0; j < OUTPUTS; j += 4) {
    zero = fma(output[j + 1], 0.0f, fma(output[j], 0.0f, zero));
    zero8 = fma(output[j + 3], 0.0f, fma(output[j + 2], 0.0f, zero8));
  }
  bool odd = isnan(zero), odd8 = isnan(zero8);
#if !NATURAL
  odd = odd && !isnan(sum), odd8 = odd8 && !isnan(sum8);
#endif
  const uint votes = warp_votes(odd), votes8 = warp_votes(odd8);
  uint rows = 0;
  if ((votes | votes8) == 0) return rows;
  ROLLED for (uint i = 0; i < 8; ++i) {
    if ((votes >> 4 * i & 15) != 0) rows |= 1u << i;
    if ((votes8 >> 4 * i & 15) != 0) rows |= 0x100u << i;
  }
  return rows;
}

KERNEL void attention_hopper(const global scalar* restrict q, const global scalar* restrict k,
                             const global scalar* restrict v, global scalar* restrict o,
                             global float* restrict log_sum_exp, global uchar* restrict scratch,
#if POLICY
                             POLICY_KERNEL_PARAMETERS,
#endif
#if PAGED
                             const global int* block_tables,
#endif
                             HOPPER_CALL) {
  HOPPER_ARGUMENTS
#if POLICY
  // With what is known at compile time.
  struct HopperCall call = a;
  call.policy.features = FEATURES;
  if (SCORE == HOPPER_SCALED) call.core.soft_cap = 0.0f;
  MAKE_PAGING(paged)
  const Policies policy_operands = MAKE_POLICIES(call, scratch), *policies = &policy_operands;
#endif
  const global uchar* maps = scratch + (size_t)a.maps * HOPPER_ALIGNMENT;
  local uchar memory[ATTN_HOPPER_LOCAL_BYTES] __attribute__((aligned(1024)));
  const uint local_memory = LOCAL_ADDRESS(memory), barriers = local_memory + ATTN_BARRIERS_START;
  const int item = (int)get_local_id(0);
#if PAGED
  const int total = list_items(policies) * (int)a.core.heads;
#else
  const int total = ((int)a.core.q_len + (int)BLOCK_Q - 1) / (int)BLOCK_Q *
                    (int)(a.core.heads * a.batch);
#endif
  if (item == 0) {
    UNROLL for (int i = 0; i < STAGES; ++i) {
      barrier_init(FULL_K(i), 1), barrier_init(FREE_K(i), ATTN_WARPGROUPS * 4);
      barrier_init(FULL_V(i), 1), barrier_init(FREE_V(i), ATTN_WARPGROUPS * 4);
    }
    barrier_init(FULL_Q, 1), barrier_init(FREE_Q, ATTN_WARPGROUPS * 4);
    for (int i = 0; i < 2; ++i)
      barrier_init(FULL_WORK(i), 1), barrier_init(FREE_WORK(i), ATTN_WARPGROUPS * 4 + (POLICY ? 1 : 0));
#if POLICY
    barrier_init(WANT_WORK, 1);
    for (int i = 0; i < STAGES; ++i) barrier_init(LOADED_V(i), 1);
#endif
    FENCE_LOCAL();
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  if (item >= (int)ATTN_WARPGROUPS * 128) {
    PTX("//@ setmaxnreg.dec.sync.aligned.u32 " COPIER_REGISTERS ";");
    volatile global int* counter = (volatile global int*)(maps + HOPPER_COUNTER);
#if POLICY
    const int lane = item % 32, warp = uniform(item / 32) - (int)ATTN_WARPGROUPS * 4;
    if (warp == 1) deal_work(&a, policies, counter, local_memory, barriers, total, lane);
    if (warp == 2) clear_values(&a, policies, local_memory, barriers, total, lane);
    if (item == (int)ATTN_WARPGROUPS * 128)
      copy_tiles(&a, policies, maps, counter, local_memory, barriers, total);
#else
    if (item == (int)ATTN_WARPGROUPS * 128)
      copy_tiles(&a, maps, counter, local_memory, barriers, total);
#endif
    return;
  }

  PTX("//@ setmaxnreg.inc.sync.aligned.u32 " MULTIPLIER_REGISTERS ";");
  const int warpgroup = uniform(item / 128), t = item % 128, lane = item % 32;
  const int own_row = t / 32 * 16 + lane / 4;
  const ulong queries = wgmma_matrix(local_memory + warpgroup * (int)ATTN_Q_STRIDE, 16);
  const ulong keys = wgmma_matrix(local_memory + ATTN_K_START, 16);
  const ulong values = wgmma_matrix(local_memory + ATTN_V_START, ATTN_KEY_BLOCK_BYTES);
  const uint own_outputs = local_memory + ATTN_O_START + warpgroup * (int)ATTN_O_STRIDE;
  const float inner = a.core.soft_cap > 0.0f ? a.core.scale / a.core.soft_cap
                                             : a.core.scale * LOG2_E;
  const float outer = a.core.soft_cap * LOG2_E;
  const float scale = NATURAL ? LOG2_E : EXPONENTS ? 1.0f : SCORE == HOPPER_CAPPED ? outer : inner;
  float score[SCORES], output[OUTPUTS];
  uint weight[WEIGHTS];
  int stage = 0, slot = 0;  // stage: of the tile whose keys are next
  uint parity = 0, work_parity = 0, q_parity = 0;
#if TURNS
  if (warpgroup == (int)ATTN_WARPGROUPS - 1) GROUP_ARRIVE(1, 256);  // warpgroup 0 goes first
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
    const int last_row = END_ROW(work, a.core) - 1;
    const RowPolicy row = policy_row(policies, work.batch, work.head, min(row0 + own_row, last_row));
    const RowPolicy row8 =
        policy_row(policies, work.batch, work.head, min(row0 + own_row + 8, last_row));
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
    ISSUE_SCORES(keys + stage * (ATTN_K_BYTES / 16));
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
    ISSUE_SCORES(keys + stage * (ATTN_K_BYTES / 16));                                  \
    if (LATE_RESCALE) rescale(output, &rows);                                     \
    barrier_wait(FULL_V(v_stage), v_parity);                                      \
    ISSUE_OUTPUTS(values + v_stage * (ATTN_V_BYTES / 16));                             \
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
    ISSUE_OUTPUTS(values + stage * (ATTN_V_BYTES / 16));

    // A row that saw nothing has the sum 0; a NaN in the sum must show in both results.
    Total all = {shift_of(rows.most, scale), quad_sum(rows.sum), 1.0f};
    Total all8 = {shift_of(rows.most8, scale), quad_sum(rows.sum8), 1.0f};
#if POLICY
    all = with_sinks(all, policies, work.head), all8 = with_sinks(all8, policies, work.head);
#endif
    const float norm = norm_of(all), norm8 = norm_of(all8);
    if (a.core.write_lse && lane % 4 == 0) {
      global float* to = log_sum_exp + a.core.lse_offset +
                         (size_t)work.batch * a.core.lse_stride_batch +
                         (size_t)work.head * a.core.lse_stride_head;
      const int at = row0 + own_row;
      if (at < END_ROW(work, a.core)) to[at] = log_sum_exp_of(all);
      if (at + 8 < END_ROW(work, a.core)) to[at + 8] = log_sum_exp_of(all8);
    }
    if (t == 0) PTX("cp.async.bulk.wait_group.read 0;");  // the outputs before have left
    WGMMA_WAIT(VALUE_DIM, 0, output);
    RELEASE(FREE_V(stage));
    NEXT_STAGE();
#if PAGED
    const uint odd = PAGED_HIDES(work.entry) ? 0xffff : odd_rows(output, all.sum, all8.sum);
#else
    const uint odd = odd_rows(output, all.sum, all8.sum);
#endif
    GROUP_SYNC(8 + warpgroup, 128);
    UNROLL for (uint j = 0; j < OUTPUTS; j += 4) {
      const uint chunk = j / 4;
      const uint to = own_outputs + chunk / 8 * ATTN_Q_BLOCK_BYTES + own_row * 128 +
                      ((chunk % 8) ^ (own_row % 8)) * 16 + lane % 4 * 4;
      store_local(to, pack_scalars(output[j] * norm, output[j + 1] * norm));
      store_local(to + 8 * 128, pack_scalars(output[j + 2] * norm8, output[j + 3] * norm8));
    }
    if (odd != 0) {
      WARP_SYNC();  // what is stored now comes after what the warp has stored
      ROLLED for (int n = 0; n < 16; ++n) {
        const int local_row = t / 32 * 16 + n, at = row0 + local_row;
        if ((odd >> n & 1) == 0 || at >= END_ROW(work, a.core)) continue;
        const size_t kv_head = work.head / a.core.group;
        ExactRow exact = {
            .query = q + a.core.q_offset + (size_t)work.batch * a.core.q_stride_batch +
                     (size_t)work.head * a.core.q_stride_head + (size_t)at * a.core.q_stride_row,
            .keys = k + a.core.k_offset + (size_t)work.batch * a.core.k_stride_batch +
                    kv_head * a.core.k_stride_head + (size_t)a.first_key * a.core.k_stride_row,
            .values = v + a.core.v_offset + (size_t)work.batch * a.core.v_stride_batch +
                      kv_head * a.core.v_stride_head + (size_t)a.first_key * a.core.v_stride_row,
            .key_stride = a.core.k_stride_row,
            .value_stride = a.core.v_stride_row,
            .head_dim = a.head_dim,
            .value_dim = a.value_dim,
            .scale = a.core.scale,
            .soft_cap = a.core.soft_cap};
#if POLICY
        exact.policies = policies;
#if PAGED
        const uint sequence = (uint)PAGED_SEQUENCE(work.entry);
        const KeyPlaces key_places = KEY_PLACES(a.core.k_stride_row, a.core.k_stride_batch, sequence);
        const KeyPlaces value_places = KEY_PLACES(a.core.v_stride_row, a.core.v_stride_batch, sequence);
        exact.key_places = key_places, exact.value_places = value_places;
#endif
        exact.policy = policy_row(policies, work.batch, work.head, at);
        exact.first = exact.policy.first, exact.end = exact.policy.end;
#else
        exact.first = max(at + a.core.band_low, 0);
        exact.end = min(at + a.core.band_high + 1, (int)a.keys);
#endif
        float row_sums[EXACT_COLUMNS];
        const float2 found = exact_row(row_sums, &exact, (uint)lane);
        Total exact_total = {found.s0, found.s1, 1.0f};
#if POLICY
        exact_total = with_sinks(exact_total, policies, work.head);
#endif
        const float factor = norm_of(exact_total);
        if ((NATURAL || PAGED) && a.core.write_lse && lane == 0)
          log_sum_exp[a.core.lse_offset + (size_t)work.batch * a.core.lse_stride_batch +
                      (size_t)work.head * a.core.lse_stride_head + at] =
              log_sum_exp_of(exact_total);
        UNROLL for (int c = 0; c < (int)EXACT_COLUMNS; ++c) {
          const int column = lane + 32 * c, chunk = column / 8;
          store_local_short(own_outputs + chunk / 8 * ATTN_Q_BLOCK_BYTES + local_row * 128 +
                                ((chunk % 8) ^ (local_row % 8)) * 16 + column % 8 * 2,
                            pack_scalars(row_sums[c] * factor, 0.0f));
        }
      }
    }
    FENCE_LOCAL();
    GROUP_SYNC(8 + warpgroup, 128);
#if PAGED
    if (row0 + 64 > work.end_row) {  // behind the last row begin another item's
      const int chunks = ((int)a.value_dim + 7) / 8;
      for (int i = t; i < (work.end_row - row0) * chunks; i += 128) {
        const int local_row = i / chunks, chunk = i % chunks;
        global scalar* to = o + a.core.o_offset + (size_t)work.head * a.core.o_stride_head +
                            (size_t)(row0 + local_row) * a.core.o_stride_row + chunk * 8;
        const uint4 x = load_local4(own_outputs + chunk / 8 * ATTN_Q_BLOCK_BYTES + local_row * 128 +
                                    ((chunk % 8) ^ (local_row % 8)) * 16);
        if (chunk * 8 + 8 <= (int)a.value_dim) {
          *(global uint4*)to = x;
        } else {
          const uint words[4] = {x.s0, x.s1, x.s2, x.s3};
          UNROLL for (int n = 0; n < 8; ++n)
            if (chunk * 8 + n < (int)a.value_dim) *(global ushort*)(to + n) = (ushort)(words[n / 2] >> n % 2 * 16);
        }
      }
    } else
#endif
    if (t == 0) {
      UNROLL for (int c = 0; c < VALUE_DIM / 64; ++c)
        tensor_store(maps + 3 * HOPPER_MAP_BYTES, c * 64, work.head, row0, work.batch,
                     own_outputs + c * ATTN_Q_BLOCK_BYTES);
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
