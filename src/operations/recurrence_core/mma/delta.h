// SPDX-License-Identifier: Apache-2.0
// Delta rules by chunks of 64 tokens: what the first pass leaves in scratch, and local memory in
// bytes, from WG_X and the names of delta.def. RECUR_DELTA_ITEMS are those that go over a sequence
// together: of delta_forward all WG_X. Read by C++ and OpenCL C.
#ifndef TESSERA_OPERATIONS_RECURRENCE_CORE_MMA_DELTA_H
#define TESSERA_OPERATIONS_RECURRENCE_CORE_MMA_DELTA_H
#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/mma/geometry.h"

#define RECUR_DELTA_WARPS 8u  // that share sixteen columns
#define RECUR_DELTA_COLUMNS (RECUR_DELTA_ITEMS / (2u * RECUR_DELTA_WARPS))  // of a state

// Of all chunks of all sequences, one behind the other with a chunk to spare for each, the first of
// a sequence whose first token is `at` of those of all batch entries.
#define RECUR_DELTA_FIRST_CHUNK(at, sequence) ((at) / RECUR_DELTA_CHUNK + (sequence))

// Of a chunk in a head, in scratch, in bytes: the solution's high and low halves; weights of
// outputs; factors of tokens since the chunk began and to its end, beta, and whether it is to be
// taken step by step.
#define RECUR_DELTA_SQUARE (2u * RECUR_DELTA_CHUNK * RECUR_DELTA_CHUNK)
#define RECUR_DELTA_NUMBERS (3u * RECUR_DELTA_SQUARE)
#define RECUR_DELTA_NUMBER_BYTES (12u * RECUR_DELTA_CHUNK + 16u)
#define RECUR_DELTA_CHUNK_BYTES (RECUR_DELTA_NUMBERS + RECUR_DELTA_NUMBER_BYTES)

// recurrence/mma/delta_chunks in local memory: keys and queries; where they were, columns of scores
// of keys, which become the solution, and rows of those of queries, all floats. Then factors, beta
// and a flag.
#define RECUR_DELTA_PITCH (RECUR_DELTA_CHUNK + 4u)
#define RECUR_DELTA_SCORE_BYTES (4u * RECUR_DELTA_CHUNK * RECUR_DELTA_PITCH)
#define RECUR_DELTA_OPERAND_BYTES (2u * RECUR_MMA_KEY_BYTES)
#define RECUR_DELTA_SHARED_BYTES                                                        \
  (RECUR_DELTA_OPERAND_BYTES > 2u * RECUR_DELTA_SCORE_BYTES ? RECUR_DELTA_OPERAND_BYTES \
                                                            : 2u * RECUR_DELTA_SCORE_BYTES)
#define RECUR_DELTA_SOLVE_BYTES (RECUR_DELTA_SHARED_BYTES + 8u * RECUR_DELTA_CHUNK + 16u)

// What goes over chunks: a stage has keys, queries where they are wanted, and what scratch has of a
// chunk. Behind the stages, for sixteen columns each: the state's halves, a row for each column;
// rows of tokens, of what is missing (both halves), and of changes (as they are; both halves,
// decayed to the end). Then shares of products of single tokens, and flags.
#define RECUR_DELTA_SQUARES(queries) ((1u + (queries)) * RECUR_MMA_KEY_BYTES)
#define RECUR_DELTA_STAGE_NUMBERS(queries) \
  (RECUR_DELTA_SQUARES(queries) + (2u + (queries)) * RECUR_DELTA_SQUARE)
#define RECUR_DELTA_STAGE_BYTES(queries) \
  ((RECUR_DELTA_STAGE_NUMBERS(queries) + RECUR_DELTA_NUMBER_BYTES + 127u) / 128u * 128u)
