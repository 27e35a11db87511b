// SPDX-License-Identifier: Apache-2.0
// What     The gradients of queries, keys, beta and decays of a chunk of 64 tokens of a delta rule (delta.glsl), of the state h
//          before it, the gradient D of the state behind it, changes u and c, the gradient of what those are of beta. With G[t,s]
//          the products of factors behind s up to t, d_t = those from the chunk's beginning on, e_s = those to its end,
//            P = G (scale grad_output . u), N = G (c . u) for s < t, and row by row
//            grad_query = scale d h grad_output + P key
//            grad_key = P^T query + e D u - beta d h c - (beta N) key - (beta N)^T key
//            grad_beta = c . value - d key . (h c) - sum of N (key_t . key_s)
//            grad_g = what all pairs of a token from t on and one before it, or h, and D add to the products
// Who      A work-group of 8 or 16 sub-groups owns a chunk in a head: some take a sixteen of pairs, or two, then each has sixteen
//          tokens for a half or a quarter of the key dims.
// Memory   What delta_chunks and delta_states have left, by way of shared memory, keys and queries twice; gradients once.
// Numerics Float sums of products of DTYPE. Rounded to that are h, D, u, c, P and N. Sequences where P or N is too large are
//          marked.
// Assumes  recurrence/cooperative/delta_states has run; its assumptions.
//
// Loops over arrays of matrices have constant bounds: NVIDIA's driver moves arrays to memory where it can't unroll.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#define RECUR_AREA RECUR_COOP_DELTA_GRADIENTS_AREA
#define RECUR_ARGS_BINDING 12
#include "recurrence/cooperative/delta.glsl"

TYPED_OUTPUT(dbeta, 6)
layout(std430, binding = 7) writeonly buffer QueryGradients { uvec2 dquery_pairs[]; };
layout(std430, binding = 8) writeonly buffer KeyGradients { uvec2 dkey_pairs[]; };
TYPED_OUTPUT(dg, 11)

// Rows of operands by so many vectors, one behind the other; or a table of pairs in floats, a row for each upper token, and
// behind it places of sub-groups; or P and -beta N, and behind those rows, or places.
#define SCORE_EIGHTS RECUR_COOP_DELTA_SCORE_EIGHTS
#define SCORE_STRIDE (SCORE_EIGHTS + 1u)
#define SCORE_AREA (TOKENS * SCORE_STRIDE)
#define STATE_EIGHTS RECUR_COOP_DELTA_STATE_EIGHTS
#define STATE_STRIDE (STATE_EIGHTS + 1u)
#define PITCH RECUR_COOP_DELTA_PITCH
#define WEIGHT_STRIDE RECUR_COOP_WEIGHT_STRIDE
#define SPENT RECUR_COOP_WEIGHT_AREA
#define OWN RECUR_COOP_DELTA_TABLE_AREA
#define OWN_STRIDE RECUR_COOP_OWN_STRIDE
#define TEAM RECUR_COOP_DELTA_TEAM
#define KEYS OWN
#define QUERIES (OWN + TOKENS * ROW_STRIDE)
#define ROW_EIGHTS_AT_ONCE (2u * RECUR_COOP_DELTA_BLOCKS)
#define ROW_STRIDE RECUR_COOP_DELTA_ROW_STRIDE

const uint SQUARES = SIXTEENS * (SIXTEENS + 1u) / 2u, ROUNDS = RECUR_COOP_CEIL(SQUARES, TEAM);
const uint FOURS = RECUR_COOP_CEIL(64u, LANES);  // of sixteen rows of sixteen columns, of a lane
const uint BLOCKS = RECUR_COOP_DELTA_BLOCKS, TURNS = RECUR_COOP_CEIL(KEY_DIM / 16u, BLOCKS);  // sixteens of key dims of a sub-group
const uint STATE_LINES = 2u * TOKENS + KEY_DIM, COPIES = RECUR_COOP_CEIL(STATE_LINES * STATE_EIGHTS, WG_X);
const uint ROW_COPIES = RECUR_COOP_CEIL(2u * TOKENS * ROW_EIGHTS_AT_ONCE, WG_X);

