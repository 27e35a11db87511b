// SPDX-License-Identifier: Apache-2.0
// What     result = finish(a b), or shares of the sums to scratch; a and b contiguous along an axis.
// Who      A work-group owns a tile of BLOCK_M by BLOCK_N and a share of the terms, a warp WARP_M by WARP_N of it.
// Memory   Steps of 128 bytes of terms to local memory by asynchronous copies, STAGES - 1 of them ahead, or STAGES - 2
//          where tiles and steps are whole, with one barrier to a step; sums through local memory to rows of the result.
// Numerics Float sums of products of f16 or bf16, or of floats as lib/mma/float_products.clh has it; terms in order; the
//          shares of a split are added in order by matmul/core/combine.
//          NaN among sums of floats are taken again without splitting.
// Assumes  sm_80, MATMUL_MMA_VALID; ALIGNED is no lie; operands below 2^31 elements.
#define MATMUL_SCALES 0
#include "matmul/core/operands.clh"
#include "matmul/core/exact.clh"
#include "matmul/core/plain.clh"
#include "lib/mma/fragments.clh"
#include "operations/matmul_core/mma/geometry.h"

#define TERMS MATMUL_MMA_TERMS
#define A_PITCH MATMUL_MMA_LINE(A_BY_TERMS, BLOCK_M)
#define B_PITCH MATMUL_MMA_LINE(B_BY_TERMS, BLOCK_N)
#define B_START MATMUL_MMA_BYTES(A_BY_TERMS, BLOCK_M)
#define STAGE_STEPS (TERMS / 16)
#define M (WARP_M / 16)
#define N (WARP_N / 16)
MMA_ADD_STAGE(add_stage, M, N, A_BY_TERMS, A_PITCH, B_BY_TERMS, B_PITCH)

// name(to, from, step, line0, lines, first, count, item): lines of `count` elements, `step` apart, from element `first` on;
// zeros where there are none.
#define COPY_TILE(name, LINES, ELEMENTS, PITCH, BY_TERMS)                                                   \
  INLINE void name(uint to, const global scalar* from, uint step, uint line0, uint lines, uint first, uint count, uint item) { \
    const uint chunks = (ELEMENTS) / MMA_ELEMENTS, per = WG_X / chunks, chunk = item % chunks;              \
    const uint at = first + chunk * MMA_ELEMENTS, here = at < count ? min(count - at, MMA_ELEMENTS) : 0;    \
    UNROLL for (uint i = 0; i < MMA_CEIL_DIV(LINES, per); ++i) {                                            \
      const uint line = item / chunks + i * per;                                                            \
      if ((LINES) % per != 0 && line >= (LINES)) break;                                                     \
      const uint swizzled = chunk ^ MMA_SWIZZLE(BY_TERMS, line);                                            \
      const bool exists = line0 + line < lines;                                                             \
      const global scalar* source = from + (size_t)((line0 + line) * step + at);                            \
      const uint place = to + line * (PITCH) + swizzled * 16;                                               \
      if (ALIGNED) {                                                                                        \
        mma_copy_start(place, source, exists ? here * MMA_ELEMENT_BYTES : 0);                               \
      } else {                                                                                              \
        mma_copy_chunk(place, source, exists, at, count);                                                   \
      }                                                                                                     \
    }                                                                                                       \
  }
COPY_TILE(copy_a, MATMUL_MMA_LINES(A_BY_TERMS, BLOCK_M), A_BY_TERMS ? TERMS : BLOCK_M, A_PITCH, A_BY_TERMS)
COPY_TILE(copy_b, MATMUL_MMA_LINES(B_BY_TERMS, BLOCK_N), B_BY_TERMS ? TERMS : BLOCK_N, B_PITCH, B_BY_TERMS)

typedef struct {
  uint row, column;  // of the first element
  uint batch, split;
  uint a, b;         // where the matrices of the batch begin
  uint first, last;  // steps
} Work;

