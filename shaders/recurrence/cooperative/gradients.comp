// SPDX-License-Identifier: Apache-2.0
// What     The gradients of queries, keys, values and decays of a chunk of tokens, of the state before it and of the gradient
//          of the state behind it.
// Who      A work-group owns a chunk in a head, an item eight key dims of two tokens, a sub-group sixteen tokens of products.
// Memory   Operands, the state and its gradient once, the gradient twice; gradients once.
// Numerics Float sums of products of DTYPE. Rounded to that are queries and keys times factors, weights, products of values
//          and gradients of outputs, and both states. Chunks with weights or such products that are not for matrices mark
//          their sequence.
// Assumes  recurrence/cooperative/states and carry have run both ways; RECUR_COOP_GRADIENTS_VALID; full sub-groups of LANES;
//          the device has the shape for sub-groups with float sums; rows at multiples of 16 bytes; operands and scratch below
//          2^31 elements.
//
// With p[u,s] = value_s . gradient of output_u, the gradient of query u is scale (the state before the chunk, decayed to u,
// times the gradient of output u + sum of p[u,s] (key_s decayed from s to u) over s <= u), and that of key s likewise of what
// comes behind it. Pairs are taken by levels (levels.glsl): p of pairs of the level times its tile is both sums at once. A pair
// adds its share, the product of the query with what it adds to that one's gradient, to the gradient of each decay between its
// tokens; by levels those are sums up to a token of a lower half, or from one of an upper half on, and nothing cancels out.
//
// Loops over arrays of matrices have constant bounds: NVIDIA's driver moves arrays to memory where it can't unroll.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#include "lib/cooperative/element.glsl"
#define PART RECUR_COOP_GRADIENT_PART
#define RECUR_OUTPUTS 1
#define RECUR_AREA RECUR_COOP_GRADIENTS_AREA
#define RECUR_ARGS_BINDING 13
#include "recurrence/cooperative/chunks.glsl"

layout(std430, binding = 6) readonly buffer OutputGradients { uvec4 doutput_eights[]; };
layout(std430, binding = 7) writeonly buffer QueryGradients { uvec4 dquery_eights[]; };
layout(std430, binding = 8) writeonly buffer KeyGradients { uvec4 dkey_eights[]; };
layout(std430, binding = 10) writeonly buffer ValueGradients { uvec4 dvalue_eights[]; };
TYPED_OUTPUT(dg, 11)
layout(std430, binding = 11) writeonly buffer GateGradients { uvec4 dg_eights[]; };
layout(std430, binding = 12) writeonly buffer DecayGradients { uvec4 dgk_eights[]; };
layout(std430, binding = 12) writeonly buffer DecayGradientVectors { vec4 dgk_vectors[]; };

// Areas behind rows of tokens: rows of states by two pieces, or products of all tokens with key dims; pairs; and sums of parts
// with places of sub-groups, or gradients of outputs.
#define PIECES RECUR_COOP_ROWS_AREA
#define WEIGHTS (PIECES + RECUR_COOP_PIECES_AREA)
#define SUMS (WEIGHTS + RECUR_COOP_WEIGHT_AREA)
#define OUTPUTS SUMS
#define OWN (SUMS + RECUR_COOP_SUMS_AREA)
#define SECOND PIECES
#define PIECE TOKENS  // rows of a state
#define PRODUCT_STRIDE RECUR_COOP_PRODUCT_STRIDE
#define RECUR_TURNED 1
#define WEIGHT_SQUARES 1u
#include "recurrence/cooperative/levels.glsl"

#define DSTATE(chunk) (8u * args.dstates + (chunk) * STATE_SIZE)
COPY_ROWS(copy_doutputs, args.result, doutput_eights)

const uint KEY_SQUARES = KEY_DIM / 16u, COLUMN_SQUARES = RECUR_COOP_COLUMN_SQUARES;
const uint PRODUCT_TILES = COLUMN_SQUARES * COLUMN_TILES;
shared uint mark;
shared float own_pairs[TOKENS];  // of tokens with themselves

// Which of the two a token is: by its half, or all of the chunk.
#define BY_HALVES 0u
#define ALL_UPPER 1u
#define ALL_LOWER 2u