shared uint mark;
shared float factors[TOKENS], since[TOKENS], until[TOKENS], betas[TOKENS];
shared float spent[SIXTEENS * TOKENS];  // of tokens with those of a sixteen: sums of N (key_t . key_s)
shared float wholes[16];                // shares of h D
uint own;                               // the sub-group's place
uint row, block;                        // its sixteen tokens, and its part of key dims
uvec4 copies[RECUR_COOP_MAX(COPIES, ROW_COPIES)];
uvec2 weight[ROUNDS * FOURS], other[ROUNDS * FOURS];
COOPERATIVE_SUM score[ROUNDS * 4u * TILES];
COOPERATIVE_SUM of_given[TURNS * TILES], of_slopes[TURNS * TILES], of_changes[TURNS * TILES];
COOPERATIVE_SUM for_queries[TILES], for_keys[TILES];
#define ADD_STATES(name, sums) \
  COOPERATIVE_ADD_TILES(name, memory, sums, ROW_TILES, TURNS* COLUMN_TILES, 16u / MATRIX_K, 1u, STATE_STRIDE, 1u, STATE_STRIDE)
ADD_STATES(add_given, of_given)
ADD_STATES(add_slopes, of_slopes)
ADD_STATES(add_changes, of_changes)

// Squares up to the diagonal.
uvec2 square(uint n) {
  const uint row = n < 1u ? 0u : n < 3u ? 1u : n < 6u ? 2u : 3u;
  return uvec2(row, n - row * (row + 1u) / 2u) * 16u;
}

// Of number i of a lane's fours: its row and four in a sixteen; whether there is one.
#define LANE_AT(i) (lane + (i) * LANES)
#define HAS_FOUR(i) (LANE_AT(i) < 64u)
vec4 own_four(uint i) { return HAS_FOUR(i) ? four(own + LANE_AT(i) / 4u * OWN_STRIDE + LANE_AT(i) % 4u) : vec4(0.0); }

// A sixteen of matrices, of rows of ROW_LENGTH, by way of the sub-group's place to its lanes. All sub-groups come to barriers:
// lavapipe takes them for those of the work-group.
#define TAKE_FOURS(takes, sums, at, ROW_LENGTH, to)                \
  {                                                                \
    subgroupBarrier();                                             \
    if (takes) {                                                   \
      [[unroll]] for (uint its_i = 0u; its_i < TILES; ++its_i) {   \
        const uint its_m = its_i / COLUMN_TILES, its_n = its_i % COLUMN_TILES; \
        coopMatStore(sums[(at) + its_m * (ROW_LENGTH) + its_n], memory,        \
                     own + its_m * MATRIX_M * OWN_STRIDE + its_n * MATRIX_N / 4u, OWN_STRIDE, kRowMajor); \
      }                                                            \
    }                                                              \
    subgroupBarrier();                                             \
    [[unroll]] for (uint i = 0u; i < FOURS; ++i) to[i] = own_four(i); \
  }

void find_numbers() {
  if (item < TOKENS) {
    const uint numbers = CHUNK_NUMBERS(chunk) + item;
    since[item] = scratch_floats[numbers];
    until[item] = scratch_floats[numbers + TOKENS];
    betas[item] = scratch_floats[numbers + 2u * TOKENS];
    factors[item] = step_factor(item);
  }
  float whole = 0.0;
  const uint states = KEPT_STATE(args.states, chunk), dstates = KEPT_STATE(args.dstates, chunk);
  [[dont_unroll]] for (uint i = item; i < STATE_ELEMENTS; i += 4u * WG_X) {
    [[unroll]] for (uint n = 0u; n < 4u; ++n)
      if (i + n * WG_X < STATE_ELEMENTS)
        whole += dot(scratch_vectors[states + i + n * WG_X], scratch_vectors[dstates + i + n * WG_X]);
  }
  memory[OWN + item / 4u][item % 4u] = floatBitsToUint(whole);
  barrier();
  if (item < 16u) {
    whole = 0.0;
    [[dont_unroll]] for (uint i = item; i < WG_X; i += 16u) whole += uintBitsToFloat(memory[OWN + i / 4u][i % 4u]);
    wholes[item] = whole;
  }
}

