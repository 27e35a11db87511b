// SPDX-License-Identifier: Apache-2.0
// What goes from chunk to chunk of a delta rule: a work-group owns sixteen columns of a state, or of its gradient, of which a
// sub-group has sixteen key dims in matrices, and takes sixteen tokens of products.
#ifndef TESSERA_RECURRENCE_COOPERATIVE_DELTA_SCAN_GLSL
#define TESSERA_RECURRENCE_COOPERATIVE_DELTA_SCAN_GLSL
#define RECUR_AREA RECUR_COOP_DELTA_AREA
#include "recurrence/cooperative/delta.glsl"

layout(std430, binding = 2) readonly buffer ValuePairs { uvec2 value_pairs[]; };

// Rows of sixteen columns: floats, and elements. The state's floats and halves; products of tokens with the state, of keys
// and of others; elements of rows; halves of what is missing, then of what joins the state.
#define FLOATS 5u
#define HALVES 3u
#define STATE_HIGH (KEY_DIM * FLOATS)
#define STATE_LOW (STATE_HIGH + KEY_DIM * HALVES)
#define HELD (STATE_LOW + KEY_DIM * HALVES)
#define ASKED (HELD + TOKENS * FLOATS)
#define ROWS (ASKED + TOKENS * FLOATS)
#define MISSING_HIGH (ROWS + TOKENS * HALVES)
#define MISSING_LOW (MISSING_HIGH + TOKENS * HALVES)
#define JOINS_HIGH MISSING_HIGH
#define JOINS_LOW MISSING_LOW

const uint GROUPS = RECUR_COOP_SUBGROUPS, STATE_ROUNDS = RECUR_COOP_CEIL(KEY_DIM / 16u, GROUPS);
const uint FOURS = RECUR_COOP_CEIL(TOKENS * 4u, WG_X);  // an item's of sixteen columns of all tokens
const uint KEY_SIXTEENS = KEY_DIM / 16u, LEFTS = ROW_TILES * (16u / MATRIX_K);  // matrices of a sixteen
shared uint mark;
uint column;                        // the first one
uint next, next_first, next_count;  // of the chunk that comes next: its place in scratch, and steps
COOPERATIVE_SUM state[STATE_ROUNDS * TILES];
COOPERATIVE_SUM sum[TILES], low[TILES];
// Whether left matrices are asked for some barriers before they are used: never where a sixteen is more than one, for then they
// take compilers minutes, and of 32 lanes only, for with 64 Mesa's compiler for RDNA 3 spills 62 registers. One array has all
// kinds in turn, first keys; then a solution's halves and queries; then rows of keys that join the state, and weights.
const uint HOLDS = RECUR_AHEAD != 0 && AHEAD != 0u && LEFTS == 1u && LANES == 32u ? 1u : 0u;
// Otherwise RECUR_AT_ONCE are, right before (gradients of states on an H200: 15.1 ms by ones, 10.9 by fours).
const uint AT_ONCE = LEFTS == 1u && LANES == 32u ? RECUR_AT_ONCE : 1u;
COOPERATIVE_LEFT ahead[HOLDS != 0u ? RECUR_COOP_MAX(KEY_SIXTEENS, 2u * SIXTEENS * STATE_ROUNDS) : AT_ONCE * LEFTS];
vec3 number[FOURS];  // of an item's tokens: factors since the chunk began and to its end; beta
uvec2 row[FOURS];    // and four columns of a row

// Whether number `group` of those that go over columns has some.
bool find_columns(uint group) {
  lane = gl_SubgroupInvocationID;
  item = gl_SubgroupID * LANES + lane;
  const uint tiles = VALUE_DIM / 16u;
  unit = group / tiles;
  column = group % tiles * 16u;
  sequence = unit / args.heads;
  head = unit % args.heads;
  if (item == 0u) mark = 0u;
  if (sequence >= args.sequences) return false;
  find_sequence();
  return true;
}
uint chunks_of_sequence() { return (end - begin + TOKENS - 1u) / TOKENS; }
// The next chunk is number n of the sequence.
void find_next(uint n) {
  next = (first_slot() + n) * args.heads + head;
  next_first = n * TOKENS;
  next_count = min(end - begin - min(next_first, end - begin), TOKENS);
}
void begin_chunk() {
  chunk = next;
  first = next_first;
  count = next_count;
}
// Whether a chunk is marked: items share them.
void look_for_marks() {
  [[dont_unroll]] for (uint n = item; n < chunks_of_sequence(); n += WG_X)
    odd = odd || CHUNK_MARK((first_slot() + n) * args.heads + head) != 0u;
}