uint row, block;                // the sub-group's sixteen tokens, and block of columns
bool multiplies;                // whether it has such a block of key dims
uint mirrored[LANE_PAIRS];      // of the diagonal's squares: pairs, in both orders
vec4 dquery[2u * PART], dkey[2u * PART], ddecay[2u * PART];
COOPERATIVE_SUM product[ROW_TILES * PRODUCT_TILES];

COOPERATIVE_ADD_TILES(add_pairs_of_values, memory, score, ROW_TILES, COLUMN_TILES, 1u, 1u, VALUE_STRIDE, 1u, VALUE_STRIDE)
COOPERATIVE_ADD_TILES(add_outputs, memory, score, ROW_TILES, COLUMN_TILES, 16u / MATRIX_K, 1u, WEIGHT_STRIDE, 0u, VALUE_STRIDE)
COOPERATIVE_ADD_TILES(add_upper, memory, product, ROW_TILES, PRODUCT_TILES, 16u / MATRIX_K, 1u, WEIGHT_STRIDE, 0u, KEY_STRIDE)
COOPERATIVE_ADD_TILES(add_lower, memory, product, ROW_TILES, PRODUCT_TILES, 16u / MATRIX_K, 0u, WEIGHT_STRIDE, 0u, KEY_STRIDE)
COOPERATIVE_ADD_TILES(add_states, memory, product, ROW_TILES, PRODUCT_TILES, 1u, 1u, VALUE_STRIDE, 0u, KEY_STRIDE)

float own_score(uint r, uint c) { return uintBitsToFloat(memory[own + r * OWN_STRIDE + c / 4u][c % 4u]); }
void take_pairs_of_values(bool takes, uvec2 at) {
  if (takes) {
    clear_score();
    [[dont_unroll]] for (uint k = 0u; k < VALUE_DIM / 8u; k += MATRIX_K / 8u)
      add_pairs_of_values(PIECES + k, at.x, k, at.y);
    put_score(own, OWN_STRIDE);
  }
  subgroupBarrier();
}

// All pairs of values and gradients of outputs, of which squares below the diagonal go to memory.
void pair_values() {
  const uint n = gl_SubgroupID, squares = SIXTEENS * (SIXTEENS - 1u) / 2u;
  take_pairs_of_values(n < SIXTEENS, uvec2(n * 16u));
  if (n < SIXTEENS) {
    [[unroll]] for (uint i = 0u; i < LANE_PAIRS; ++i) {
      const uint at = lane + i * LANES, t = at / 8u, s = at % 8u * 2u;
      const vec2 x = vec2(own_score(max(t, s), min(t, s)), own_score(max(t, s + 1u), min(t, s + 1u)));
      odd = odd || !all(lessThanEqual(abs(x), vec2(LARGEST)));
      mirrored[i] = narrow_pair(x);
      if (t / 2u == s / 2u) own_pairs[n * 16u + t] = t == s ? x.x : x.y;
    }
  }
  [[dont_unroll]] for (uint begin = 0u; begin < squares; begin += SIXTEENS) {
    subgroupBarrier();
    const bool takes = n < SIXTEENS && begin + n < squares;
    const uvec2 at = square(begin + n) + uvec2(16u, 0u);
    take_pairs_of_values(takes, at);
    if (!takes) continue;
    [[unroll]] for (uint i = 0u; i < LANE_PAIRS; ++i) {
      uint t, s;
      const vec2 x = score_pair(i, t, s);
      store_weights(at.x + t, at.y + s, x);
    }
  }
}
// The diagonal's pairs of a level of less than sixteen tokens.
void store_mirrored(uint half_tokens) {
  const uint at = gl_SubgroupID * 16u;
  if (gl_SubgroupID >= SIXTEENS) return;
  [[unroll]] for (uint i = 0u; i < LANE_PAIRS; ++i) {
    const uint pair_at = lane + i * LANES, t = pair_at / 8u, s = pair_at % 8u * 2u;
    const uvec2 differ = uvec2(t) ^ uvec2(s, s + 1u);
    const uint first_half = differ.x / half_tokens == 1u ? 0xffffu : 0u;
    const uint second_half = differ.y / half_tokens == 1u ? 0xffff0000u : 0u;
    memory[WEIGHTS + (at + t) * WEIGHT_STRIDE + (at + s) / 8u][s / 2u % 4u] = mirrored[i] & (first_half | second_half);
  }
}