// Vectors of all tokens' rows at `from` of scratch, from vector `at` of each on; zeros behind the last.
void copy_rows(uint from, uint pitch, uint at, uint to) {
  [[unroll]] for (uint n = 0u; n < RECUR_COOP_CEIL(TOKENS * SCORE_EIGHTS, WG_X); ++n) {
    const uint i = item + n * WG_X, line = i / SCORE_EIGHTS, vector = i % SCORE_EIGHTS;
    uvec4 x = uvec4(0u);
    if (line < TOKENS && at + vector < pitch) x = scratch_eights[from + line * pitch + at + vector];
    if (line < TOKENS) memory[to + line * SCORE_STRIDE + vector] = x;
  }
}
// Of a sub-group's squares products of two kinds of rows with those of lower tokens: the first two scores of a square where
// `kind` is 0, or the others.
void add_scores(uint kind, uint first_rows, uint second_rows, uint lower, uint eights) {
  [[dont_unroll]] for (uint at = 0u; at < eights; at += 2u) {
    [[unroll]] for (uint round = 0u; round < ROUNDS; ++round) {
      const uint n = round * TEAM + gl_SubgroupID;
      const uvec2 place = square(n);
      if (n >= SQUARES) continue;
      const uint rights = lower + place.y * SCORE_STRIDE + at, lefts = place.x * SCORE_STRIDE + at;
      if (kind == 0u) {
        ADD_SIXTEENS(score, (round * 4u) * TILES, memory, first_rows + lefts, 1u, SCORE_STRIDE, memory, rights, 1u, SCORE_STRIDE)
        ADD_SIXTEENS(score, (round * 4u + 1u) * TILES, memory, second_rows + lefts, 1u, SCORE_STRIDE, memory, rights, 1u,
                     SCORE_STRIDE)
      } else {
        ADD_SIXTEENS(score, (round * 4u + 2u) * TILES, memory, first_rows + lefts, 1u, SCORE_STRIDE, memory, rights, 1u,
                     SCORE_STRIDE)
        ADD_SIXTEENS(score, (round * 4u + 3u) * TILES, memory, second_rows + lefts, 1u, SCORE_STRIDE, memory, rights, 1u,
                     SCORE_STRIDE)
      }
    }
  }
}
// Of gradients of outputs and c with u; of queries and keys with keys.
void take_scores() {
  [[unroll]] for (uint i = 0u; i < ROUNDS * 4u * TILES; ++i) score[i] = COOPERATIVE_SUM(0.0);
  [[dont_unroll]] for (uint v = 0u; v < VALUE_EIGHTS; v += SCORE_EIGHTS) {
    barrier();
    copy_rows(CHUNK_GIVEN(chunk), VALUE_EIGHTS, v, 0u);
    copy_rows(CHUNK_SLOPES(chunk), VALUE_EIGHTS, v, SCORE_AREA);
    copy_rows(CHUNK_CHANGES(chunk), VALUE_EIGHTS, v, 2u * SCORE_AREA);
    barrier();
    add_scores(0u, 0u, SCORE_AREA, 2u * SCORE_AREA, min(VALUE_EIGHTS - v, SCORE_EIGHTS));
  }
  [[dont_unroll]] for (uint k = 0u; k < EIGHTS; k += SCORE_EIGHTS) {
    barrier();
    copy_rows(CHUNK_ROWS(chunk) + TOKENS * EIGHTS, EIGHTS, k, 0u);
    copy_rows(CHUNK_ROWS(chunk), EIGHTS, k, SCORE_AREA);
    barrier();
    add_scores(1u, 0u, SCORE_AREA, SCORE_AREA, min(EIGHTS - k, SCORE_EIGHTS));
  }
  barrier();
}
// Products of the factors behind token s up to t; 0 where t is before s.
void take_factors() {
  if (item < TOKENS) {
    float x = 0.0;
    [[dont_unroll]] for (uint t = 0u; t < TOKENS; ++t) {
      x = t == item ? 1.0 : x * factors[t];
      memory[t * PITCH + item / 4u][item % 4u] = floatBitsToUint(x);
    }
  }
  barrier();
}

