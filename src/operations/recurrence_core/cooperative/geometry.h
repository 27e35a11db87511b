// SPDX-License-Identifier: Apache-2.0
// Local memory and scratch of recurrence/cooperative, from WG_X and the names of cooperative.def:
// read by C++ and GLSL. A vector is 16 bytes: eight elements, or four floats. Rows are an odd
// number of vectors long, so that neighbours lie in different banks.
#ifndef TESSERA_OPERATIONS_RECURRENCE_CORE_COOPERATIVE_GEOMETRY_H
#define TESSERA_OPERATIONS_RECURRENCE_CORE_COOPERATIVE_GEOMETRY_H

#define RECUR_COOP_CEIL(a, b) (((a) + (b)-1u) / (b))
#define RECUR_COOP_MAX(a, b) ((a) > (b) ? (a) : (b))

// An item has eight key dims of four tokens of a chunk, which matrices take by sixteens.
#define RECUR_COOP_PART 4u
#define RECUR_COOP_PARTS (TOKENS / RECUR_COOP_PART)
#define RECUR_COOP_EIGHTS (KEY_DIM / 8u)
#define RECUR_COOP_SIXTEENS (TOKENS / 16u)
#define RECUR_COOP_SUBGROUPS (WG_X / LANES)

#define RECUR_COOP_KEY_STRIDE (KEY_DIM / 8u | 1u)
#define RECUR_COOP_VALUE_STRIDE (VALUE_DIM / 8u | 1u)
#define RECUR_COOP_WEIGHT_STRIDE (TOKENS / 8u | 1u)
#define RECUR_COOP_KEY_AREA (TOKENS * RECUR_COOP_KEY_STRIDE)
#define RECUR_COOP_VALUE_AREA (TOKENS * RECUR_COOP_VALUE_STRIDE)
#define RECUR_COOP_WEIGHT_AREA (TOKENS * RECUR_COOP_WEIGHT_STRIDE)
// Factors of parts, in vectors: all key dims have the same, or each has its own.
#define RECUR_COOP_TOTAL_STRIDE (KEY_DECAYS != 0u ? KEY_DIM / 4u : 2u)
#define RECUR_COOP_TOTALS(part) (TOKENS / (part)*RECUR_COOP_TOTAL_STRIDE)

// recurrence/cooperative/states: keys, then values. A sub-group takes MATRIX_M value dims and as
// many of the key dims as STATE_KEYS at a time.
#define RECUR_COOP_STATES_AREA (RECUR_COOP_KEY_AREA + RECUR_COOP_VALUE_AREA)
#define RECUR_COOP_STATE_KEYS \
  (KEY_DIM % 64u == 0u ? 64u : KEY_DIM % 48u == 0u ? 48u : KEY_DIM % 32u == 0u ? 32u : 16u)
#define RECUR_COOP_STATES_BYTES \
  (16u * (RECUR_COOP_STATES_AREA + RECUR_COOP_TOTALS(RECUR_COOP_PART)) + 4u)

// recurrence/cooperative/outputs. A sub-group has the outputs of sixteen tokens and of one of
// BLOCKS blocks of columns, whose states come STEP columns at a time. Two areas: tiles of tokens,
// then values, then outputs; keys, then weights, then states of columns. Behind them places of
// those that take weights.
#define RECUR_COOP_BLOCKS                                           \
  (RECUR_COOP_SUBGROUPS / RECUR_COOP_SIXTEENS < RECUR_COOP_SIXTEENS \
       ? RECUR_COOP_SUBGROUPS / RECUR_COOP_SIXTEENS                 \
       : RECUR_COOP_SIXTEENS)
#define RECUR_COOP_MOST_STEP (TOKENS / RECUR_COOP_BLOCKS / 16u * 16u)
#define RECUR_COOP_COLUMNS (RECUR_COOP_CEIL(VALUE_DIM, 16u * RECUR_COOP_BLOCKS) * 16u)
#define RECUR_COOP_STEP \
  (RECUR_COOP_COLUMNS < RECUR_COOP_MOST_STEP ? RECUR_COOP_COLUMNS : RECUR_COOP_MOST_STEP)
#define RECUR_COOP_STEPS RECUR_COOP_CEIL(RECUR_COOP_COLUMNS, RECUR_COOP_STEP)
#define RECUR_COOP_BLOCK (RECUR_COOP_STEPS * RECUR_COOP_STEP)  // columns of a sub-group
#define RECUR_COOP_OWN_STRIDE 5u
#define RECUR_COOP_OWN_AREA (16u * RECUR_COOP_OWN_STRIDE)
#define RECUR_COOP_TILE_AREA                                                 \
  RECUR_COOP_MAX(RECUR_COOP_MAX(RECUR_COOP_KEY_AREA, RECUR_COOP_VALUE_AREA), \
                 RECUR_COOP_SIXTEENS* RECUR_COOP_BLOCKS* RECUR_COOP_OWN_AREA)