void clear_product() {
  [[unroll]] for (uint i = 0u; i < ROW_TILES * PRODUCT_TILES; ++i) product[i] = COOPERATIVE_SUM(0.0);
}
// To the rows of products.
void put_product() {
  if (!multiplies) return;
  [[unroll]] for (uint n = 0u; n < PRODUCT_TILES; ++n) {
    const uint column = block * COLUMN_SQUARES * 16u + n * MATRIX_N;
    if (column < KEY_DIM) {
      [[unroll]] for (uint m = 0u; m < ROW_TILES; ++m)
        coopMatStore(product[m * PRODUCT_TILES + n], memory, PIECES + (row + m * MATRIX_M) * PRODUCT_STRIDE + column / 4u,
                     PRODUCT_STRIDE, kRowMajor);
    }
  }
}
// Pairs of a level times its tile.
void take_products(uint half_tokens) {
  if (!multiplies) return;
  const uint column = block * COLUMN_SQUARES * 16u;
  clear_product();
  if (half_tokens < 16u) {
    add_upper(WEIGHTS + row / 8u, row, row * KEY_STRIDE, column);
  } else if ((row & half_tokens) != 0u) {
    const uint other = (row & ~(2u * half_tokens - 1u));
    [[dont_unroll]] for (uint s = other; s < other + half_tokens; s += 16u)
      add_upper(WEIGHTS + s / 8u, row, s * KEY_STRIDE, column);
  } else {
    const uint other = (row & ~(2u * half_tokens - 1u)) + half_tokens;
    [[dont_unroll]] for (uint u = other; u < other + half_tokens; u += 16u)
      add_lower(WEIGHTS + u * WEIGHT_STRIDE, row, u * KEY_STRIDE, column);
  }
  put_product();
}

// What products mean for the item's tokens, in halves of so many; the sum of their shares goes to `sums`.
void take_gradients(uint half_tokens, uint which, float scale, uint sums) {
  const uint base = part * PART;
  vec4 share[2u * PART];
  bool upper[PART];
  vec4 low = before[0], high = before[1];
  [[unroll]] for (uint t = 0u; t < PART; ++t) {
    upper[t] = which == BY_HALVES ? (base + t & half_tokens) != 0u : which == ALL_UPPER;
    share[2u * t] = scale * uintBitsToFloat(memory[PIECES + (base + t) * PRODUCT_STRIDE + 2u * eight]);
    share[2u * t + 1u] = scale * uintBitsToFloat(memory[PIECES + (base + t) * PRODUCT_STRIDE + 2u * eight + 1u]);
    if ((t & half_tokens - 1u) == 0u) low = before[0], high = before[1];
    low *= factor[2u * t];
    high *= factor[2u * t + 1u];
    if (upper[t]) {
      share[2u * t] *= low;
      share[2u * t + 1u] *= high;
      dquery[2u * t] += share[2u * t];
      dquery[2u * t + 1u] += share[2u * t + 1u];
      share[2u * t] *= widen4(query[t].xy);
      share[2u * t + 1u] *= widen4(query[t].zw);
    }
  }
  vec4 sum[2] = {vec4(0.0), vec4(0.0)};
  [[unroll]] for (uint n = 1u; n <= PART; ++n) {
    const uint t = PART - n;
    if (n == 1u || (t + 1u & half_tokens - 1u) == 0u) {
      low = behind[0], high = behind[1];
      sum[0] = sum[1] = vec4(0.0);
    }
    if (upper[t]) {
      [[unroll]] for (uint i = 0u; i < 2u; ++i) {
        sum[i] += share[2u * t + i];
        ddecay[2u * t + i] += sum[i];
      }
    } else {
      share[2u * t] *= low;
      share[2u * t + 1u] *= high;
      dkey[2u * t] += share[2u * t];
      dkey[2u * t + 1u] += share[2u * t + 1u];
      share[2u * t] *= widen4(key[t].xy);
      share[2u * t + 1u] *= widen4(key[t].zw);
    }
    low *= factor[2u * t];
    high *= factor[2u * t + 1u];
  }
  if (!upper[0]) {
    sum[0] = sum[1] = vec4(0.0);
    [[unroll]] for (uint t = 0u; t < PART; ++t) {
      if ((t & half_tokens - 1u) == 0u) sum[0] = sum[1] = vec4(0.0);
      if (upper[t]) continue;
      [[unroll]] for (uint i = 0u; i < 2u; ++i) {
        ddecay[2u * t + i] += sum[i];
        sum[i] += share[2u * t + i];
      }
    }
  }
  [[unroll]] for (uint i = 0u; i < 2u; ++i)
    memory[sums + part * (KEY_DIM / 4u) + 2u * eight + i] = floatBitsToUint(sum[i]);
}
// Shares of the other parts of the item's half.
void add_sums(uint half_tokens, uint which, uint sums) {
  const uint parts = half_tokens / PART;
  if (parts < 2u) return;
  const bool upper = which == BY_HALVES ? (part * PART & half_tokens) != 0u : which == ALL_UPPER;
  const uint begin = part & ~(parts - 1u);
  vec4 sum[2] = {vec4(0.0), vec4(0.0)};
  [[dont_unroll]] for (uint p = upper ? part + 1u : begin; p < (upper ? begin + parts : part); ++p) {
    [[unroll]] for (uint i = 0u; i < 2u; ++i)
      sum[i] += uintBitsToFloat(memory[sums + p * (KEY_DIM / 4u) + 2u * eight + i]);
  }
  [[unroll]] for (uint t = 0u; t < PART; ++t) {
    ddecay[2u * t] += sum[0];
    ddecay[2u * t + 1u] += sum[1];
  }
}

