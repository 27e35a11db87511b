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
#define RECUR_AHEAD 1
#define RECUR_AT_ONCE 1u
#include "recurrence/cooperative/delta_scan.glsl"

layout(std430, binding = 6) readonly buffer Initial { float initial[]; };
layout(std430, binding = 7) writeonly buffer Outputs { uvec2 output_pairs[]; };

BEGIN_STATE(begin_state, RECUR_INITIAL, initial, args.initial_state)

void split_state() {
  [[dont_unroll]] for (uint i = item; i < KEY_DIM * 4u; i += WG_X)
    put_halves(STATE_HIGH, STATE_LOW, i / 4u, i % 4u, four(i / 4u * FLOATS + i % 4u));
}
#define ASK_QUERIES(first, n, chunk) \
  ASK_SIXTEENS(first, CHUNK_ROWS(chunk) + (TOKENS + OWN_SIXTEEN) * EIGHTS + 2u * (n), 1u, EIGHTS)
#define WEIGHTS (STATE_ROUNDS * SIXTEENS)  // where they are behind what joins the state
#define ASK_WEIGHTS(first, n, chunk) ASK_ROW_OF(OUTPUT_WEIGHTS, first, n, chunk)
// Queries times the state, of one half.
#define ADD_QUERIES(n, first) ADD_ASKED(sum, 0u, first, STATE_HIGH + (n)*16u * HALVES)
void take_asked() {
  clear_sum();
  ADD_SIXTEENS_AHEAD(KEY_SIXTEENS, 0u, ASK_QUERIES, ADD_QUERIES)
  put_sum(ASKED);
}
void take_changes() {
  EACH_FOUR(r) put_elements(ROWS, STEP_OF(r), VECTOR_OF(r), take_change(r));
}
void store_outputs() {
  const uint step = row_step(args.result), at = first_row(args.result) + first * step + column;
  EACH_FOUR(r) {
    const vec4 x = number[r].x * found(ASKED, r) + found(HELD, r);
    if (STEP_OF(r) < count) output_pairs[(at + STEP_OF(r) * step) / 4u + VECTOR_OF(r)] = narrow4(args.scale * x);
  }
}

void go_forth() {
  const uint chunks = chunks_of_sequence();
  find_next(0u);
  if (takes_keys()) ASK_AHEAD(KEY_SIXTEENS, 0u, next, ASK_KEYS)
  ask_numbers();
  ASK_ROWS(row, args.value, value_pairs)
  begin_state();
  [[dont_unroll]] for (uint step = 0u; step < chunks; ++step) {
    begin_chunk();
    find_next(min(step + 1u, chunks - 1u));
    over = scratch_floats[CHUNK_NUMBERS(chunk) + TOKENS - 1u];
    split_state();
    barrier();
    if (takes_keys()) take_held();
    if (takes_keys()) ASK_AHEAD(KEY_SIXTEENS, 0u, chunk, ASK_QUERIES)
    if (takes_solution()) ASK_AHEAD(2u * SIXTEENS, 0u, chunk, ASK_SOLUTION)
    barrier();
    take_missing();
    ASK_ROWS(row, args.value, value_pairs)
    barrier();
    if (takes_keys()) take_asked();
    if (takes_solution()) TAKE_SOLVED(ASK_SOLUTION)
    ASK_JOINS_AHEAD(0u, ASK_JOINS)
    if (takes_solution()) ASK_AHEAD(SIXTEENS, WEIGHTS, chunk, ASK_WEIGHTS)
    barrier();
    take_changes();
    barrier();
    if (takes_solution()) TAKE_WEIGHED(WEIGHTS, ASK_WEIGHTS, HELD)
    decay_state();
    JOIN_STATE(0u, ASK_JOINS, ADD_KEY_JOINS)
    if (takes_keys()) ASK_AHEAD(KEY_SIXTEENS, 0u, next, ASK_KEYS)
    put_state();
    barrier();
    store_outputs();
    ask_numbers();
  }
  look_for_marks();
}

void main() {
  const bool has = find_columns(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
  if (has) {
    go_forth();
    save_state();
  }
  if (odd) mark = 1u;
  barrier();
  if (item == 0u && has && mark != 0u) UNIT_MARK(unit) = 1u;
}