// P and N of all pairs, which lanes keep; what both add to products, where their factors were.
void take_pairs() {
  [[unroll]] for (uint round = 0u; round < ROUNDS; ++round) {
    const uint n = round * TEAM + gl_SubgroupID;
    const bool takes = n < SQUARES;
    const uvec2 at = square(n);
    vec4 p[FOURS], its_n[FOURS], of_queries[FOURS], of_keys[FOURS];
    TAKE_FOURS(takes, score, (round * 4u) * TILES, COLUMN_TILES, p)
    TAKE_FOURS(takes, score, (round * 4u + 1u) * TILES, COLUMN_TILES, its_n)
    TAKE_FOURS(takes, score, (round * 4u + 2u) * TILES, COLUMN_TILES, of_queries)
    TAKE_FOURS(takes, score, (round * 4u + 3u) * TILES, COLUMN_TILES, of_keys)
    subgroupBarrier();
    if (takes) {
      [[unroll]] for (uint i = 0u; i < FOURS; ++i) {
        if (!HAS_FOUR(i)) continue;
        const uint line = LANE_AT(i) / 4u, vector = LANE_AT(i) % 4u, t = at.x + line, s = at.y + 4u * vector;
        const uint place = t * PITCH + s / 4u;
        const vec4 pair_factors = four(place);
        const bvec4 before = lessThan(uvec4(s, s + 1u, s + 2u, s + 3u), uvec4(t));
        const vec4 its_p = args.scale * p[i] * pair_factors, its = mix(vec4(0.0), its_n[i] * pair_factors, before);
        const vec4 leaves = -betas[t] * its;
        memory[own + line * OWN_STRIDE + vector] = floatBitsToUint(its * of_keys[i]);
        memory[place] = floatBitsToUint(mix(vec4(0.0), its_p * of_queries[i] + leaves * of_keys[i], before));
        odd = odd || too_large(its_p) || too_large(leaves);
        weight[round * FOURS + i] = narrow4(its_p);
        other[round * FOURS + i] = narrow4(leaves);
      }
    }
    subgroupBarrier();
    if (takes) {
      [[dont_unroll]] for (uint line = lane; line < 16u; line += LANES) {
        const vec4 x = four(own + line * OWN_STRIDE) + four(own + line * OWN_STRIDE + 1u) + four(own + line * OWN_STRIDE + 2u) +
                       four(own + line * OWN_STRIDE + 3u);
        spent[at.y / 16u * TOKENS + at.x + line] = (x.x + x.y) + (x.z + x.w);
      }
    }
  }
  barrier();
}
// What pairs of a token from item's on and one before it have added, of an item for each token.
float add_pairs() {
  if (item < TOKENS) {
    float before = 0.0;
    [[dont_unroll]] for (uint v = 0u; v <= item / 4u; ++v) {
      const vec4 x = four(item * PITCH + v);
      const float one = before + x.x, two = one + x.y, three = two + x.z;
      memory[item * PITCH + v] = floatBitsToUint(vec4(before, one, two, three));
      before = three + x.w;
    }
  }
  barrier();
  float sum = 0.0;
  if (item < TOKENS) {
    [[dont_unroll]] for (uint u = item; u < TOKENS; ++u) sum += uintBitsToFloat(memory[u * PITCH + item / 4u][item % 4u]);
  }
  barrier();
  return sum;
}
void put_weights() {
  [[unroll]] for (uint round = 0u; round < ROUNDS; ++round) {
    const uint n = round * TEAM + gl_SubgroupID;
    const uvec2 at = square(n);
    if (n >= SQUARES) continue;
    [[unroll]] for (uint i = 0u; i < FOURS; ++i) {
      if (!HAS_FOUR(i)) continue;
      const uint vector = LANE_AT(i) % 4u, to = (at.x + LANE_AT(i) / 4u) * WEIGHT_STRIDE + at.y / 8u + vector / 2u;
      const uvec2 x = weight[round * FOURS + i], y = other[round * FOURS + i];
      memory[to][vector % 2u * 2u] = x.x;
      memory[to][vector % 2u * 2u + 1u] = x.y;
      memory[SPENT + to][vector % 2u * 2u] = y.x;
      memory[SPENT + to][vector % 2u * 2u + 1u] = y.y;
    }
  }
  barrier();
}