#define RECUR_DELTA_TEAMS (RECUR_DELTA_ITEMS / (32u * RECUR_DELTA_WARPS))
#define RECUR_DELTA_STATE_BYTES (16u * RECUR_MMA_KEY_PITCH)
#define RECUR_DELTA_ROW_PITCH (128u * RECUR_DELTA_TEAMS)
#define RECUR_DELTA_ROW_BYTES (RECUR_DELTA_CHUNK * RECUR_DELTA_ROW_PITCH)
#define RECUR_DELTA_MISSING (2u * RECUR_DELTA_TEAMS * RECUR_DELTA_STATE_BYTES)
#define RECUR_DELTA_CHANGES (RECUR_DELTA_MISSING + RECUR_DELTA_ROW_BYTES)
#define RECUR_DELTA_SHARES (RECUR_DELTA_CHANGES + RECUR_DELTA_ROW_BYTES)
#define RECUR_DELTA_FLAGS (RECUR_DELTA_SHARES + 128u * RECUR_DELTA_WARPS * RECUR_DELTA_TEAMS)
#define RECUR_DELTA_LOCAL_BYTES(stages, queries) \
  ((stages)*RECUR_DELTA_STAGE_BYTES(queries) + RECUR_DELTA_FLAGS + 16u)
// recurrence/mma/delta_states: 256 items go forth, without queries, and 256 back, in a work-group
// of 512 side by side.
#define RECUR_DELTA_STATES_ITEMS 256u
#define RECUR_DELTA_BESIDE (WG_X == 2u * RECUR_DELTA_STATES_ITEMS)
#define RECUR_DELTA_BACK_BYTES ((RECUR_DELTA_LOCAL_BYTES(STAGES, 1u) + 127u) / 128u * 128u)
#define RECUR_DELTA_FORTH_STAGES (RECUR_DELTA_BESIDE ? 1u : 2u)
#define RECUR_DELTA_FORTH_BYTES RECUR_DELTA_LOCAL_BYTES(RECUR_DELTA_FORTH_STAGES, 0u)
#define RECUR_DELTA_STATES_BYTES                                               \
  (RECUR_DELTA_BESIDE ? RECUR_DELTA_BACK_BYTES + RECUR_DELTA_FORTH_BYTES       \
   : RECUR_DELTA_BACK_BYTES > RECUR_DELTA_FORTH_BYTES ? RECUR_DELTA_BACK_BYTES \
                                                      : RECUR_DELTA_FORTH_BYTES)

// recurrence/mma/delta_gradients: keys and queries; of so many value dims at a time rows of
// gradients of outputs, of changes and of their gradients, and states, a row for each value dim,
// all rounded. Where these were come tables of pairs, rows of floats. Then numbers of tokens and of
// warps.
#define RECUR_DELTA_GRADIENT_ITEMS 512u
#define RECUR_DELTA_BLOCK 64u
#define RECUR_DELTA_BLOCK_ROWS (2u * RECUR_DELTA_CHUNK * RECUR_DELTA_BLOCK)
#define RECUR_DELTA_BLOCK_STATE (RECUR_DELTA_BLOCK * RECUR_MMA_KEY_PITCH)
#define RECUR_DELTA_PAIR_PITCH (RECUR_DELTA_CHUNK + 1u)
#define RECUR_DELTA_PAIR_BYTES (4u * RECUR_DELTA_CHUNK * RECUR_DELTA_PAIR_PITCH)
#define RECUR_DELTA_TABLE (RECUR_DELTA_OPERAND_BYTES + 3u * RECUR_DELTA_BLOCK_ROWS)
#define RECUR_DELTA_BLOCK_BYTES (3u * RECUR_DELTA_BLOCK_ROWS + 2u * RECUR_DELTA_BLOCK_STATE)
#define RECUR_DELTA_GRADIENT_NUMBERS                                                  \
  (RECUR_DELTA_OPERAND_BYTES + (RECUR_DELTA_BLOCK_BYTES > 3u * RECUR_DELTA_PAIR_BYTES \
                                    ? RECUR_DELTA_BLOCK_BYTES                         \
                                    : 3u * RECUR_DELTA_PAIR_BYTES))
#define RECUR_DELTA_GRADIENT_BYTES \
  (RECUR_DELTA_GRADIENT_NUMBERS + 92u * RECUR_DELTA_CHUNK + RECUR_DELTA_GRADIENT_ITEMS / 8u + 16u)

#define RECUR_DELTA_VALID                                                                   \
  ((WG_X == 256u || (WG_X == 512u && KEY_DIM <= 128u)) && (STAGES == 1u || STAGES == 2u) && \
   KEY_DIM % 16u == 0u && KEY_DIM >= 16u && KEY_DIM <= 256u)

#endif  // TESSERA_OPERATIONS_RECURRENCE_CORE_MMA_DELTA_H
