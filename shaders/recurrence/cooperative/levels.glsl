// SPDX-License-Identifier: Apache-2.0
// Pairs of tokens of a chunk by levels: d is the highest bit of t ^ s, so that t is in the upper half of 2 d tokens, s in the
// lower half. The tile of a level has in its upper rows queries decayed from the half's beginning, in its lower rows keys
// decayed to the half's end: what a pair of the level has of both is a product of two of its rows.
//
// The tile lies at the beginning of `memory`. Includers say by SECOND where keys lie as they are, by WEIGHTS where weights go,
// in rows of upper tokens or, with RECUR_TURNED=1, of lower ones, and by WEIGHT_SQUARES how many squares of them a sub-group
// holds: that of the diagonal is the first.
#ifndef TESSERA_RECURRENCE_COOPERATIVE_LEVELS_GLSL
#define TESSERA_RECURRENCE_COOPERATIVE_LEVELS_GLSL

#define WEIGHT_STRIDE RECUR_COOP_WEIGHT_STRIDE
#define OWN_STRIDE RECUR_COOP_OWN_STRIDE

const uint ROW_TILES = 16u / MATRIX_M, COLUMN_TILES = 16u / MATRIX_N;  // of sixteen rows and columns
const uint LANE_PAIRS = 128u / LANES;  // of sixteen rows of sixteen columns
uint own;  // the sub-group's place in memory for sixteen rows and columns of floats
vec2 weight[WEIGHT_SQUARES * LANE_PAIRS];
COOPERATIVE_SUM score[ROW_TILES * COLUMN_TILES];
COOPERATIVE_ADD_TILES(add_scores, memory, score, ROW_TILES, COLUMN_TILES, 1u, 1u, KEY_STRIDE, 1u, KEY_STRIDE)

void store_weights(uint row, uint column, vec2 x) {
  odd = odd || !all(lessThanEqual(abs(x), vec2(LARGEST)));
  memory[WEIGHTS + row * WEIGHT_STRIDE + column / 8u][column / 2u % 4u] = narrow_pair(x);
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
vec4 before[2], behind[2], over[2];

void start_group() {
  [[unroll]] for (uint i = 0u; i < 2u; ++i) {
    before[i] = behind[i] = vec4(1.0);
    over[i] = totals[TOTAL(part) + i];
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
    over[i] *= other;
  }
}
void put_group() {
  [[unroll]] for (uint i = 0u; i < 2u; ++i) totals[TOTAL(part) + i] = over[i];
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

void clear_score() {
  [[unroll]] for (uint i = 0u; i < ROW_TILES * COLUMN_TILES; ++i) score[i] = COOPERATIVE_SUM(0.0);
}
void put_score(uint to, uint stride) {
  [[unroll]] for (uint i = 0u; i < ROW_TILES * COLUMN_TILES; ++i)
    coopMatStore(score[i], memory, to + i / COLUMN_TILES * MATRIX_M * stride + i % COLUMN_TILES * MATRIX_N / 4u, stride,
                 kRowMajor);
}
// Products of sixteen rows of the tile of tokens with as many of that at `other`, to the sub-group's place. All sub-groups come
// to its barrier: lavapipe takes it for one of the work-group.
void take_scores(bool takes, uint row, uint other, uint column) {
  if (takes) {
    clear_score();
    [[dont_unroll]] for (uint k = 0u; k < KEY_DIM / 8u; k += MATRIX_K / 8u) add_scores(k, row, other + k, column);
    put_score(own, OWN_STRIDE);
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

// Sixteen of rows and columns n of those up to the diagonal.
uvec2 square(uint n) {
  const uint row = n < 1u ? 0u : n < 3u ? 1u : n < 6u ? 2u : 3u;
  return uvec2(row, n - row * (row + 1u) / 2u) * 16u;
}

// Weights of pairs of tokens whose numbers differ in bit `half_tokens` and none above; 0: of tokens with themselves. Sixteens
// of rows and columns, a sub-group each.
void take_weights(uint half_tokens) {
  const uint wide = half_tokens / 16u, n = gl_SubgroupID;
  const bool whole = wide != 0u, takes = n < (whole ? SIXTEENS * wide / 2u : SIXTEENS);
  const uint upper = whole ? (n / (wide * wide) * 2u * wide + wide + n / wide % wide) * 16u : n * 16u;
  const uint lower = whole ? (n / (wide * wide) * 2u * wide + n % wide) * 16u : n * 16u;
  const uint row = RECUR_TURNED != 0 ? lower : upper, column = RECUR_TURNED != 0 ? upper : lower;
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
      const bool turned = RECUR_TURNED != 0 ? t <= s : t > s;
      weight[i] = vec2(turned && here.x ? x.x : weight[i].x, turned && here.y ? x.y : weight[i].y);
    }
  }
}

// The diagonal's squares, of which sub-groups have a weight each.
void store_diagonal() {
  if (gl_SubgroupID >= SIXTEENS) return;
  [[unroll]] for (uint i = 0u; i < LANE_PAIRS; ++i) {
    const uint at = lane + i * LANES;
    store_weights(gl_SubgroupID * 16u + at / 8u, gl_SubgroupID * 16u + at % 8u * 2u, weight[i]);
  }
}

#endif  // TESSERA_RECURRENCE_COOPERATIVE_LEVELS_GLSL