void clear_sum() {
  [[unroll]] for (uint i = 0u; i < TILES; ++i) sum[i] = low[i] = COOPERATIVE_SUM(0.0);
}
// Four columns of a row of elements.
void put_elements(uint at, uint row, uint vector, uvec2 x) {
  memory[at + row * HALVES + vector / 2u][vector % 2u * 2u] = x.x;
  memory[at + row * HALVES + vector / 2u][vector % 2u * 2u + 1u] = x.y;
}
uvec2 put_halves(uint high_at, uint low_at, uint row, uint vector, vec4 x) {
  uvec2 low;
  const uvec2 high = take_halves(x, low);
  put_elements(high_at, row, vector, high);
  put_elements(low_at, row, vector, low);
  return high;
}

// name(): the state begins as `floats` has it, or empty.
#define BEGIN_STATE(name, feature, floats, states)                                                                           \
  void name() {                                                                                                              \
    [[dont_unroll]] for (uint i = item; i < KEY_DIM * 4u; i += WG_X) {                                                       \
      const uint key_dim = i / 4u, vector = i % 4u;                                                                          \
      vec4 x = vec4(0.0);                                                                                                    \
      if (RECUR_HAS(feature)) {                                                                                              \
        const uint at = states.offset + sequence * states.sequence + head * states.head + key_dim * states.row + column +    \
                        4u * vector;                                                                                         \
        [[unroll]] for (uint n = 0u; n < 4u; ++n) x[n] = floats[at + n];                                                     \
      }                                                                                                                      \
      odd = odd || any(isnan(x)) || any(isinf(x));                                                                           \
      memory[key_dim * FLOATS + vector] = floatBitsToUint(x);                                                                \
    }                                                                                                                        \
    barrier();                                                                                                               \
    [[unroll]] for (uint i = 0u; i < STATE_ROUNDS; ++i) {                                                                    \
      const uint n = i * GROUPS + gl_SubgroupID;                                                                             \
      if (n >= KEY_DIM / 16u) continue;                                                                                      \
      [[unroll]] for (uint j = 0u; j < TILES; ++j)                                                                           \
        coopMatLoad(state[i * TILES + j], memory,                                                                            \
                    (n * 16u + j / COLUMN_TILES * MATRIX_M) * FLOATS + j % COLUMN_TILES * MATRIX_N / 4u, FLOATS, kRowMajor); \
    }                                                                                                                        \
  }

void put_state() {
  [[unroll]] for (uint i = 0u; i < STATE_ROUNDS; ++i) {
    const uint n = i * GROUPS + gl_SubgroupID;
    if (n < KEY_DIM / 16u) PUT_SIXTEENS(state, i * TILES, n * 16u * FLOATS, FLOATS)
  }
}
// The last one, a row of key dims for each column.
void save_state() {
  [[dont_unroll]] for (uint i = item; i < KEY_DIM * 4u; i += WG_X) {
    const uint key_dim = i / 4u, vector = i % 4u;
    const vec4 x = four(key_dim * FLOATS + vector);
    odd = odd || any(isnan(x)) || any(isinf(x));
    [[unroll]] for (uint n = 0u; n < 4u; ++n)
      scratch_floats[LAST_STATE(unit) + (column + 4u * vector + n) * KEY_DIM + key_dim] = x[n];
  }
}

// ahead[first ...]: sixteen rows at `a` of scratch, with sixteen terms to a line, or a term to each.
#define ASK_SIXTEENS(first, a, A_BY_TERMS, A_STRIDE)                                                             \
  [[unroll]] for (uint its_i = 0u; its_i < LEFTS; ++its_i) {                                                         \
    const uint its_m = its_i % ROW_TILES, its_k = its_i / ROW_TILES;                                                 \
    if (A_BY_TERMS != 0u) {                                                                                          \
      coopMatLoad(ahead[(first) + its_i], scratch_eights, (a) + its_m * MATRIX_M * (A_STRIDE) + its_k * MATRIX_K / 8u,  \
                  A_STRIDE, kRowMajor);                                                                              \
    } else {                                                                                                         \
      coopMatLoad(ahead[(first) + its_i], scratch_eights, (a) + its_k * MATRIX_K * (A_STRIDE) + its_m * MATRIX_M / 8u,  \
                  A_STRIDE, kColumnMajor);                                                                           \
    }                                                                                                                \
  }
// sums[sum_first ...] += those times sixteen columns of memory, whose lines have a term each.
#define ADD_ASKED(sums, sum_first, first, b)                                                                   \
  [[unroll]] for (uint its_k = 0u; its_k < 16u / MATRIX_K; ++its_k) {                                                \
    [[unroll]] for (uint its_n = 0u; its_n < COLUMN_TILES; ++its_n) {                                                \
      COOPERATIVE_RIGHT right;                                                                                       \
      coopMatLoad(right, memory, (b) + its_k * MATRIX_K * HALVES + its_n * MATRIX_N / 8u, HALVES, kRowMajor);        \
      [[unroll]] for (uint its_m = 0u; its_m < ROW_TILES; ++its_m)                                                   \
        sums[(sum_first) + its_m * COLUMN_TILES + its_n] =                                                           \
            coopMatMulAdd(ahead[(first) + its_k * ROW_TILES + its_m], right,                                          \
                          sums[(sum_first) + its_m * COLUMN_TILES + its_n]);                                         \
    }                                                                                                                \
  }
