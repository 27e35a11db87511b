// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/cooperative/decode, from WG_X and the names of decode.def. GLSL and the
// host read this same text: a host function has those names as unsigned locals, and ATTN_KEY_BITS.
//
// A vector is 16 bytes, the unit of local memory: eight elements or four floats. Rows are an odd
// number of vectors long, so that eight neighbouring rows lie in different banks.
#ifndef TESSERA_OPERATIONS_ATTENTION_COOPERATIVE_DECODE_H
#define TESSERA_OPERATIONS_ATTENTION_COOPERATIVE_DECODE_H

#define ATTN_FEW_CEIL_DIV(a, b) (((a) + (b)-1u) / (b))
#define ATTN_FEW_MAX(a, b) ((a) > (b) ? (a) : (b))

#define ATTN_FEW_SUBGROUPS (WG_X / LANES)
#define ATTN_FEW_STEP (KEYS * ATTN_FEW_SUBGROUPS)  // keys of a group and a step
#define ATTN_FEW_KEY_TILES (KEYS / MATRIX_M)       // of scores, which are [keys][rows]
#define ATTN_FEW_KEY_STEPS (KEYS / MATRIX_K)       // of weights

// A part is 16 bytes of a key or value; what rows are padded to, and what an item reads of a step.
#define ATTN_FEW_PART (128u / ATTN_KEY_BITS)  // elements
#define ATTN_FEW_COLUMNS(dim, edge) \
  (ATTN_FEW_CEIL_DIV(dim, ATTN_FEW_MAX(ATTN_FEW_PART, edge)) * ATTN_FEW_MAX(ATTN_FEW_PART, edge))
#define ATTN_FEW_KEY_COLUMNS ATTN_FEW_COLUMNS(HEAD_DIM, MATRIX_K)
#define ATTN_FEW_VALUE_COLUMNS ATTN_FEW_COLUMNS(VALUE_DIM, MATRIX_M)
#define ATTN_FEW_KEY_PARTS (ATTN_FEW_KEY_COLUMNS / ATTN_FEW_PART)
#define ATTN_FEW_VALUE_PARTS (ATTN_FEW_VALUE_COLUMNS / ATTN_FEW_PART)
#define ATTN_FEW_KEY_COPIES ATTN_FEW_CEIL_DIV(KEYS* ATTN_FEW_KEY_PARTS, LANES)
#define ATTN_FEW_VALUE_COPIES ATTN_FEW_CEIL_DIV(KEYS* ATTN_FEW_VALUE_PARTS, LANES)
#define ATTN_FEW_HEAD_STEPS (ATTN_FEW_KEY_COLUMNS / MATRIX_K)
#define ATTN_FEW_VALUE_TILES (ATTN_FEW_VALUE_COLUMNS / MATRIX_M)

// Lanes that share a row of scores, and fours of its keys that each of them has.
#define ATTN_FEW_ROW_LANES (LANES / MATRIX_N)
#define ATTN_FEW_FOURS (KEYS / (4u * ATTN_FEW_ROW_LANES))

// Local memory. Each sub-group has a place of its own: a tile of keys, then of values, and the
// scores of a step; before the first step its queries, behind the last one its sums.
#define ATTN_FEW_KEY_STRIDE (ATTN_FEW_KEY_COLUMNS / 8u | 1u)
#define ATTN_FEW_VALUE_STRIDE (ATTN_FEW_VALUE_COLUMNS / 8u | 1u)
#define ATTN_FEW_SCORE_STRIDE (KEYS / 4u | 1u)
#define ATTN_FEW_SUM_STRIDE (ATTN_FEW_VALUE_COLUMNS / 4u | 1u)
#define ATTN_FEW_TILE                                                          \
  ATTN_FEW_MAX(KEYS* ATTN_FEW_MAX(ATTN_FEW_KEY_STRIDE, ATTN_FEW_VALUE_STRIDE), \
               MATRIX_N* ATTN_FEW_KEY_STRIDE)
#define ATTN_FEW_OWN \
  ATTN_FEW_MAX(ATTN_FEW_TILE + MATRIX_N * ATTN_FEW_SCORE_STRIDE, MATRIX_N * ATTN_FEW_SUM_STRIDE)
// Weights in units of four: rows begin at multiples of 16 bytes and are an odd number of them long.
#define ATTN_FEW_WEIGHT_STRIDE (2u * (KEYS / 8u | 1u))
#define ATTN_FEW_WEIGHTS (MATRIX_N * ATTN_FEW_WEIGHT_STRIDE)
// Besides, in floats: a factor, maximum, maximum of scaled weights and total of each row; two
// scales of each key; and for the group a word.
#define ATTN_FEW_LOCAL_BYTES                                                       \
  (ATTN_FEW_SUBGROUPS *                                                            \
       (16u * ATTN_FEW_OWN + 8u * ATTN_FEW_WEIGHTS + 16u * MATRIX_N + 8u * KEYS) + \
   4u)

// 32-bit registers of an item that hold keys and values under way, queries and sums.
#define ATTN_FEW_REGISTERS                              \
  (4u * (ATTN_FEW_KEY_COPIES + ATTN_FEW_VALUE_COPIES) + \
   (ATTN_FEW_HEAD_STEPS * MATRIX_K / 2u + ATTN_FEW_VALUE_TILES * MATRIX_M) * MATRIX_N / LANES)

#define ATTN_FEW_POWER_OF_2(n) ((n) > 0u && ((n) & ((n)-1u)) == 0u)
// What the kernel takes for granted. Evaluate ATTN_FEW_DIVISORS first: the rest divides by them.
#define ATTN_FEW_DIVISORS                                                                          \
  (ATTN_FEW_POWER_OF_2(LANES) && ATTN_FEW_POWER_OF_2(MATRIX_M) && ATTN_FEW_POWER_OF_2(MATRIX_N) && \
   ATTN_FEW_POWER_OF_2(MATRIX_K) && MATRIX_M >= 8u && MATRIX_K >= 8u && MATRIX_N >= 4u &&          \
   MATRIX_N <= LANES && WG_X >= LANES)
#define ATTN_FEW_VALID                                                                      \
  (WG_X % LANES == 0u && KEYS <= LANES && KEYS % MATRIX_M == 0u && KEYS % MATRIX_K == 0u && \
   KEYS % (4u * ATTN_FEW_ROW_LANES) == 0u && HEAD_DIM % ATTN_FEW_PART == 0u &&              \
   VALUE_DIM % ATTN_FEW_PART == 0u)

#endif  // TESSERA_OPERATIONS_ATTENTION_COOPERATIVE_DECODE_H