INLINE Work work_of(const MatmulOperands* operands, uint unit) {
  const uint tiles_m = (ARGS(m) + BLOCK_M - 1) / BLOCK_M, tiles_n = (ARGS(n) + BLOCK_N - 1) / BLOCK_N;
  const uint tiles = tiles_m * tiles_n, tile = unit % tiles, rest = unit / tiles;
  // Bands of rows of tiles are walked by columns: work-groups that run at the same time share what they read.
  const uint band = tile / (8 * tiles_n), in_band = tile % (8 * tiles_n), height = min(tiles_m - 8 * band, 8u);
  const uint steps = ARGS(sums) * ((ARGS(k) + TERMS - 1) / TERMS), each = steps / ARGS(splits);
  const uint more = steps % ARGS(splits);
  Work work;
  work.row = (8 * band + in_band % height) * BLOCK_M;
  work.column = in_band / height * BLOCK_N;
  work.batch = rest % ARGS(batches);
  work.split = rest / ARGS(batches);
  work.a = matmul_base(operands, ARGS(a), work.batch);
  work.b = matmul_base(operands, ARGS(b), work.batch);
  work.first = work.split * each + min(work.split, more);
  work.last = work.first + each + (work.split < more ? 1 : 0);
  return work;
}

INLINE void copy_step(const MatmulOperands* operands, const global scalar* a, const global scalar* b, const Work* work,
                      uint step, uint to, uint item) {
  const uint k_steps = (ARGS(k) + TERMS - 1) / TERMS, summand = step / k_steps, term = step % k_steps * TERMS;
  const uint outer = summand / ARGS(sums1), inner = summand % ARGS(sums1);
  const global scalar* a_at = a + (work->a + outer * ARGS(a_sum0) + inner * ARGS(a_sum1));
  const global scalar* b_at = b + (work->b + outer * ARGS(b_sum0) + inner * ARGS(b_sum1));
#if A_BY_TERMS
  copy_a(to, a_at, ARGS(a).row, work->row, ARGS(m), term, ARGS(k), item);
#else
  copy_a(to, a_at, ARGS(a).column, term, ARGS(k), work->row, ARGS(m), item);
#endif
#if B_BY_TERMS
  copy_b(to + B_START, b_at, ARGS(b).column, work->column, ARGS(n), term, ARGS(k), item);
#else
  copy_b(to + B_START, b_at, ARGS(b).row, term, ARGS(k), work->column, ARGS(n), item);
#endif
}

#if ALIGNED && STAGES >= 3
// Of whole tiles and steps an item copies chunks that are a fixed number of lines apart, in memory
// and here.
#define A_CHUNKS ((A_BY_TERMS ? TERMS : BLOCK_M) / MMA_ELEMENTS)
#define B_CHUNKS ((B_BY_TERMS ? TERMS : BLOCK_N) / MMA_ELEMENTS)
#define A_LINES MATMUL_MMA_LINES(A_BY_TERMS, BLOCK_M)
#define B_LINES MATMUL_MMA_LINES(B_BY_TERMS, BLOCK_N)
#define A_STEP (A_BY_TERMS ? ARGS(a).row : ARGS(a).column)
#define B_STEP (B_BY_TERMS ? ARGS(b).column : ARGS(b).row)
#define EVEN_COPIES(LINES, CHUNKS) ((WG_X / (CHUNKS)) % 8 == 0 && (LINES) % (WG_X / (CHUNKS)) == 0)
#define CAN_BE_WHOLE (EVEN_COPIES(A_LINES, A_CHUNKS) && EVEN_COPIES(B_LINES, B_CHUNKS))
// Steps that are on their way: there is room for one more, which was not tried.
#define AHEAD (STAGES - 2)
// Copies are spread over a step, if more than the next one is on its way.
#define SPREAD (AHEAD > 1)

