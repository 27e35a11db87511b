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
// Weights are taken by levels: d is the highest bit of t ^ s, so that t is in the upper half of 2 d tokens, s in the lower half.
// The tile of a level has in its upper rows queries decayed from the half's beginning, in its lower rows keys decayed to the
// half's end, and its product with itself has the weights of all such pairs. Where key dims decay alike, factors stand outside
// of the products.
//
// Loops over arrays of matrices have constant bounds: NVIDIA's driver moves arrays to memory where it can't unroll.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#include "abi/shared.h"
#if DTYPE == DTYPE_F16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define ELEMENT float16_t
#else
#extension GL_EXT_bfloat16 : require
#define ELEMENT bfloat16_t
#endif
#define RECUR_OUTPUTS 1
#define RECUR_AREA RECUR_COOP_OUTPUTS_AREA
#include "recurrence/cooperative/chunks.glsl"

layout(std430, binding = 7) writeonly buffer Outputs { uvec4 output_eights[]; };

#define SECOND RECUR_COOP_TILE_AREA  // the other area: keys, then weights, then states
#define WEIGHT_STRIDE RECUR_COOP_WEIGHT_STRIDE
#define OWN_STRIDE RECUR_COOP_OWN_STRIDE
#define BLOCKS RECUR_COOP_BLOCKS
#define STEP RECUR_COOP_STEP
#if DTYPE == DTYPE_F16
#define LARGEST 65504.0
#else
#define LARGEST 3.38953139e38
#endif

const uint ROW_TILES = 16u / MATRIX_M, COLUMN_TILES = 16u / MATRIX_N;  // of sixteen rows and columns
const uint OUTPUT_TILES = RECUR_COOP_BLOCK / MATRIX_N, STEP_TILES = STEP / MATRIX_N;
const uint LANE_PAIRS = 128u / LANES;  // of sixteen rows of sixteen columns
// Where key dims decay alike: squares of sixteen up to the diagonal, and how often sub-groups take one.
const uint SQUARES = SIXTEENS * (SIXTEENS + 1u) / 2u, ROUNDS = SIXTEENS / 2u + 1u;
shared uint mark;
shared float shares[RECUR_COOP_SHARES];

uint own;  // the sub-group's place in memory
COOPERATIVE_SUM score[ROW_TILES * COLUMN_TILES];
COOPERATIVE_SUM total[ROW_TILES * OUTPUT_TILES];
vec2 weight[KEY_DECAYS != 0u ? LANE_PAIRS : ROUNDS * LANE_PAIRS];  // of the diagonal's squares, or all

COOPERATIVE_ADD_TILES(add_scores, memory, score, ROW_TILES, COLUMN_TILES, 1u, 1u, KEY_STRIDE, 1u, KEY_STRIDE)
COOPERATIVE_ADD_TILES(add_values, memory, total, ROW_TILES, OUTPUT_TILES, 1u, 1u, WEIGHT_STRIDE, 0u, VALUE_STRIDE)

void store_weights(uint row, uint column, vec2 x) {
  odd = odd || !all(lessThanEqual(abs(x), vec2(LARGEST)));
  memory[SECOND + row * WEIGHT_STRIDE + column / 8u][column / 2u % 4u] = narrow_pair(x);
}

// Queries and keys as they are.
void store_plain() {
  [[unroll]] for (uint t = 0u; t < PART; ++t) {
    const uint at = (part * PART + t) * KEY_STRIDE + eight;
    memory[at] = query[t];
    memory[SECOND + at] = key[t];
  }
}

// Factors of the item's key dims over the parts before its own and behind it, of a group of parts; over the group.
vec4 before[2], behind[2], all[2];

void start_group() {
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    before[i] = behind[i] = vec4(1.0);
    all[i] = totals[TOTAL(part) + i];
  }
}
// The group becomes twice as large, by the `parts` beside it. Between two barriers; then put_group() before the next.
void grow_group(uint parts) {
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    const vec4 other = totals[TOTAL(part ^ parts) + i];
    if ((part & parts) != 0u) {
      before[i] *= other;
    } else {
      behind[i] *= other;
    }
    all[i] *= other;
  }
}
void put_group() {
  [[unroll]] for (uint i = 0u; i < 2u; ++i) totals[TOTAL(part) + i] = all[i];
}

