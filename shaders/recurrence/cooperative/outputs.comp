// SPDX-License-Identifier: Apache-2.0
// What     Outputs of a chunk of tokens: output_t = scale ((query_t decayed from the chunk's beginning) state + sum of
//          w[t,s] value_s over s <= t), w[t,s] = query_t . (key_s decayed from s to t).
// Who      A work-group owns a chunk in a head, an item eight key dims of four tokens, a sub-group the outputs of sixteen
//          tokens for a block of columns.
// Memory   Operands and the state before the chunk once; outputs once.
// Numerics Float sums of products of DTYPE. Rounded to that are queries and keys times factors, weights, and the state. Chunks
//          with queries or weights that are not for matrices mark their sequence.
// Assumes  RECUR_COOP_VALID; full sub-groups of LANES; the device has the shape for sub-groups with float sums; rows at
//          multiples of 16 bytes; operands and scratch below 2^31 elements.
//
// Weights are taken by levels (levels.glsl): the product of a level's tile with itself has those of all its pairs. Where key
// dims decay alike, factors stand outside of the products.
//
// Loops over arrays of matrices have constant bounds: NVIDIA's driver moves arrays to memory where it can't unroll.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#include "lib/cooperative/element.glsl"
#define RECUR_OUTPUTS 1
#define RECUR_AREA RECUR_COOP_OUTPUTS_AREA
#include "recurrence/cooperative/chunks.glsl"

layout(std430, binding = 7) writeonly buffer Outputs { uvec4 output_eights[]; };

#define SECOND RECUR_COOP_TILE_AREA  // the other area: keys, then weights, then states
#define BLOCKS RECUR_COOP_BLOCKS
#define STEP RECUR_COOP_STEP
#define WEIGHTS SECOND
#define RECUR_TURNED 0
// Where key dims decay alike: squares of sixteen up to the diagonal, and how often sub-groups take one.
const uint SQUARES = SIXTEENS * (SIXTEENS + 1u) / 2u, ROUNDS = SIXTEENS / 2u + 1u;
#define WEIGHT_SQUARES (KEY_DECAYS != 0u ? 1u : ROUNDS)
#include "recurrence/cooperative/levels.glsl"

const uint OUTPUT_TILES = RECUR_COOP_BLOCK / MATRIX_N, STEP_TILES = STEP / MATRIX_N;
shared uint mark;
shared float shares[RECUR_COOP_SHARES];

COOPERATIVE_SUM total[ROW_TILES * OUTPUT_TILES];
COOPERATIVE_ADD_TILES(add_values, memory, total, ROW_TILES, OUTPUT_TILES, 1u, 1u, WEIGHT_STRIDE, 0u, VALUE_STRIDE)

// Where key dims decay alike, plain products need factors only: that of a pair of tokens is the product of two shares, those
// of the level of the highest bit in which their numbers differ.
void store_shares(uint level) {
  const uint half_tokens = 1u << level, base = part * PART;
  float since = 1.0, until = 1.0;
  [[unroll]] for (uint t = 0u; t < PART; ++t) {
    if ((t & half_tokens - 1u) == 0u) since = before[0].x;
    since *= factor[2u * t].x;
    if ((base + t & half_tokens) != 0u) shares[level * TOKENS + base + t] = since;
  }
  [[unroll]] for (uint n = 1u; n <= PART; ++n) {
    const uint t = PART - n;
    if (n == 1u || (t + 1u & half_tokens - 1u) == 0u) until = behind[0].x;
    if ((base + t & half_tokens) == 0u) shares[level * TOKENS + base + t] = until;
    until *= factor[2u * t].x;
  }
}
float factor_between(uint t, uint s) {
  if (t <= s) return t == s ? 1.0 : 0.0;
  const uint level = uint(findMSB(t ^ s)) * TOKENS;
  return shares[level + t] * shares[level + s];
}