typedef struct {
  const global scalar *a, *b;  // this item's first chunks of a step
  uint term, summand;          // where the step begins
} Source;

INLINE void find_source(const MatmulOperands* operands, const global scalar* a,
                        const global scalar* b, const Work* work, Source* source, uint item) {
  const uint outer = source->summand / ARGS(sums1), inner = source->summand % ARGS(sums1),
             term = source->term;
  const uint a_line = item / A_CHUNKS, a_at = item % A_CHUNKS * MMA_ELEMENTS;
  const uint b_line = item / B_CHUNKS, b_at = item % B_CHUNKS * MMA_ELEMENTS;
  source->a = a + (work->a + outer * ARGS(a_sum0) + inner * ARGS(a_sum1) +
                   (A_BY_TERMS ? (work->row + a_line) * A_STEP + term + a_at
                               : (term + a_line) * A_STEP + work->row + a_at));
  source->b = b + (work->b + outer * ARGS(b_sum0) + inner * ARGS(b_sum1) +
                   (B_BY_TERMS ? (work->column + b_line) * B_STEP + term + b_at
                               : (term + b_line) * B_STEP + work->column + b_at));
}
INLINE void next_source(const MatmulOperands* operands, const global scalar* a,
                        const global scalar* b, const Work* work, Source* source, uint item) {
  source->term += TERMS;
  if (source->term < ARGS(k)) {
    source->a += A_BY_TERMS ? TERMS : TERMS * A_STEP;
    source->b += B_BY_TERMS ? TERMS : TERMS * B_STEP;
  } else {
    source->term = 0;
    ++source->summand;
    find_source(operands, a, b, work, source, item);
  }
}

// name(to, from, step, part, parts, wanted): of the item's chunks every parts-th from number `part`
// on, if they are wanted.
#define COPY_PART(name, LINES, CHUNKS, PITCH)                                             \
  INLINE void name(uint to, const global scalar* from, uint step, uint part, uint parts,  \
                   uint wanted) {                                                         \
    const uint per = WG_X / (CHUNKS);                                                     \
    UNROLL for (uint i = 0; i < (LINES) / per; ++i) {                                     \
      if (i % parts == part)                                                              \
        mma_copy_wanted(to + i * per * (PITCH), from + (size_t)(i * per * step), wanted); \
    }                                                                                     \
  }
COPY_PART(copy_part_of_a, A_LINES, A_CHUNKS, A_PITCH)
COPY_PART(copy_part_of_b, B_LINES, B_CHUNKS, B_PITCH)
#define COPY_PARTS(slot, part, parts, wanted)                                \
  copy_part_of_a(STAGE(slot) + a_to, source.a, A_STEP, part, parts, wanted); \
  copy_part_of_b(STAGE(slot) + b_to, source.b, B_STEP, part, parts, wanted)
#endif

#if DTYPE == DTYPE_F32
// Of an infinite float splitting makes NaN: sums of four columns again, as floats.
INLINE float4 exact_sums(const MatmulOperands* operands, const global scalar* a, const global scalar* b, const Work* work,
                         uint row, uint column) {
  const uint k_steps = (ARGS(k) + TERMS - 1) / TERMS;
  float4 sum = (float4)(0.0f);
  ROLLED for (uint step = work->first; step < work->last; ++step) {
    const uint summand = step / k_steps, term0 = step % k_steps * TERMS;
    const uint outer = summand / ARGS(sums1), inner = summand % ARGS(sums1);
    const uint a_at = work->a + outer * ARGS(a_sum0) + inner * ARGS(a_sum1) + row * ARGS(a).row;
    const uint b_at = work->b + outer * ARGS(b_sum0) + inner * ARGS(b_sum1) + column * ARGS(b).column;
    ROLLED for (uint term = term0; term < min(term0 + TERMS, ARGS(k)); ++term)
        matmul_add_exactly(operands, &sum, a, DTYPE, a_at, b, DTYPE, b_at, column, term);
  }
  return sum;
}
#endif