// Rows of the tile of tokens, whose halves of so many tokens, groups of parts or less, are by turns lower and upper ones: of
// upper halves queries decayed from the half's beginning, of lower ones keys decayed to the half's end.
void store_halves(uint half_tokens, bool all_upper) {
  const uint base = part * PART;
  vec4 low = before[0], high = before[1];
  [[unroll]] for (uint t = 0u; t < PART; ++t) {
    if ((t & half_tokens - 1u) == 0u) low = before[0], high = before[1];
    low *= factor[2u * t];
    high *= factor[2u * t + 1u];
    if (all_upper || (base + t & half_tokens) != 0u) store_eight(t, query[t], low, high);
  }
  if (all_upper) return;
  [[unroll]] for (uint n = 1u; n <= PART; ++n) {
    const uint t = PART - n;
    if (n == 1u || (t + 1u & half_tokens - 1u) == 0u) low = behind[0], high = behind[1];
    if ((base + t & half_tokens) == 0u) store_eight(t, key[t], low, high);
    low *= factor[2u * t];
    high *= factor[2u * t + 1u];
  }
}

// Products of sixteen rows of the tile of tokens with as many of that at `other`, to the sub-group's place. All sub-groups come
// to its barrier: lavapipe takes it for one of the work-group.
void take_scores(bool takes, uint row, uint other, uint column) {
  if (takes) {
    [[unroll]] for (uint i = 0u; i < ROW_TILES * COLUMN_TILES; ++i) score[i] = COOPERATIVE_SUM(0.0);
    [[dont_unroll]] for (uint k = 0u; k < KEY_DIM / 8u; k += MATRIX_K / 8u) add_scores(k, row, other + k, column);
    [[unroll]] for (uint i = 0u; i < ROW_TILES * COLUMN_TILES; ++i)
      coopMatStore(score[i], memory, own + i / COLUMN_TILES * MATRIX_M * OWN_STRIDE + i % COLUMN_TILES * MATRIX_N / 4u,
                   OWN_STRIDE, kRowMajor);
  }
  subgroupBarrier();
}
// Of those a lane's pair i, of row `t`, columns s and s + 1.
vec2 score_pair(uint i, out uint t, out uint s) {
  const uint at = lane + i * LANES;
  t = at / 8u;
  s = at % 8u * 2u;
  const uvec4 four = memory[own + t * OWN_STRIDE + s / 4u];
  return uintBitsToFloat(s / 2u % 2u == 0u ? four.xy : four.zw);
}

// Weights of pairs of tokens whose numbers differ in bit `half_tokens` and none above; 0: of tokens with themselves. Sixteens
// of rows and columns, a sub-group each.
void take_weights(uint half_tokens) {
  const uint wide = half_tokens / 16u, n = gl_SubgroupID;
  const bool whole = wide != 0u, takes = n < (whole ? SIXTEENS * wide / 2u : SIXTEENS);
  const uint row = whole ? (n / (wide * wide) * 2u * wide + wide + n / wide % wide) * 16u : n * 16u;
  const uint column = whole ? (n / (wide * wide) * 2u * wide + n % wide) * 16u : n * 16u;
  take_scores(takes, row, half_tokens == 0u ? SECOND : 0u, column);
  if (!takes) return;
  [[unroll]] for (uint i = 0u; i < LANE_PAIRS; ++i) {
    uint t, s;
    const vec2 x = score_pair(i, t, s);
    if (whole) {
      store_weights(row + t, column + s, x);
    } else if (half_tokens == 0u) {
      weight[i] = mix(vec2(0.0), x, equal(uvec2(t), uvec2(s, s + 1u)));
    } else {
      const uvec2 differ = uvec2(t) ^ uvec2(s, s + 1u);
      const bvec2 here = equal(differ / half_tokens, uvec2(1u));
      weight[i] = vec2(t > s && here.x ? x.x : weight[i].x, t > s && here.y ? x.y : weight[i].y);
    }
  }
}

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

// Sixteen of rows and columns n of those up to the diagonal.
uvec2 square(uint n) {
  const uint row = n < 1u ? 0u : n < 3u ? 1u : n < 6u ? 2u : 3u;
  return uvec2(row, n - row * (row + 1u) / 2u) * 16u;
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
    if (gl_SubgroupID < SIXTEENS) {
      [[unroll]] for (uint i = 0u; i < LANE_PAIRS; ++i) {
        const uint at = lane + i * LANES;
        store_weights(gl_SubgroupID * 16u + at / 8u, gl_SubgroupID * 16u + at % 8u * 2u, weight[i]);
      }
    }
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