// The last row of values is read as far as blocks go.
#define RECUR_COOP_SECOND_AREA                                                \
  RECUR_COOP_MAX(RECUR_COOP_MAX(RECUR_COOP_KEY_AREA, RECUR_COOP_WEIGHT_AREA), \
                 RECUR_COOP_BLOCKS* RECUR_COOP_BLOCK / 8u)
#define RECUR_COOP_OWN_BEGIN (RECUR_COOP_TILE_AREA + RECUR_COOP_SECOND_AREA)
#define RECUR_COOP_OUTPUTS_AREA (RECUR_COOP_OWN_BEGIN + RECUR_COOP_SIXTEENS * RECUR_COOP_OWN_AREA)
// Of the factors between tokens, by level, where key dims decay alike.
#define RECUR_COOP_SHARES (KEY_DECAYS != 0u ? 1u : 6u * TOKENS)
#define RECUR_COOP_OUTPUTS_BYTES                                                                   \
  (16u * (RECUR_COOP_OUTPUTS_AREA + RECUR_COOP_TOTALS(RECUR_COOP_PART)) + 4u * RECUR_COOP_SHARES + \
   4u)

// recurrence/cooperative/gradients. An item has eight key dims of two tokens, a sub-group sixteen
// tokens and one of COLUMN_BLOCKS blocks of the columns of their products. Areas: rows of tokens,
// of which there is one kind at a time; two pieces of a state of TOKENS rows each, or products of
// all tokens with key dims in floats, or places of sub-groups; weights of pairs of tokens; and sums
// of parts with places of those that take pairs, or gradients of outputs.
#define RECUR_COOP_GRADIENT_PART 2u
#define RECUR_COOP_COLUMN_BLOCKS (RECUR_COOP_SUBGROUPS / RECUR_COOP_SIXTEENS)
#define RECUR_COOP_COLUMN_SQUARES RECUR_COOP_CEIL(KEY_DIM / 16u, RECUR_COOP_COLUMN_BLOCKS)
// Sixteens of value dims of which the work-group takes the gradients at a time.
#define RECUR_COOP_VALUE_BLOCKS                                                   \
  (RECUR_COOP_COLUMN_BLOCKS < 2u * RECUR_COOP_SIXTEENS ? RECUR_COOP_COLUMN_BLOCKS \
                                                       : 2u * RECUR_COOP_SIXTEENS)
#define RECUR_COOP_PRODUCT_STRIDE (KEY_DIM / 4u | 1u)
#define RECUR_COOP_ROWS_AREA RECUR_COOP_MAX(RECUR_COOP_KEY_AREA, RECUR_COOP_VALUE_AREA)
#define RECUR_COOP_PIECES_AREA                                                      \
  RECUR_COOP_MAX(                                                                   \
      RECUR_COOP_MAX(2u * RECUR_COOP_KEY_AREA, TOKENS * RECUR_COOP_PRODUCT_STRIDE), \
      RECUR_COOP_MAX(RECUR_COOP_MAX(RECUR_COOP_VALUE_AREA, 2u * WG_X),              \
                     RECUR_COOP_SIXTEENS* RECUR_COOP_VALUE_BLOCKS* RECUR_COOP_OWN_AREA))
#define RECUR_COOP_SUMS_AREA (TOKENS / RECUR_COOP_GRADIENT_PART * (KEY_DIM / 4u))
#define RECUR_COOP_GRADIENTS_AREA                                                   \
  (RECUR_COOP_ROWS_AREA + RECUR_COOP_PIECES_AREA + RECUR_COOP_WEIGHT_AREA +         \
   RECUR_COOP_MAX(RECUR_COOP_SUMS_AREA + RECUR_COOP_SIXTEENS * RECUR_COOP_OWN_AREA, \
                  RECUR_COOP_VALUE_AREA))
#define RECUR_COOP_GRADIENTS_BYTES                                                                 \
  (16u * (RECUR_COOP_GRADIENTS_AREA + RECUR_COOP_TOTALS(RECUR_COOP_GRADIENT_PART)) + 4u * TOKENS + \
   4u)
#define RECUR_COOP_GRADIENTS_VALID (RECUR_COOP_EIGHTS * TOKENS / RECUR_COOP_GRADIENT_PART <= WG_X)