void take_squares(uint round) {
  const uint n = round * SIXTEENS + gl_SubgroupID;
  const bool takes = gl_SubgroupID < SIXTEENS && n < SQUARES;
  const uvec2 at = square(n);
  take_scores(takes, at.x, SECOND, at.y);
  if (takes) {
    [[unroll]] for (uint i = 0u; i < LANE_PAIRS; ++i) {
      uint t, s;
      const vec2 x = score_pair(i, t, s);
      weight[round * LANE_PAIRS + i] =
          x * vec2(factor_between(at.x + t, at.y + s), factor_between(at.x + t, at.y + s + 1u));
    }
  }
  subgroupBarrier();
}
void store_squares(uint round) {
  const uint n = round * SIXTEENS + gl_SubgroupID;
  if (gl_SubgroupID >= SIXTEENS || n >= SQUARES) return;
  const uvec2 at = square(n);
  [[unroll]] for (uint i = 0u; i < LANE_PAIRS; ++i) {
    const uint pair_at = lane + i * LANES;
    store_weights(at.x + pair_at / 8u, at.y + pair_at % 8u * 2u, weight[round * LANE_PAIRS + i]);
  }
}

// All weights of the chunk, from the lowest level on, the first of which is that of tokens with themselves; afterwards the
// group is all of the chunk.
void weigh() {
  const bool has_part = part < PARTS;
  if (has_part) {
    start_group();
    store_plain();
  }
  barrier();
  if (KEY_DECAYS != 0u) take_weights(0u);
  [[dont_unroll]] for (uint level = 0u; 1u << level < TOKENS; ++level) {
    const uint half_tokens = 1u << level, parts = half_tokens / PART;
    if (KEY_DECAYS != 0u) barrier();
    if (has_part) {
      if (KEY_DECAYS != 0u) {
        store_halves(half_tokens, false);
      } else if (eight == 0u) {
        store_shares(level);
      }
      if (parts != 0u) grow_group(parts);
    }
    barrier();
    if (has_part && parts != 0u) put_group();
    if (KEY_DECAYS != 0u) {
      take_weights(half_tokens);
    } else {
      barrier();
    }
  }
  if (KEY_DECAYS != 0u) {
    barrier();
    store_diagonal();
  } else {
    take_squares(0u);
    if (ROUNDS > 1u) take_squares(1u);
    if (ROUNDS > 2u) take_squares(2u);
    barrier();
    store_squares(0u);
    if (ROUNDS > 1u) store_squares(1u);
    if (ROUNDS > 2u) store_squares(2u);
  }
  if (gl_SubgroupID < SIXTEENS) {
    const uint row = gl_SubgroupID * 16u, vectors = (TOKENS - row - 16u) / 8u;  // of tokens behind
    [[dont_unroll]] for (uint i = lane; i < 16u * vectors; i += LANES)
      memory[SECOND + (row + i / vectors) * WEIGHT_STRIDE + row / 8u + 2u + i % vectors] = uvec4(0u);
  }
}

// States before the chunk, a row for each column of step `step` of all blocks.
void copy_states(uint step) {
  const uint vectors = KEY_DIM / 8u;
  [[dont_unroll]] for (uint i = item; i < BLOCKS * STEP * vectors; i += WG_X) {
    const uint row = i / vectors, vector = i % vectors;
    const uint column = row / STEP * RECUR_COOP_BLOCK + step * STEP + row % STEP;
    uvec4 x = uvec4(0u);
    if (column < VALUE_DIM) x = scratch_eights[CHUNK_KEPT(chunk) / 8u + column * vectors + vector];
    memory[SECOND + row * KEY_STRIDE + vector] = x;
  }
}

