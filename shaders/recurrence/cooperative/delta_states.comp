// SPDX-License-Identifier: Apache-2.0
// What     Of each chunk of 64 tokens of a delta rule (delta.glsl) the state h before it and the changes u of its tokens; the
//          gradient D of the state behind it, those of what the changes are of, c, and those of values. With e_t the factors to
//          the chunk's end and d_t those since it began,
//            c = solution^T (scale weights^T grad_output + e D^T key), grad_value = beta c
//            D before the chunk = decay D + query (scale d grad_output)^T - key (beta d c)^T
// Who      A work-group owns sixteen columns of a sequence in a head, forth or back (delta_scan.glsl): both ways side by side,
//          for what waits for memory and for itself leaves room for another.
// Memory   Rows of keys, those of queries back, and squares, once for each sixteen columns; values, forth and back, gradients of
//          outputs and of values once; to scratch states in floats and elements, changes, their gradients and rows of those of
//          outputs.
// Numerics Float sums of products of DTYPE. States, what is missing, changes and what leaves states are sums of two elements in
//          products; rounded to one are weights. Sequences of which a chunk is marked, or where something is too large, are
//          marked.
// Assumes  recurrence/cooperative/delta_chunks has run; its assumptions.
//
// Loops over arrays of matrices have constant bounds: NVIDIA's driver moves arrays to memory where it can't unroll.
#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#define RECUR_ARGS_BINDING 12
#define RECUR_AHEAD 0
#define RECUR_AT_ONCE 4u
#include "recurrence/cooperative/delta_scan.glsl"

layout(std430, binding = 6) readonly buffer Initial { float initial[]; };
layout(std430, binding = 7) readonly buffer OutputGradients { uvec2 doutput_pairs[]; };
layout(std430, binding = 8) readonly buffer FinalGradients { float dfinal[]; };
layout(std430, binding = 11) writeonly buffer ValueGradients { uvec2 dvalue_pairs[]; };

// Of gradients of outputs, decayed from the chunk's beginning, halves: where those of what is missing and rows have been.
#define DECAYED_HIGH ASKED
#define DECAYED_LOW (ASKED + TOKENS * HALVES)

BEGIN_STATE(begin_state, RECUR_INITIAL, initial, args.initial_state)
BEGIN_STATE(begin_gradient, RECUR_FINAL, dfinal, args.final_state)

// In halves, and to scratch.
void keep_state(uint to) {
  [[dont_unroll]] for (uint i = item; i < KEY_DIM * 4u; i += WG_X) {
    const uint key_dim = i / 4u, vector = i % 4u, at = (key_dim * VALUE_DIM + column) / 4u + vector;
    const vec4 x = four(key_dim * FLOATS + vector);
    scratch_vectors[to + at] = x;
    scratch_pairs[2u * (to + STATE_ELEMENTS) + at] = put_halves(STATE_HIGH, STATE_LOW, key_dim, vector, x);
  }
}
// An item's four, as elements, to rows of scratch.
void keep_row(uint rows, uint r, uvec2 x) {
  scratch_pairs[2u * (rows + STEP_OF(r) * VALUE_EIGHTS) + column / 4u + VECTOR_OF(r)] = x;
}

void take_changes() {
  EACH_FOUR(r) keep_row(CHUNK_CHANGES(chunk), r, take_change(r));
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
    keep_state(KEPT_STATE(args.states, chunk));
    barrier();
    if (takes_keys()) take_held();
    if (takes_solution()) ASK_AHEAD(2u * SIXTEENS, 0u, chunk, ASK_SOLUTION)
    barrier();
    take_missing();
    ASK_ROWS(row, args.value, value_pairs)
    barrier();
    if (takes_solution()) TAKE_SOLVED(ASK_SOLUTION)
    ASK_JOINS_AHEAD(0u, ASK_JOINS)
    barrier();
    take_changes();
    ask_numbers();
    barrier();
    decay_state();
    JOIN_STATE(0u, ASK_JOINS, ADD_KEY_JOINS)
    if (takes_keys()) ASK_AHEAD(KEY_SIXTEENS, 0u, next, ASK_KEYS)
    put_state();
    barrier();
  }
  look_for_marks();
}

// Back `row` is of gradients of outputs, `value` of values.
uvec2 value[FOURS];
#define ASK_SOLUTION_BACK(first, n, chunk) ASK_COLUMN_OF(SOLUTION_BACK, first, n, chunk)
#define ASK_WEIGHTS(first, n, chunk) ASK_COLUMN_OF(OUTPUT_WEIGHTS, first, n, chunk)
#define ASK_QUERY_JOINS(first, n, chunk) \
  ASK_SIXTEENS(first, CHUNK_ROWS(chunk) + (TOKENS + (n)*16u) * EIGHTS + 2u * (i * GROUPS + gl_SubgroupID), 0u, EIGHTS)