#define STAGE(slot) (memory + (slot) * MATMUL_MMA_STAGE_BYTES)
#define NEXT(slot) ((slot) + 1 == STAGES ? 0 : (slot) + 1)

#if ALIGNED && STAGES >= 3
// Adds the products of all steps of a tile and terms that fill theirs: a_place and b_place are
// where the warp's rows and columns begin.
INLINE void add_whole_steps(const MatmulOperands* operands, const global scalar* a,
                            const global scalar* b, const Work* work, uint memory, uint a_place,
                            uint b_place, uint item, float* sum) {
  const uint k_steps = ARGS(k) / TERMS;
  const uint a_line = item / A_CHUNKS, b_line = item / B_CHUNKS;
  const uint a_to = a_line * A_PITCH + (item % A_CHUNKS ^ MMA_SWIZZLE(A_BY_TERMS, a_line)) * 16;
  const uint b_to =
      B_START + b_line * B_PITCH + (item % B_CHUNKS ^ MMA_SWIZZLE(B_BY_TERMS, b_line)) * 16;
  Source source;
  source.summand = work->first / k_steps;
  source.term = work->first % k_steps * TERMS;
  find_source(operands, a, b, work, &source, item);
  UNROLL for (uint i = 0; i < AHEAD; ++i) {
    COPY_PARTS(i, 0, 1, work->first + i < work->last);
    MMA_COPY_COMMIT();
    next_source(operands, a, b, work, &source, item);
  }
  uint slot = 0, free_slot = AHEAD;
  MMA_COPY_WAIT_BUT(AHEAD - 1);
  barrier(CLK_LOCAL_MEM_FENCE);
#if DTYPE == DTYPE_F32
  ROLLED for (uint step = work->first; step < work->last; ++step) {
    COPY_PARTS(free_slot, 0, 1, step + AHEAD < work->last);
    MMA_COPY_COMMIT();
    next_source(operands, a, b, work, &source, item);
    // Rolled, so that rows of a are not split ahead of their time.
    ROLLED for (uint k = 0; k < STAGE_STEPS; ++k)
        add_stage(sum, STAGE(slot) + a_place, STAGE(slot) + b_place, k);
    MMA_COPY_WAIT_BUT(AHEAD - 1);
    barrier(CLK_LOCAL_MEM_FENCE);
    free_slot = NEXT(free_slot);
    slot = NEXT(slot);
  }
#else
  uint rows[2][4 * M], columns[2][4 * N];
  add_stage_load(rows[0], columns[0], STAGE(0) + a_place, STAGE(0) + b_place, 0);
  ROLLED for (uint step = work->first; step < work->last; ++step) {
    const uint wanted = step + AHEAD < work->last;
    const uint a_at = STAGE(slot) + a_place, b_at = STAGE(slot) + b_place;
    UNROLL for (uint k = 0; k < STAGE_STEPS; ++k) {
      const uint next = (k + 1) % 2;
      if (SPREAD) {
        COPY_PARTS(free_slot, k, STAGE_STEPS, wanted);
      } else if (k == 0) {
        COPY_PARTS(free_slot, 0, 1, wanted);
      }
      if (k + 1 < STAGE_STEPS) {
        add_stage_load(rows[next], columns[next], a_at, b_at, k + 1);
      } else {
        // All of this step was read: the next one must have arrived.
        MMA_COPY_COMMIT();
        next_source(operands, a, b, work, &source, item);
        MMA_COPY_WAIT_BUT(AHEAD - 1);
        barrier(CLK_LOCAL_MEM_FENCE);
        free_slot = NEXT(free_slot);
        slot = NEXT(slot);
        add_stage_load(rows[0], columns[0], STAGE(slot) + a_place, STAGE(slot) + b_place, 0);
      }
      add_stage(sum, rows[k % 2], columns[k % 2]);
    }
  }
#endif
}
#endif
// The same of any tile, and of lines that are not aligned.
INLINE void add_steps(const MatmulOperands* operands, const global scalar* a,
                      const global scalar* b, const Work* work, uint memory, uint a_place,
                      uint b_place, uint item, float* sum) {
  UNROLL for (uint i = 0; i + 1 < STAGES; ++i) {
    if (work->first + i < work->last)
      copy_step(operands, a, b, work, work->first + i, STAGE(i), item);
    MMA_COPY_COMMIT();
  }
  uint slot = 0, free_slot = STAGES - 1;
#if DTYPE == DTYPE_F32
  ROLLED for (uint step = work->first; step < work->last; ++step) {
    MMA_COPY_WAIT_BUT(STAGES - 2);
    barrier(CLK_LOCAL_MEM_FENCE);
    if (step + STAGES - 1 < work->last)
      copy_step(operands, a, b, work, step + STAGES - 1, STAGE(free_slot), item);
    MMA_COPY_COMMIT();
    // Rolled, so that rows of a are not split ahead of their time.
    ROLLED for (uint k = 0; k < STAGE_STEPS; ++k) add_stage(sum, STAGE(slot) + a_place, STAGE(slot) + b_place, k);
    free_slot = slot;
    slot = NEXT(slot);
  }
#else
  // What is multiplied next is read from local memory before this is multiplied.
  uint rows[2][4 * M], columns[2][4 * N];
  MMA_COPY_WAIT_BUT(STAGES - 2);
  barrier(CLK_LOCAL_MEM_FENCE);
  add_stage_load(rows[0], columns[0], STAGE(0) + a_place, STAGE(0) + b_place, 0);
  ROLLED for (uint step = work->first; step < work->last; ++step) {
    if (step + STAGES - 1 < work->last)
      copy_step(operands, a, b, work, step + STAGES - 1, STAGE(free_slot), item);
    MMA_COPY_COMMIT();
    const uint a_at = STAGE(slot) + a_place, b_at = STAGE(slot) + b_place;
    UNROLL for (uint k = 0; k < STAGE_STEPS; ++k) {
      const uint next = (k + 1) % 2;
      if (k + 1 < STAGE_STEPS) {
        add_stage_load(rows[next], columns[next], a_at, b_at, k + 1);
        add_stage(sum, rows[k % 2], columns[k % 2]);
      } else {
        add_stage(sum, rows[k % 2], columns[k % 2]);
        MMA_COPY_WAIT_BUT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);
        free_slot = slot;
        slot = NEXT(slot);
        add_stage_load(rows[0], columns[0], STAGE(slot) + a_place, STAGE(slot) + b_place, 0);
      }
    }
  }