// recurrence/cooperative/delta_chunks: keys and queries; where they were, scores of keys, then
// of queries, rows of floats. delta_forward: floats and halves of a state of sixteen columns,
// floats of two kinds and elements of three of as many columns of tokens.
#define RECUR_COOP_DELTA_TOKENS 64u
#define RECUR_COOP_DELTA_PITCH (TOKENS / 4u | 1u)
#define RECUR_COOP_DELTA_CHUNKS_AREA \
  RECUR_COOP_MAX(2u * RECUR_COOP_KEY_AREA, TOKENS * RECUR_COOP_DELTA_PITCH)
#define RECUR_COOP_DELTA_AREA (11u * KEY_DIM + 19u * TOKENS)
#define RECUR_COOP_DELTA_TEAM (LANES == 32u ? 16u : 8u)  // 512 items, but for lavapipe
#define RECUR_COOP_DELTA_BLOCKS (RECUR_COOP_DELTA_TEAM / RECUR_COOP_SIXTEENS)
#define RECUR_COOP_DELTA_TABLE_AREA \
  RECUR_COOP_MAX(TOKENS* RECUR_COOP_DELTA_PITCH, 2u * RECUR_COOP_WEIGHT_AREA)
#define RECUR_COOP_DELTA_SCORE_EIGHTS 8u
#define RECUR_COOP_DELTA_STATE_EIGHTS 4u
#define RECUR_COOP_DELTA_ROW_STRIDE (2u * RECUR_COOP_DELTA_BLOCKS + 1u)
#define RECUR_COOP_DELTA_GRADIENTS_AREA                                                         \
  RECUR_COOP_MAX(                                                                               \
      RECUR_COOP_DELTA_TABLE_AREA + RECUR_COOP_MAX(RECUR_COOP_DELTA_TEAM * RECUR_COOP_OWN_AREA, \
                                                   2u * TOKENS * RECUR_COOP_DELTA_ROW_STRIDE),  \
      RECUR_COOP_MAX(3u * TOKENS * (RECUR_COOP_DELTA_SCORE_EIGHTS + 1u),                        \
                     (2u * TOKENS + KEY_DIM) * (RECUR_COOP_DELTA_STATE_EIGHTS + 1u)))
#define RECUR_COOP_DELTA_GRADIENTS_BYTES                                          \
  (16u * (RECUR_COOP_DELTA_GRADIENTS_AREA + RECUR_COOP_TOTALS(RECUR_COOP_PART)) + \
   4u * (4u + RECUR_COOP_SIXTEENS) * TOKENS + 68u)
#define RECUR_COOP_DELTA_BYTES                                                  \
  (16u * (RECUR_COOP_MAX(RECUR_COOP_DELTA_CHUNKS_AREA, RECUR_COOP_DELTA_AREA) + \
          RECUR_COOP_TOTALS(RECUR_COOP_PART)) +                                 \
   8u * TOKENS + 4u)
#define RECUR_COOP_DELTA_VALID                            \
  (TOKENS == RECUR_COOP_DELTA_TOKENS && WG_X >= TOKENS && \
   RECUR_COOP_SUBGROUPS >= 2u * RECUR_COOP_SIXTEENS)

// In scratch there are chunks of all sequences, one behind the other with a chunk to spare for
// each: the first of a sequence whose first token is `at` of those of all batch entries.
#define RECUR_COOP_FIRST_CHUNK(at, sequence) ((at) / TOKENS + (sequence))

// What the kernels take for granted. Evaluate the divisors first: the rest divides by them.
#define RECUR_COOP_DIVISORS \
  (LANES > 0u && MATRIX_M > 0u && MATRIX_N > 0u && MATRIX_K > 0u && TOKENS >= 16u && WG_X >= LANES)
#define RECUR_COOP_VALID                                                                           \
  (WG_X % LANES == 0u && (TOKENS == 16u || TOKENS == 32u || TOKENS == 64u) &&                      \
   16u % MATRIX_M == 0u && 16u % MATRIX_N == 0u && 16u % MATRIX_K == 0u && MATRIX_N % 4u == 0u &&  \
   MATRIX_K % 8u == 0u && MATRIX_M % 8u == 0u && MATRIX_N % 8u == 0u && LANES <= 128u &&           \
   128u % LANES == 0u && RECUR_COOP_SUBGROUPS >= RECUR_COOP_SIXTEENS &&                            \
   RECUR_COOP_EIGHTS * RECUR_COOP_PARTS <= WG_X && KEY_DIM % 16u == 0u && VALUE_DIM % 16u == 0u && \
   KEY_DIM > 0u && VALUE_DIM > 0u && KEY_DIM <= 256u && VALUE_DIM <= 256u)

#endif  // TESSERA_OPERATIONS_RECURRENCE_CORE_COOPERATIVE_GEOMETRY_H
