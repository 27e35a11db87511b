// SPDX-License-Identifier: Apache-2.0
// Delta rules by chunks of 64 tokens. With a_t the factors of tokens, d_t their products since the chunk began, h the state
// before it and u_t what token t adds to the state for its key,
//   u_t = beta_t (value_t - d_t h^T key_t - sum of d_t / d_s (key_t . key_s) u_s over s < t)
// which is a system of equations with a lower triangle, the same for all columns. Its solution is kept without beta, whose
// numbers may be small: it is that of 1 + A beta, A the factors of u_s above, and its diagonal is of ones.
//   u = beta solution (value - d h^T key)
//   output_t = d_t h^T query_t + sum of weight[t,s] u_s over s <= t,  weight[t,s] = d_t / d_s (query_t . key_s)
// The gradient of what beta multiplies is the transposed solution of 1 + beta A times that of u, for it is known where beta is 0,
// too.
// d_t / d_s is the product of the factors between them: none is above 1 here, and nothing overflows. Numbers that decide about
// what comes behind are sums of two elements.
#ifndef TESSERA_RECURRENCE_COOPERATIVE_DELTA_GLSL
#define TESSERA_RECURRENCE_COOPERATIVE_DELTA_GLSL
#include "lib/cooperative/element.glsl"
#define RECUR_OUTPUTS 0
#ifndef RECUR_ARGS_BINDING
#define RECUR_ARGS_BINDING 11
#endif
#include "recurrence/cooperative/chunks.glsl"

TYPED_INPUT(beta, 10)

#define ROW_EIGHTS (TOKENS / 8u)  // of a square's row
#define VALUE_EIGHTS (VALUE_DIM / 8u)
// In scratch, in vectors: rows of keys, then of queries, in the order of steps, with zeros behind the last; weights, the
// solution's two halves and, for gradients, those of the solution whose rows have beta. In floats: factors of tokens since the
// chunk began, and to its end; beta.
#define CHUNK_ROWS(chunk) (args.span_states + (chunk)*2u * TOKENS * EIGHTS)
#define CHUNK_SQUARE(chunk, square) (args.kept + ((chunk) * (3u + 2u * GOES_BACK) + (square)) * TOKENS * ROW_EIGHTS)
#define OUTPUT_WEIGHTS 0u
#define SOLUTION 1u
#define SOLUTION_BACK 3u
#define CHUNK_NUMBERS(chunk) (args.span_factors + (chunk)*3u * TOKENS)
// For gradients, too: a state, or its gradient, a row for each key dim, in floats and then in elements; rows of changes; and rows
// of the gradients of what those are of beta, and of those of outputs. In floats: of sixteen columns of each, shares of the
// gradients of beta.
#define KEPT_STATE(begin, chunk) ((begin) + (chunk) * (STATE_SIZE / 8u * 3u))
#define STATE_ELEMENTS (STATE_SIZE / 4u)
#define CHUNK_CHANGES(chunk) (args.changes + (chunk)*TOKENS * VALUE_EIGHTS)
#define CHUNK_SLOPES(chunk) (args.dchanges + (chunk)*2u * TOKENS * VALUE_EIGHTS)
#define CHUNK_GIVEN(chunk) (CHUNK_SLOPES(chunk) + TOKENS * VALUE_EIGHTS)
#define BETA_SHARES(chunk, tile) (args.beta_shares + ((chunk) * (VALUE_DIM / 16u) + (tile)) * TOKENS)

const uint ROW_TILES = 16u / MATRIX_M, COLUMN_TILES = 16u / MATRIX_N, TILES = ROW_TILES * COLUMN_TILES;

// sum[first ...] += sixteen rows at `a` of one memory times sixteen columns at `b` of the other, over sixteen terms. By terms: a
// row (or column) to a line; otherwise a line has a term of all of them.
#define ADD_SIXTEENS(sum, first, left_memory, a, A_BY_TERMS, A_STRIDE, right_memory, b, B_BY_TERMS, B_STRIDE)                         \
  [[unroll]] for (uint its_k = 0u; its_k < 16u / MATRIX_K; ++its_k) {                                                                 \
    COOPERATIVE_LEFT left[ROW_TILES];                                                                                                 \
    [[unroll]] for (uint its_m = 0u; its_m < ROW_TILES; ++its_m) {                                                                    \
      if (A_BY_TERMS != 0u) {                                                                                                         \
        coopMatLoad(left[its_m], left_memory, (a) + its_m * MATRIX_M * (A_STRIDE) + its_k * MATRIX_K / 8u, A_STRIDE, kRowMajor);      \
      } else {                                                                                                                        \
        coopMatLoad(left[its_m], left_memory, (a) + its_k * MATRIX_K * (A_STRIDE) + its_m * MATRIX_M / 8u, A_STRIDE, kColumnMajor);   \
      }                                                                                                                               \
    }                                                                                                                                 \
    [[unroll]] for (uint its_n = 0u; its_n < COLUMN_TILES; ++its_n) {                                                                 \
      COOPERATIVE_RIGHT right;                                                                                                        \
      if (B_BY_TERMS != 0u) {                                                                                                         \
        coopMatLoad(right, right_memory, (b) + its_n * MATRIX_N * (B_STRIDE) + its_k * MATRIX_K / 8u, B_STRIDE, kColumnMajor);        \
      } else {                                                                                                                        \
        coopMatLoad(right, right_memory, (b) + its_k * MATRIX_K * (B_STRIDE) + its_n * MATRIX_N / 8u, B_STRIDE, kRowMajor);           \
      }                                                                                                                               \
      [[unroll]] for (uint its_m = 0u; its_m < ROW_TILES; ++its_m)                                                                    \
        sum[(first) + its_m * COLUMN_TILES + its_n] = coopMatMulAdd(left[its_m], right, sum[(first) + its_m * COLUMN_TILES + its_n]); \
    }                                                                                                                                 \
  }
#define PUT_SIXTEENS(sum, first, to, STRIDE)                                                                                             \
  [[unroll]] for (uint its_i = 0u; its_i < TILES; ++its_i)                                                                               \
    coopMatStore(sum[(first) + its_i], memory, (to) + its_i / COLUMN_TILES * MATRIX_M * (STRIDE) + its_i % COLUMN_TILES * MATRIX_N / 4u, \
                 STRIDE, kRowMajor);

// The factor of the chunk's step t; 1 behind the last one.
float step_factor(uint t) {
  float log_decay = 0.0;
  if (t < count && RECUR_HAS(RECUR_GATE))
    log_decay = load_g_steps(first_row(args.g) + (first + t) * row_step(args.g), 0u, 1u, args.types >> RECUR_TYPE_G & 3u).x;
  return factors_of(vec4(log_decay)).x;
}

vec4 four(uint at) { return uintBitsToFloat(memory[at]); }
bool too_large(vec4 x) { return !all(lessThanEqual(abs(x), vec4(LARGEST))); }

// Four floats as the sum of two elements each; what is too large is marked.
uvec2 take_halves(vec4 x, out uvec2 low) {
  odd = odd || too_large(x);
  const uvec2 high = narrow4(x);
  low = narrow4(x - widen4(high));
  return high;
}

#endif  // TESSERA_RECURRENCE_COOPERATIVE_DELTA_GLSL