// Sixteens that a sub-group has of a chunk, ASK(first, n, chunk); and their use, ADD(n, first).
#define ASK_AHEAD(sixteens, first, chunk, ASK) \
  if (HOLDS != 0u) [[unroll]] for (uint n = 0u; n < (sixteens); ++n) ASK((first) + n, n, chunk)
#define ADD_SIXTEENS_AHEAD(sixteens, its_first, ASK, ADD)                                  \
  if (HOLDS != 0u) {                                                                       \
    [[unroll]] for (uint n = 0u; n < (sixteens); ++n) {                                    \
      ADD(n, (its_first) + n)                                                              \
    }                                                                                      \
  } else if ((sixteens) % AT_ONCE == 0u) {                                                 \
    [[dont_unroll]] for (uint n = 0u; n < (sixteens); n += AT_ONCE) {                      \
      [[unroll]] for (uint its = 0u; its < AT_ONCE; ++its) ASK(its* LEFTS, n + its, chunk) \
      [[unroll]] for (uint its = 0u; its < AT_ONCE; ++its) {                               \
        ADD(n + its, its* LEFTS)                                                           \
      }                                                                                    \
    }                                                                                      \
  } else {                                                                                 \
    [[dont_unroll]] for (uint n = 0u; n < (sixteens); ++n) {                               \
      ASK(0u, n, chunk)                                                                    \
      ADD(n, 0u)                                                                           \
    }                                                                                      \
  }

// Which sixteen of tokens a sub-group has, of keys or of a solution.
bool takes_keys() { return gl_SubgroupID < SIXTEENS; }
bool takes_solution() { return gl_SubgroupID >= SIXTEENS && gl_SubgroupID < 2u * SIXTEENS; }
#define OWN_SIXTEEN (gl_SubgroupID % SIXTEENS * 16u)

#define ASK_KEYS(first, n, chunk) \
  ASK_SIXTEENS(first, CHUNK_ROWS(chunk) + OWN_SIXTEEN * EIGHTS + 2u * (n), 1u, EIGHTS)
// A square's row, or column, and of the next square, its low half.
#define ASK_ROW_OF(square, first, n, chunk)                                                                            \
  ASK_SIXTEENS(first, CHUNK_SQUARE(chunk, (square) + (n) / SIXTEENS) + OWN_SIXTEEN * ROW_EIGHTS + (n) % SIXTEENS * 2u, \
               1u, ROW_EIGHTS)
#define ASK_COLUMN_OF(square, first, n, chunk)                                                                            \
  ASK_SIXTEENS(first,                                                                                                     \
               CHUNK_SQUARE(chunk, (square) + (n) / SIXTEENS) + (n) % SIXTEENS * 16u * ROW_EIGHTS + OWN_SIXTEEN / 8u, 0u, \
               ROW_EIGHTS)
#define ASK_SOLUTION(first, n, chunk) ASK_ROW_OF(SOLUTION, first, n, chunk)
// A sub-group's key dims of sixteen tokens, of round i.
#define ASK_JOINS(first, n, chunk) \
  ASK_SIXTEENS(first, CHUNK_ROWS(chunk) + (n)*16u * EIGHTS + 2u * (i * GROUPS + gl_SubgroupID), 0u, EIGHTS)
#define ASK_JOINS_AHEAD(begin, ASK)                                  \
  [[unroll]] for (uint i = 0u; i < STATE_ROUNDS; ++i) {              \
    if (i * GROUPS + gl_SubgroupID < KEY_SIXTEENS)                   \
      ASK_AHEAD(SIXTEENS, ((begin)*STATE_ROUNDS + i) * SIXTEENS, chunk, ASK) \
  }

void put_sum(uint to) {
  [[unroll]] for (uint i = 0u; i < TILES; ++i) sum[i] = sum[i] + low[i];
  PUT_SIXTEENS(sum, 0u, to + OWN_SIXTEEN * FLOATS, FLOATS)
}
// The state, of both halves, times keys.
#define ADD_HELD(n, first)                                        \
  ADD_ASKED(sum, 0u, first, STATE_HIGH + (n)*16u * HALVES)        \
  ADD_ASKED(low, 0u, first, STATE_LOW + (n)*16u * HALVES)
