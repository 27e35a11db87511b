// SPDX-License-Identifier: Apache-2.0
// What     Outputs and states of a delta rule, from chunk to chunk of 64 tokens (delta.glsl).
// Who      A work-group owns sixteen columns of a sequence in a head; a sub-group has sixteen key dims of their state in matrices,
//          and takes sixteen tokens of products.
// Memory   Values once; rows of keys and queries, and squares, once for each sixteen columns; outputs once.
// Numerics Float sums of products of DTYPE. The state, what is missing and changes are sums of two elements in products; rounded
//          to one are weights and, for outputs, changes and the state. Sequences of which a chunk is marked, or where something
//          is too large, are marked.
// Assumes  recurrence/cooperative/delta_chunks has run; its assumptions.
//
// Loops over arrays of matrices have constant bounds: NVIDIA's driver moves arrays to memory where it can't unroll.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#define RECUR_AREA RECUR_COOP_DELTA_AREA
#include "recurrence/cooperative/delta.glsl"

layout(std430, binding = 2) readonly buffer ValuePairs { uvec2 value_pairs[]; };
layout(std430, binding = 6) readonly buffer Initial { float initial[]; };
layout(std430, binding = 7) writeonly buffer Outputs { uvec2 output_pairs[]; };

// Rows of sixteen columns: floats, and elements. The state's floats and halves; products of tokens with the state, of keys
// and of queries; halves of what is missing, then of changes, decayed to the chunk's end; and changes as they are.
#define FLOATS 5u
#define HALVES 3u
#define STATE_HIGH (KEY_DIM * FLOATS)
#define STATE_LOW (STATE_HIGH + KEY_DIM * HALVES)
#define HELD (STATE_LOW + KEY_DIM * HALVES)
#define ASKED (HELD + TOKENS * FLOATS)
#define MISSING_HIGH (ASKED + TOKENS * FLOATS)
#define MISSING_LOW (MISSING_HIGH + TOKENS * HALVES)
#define CHANGE_HIGH MISSING_HIGH
#define CHANGE_LOW MISSING_LOW
#define CHANGE (MISSING_LOW + TOKENS * HALVES)

const uint GROUPS = RECUR_COOP_SUBGROUPS;
const uint STATE_ROUNDS = RECUR_COOP_CEIL(KEY_DIM / 16u, GROUPS), ROUNDS = RECUR_COOP_CEIL(SIXTEENS, GROUPS),
           BOTH_ROUNDS = RECUR_COOP_CEIL(2u * SIXTEENS, GROUPS);
shared uint mark;
uint column;  // the first one
COOPERATIVE_SUM state[STATE_ROUNDS * TILES];
COOPERATIVE_SUM sum[TILES];

void clear_sum() {
  [[unroll]] for (uint i = 0u; i < TILES; ++i) sum[i] = COOPERATIVE_SUM(0.0);
}
vec4 four(uint at) { return uintBitsToFloat(memory[at]); }
// Four columns of a row of elements.
void put_halves(uint high_at, uint low_at, uint row, uint vector, vec4 x) {
  uvec2 low;
  const uvec2 high = take_halves(x, low);
  const uint at = row * HALVES + vector / 2u, half_at = vector % 2u * 2u;
  memory[high_at + at][half_at] = high.x;
  memory[high_at + at][half_at + 1u] = high.y;
  memory[low_at + at][half_at] = low.x;
  memory[low_at + at][half_at + 1u] = low.y;
}