#endif
}

// Of floats it is left to the compiler to see that it never is: spelled out, rows by rows spilled a word.
INLINE bool is_plain(const MatmulOperands* operands, const Work* work) {
  return DTYPE != DTYPE_F32 && matmul_is_plain(operands, work->batch, DTYPE, MMA_ELEMENTS);
}
INLINE void store_plain(const MatmulOperands* operands, const Work* work, uint memory, uint item) {
  const uint row_step = ARGS(result).row / 8;
  global uint4* result =
      (global uint4*)operands->result + (matmul_base(operands, ARGS(result), work->batch) / 8 +
                                         work->row * row_step + work->column / 8);
  const float alpha = ARGS(alpha);
  UNROLL for (uint i = 0; i < BLOCK_M * BLOCK_N / 8 / WG_X; ++i) {
    const uint place = item + i * WG_X, row = place / (BLOCK_N / 8), vector = place % (BLOCK_N / 8);
    const uint at = memory + row * (4 * BLOCK_N) + (2 * vector ^ row % 8 * 2) * 16;
    const float4 x = as_float4(load_local4(at)) * alpha,
                 y = as_float4(load_local4(at + 16)) * alpha;
    result[(size_t)(row * row_step) + vector] =
        (uint4)(pack_scalars(x.s0, x.s1), pack_scalars(x.s2, x.s3), pack_scalars(y.s0, y.s1),
                pack_scalars(y.s2, y.s3));
  }
}