// Of tokens with themselves, and all pairs; afterwards the group is all of the chunk.
void take_levels() {
  const bool has_part = part < PARTS;
  take_weights(0u);
  if (has_part) {
    [[unroll]] for (uint t = 0u; t < PART; ++t) {
      const float x = args.scale * own_pairs[part * PART + t];
      dquery[2u * t] = x * widen4(key[t].xy);
      dquery[2u * t + 1u] = x * widen4(key[t].zw);
      dkey[2u * t] = x * widen4(query[t].xy);
      dkey[2u * t + 1u] = x * widen4(query[t].zw);
      ddecay[2u * t] = ddecay[2u * t + 1u] = vec4(0.0);
    }
  }
  barrier();
  [[dont_unroll]] for (uint half_tokens = 1u; half_tokens < TOKENS; half_tokens *= 2u) {
    if (has_part) store_halves(half_tokens, false);
    if (half_tokens < 16u) store_mirrored(half_tokens);
    barrier();
    if (has_part && half_tokens > PART) {
      add_sums(half_tokens / 2u, BY_HALVES, SUMS);
      put_group();
    }
    take_weights(half_tokens);
    take_products(half_tokens);
    barrier();
    if (!has_part) continue;
    take_gradients(half_tokens, BY_HALVES, args.scale, SUMS);
    if (half_tokens >= PART) grow_group(half_tokens / PART);
  }
  store_diagonal();
  barrier();
  if (has_part) add_sums(TOKENS / 2u, BY_HALVES, SUMS);
}

// Rows of a state, those behind the last one 0. Items take the same key dims of all of their rows.
void copy_state(uint from, uint to, uint first_row, uint rows) {
  const uint step = WG_X / EIGHTS;
  if (part >= step) return;
  [[dont_unroll]] for (uint r = part; r < rows; r += step) {
    uvec4 x = uvec4(0u);
    if (first_row + r < VALUE_DIM) x = scratch_eights[from / 8u + (first_row + r) * EIGHTS + eight];
    memory[to + r * KEY_STRIDE + eight] = x;
  }
}
// What both states leave of the gradient of a decay, of the item's rows of a piece.
void add_leaves(uint first_row, inout vec4 leaves[2]) {
  const uint step = WG_X / EIGHTS;
  if (part >= step) return;
  [[dont_unroll]] for (uint r = part; r < min(PIECE, VALUE_DIM - first_row); r += step) {
    const uint at = (first_row + r) * EIGHTS + eight;
    const uvec4 x = scratch_eights[CHUNK_KEPT(chunk) / 8u + at], y = scratch_eights[DSTATE(chunk) / 8u + at];
    leaves[0] += widen4(x.xy) * widen4(y.xy);
    leaves[1] += widen4(x.zw) * widen4(y.zw);
  }
}
// Products of rows of tokens at `rows` with a state, and what they mean; pieces of the state by turns. Sums in the place of
// rows of tokens.
void take_state(uint rows, uint from, uint which, float scale) {
  clear_product();
  const uint column = block * COLUMN_SQUARES * 16u;
  [[dont_unroll]] for (uint v = 0u; v < VALUE_DIM; v += PIECE) {
    const uint to = PIECES + (v / PIECE & 1u) * RECUR_COOP_KEY_AREA;
    copy_state(from, to, v, PIECE);
    barrier();
    if (multiplies) {
      const uint terms = min(PIECE, VALUE_DIM - v);
      [[dont_unroll]] for (uint k = 0u; k < terms; k += MATRIX_K)
        add_states(rows + (v + k) / 8u, row, to + k * KEY_STRIDE, column);
    }
  }
  barrier();
  put_product();
  barrier();
  if (part < PARTS) take_gradients(TOKENS, which, scale, 0u);
  barrier();
  if (part < PARTS) add_sums(TOKENS, which, 0u);
}