void put_state() {
  [[unroll]] for (uint i = 0u; i < STATE_ROUNDS; ++i) {
    const uint n = i * GROUPS + gl_SubgroupID;
    if (n < KEY_DIM / 16u) PUT_SIXTEENS(state, i * TILES, n * 16u * FLOATS, FLOATS)
  }
}
void split_state() {
  [[dont_unroll]] for (uint i = item; i < KEY_DIM * 4u; i += WG_X)
    put_halves(STATE_HIGH, STATE_LOW, i / 4u, i % 4u, four(i / 4u * FLOATS + i % 4u));
}
// The state times keys, of both halves, and times queries.
void take_held() {
  [[unroll]] for (uint i = 0u; i < BOTH_ROUNDS; ++i) {
    const uint n = i * GROUPS + gl_SubgroupID;
    if (n >= 2u * SIXTEENS) continue;
    const uint rows = CHUNK_ROWS(chunk) + n * 16u * EIGHTS;
    clear_sum();
    [[dont_unroll]] for (uint k = 0u; k < KEY_DIM; k += 16u) {
      ADD_SIXTEENS(sum, 0u, scratch_eights, rows + k / 8u, 1u, EIGHTS, memory, STATE_HIGH + k * HALVES, 0u, HALVES)
      if (n < SIXTEENS)
        ADD_SIXTEENS(sum, 0u, scratch_eights, rows + k / 8u, 1u, EIGHTS, memory, STATE_LOW + k * HALVES, 0u, HALVES)
    }
    PUT_SIXTEENS(sum, 0u, HELD + n * 16u * FLOATS, FLOATS)
  }
}
void take_missing() {
  const uint step = row_step(args.value), at = first_row(args.value) + first * step + column;
  [[dont_unroll]] for (uint i = item; i < TOKENS * 4u; i += WG_X) {
    const uint t = i / 4u, vector = i % 4u;
    vec4 x = vec4(0.0);
    if (t < count) x = widen4(value_pairs[(at + t * step) / 4u + vector]);
    x -= scratch_floats[CHUNK_NUMBERS(chunk) + t] * four(HELD + t * FLOATS + vector);
    put_halves(MISSING_HIGH, MISSING_LOW, t, vector, x);
  }
}
// The solution times what is missing, less that of both low halves.
void take_solved() {
  [[unroll]] for (uint i = 0u; i < ROUNDS; ++i) {
    const uint n = i * GROUPS + gl_SubgroupID;
    if (n >= SIXTEENS) continue;
    const uint rows = n * 16u * ROW_EIGHTS;
    clear_sum();
    [[dont_unroll]] for (uint s = 0u; s <= n; ++s) {
      const uint high = CHUNK_SQUARE(chunk, 0u) + rows + 2u * s, low = CHUNK_SQUARE(chunk, 1u) + rows + 2u * s;
      const uint from = s * 16u * HALVES;
      ADD_SIXTEENS(sum, 0u, scratch_eights, high, 1u, ROW_EIGHTS, memory, MISSING_HIGH + from, 0u, HALVES)
      ADD_SIXTEENS(sum, 0u, scratch_eights, low, 1u, ROW_EIGHTS, memory, MISSING_HIGH + from, 0u, HALVES)
      ADD_SIXTEENS(sum, 0u, scratch_eights, high, 1u, ROW_EIGHTS, memory, MISSING_LOW + from, 0u, HALVES)
    }
    PUT_SIXTEENS(sum, 0u, HELD + n * 16u * FLOATS, FLOATS)
  }
}
void take_changes() {
  const uint numbers = CHUNK_NUMBERS(chunk);
  [[dont_unroll]] for (uint i = item; i < TOKENS * 4u; i += WG_X) {
    const uint t = i / 4u, vector = i % 4u;
    const vec4 x = scratch_floats[numbers + 2u * TOKENS + t] * four(HELD + t * FLOATS + vector);
    odd = odd || !all(lessThanEqual(abs(x), vec4(LARGEST)));
    put_halves(CHANGE_HIGH, CHANGE_LOW, t, vector, scratch_floats[numbers + TOKENS + t] * x);
    const uvec2 rounded = narrow4(x);
    memory[CHANGE + t * HALVES + vector / 2u][vector % 2u * 2u] = rounded.x;
    memory[CHANGE + t * HALVES + vector / 2u][vector % 2u * 2u + 1u] = rounded.y;
  }
}
// Weights times changes, and what changes make of the state.
void take_outputs() {
  [[unroll]] for (uint i = 0u; i < ROUNDS; ++i) {
    const uint n = i * GROUPS + (GROUPS - 1u - gl_SubgroupID);  // those that have no state come first
    if (n >= SIXTEENS) continue;
    clear_sum();
    [[dont_unroll]] for (uint s = 0u; s <= n; ++s)
      ADD_SIXTEENS(sum, 0u, scratch_eights, CHUNK_SQUARE(chunk, 2u) + n * 16u * ROW_EIGHTS + 2u * s, 1u, ROW_EIGHTS, memory,
                   CHANGE + s * 16u * HALVES, 0u, HALVES)
    PUT_SIXTEENS(sum, 0u, HELD + n * 16u * FLOATS, FLOATS)
  }
  const float over = scratch_floats[CHUNK_NUMBERS(chunk) + TOKENS - 1u];
  [[unroll]] for (uint i = 0u; i < STATE_ROUNDS; ++i) {
    const uint n = i * GROUPS + gl_SubgroupID;
    if (n >= KEY_DIM / 16u) continue;
    [[unroll]] for (uint j = 0u; j < TILES; ++j) state[i * TILES + j] = state[i * TILES + j] * over;
    [[dont_unroll]] for (uint s = 0u; s < SIXTEENS; ++s) {
      const uint rows = CHUNK_ROWS(chunk) + s * 16u * EIGHTS + 2u * n;
      ADD_SIXTEENS(state, i * TILES, scratch_eights, rows, 0u, EIGHTS, memory, CHANGE_HIGH + s * 16u * HALVES, 0u, HALVES)
      ADD_SIXTEENS(state, i * TILES, scratch_eights, rows, 0u, EIGHTS, memory, CHANGE_LOW + s * 16u * HALVES, 0u, HALVES)
    }
  }
}
void store_outputs() {
  const uint step = row_step(args.result), at = first_row(args.result) + first * step + column;
  [[dont_unroll]] for (uint i = item; i < count * 4u; i += WG_X) {
    const uint t = i / 4u, vector = i % 4u;
    const vec4 x = scratch_floats[CHUNK_NUMBERS(chunk) + t] * four(ASKED + t * FLOATS + vector) +
                   four(HELD + t * FLOATS + vector);
    output_pairs[(at + t * step) / 4u + vector] = narrow4(args.scale * x);
  }
}