KERNEL void matmul_mma(const global scalar* restrict a, const global scalar* restrict b, global float* restrict scratch,
                       MATMUL_FINISH_PARAMETERS, const struct MatmulArgs args) {
  const MatmulOperands call = MATMUL_OPERANDS;
  const MatmulOperands* operands = &call;
  local uchar local_memory[MATMUL_MMA_LOCAL_BYTES] __attribute__((aligned(1024)));
  const uint memory = LOCAL_ADDRESS(local_memory);
  const uint item = (uint)get_local_id(0), lane = item % 32, warp = (uint)uniform((int)(item / 32));
  const uint warp_row = warp / MATMUL_MMA_WARPS_N * WARP_M, warp_column = warp % MATMUL_MMA_WARPS_N * WARP_N;
  const uint a_place = MMA_PLACE_OF_A(A_BY_TERMS, lane, warp_row, A_PITCH);
  const uint b_place = B_START + MMA_PLACE_OF_B(B_BY_TERMS, lane, warp_column, B_PITCH);
  const Work work = work_of(operands, (uint)get_group_id(0));
  float sum[8 * M * N];
  UNROLL for (uint i = 0; i < 8 * M * N; ++i) sum[i] = 0.0f;
  const bool whole = ALIGNED && work.row + BLOCK_M <= ARGS(m) && work.column + BLOCK_N <= ARGS(n) && ARGS(k) % TERMS == 0;
#if ALIGNED && STAGES >= 3
  if (CAN_BE_WHOLE && whole) {
    add_whole_steps(operands, a, b, &work, memory, a_place, b_place, item, sum);
  } else
#endif
  {
    add_steps(operands, a, b, &work, memory, a_place, b_place, item, sum);
  }
  // Sums as floats, rows of vectors whose places are exchanged by twice the row's number.
  mma_copy_wait();
  barrier(CLK_LOCAL_MEM_FENCE);
  UNROLL for (uint r = 0; r < 2 * M; ++r) {
    UNROLL for (uint i = 0; i < 4 * N; i += 2) {
      const uint row = warp_row + 8 * r + lane / 4, vector = warp_column / 4 + i + lane % 4 / 2;
      const uint at = memory + row * (4 * BLOCK_N) + (vector ^ row % 8 * 2) * 16 + lane % 2 * 8;
      store_local2(at, (float2)(sum[r * 4 * N + i], sum[r * 4 * N + i + 1]));
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (whole && is_plain(operands, &work)) {
    store_plain(operands, &work, memory, item);
    return;
  }
  ROLLED for (uint i = item; i < BLOCK_M * BLOCK_N / 4; i += WG_X) {
    const uint row = i / (BLOCK_N / 4), vector = i % (BLOCK_N / 4);
    const uint its_row = work.row + row, column = work.column + 4 * vector;
    if (its_row >= ARGS(m) || column >= ARGS(n)) continue;
    float4 x = as_float4(load_local4(memory + row * (4 * BLOCK_N) + (vector ^ row % 8 * 2) * 16));
#if DTYPE == DTYPE_F32
    if (isnan(x.s0 + x.s1 + x.s2 + x.s3)) x = exact_sums(operands, a, b, &work, its_row, column);
#endif
    if (ARGS(splits) > 1) {
      const uint vectors = (ARGS(n) + 3) / 4;
      *((global float4*)(scratch + ARGS(partial)) +
        ((work.split * ARGS(batches) + work.batch) * ARGS(m) + its_row) * vectors + column / 4) = x;
    } else {
      matmul_finish(operands, work.batch, its_row, column, x);
    }
  }
}