// Of turn n, rows of tokens and of a state, lines of STATE_EIGHTS: of gradients of outputs, of c and h, or of u and D.
void ask_states(uint n) {
  const bool back = n % 2u != 0u;
  const uint at = n / 2u * STATE_EIGHTS;
  const uint states = (back ? KEPT_STATE(args.dstates, chunk) : KEPT_STATE(args.states, chunk)) + STATE_ELEMENTS;
  [[unroll]] for (uint n = 0u; n < COPIES; ++n) {
    const uint i = item + n * WG_X, line = i / STATE_EIGHTS, vector = at + i % STATE_EIGHTS;
    const uint from = line < TOKENS        ? (back ? CHUNK_CHANGES(chunk) : CHUNK_GIVEN(chunk)) + line * VALUE_EIGHTS
                      : line < 2u * TOKENS ? CHUNK_SLOPES(chunk) + (line - TOKENS) * VALUE_EIGHTS
                                           : states + (line - 2u * TOKENS) * VALUE_EIGHTS;
    copies[n] = uvec4(0u);
    if (line < STATE_LINES && vector < VALUE_EIGHTS) copies[n] = scratch_eights[from + vector];
  }
}
// Their products, of the sub-group's tokens and key dims.
void take_states() {
  [[unroll]] for (uint i = 0u; i < TURNS * TILES; ++i) of_given[i] = of_slopes[i] = of_changes[i] = COOPERATIVE_SUM(0.0);
  const uint turns = 2u * RECUR_COOP_CEIL(VALUE_EIGHTS, STATE_EIGHTS), column = block * TURNS * 16u;
  ask_states(0u);
  [[dont_unroll]] for (uint n = 0u; n < turns; ++n) {
    barrier();
    [[unroll]] for (uint j = 0u; j < COPIES; ++j) {
      const uint i = item + j * WG_X, line = i / STATE_EIGHTS;
      if (line < STATE_LINES) memory[line * STATE_STRIDE + i % STATE_EIGHTS] = copies[j];
    }
    barrier();
    ask_states(min(n + 1u, turns - 1u));
    [[dont_unroll]] for (uint v = 0u; v < STATE_EIGHTS; v += 2u) {
      if (n % 2u == 0u) {
        add_given(v, row, 2u * TOKENS * STATE_STRIDE + v, column);
        add_slopes(TOKENS * STATE_STRIDE + v, row, 2u * TOKENS * STATE_STRIDE + v, column);
      } else {
        add_changes(v, row, 2u * TOKENS * STATE_STRIDE + v, column);
      }
    }
  }
  barrier();
}

// Of a turn, two vectors of key dims of keys and queries for each block of sub-groups.
void ask_rows(uint turn) {
  [[unroll]] for (uint n = 0u; n < ROW_COPIES; ++n) {
    const uint i = item + n * WG_X, line = i / ROW_EIGHTS_AT_ONCE, its_block = i % ROW_EIGHTS_AT_ONCE / 2u;
    const uint vector = (its_block * TURNS + turn) * 2u + i % 2u;
    copies[n] = uvec4(0u);
    if (line < 2u * TOKENS && vector < EIGHTS) copies[n] = scratch_eights[CHUNK_ROWS(chunk) + line * EIGHTS + vector];
  }
}
// sums += a sixteen of pairs, or the transposed one, times rows of keys or queries.
#define ADD_WEIGHED(sums, weights, BY_TERMS, rows) \
  ADD_SIXTEENS(sums, 0u, memory, weights, BY_TERMS, WEIGHT_STRIDE, memory, (rows) + 2u * block, 0u, ROW_STRIDE)