// Of the first columns; then all others move up, and these go behind them: matrices are never looked up, for compilers that
// unroll no loop around another would keep all of them in memory.
void add_states(uint row, uint block) {
  [[dont_unroll]] for (uint k = 0u; k < KEY_DIM / MATRIX_K; ++k) {
    COOPERATIVE_LEFT left[ROW_TILES];
    [[unroll]] for (uint m = 0u; m < ROW_TILES; ++m)
      coopMatLoad(left[m], memory, (row + m * MATRIX_M) * KEY_STRIDE + k * MATRIX_K / 8u, KEY_STRIDE, kRowMajor);
    [[unroll]] for (uint n = 0u; n < STEP_TILES; ++n) {
      COOPERATIVE_RIGHT right;
      coopMatLoad(right, memory, SECOND + (block * STEP + n * MATRIX_N) * KEY_STRIDE + k * MATRIX_K / 8u, KEY_STRIDE,
                  kColumnMajor);
      [[unroll]] for (uint m = 0u; m < ROW_TILES; ++m)
        total[m * OUTPUT_TILES + n] = coopMatMulAdd(left[m], right, total[m * OUTPUT_TILES + n]);
    }
  }
  [[unroll]] for (uint m = 0u; m < ROW_TILES; ++m) {
    COOPERATIVE_SUM taken[STEP_TILES];
    [[unroll]] for (uint n = 0u; n < STEP_TILES; ++n) taken[n] = total[m * OUTPUT_TILES + n];
    [[unroll]] for (uint n = STEP_TILES; n < OUTPUT_TILES; ++n)
      total[m * OUTPUT_TILES + n - STEP_TILES] = total[m * OUTPUT_TILES + n];
    [[unroll]] for (uint n = 0u; n < STEP_TILES; ++n) total[(m + 1u) * OUTPUT_TILES - STEP_TILES + n] = taken[n];
  }
}

// Sixteen columns at a time, of which the first are stored and the others move up.
void store_outputs(bool has, uint row, uint block) {
  const uint step = row_step(args.result), at = first_row(args.result) + first * step;
  [[dont_unroll]] for (uint n = 0u; n < RECUR_COOP_BLOCK / 16u; ++n) {
    if (has) {
      [[unroll]] for (uint m = 0u; m < ROW_TILES; ++m) {
        [[unroll]] for (uint i = 0u; i < COLUMN_TILES; ++i)
          coopMatStore(total[m * OUTPUT_TILES + i], memory, own + m * MATRIX_M * OWN_STRIDE + i * MATRIX_N / 4u, OWN_STRIDE,
                       kRowMajor);
        [[unroll]] for (uint i = COLUMN_TILES; i < OUTPUT_TILES; ++i)
          total[m * OUTPUT_TILES + i - COLUMN_TILES] = total[m * OUTPUT_TILES + i];
      }
    }
    subgroupBarrier();
    const uint column = block * RECUR_COOP_BLOCK + n * 16u;
    if (has && column < VALUE_DIM) {
      [[dont_unroll]] for (uint i = lane; i < 32u; i += LANES) {
        const uint t = i / 2u, from = own + t * OWN_STRIDE + i % 2u * 2u;
        const vec4 low = uintBitsToFloat(memory[from]) * args.scale, high = uintBitsToFloat(memory[from + 1u]) * args.scale;
        if (row + t < count)
          output_eights[(at + (row + t) * step + column) / 8u + i % 2u] = uvec4(narrow4(low), narrow4(high));
      }
    }
    subgroupBarrier();
  }
}

void main() {
  if (!find_chunk() || count == 0u) return;
  if (UNIT_MARK(unit) != 0u) return;
  own = RECUR_COOP_OWN_BEGIN + gl_SubgroupID * RECUR_COOP_OWN_AREA;
  if (item == 0u) mark = 0u;
  if (part < PARTS) load_part();
  weigh();
  copy_values(0u);
  if (odd) mark = 1u;
  barrier();
  // Sub-groups behind those that have outputs take some again, and do not store them.
  const uint row = gl_SubgroupID % SIXTEENS * 16u, block = gl_SubgroupID / SIXTEENS % BLOCKS;
  [[unroll]] for (uint i = 0u; i < ROW_TILES * OUTPUT_TILES; ++i) total[i] = COOPERATIVE_SUM(0.0);
  [[dont_unroll]] for (uint k = 0u; k < TOKENS; k += MATRIX_K)
    add_values(SECOND + k / 8u, row, k * VALUE_STRIDE, block * RECUR_COOP_BLOCK);
  barrier();
  if (part < PARTS) store_halves(TOKENS, true);
  [[dont_unroll]] for (uint step = 0u; step < RECUR_COOP_STEPS; ++step) {
    copy_states(step);
    barrier();
    add_states(row, block);
    barrier();
  }
  own = gl_SubgroupID * RECUR_COOP_OWN_AREA;
  store_outputs(gl_SubgroupID < SIXTEENS * BLOCKS, row, block);
  if (item == 0u && mark != 0u) UNIT_MARK(unit) = 1u;
}