void take_held() {
  clear_sum();
  ADD_SIXTEENS_AHEAD(KEY_SIXTEENS, 0u, ASK_KEYS, ADD_HELD)
  put_sum(HELD);
}
// The solution times what is missing, less that of both low halves.
#define ADD_SOLVED(n, first)                                                                                     \
  if ((n) < SIXTEENS) {                                                                                                \
    ADD_ASKED(sum, 0u, first, MISSING_HIGH + (n)*16u * HALVES)                                                   \
    ADD_ASKED(low, 0u, first, MISSING_LOW + (n)*16u * HALVES)                                                    \
  } else {                                                                                                             \
    ADD_ASKED(low, 0u, first, MISSING_HIGH + ((n)-SIXTEENS) * 16u * HALVES)                                      \
  }
#define TAKE_SOLVED(ASK)                                               \
  {                                                                    \
    clear_sum();                                                       \
    ADD_SIXTEENS_AHEAD(2u * SIXTEENS, 0u, ASK, ADD_SOLVED)      \
    put_sum(HELD);                                                     \
  }
// Weights times rows.
#define ADD_WEIGHED(n, first) ADD_ASKED(sum, 0u, first, ROWS + (n)*16u * HALVES)
#define TAKE_WEIGHED(its_first, ASK, to)                                          \
  {                                                                    \
    clear_sum();                                                       \
    ADD_SIXTEENS_AHEAD(SIXTEENS, its_first, ASK, ADD_WEIGHED)          \
    put_sum(to);                                                       \
  }

// What the state leaves behind the chunk; what joins it, in halves, by keys or by queries that were asked for.
float over;
void decay_state() {
  [[unroll]] for (uint i = 0u; i < STATE_ROUNDS * TILES; ++i) state[i] = state[i] * over;
}
#define ADD_JOINS(high_at, low_at, n, first)                           \
  ADD_ASKED(state, i* TILES, first, (high_at) + (n)*16u * HALVES)      \
  ADD_ASKED(state, i* TILES, first, (low_at) + (n)*16u * HALVES)
#define ADD_KEY_JOINS(n, first) ADD_JOINS(JOINS_HIGH, JOINS_LOW, n, first)
#define JOIN_STATE(begin, ASK, ADD)                                           \
  [[unroll]] for (uint i = 0u; i < STATE_ROUNDS; ++i) {                       \
    if (i * GROUPS + gl_SubgroupID < KEY_SIXTEENS) {                          \
      ADD_SIXTEENS_AHEAD(SIXTEENS, ((begin)*STATE_ROUNDS + i) * SIXTEENS, ASK, ADD)              \
    }                                                                         \
  }

// Of an item's fours the step and the columns.
#define EACH_FOUR(r) [[unroll]] for (uint r = 0u; r < FOURS; ++r) if (item + r * WG_X < TOKENS * 4u)
#define STEP_OF(r) ((item + (r)*WG_X) / 4u)
#define VECTOR_OF(r) ((item + (r)*WG_X) % 4u)
vec4 found(uint at, uint r) { return four(at + STEP_OF(r) * FLOATS + VECTOR_OF(r)); }
void put_halves_of(uint high_at, uint low_at, uint r, vec4 x) { put_halves(high_at, low_at, STEP_OF(r), VECTOR_OF(r), x); }

void ask_numbers() {
  EACH_FOUR(r) {
    const uint at = CHUNK_NUMBERS(next) + STEP_OF(r);
    number[r] = vec3(scratch_floats[at], scratch_floats[at + TOKENS], scratch_floats[at + 2u * TOKENS]);
  }
}
// Four columns of rows of an operand, zeros behind the last.
#define ASK_ROWS(to, rows, pairs)                                                                             \
  {                                                                                                           \
    const uint step = row_step(rows), at = first_row(rows) + next_first * step + column;                      \
    EACH_FOUR(r) {                                                                                            \
      to[r] = uvec2(0u);                                                                                      \
      if (STEP_OF(r) < next_count) to[r] = pairs[(at + STEP_OF(r) * step) / 4u + VECTOR_OF(r)];               \
    }                                                                                                         \
  }

// Forth: values less what the state holds for keys; then what tokens add to it for their keys, decayed to the chunk's end.
void take_missing() {
  EACH_FOUR(r) put_halves_of(MISSING_HIGH, MISSING_LOW, r, widen4(row[r]) - number[r].x * found(HELD, r));
}
uvec2 take_change(uint r) {
  const vec4 x = number[r].z * found(HELD, r);
  odd = odd || too_large(x);
  put_halves_of(JOINS_HIGH, JOINS_LOW, r, number[r].y * x);
  return narrow4(x);
}

#endif  // TESSERA_RECURRENCE_COOPERATIVE_DELTA_SCAN_GLSL