// Gradients of queries and keys; what their products with those add to the others.
void take_rows() {
  const uint queries = CHUNK_ROWS(chunk) + TOKENS * EIGHTS;
  const uint query_step = row_step(args.dquery), to_query = first_row(args.dquery) + first * query_step;
  const uint key_step = row_step(args.dkey), to_key = first_row(args.dkey) + first * key_step;
  float of_query[FOURS], of_key[FOURS], of_change[FOURS];
  [[unroll]] for (uint i = 0u; i < FOURS; ++i) of_query[i] = of_key[i] = of_change[i] = 0.0;
  [[dont_unroll]] for (uint turn = 0u; turn < TURNS; ++turn) {
    ask_rows(turn);
    barrier();
    [[unroll]] for (uint n = 0u; n < ROW_COPIES; ++n) {
      const uint i = item + n * WG_X, line = i / ROW_EIGHTS_AT_ONCE;
      if (line < 2u * TOKENS) memory[KEYS + line * ROW_STRIDE + i % ROW_EIGHTS_AT_ONCE] = copies[n];
    }
    barrier();
    [[unroll]] for (uint i = 0u; i < TILES; ++i) for_queries[i] = for_keys[i] = COOPERATIVE_SUM(0.0);
    [[dont_unroll]] for (uint s = 0u; s <= row; s += 16u) {
      ADD_WEIGHED(for_queries, row * WEIGHT_STRIDE + s / 8u, 1u, KEYS + s * ROW_STRIDE)
      ADD_WEIGHED(for_keys, SPENT + row * WEIGHT_STRIDE + s / 8u, 1u, KEYS + s * ROW_STRIDE)
    }
    [[dont_unroll]] for (uint t = row; t < TOKENS; t += 16u) {
      ADD_WEIGHED(for_keys, t * WEIGHT_STRIDE + row / 8u, 0u, QUERIES + t * ROW_STRIDE)
      ADD_WEIGHED(for_keys, SPENT + t * WEIGHT_STRIDE + row / 8u, 0u, KEYS + t * ROW_STRIDE)
    }
    barrier();
    const uint key_dim = (block * TURNS + turn) * 16u;
    const bool takes = key_dim < KEY_DIM;
    vec4 given[FOURS], weighed[FOURS], slopes[FOURS], changes[FOURS], pairs[FOURS];
    TAKE_FOURS(takes, of_given, 0u, TURNS * COLUMN_TILES, given)
    TAKE_FOURS(takes, for_queries, 0u, COLUMN_TILES, weighed)
    TAKE_FOURS(takes, of_slopes, 0u, TURNS * COLUMN_TILES, slopes)
    TAKE_FOURS(takes, of_changes, 0u, TURNS * COLUMN_TILES, changes)
    TAKE_FOURS(takes, for_keys, 0u, COLUMN_TILES, pairs)
    [[unroll]] for (uint i = 0u; i < FOURS; ++i) {
      if (!takes || !HAS_FOUR(i)) continue;
      const uint t = row + LANE_AT(i) / 4u, k = key_dim / 4u + LANE_AT(i) % 4u;
      const vec4 its_query = widen4(scratch_pairs[2u * (queries + t * EIGHTS) + k]),
                 its_key = widen4(scratch_pairs[2u * (CHUNK_ROWS(chunk) + t * EIGHTS) + k]);
      const vec4 asked = args.scale * since[t] * given[i], held = -since[t] * slopes[i], gained = until[t] * changes[i];
      of_query[i] += dot(asked, its_query);
      of_key[i] += dot(held, its_key);
      of_change[i] += dot(gained, its_key);
      if (t < count && RECUR_HAS(RECUR_GRAD_QUERY))
        dquery_pairs[(to_query + t * query_step) / 4u + k] = narrow4(asked + weighed[i]);
      if (t < count && RECUR_HAS(RECUR_GRAD_KEY))
        dkey_pairs[(to_key + t * key_step) / 4u + k] = narrow4(betas[t] * held + gained + pairs[i]);
    }
    // The next turn's products move up, for matrices are not looked up by numbers of turns.
    [[unroll]] for (uint m = 0u; m < ROW_TILES; ++m) {
      [[unroll]] for (uint n = 0u; n + COLUMN_TILES < TURNS * COLUMN_TILES; ++n) {
        const uint to = m * TURNS * COLUMN_TILES + n;
        of_given[to] = of_given[to + COLUMN_TILES];
        of_slopes[to] = of_slopes[to + COLUMN_TILES];
        of_changes[to] = of_changes[to + COLUMN_TILES];
      }
    }
  }
  subgroupBarrier();
  [[unroll]] for (uint i = 0u; i < FOURS; ++i) {
    if (!HAS_FOUR(i)) continue;
    const uint line = LANE_AT(i) / 4u, vector = LANE_AT(i) % 4u;
    memory[own + line][vector] = floatBitsToUint(of_query[i]);
    memory[own + 16u + line][vector] = floatBitsToUint(of_key[i]);
    memory[own + 32u + line][vector] = floatBitsToUint(of_change[i]);
  }
  barrier();
}