#define ADD_QUERY_JOINS(n, first) ADD_JOINS(DECAYED_HIGH, DECAYED_LOW, n, first)

void take_given() {
  EACH_FOUR(r) {
    put_elements(ROWS, STEP_OF(r), VECTOR_OF(r), row[r]);
    keep_row(CHUNK_GIVEN(chunk), r, row[r]);
  }
}
void take_missing_back() {
  EACH_FOUR(r) put_halves_of(MISSING_HIGH, MISSING_LOW, r, number[r].y * found(HELD, r) + args.scale * found(ASKED, r));
}
void take_decayed() {
  EACH_FOUR(r) put_halves_of(DECAYED_HIGH, DECAYED_LOW, r, args.scale * number[r].x * widen4(row[r]));
}
// Gradients of values, and what leaves that of the state; shares of gradients of beta, of four columns, behind rows of floats.
void take_slopes() {
  const uint step = row_step(args.dvalue), at = first_row(args.dvalue) + first * step + column;
  EACH_FOUR(r) {
    const vec4 c = found(HELD, r), x = number[r].z * c;
    if (STEP_OF(r) < count && RECUR_HAS(RECUR_GRAD_VALUE))
      dvalue_pairs[(at + STEP_OF(r) * step) / 4u + VECTOR_OF(r)] = narrow4(x);
    odd = odd || too_large(c) || too_large(x);
    keep_row(CHUNK_SLOPES(chunk), r, narrow4(c));
    memory[HELD + STEP_OF(r) * FLOATS + 4u][VECTOR_OF(r)] = floatBitsToUint(dot(c, widen4(value[r])));
    put_halves_of(JOINS_HIGH, JOINS_LOW, r, -number[r].x * x);
  }
}
void keep_beta_shares() {
  [[dont_unroll]] for (uint t = item; t < TOKENS; t += WG_X) {
    const vec4 x = four(HELD + t * FLOATS + 4u);
    scratch_floats[BETA_SHARES(chunk, column / 16u) + t] = (x.x + x.y) + (x.z + x.w);
  }
}

void ask_early_back() {
  if (takes_keys()) ASK_AHEAD(KEY_SIXTEENS, 0u, next, ASK_KEYS)
  if (takes_solution()) ASK_AHEAD(SIXTEENS, 0u, next, ASK_WEIGHTS)
}

void go_back() {
  uint behind = chunks_of_sequence();
  find_next(max(behind, 1u) - 1u);
  ask_early_back();
  ask_numbers();
  ASK_ROWS(row, args.result, doutput_pairs)
  ASK_ROWS(value, args.value, value_pairs)
  begin_gradient();
  [[dont_unroll]] for (; behind > 0u; --behind) {
    begin_chunk();
    find_next(max(behind, 2u) - 2u);
    over = scratch_floats[CHUNK_NUMBERS(chunk) + TOKENS - 1u];
    keep_state(KEPT_STATE(args.dstates, chunk));
    take_given();
    barrier();
    if (takes_keys()) take_held();
    if (takes_solution()) TAKE_WEIGHED(0u, ASK_WEIGHTS, ASKED)
    if (takes_solution()) ASK_AHEAD(2u * SIXTEENS, 0u, chunk, ASK_SOLUTION_BACK)
    barrier();
    take_missing_back();
    barrier();
    if (takes_solution()) TAKE_SOLVED(ASK_SOLUTION_BACK)
    ASK_JOINS_AHEAD(0u, ASK_QUERY_JOINS)
    ASK_JOINS_AHEAD(1u, ASK_JOINS)
    take_decayed();
    ASK_ROWS(row, args.result, doutput_pairs)
    barrier();
    take_slopes();
    ask_numbers();
    ASK_ROWS(value, args.value, value_pairs)
    barrier();
    decay_state();
    JOIN_STATE(0u, ASK_QUERY_JOINS, ADD_QUERY_JOINS)
    JOIN_STATE(1u, ASK_JOINS, ADD_KEY_JOINS)
    ask_early_back();
    put_state();
    keep_beta_shares();
    barrier();
  }
  save_state();
}

void main() {
  const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
  const uint groups = args.sequences * args.heads * (VALUE_DIM / 16u);
  const bool back = group < groups;
  const bool has = find_columns(back ? group : group - groups);
  if (has && back) go_back();
  if (has && !back) go_forth();
  if (odd) mark = 1u;
  barrier();
  if (item == 0u && has && mark != 0u) UNIT_MARK(unit) = 1u;
}