#define STORE_EIGHTS(eights, rows, of)                                                                     \
  [[unroll]] for (uint t = 0u; t < PART; ++t) {                                                            \
    const uint step = first + part * PART + t;                                                             \
    if (part < PARTS && part * PART + t < count)                                                           \
      eights[(first_row(rows) + step * row_step(rows)) / 8u + eight] =                                     \
          uvec4(narrow4(of[2u * t]), narrow4(of[2u * t + 1u]));                                            \
  }

void store_decays() {
  const bool of_gk = RECUR_HAS(RECUR_GRAD_GK), of_g = RECUR_HAS(RECUR_GRAD_G) && RECUR_HAS(RECUR_KEY_GATE);
  if (!of_gk && !of_g) return;
  const RecurRows rows = of_gk ? args.dgk : args.dg;
  [[unroll]] for (uint t = 0u; t < PART; ++t) {
    if (part >= PARTS || part * PART + t >= count) continue;
    const uint at = first_row(rows) + (first + part * PART + t) * row_step(rows) + 8u * eight;
    if (WIDE_DECAYS != 0u) {
      [[unroll]] for (uint i = 0u; i < 2u; ++i) {
        if (of_gk) {
          dgk_vectors[at / 4u + i] = ddecay[2u * t + i];
        } else {
          dg_as_vectors[at / 4u + i] = ddecay[2u * t + i];
        }
      }
    } else {
      const uvec4 x = uvec4(narrow4(ddecay[2u * t]), narrow4(ddecay[2u * t + 1u]));
      if (of_gk) {
        dgk_eights[at / 8u] = x;
      } else {
        dg_eights[at / 8u] = x;
      }
    }
  }
}
// The gradient of what key dims of a token share of its decay.
void store_sums() {
  const bool of_g = RECUR_HAS(RECUR_GRAD_G) && RECUR_HAS(RECUR_GATE);
  if (!of_g && !RECUR_HAS(RECUR_GRAD_GAMMA)) return;
  if (part < PARTS) {
    [[unroll]] for (uint t = 0u; t < PART; ++t) {
      const vec4 x = ddecay[2u * t] + ddecay[2u * t + 1u];
      const uint at = (part * PART + t) * EIGHTS + eight;
      memory[PIECES + at / 4u][at % 4u] = floatBitsToUint(x.x + x.y + (x.z + x.w));
    }
  }
  barrier();
  [[dont_unroll]] for (uint t = item; t < count; t += WG_X) {
    float sum = 0.0;
    [[dont_unroll]] for (uint i = t * EIGHTS; i < (t + 1u) * EIGHTS; ++i)
      sum += uintBitsToFloat(memory[PIECES + i / 4u][i % 4u]);
    if (of_g) {
      const uint at = first_row(args.dg) + (first + t) * row_step(args.dg);
      store_dg_steps(vec4(sum), at, 0u, 1u, args.types >> RECUR_TYPE_G & 3u);
    }
    if (RECUR_HAS(RECUR_GRAD_GAMMA)) {
      const uint token = RECUR_HAS(RECUR_REVERSE) ? end - 1u - first - t : begin + first + t;
      scratch_floats[4u * args.sums + (batch * args.tokens + token) * args.heads + head] = sum;
    }
  }
  barrier();
}