// Number `kind` of those sums, of token t.
float sum_of(uint kind, uint t) {
  vec4 x = vec4(0.0);
  [[unroll]] for (uint block = 0u; block < BLOCKS; ++block)
    x += four(OWN + (block * SIXTEENS + t / 16u) * RECUR_COOP_OWN_AREA + 16u * kind + t % 16u);
  return (x.x + x.y) + (x.z + x.w);
}
// Gradients of beta and of decays, an item for each token.
void take_numbers(float of_pairs) {
  if (item < TOKENS) {
    const float of_key = sum_of(1u, item);
    float gradient = of_key;
    [[dont_unroll]] for (uint tile = 0u; tile < VALUE_DIM / 16u; ++tile)
      gradient += scratch_floats[BETA_SHARES(chunk, tile) + item];
    [[dont_unroll]] for (uint s = 0u; s <= item / 16u; ++s) gradient -= spent[s * TOKENS + item];
    if (item < count && RECUR_HAS(RECUR_GRAD_BETA))
      store_dbeta_steps(vec4(gradient), first_row(args.dbeta) + (first + item) * row_step(args.dbeta), 0u, 1u,
                        args.types >> RECUR_TYPE_BETA & 3u);
    factors[item] = sum_of(0u, item) + betas[item] * of_key;
    until[item] = sum_of(2u, item);
  }
  barrier();
  if (item < count && RECUR_HAS(RECUR_GRAD_G)) {
    float whole = 0.0, gradient = of_pairs;
    [[dont_unroll]] for (uint i = 0u; i < 16u; ++i) whole += wholes[i];
    [[dont_unroll]] for (uint t = 0u; t < TOKENS; ++t) gradient += t < item ? until[t] : factors[t];
    store_dg_steps(vec4(gradient + whole * since[TOKENS - 1u]), first_row(args.dg) + (first + item) * row_step(args.dg), 0u, 1u,
                   args.types >> RECUR_TYPE_G & 3u);
  }
}

void main() {
  const bool exists = find_chunk() && count > 0u;
  own = OWN + gl_SubgroupID * RECUR_COOP_OWN_AREA;
  row = gl_SubgroupID % SIXTEENS * 16u;
  block = gl_SubgroupID / SIXTEENS;
  if (item == 0u) mark = exists ? UNIT_MARK(unit) : 1u;
  barrier();
  if (mark == 0u) {
    find_numbers();
    take_scores();
    take_factors();
    take_pairs();
    const float of_pairs = add_pairs();
    take_states();
    put_weights();
    take_rows();
    take_numbers(of_pairs);
    if (odd) UNIT_MARK(unit) = 1u;
  }
}