void main() {
  lane = gl_SubgroupInvocationID;
  item = gl_SubgroupID * LANES + lane;
  const uint tiles = VALUE_DIM / 16u, group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  unit = group / tiles;
  column = group % tiles * 16u;
  sequence = unit / args.heads;
  head = unit % args.heads;
  if (sequence >= args.sequences) return;
  find_sequence();
  if (item == 0u) mark = 0u;
  [[dont_unroll]] for (uint i = item; i < KEY_DIM * 4u; i += WG_X) {
    const uint key_dim = i / 4u, vector = i % 4u;
    vec4 x = vec4(0.0);
    if (RECUR_HAS(RECUR_INITIAL)) {
      const uint at = args.initial_state.offset + sequence * args.initial_state.sequence + head * args.initial_state.head +
                      key_dim * args.initial_state.row + column + 4u * vector;
      [[unroll]] for (uint n = 0u; n < 4u; ++n) x[n] = initial[at + n];
    }
    odd = odd || any(isnan(x)) || any(isinf(x));
    memory[key_dim * FLOATS + vector] = floatBitsToUint(x);
  }
  barrier();
  [[unroll]] for (uint i = 0u; i < STATE_ROUNDS; ++i) {
    const uint n = i * GROUPS + gl_SubgroupID;
    if (n >= KEY_DIM / 16u) continue;
    [[unroll]] for (uint j = 0u; j < TILES; ++j)
      coopMatLoad(state[i * TILES + j], memory,
                  (n * 16u + j / COLUMN_TILES * MATRIX_M) * FLOATS + j % COLUMN_TILES * MATRIX_N / 4u, FLOATS, kRowMajor);
  }
  const uint chunks = (end - begin + TOKENS - 1u) / TOKENS, base = first_slot() * args.heads + head;
  [[dont_unroll]] for (uint n = 0u; n < chunks; ++n) {
    chunk = base + n * args.heads;
    first = n * TOKENS;
    count = min(end - begin - first, TOKENS);
    odd = odd || CHUNK_MARK(chunk) != 0u;
    split_state();
    barrier();
    take_held();
    barrier();
    take_missing();
    barrier();
    take_solved();
    barrier();
    take_changes();
    barrier();
    take_outputs();
    put_state();
    barrier();
    store_outputs();
  }
  [[dont_unroll]] for (uint i = item; i < KEY_DIM * 4u; i += WG_X) {
    const uint key_dim = i / 4u, vector = i % 4u;
    const vec4 x = four(key_dim * FLOATS + vector);
    odd = odd || any(isnan(x)) || any(isinf(x));
    [[unroll]] for (uint n = 0u; n < 4u; ++n)
      scratch_floats[LAST_STATE(unit) + (column + 4u * vector + n) * KEY_DIM + key_dim] = x[n];
  }
  if (odd) mark = 1u;
  barrier();
  if (item == 0u && mark != 0u) UNIT_MARK(unit) = 1u;
}