// The gradients of values: weights of later tokens times gradients of their outputs, and keys decayed to the chunk's end
// times the gradient of the state, a square of sixteen for a sub-group.
void take_values() {
  const uint columns = 16u * RECUR_COOP_VALUE_BLOCKS;
  const uint step = row_step(args.dvalue), at = first_row(args.dvalue) + first * step;
  [[dont_unroll]] for (uint v = 0u; v < VALUE_DIM; v += columns) {
    copy_state(DSTATE(chunk), PIECES, v, columns);
    barrier();
    const uint column = v + block * 16u;
    const bool takes = block < RECUR_COOP_VALUE_BLOCKS && column < VALUE_DIM;
    if (takes) {
      clear_score();
      [[dont_unroll]] for (uint t = row; t < TOKENS; t += 16u)
        add_outputs(WEIGHTS + t / 8u, row, OUTPUTS + t * VALUE_STRIDE, column);
      [[unroll]] for (uint i = 0u; i < ROW_TILES * COLUMN_TILES; ++i) score[i] = score[i] * args.scale;
      [[dont_unroll]] for (uint k = 0u; k < KEY_DIM / 8u; k += MATRIX_K / 8u) add_scores(k, row, PIECES + k, block * 16u);
    }
    barrier();
    own = PIECES + gl_SubgroupID * RECUR_COOP_OWN_AREA;
    if (takes) put_score(own, OWN_STRIDE);
    subgroupBarrier();
    if (takes) {
      [[dont_unroll]] for (uint i = lane; i < 32u; i += LANES) {
        const uint t = i / 2u, from = own + t * OWN_STRIDE + i % 2u * 2u;
        const vec4 low = uintBitsToFloat(memory[from]), high = uintBitsToFloat(memory[from + 1u]);
        if (row + t < count)
          dvalue_eights[(at + (row + t) * step + column) / 8u + i % 2u] = uvec4(narrow4(low), narrow4(high));
      }
    }
    barrier();
  }
}

void main() {
  if (!find_chunk() || count == 0u) return;
  const bool has_part = part < PARTS;
  own = OWN + gl_SubgroupID * RECUR_COOP_OWN_AREA;  // of those that take squares of the diagonal
  row = gl_SubgroupID % SIXTEENS * 16u;
  block = gl_SubgroupID / SIXTEENS;
  multiplies = block < RECUR_COOP_COLUMN_BLOCKS && block * COLUMN_SQUARES * 16u < KEY_DIM;
  if (item == 0u) mark = UNIT_MARK(unit);
  if (has_part) load_part();
  copy_values(0u);
  copy_doutputs(PIECES);
  barrier();
  if (mark != 0u) return;
  pair_values();
  barrier();
  if (has_part) {
    start_group();
    store_plain();
  }
  barrier();
  take_levels();
  if (odd) mark = 1u;
  barrier();

  copy_doutputs(OUTPUTS);
  take_state(OUTPUTS, CHUNK_KEPT(chunk), ALL_UPPER, args.scale);
  if (RECUR_HAS(RECUR_GRAD_QUERY)) STORE_EIGHTS(dquery_eights, args.dquery, dquery)
  barrier();
  copy_values(0u);
  vec4 leaves[2] = {vec4(0.0), vec4(0.0)};
  [[dont_unroll]] for (uint v = 0u; v < VALUE_DIM; v += PIECE) add_leaves(v, leaves);
  take_state(0u, DSTATE(chunk), ALL_LOWER, 1.0);
  if (RECUR_HAS(RECUR_GRAD_KEY)) STORE_EIGHTS(dkey_eights, args.dkey, dkey)
  [[unroll]] for (uint i = 0u; i < 2u; ++i) memory[PIECES + 2u * item + i] = floatBitsToUint(leaves[i]);
  barrier();
  if (has_part) {
    [[dont_unroll]] for (uint p = 0u; p < WG_X / EIGHTS; ++p) {
      [[unroll]] for (uint i = 0u; i < 2u; ++i) {
        const vec4 x = over[i] * uintBitsToFloat(memory[PIECES + 2u * (p * EIGHTS + eight) + i]);
        [[unroll]] for (uint t = 0u; t < PART; ++t) ddecay[2u * t + i] += x;
      }
    }
    store_halves(TOKENS, false);  // keys decayed to the end
  }
  store_decays();
  barrier();
  store_sums();
  if (RECUR_HAS(RECUR_GRAD_VALUE)) take_values();
  if (item == 0u && mark != 0u) UNIT_MARK(unit) = 1u;
}
