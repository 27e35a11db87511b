// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/cooperative/backward, from WG_X, the names of backward.def, REGISTERS, and
// of each of its two kernels OWN_KEYS (its groups own keys, not query rows), ROWS, STEP and HELD,
// which stand for KEY_ROWS, KEY_STEP and KEYS_HELD or QUERY_ROWS, QUERY_STEP and ROWS_HELD. GLSL
// and the host read this same text: a host function has those names as unsigned locals.
//
// A vector is 16 bytes, the unit of local memory: eight elements or four floats. Rows are an odd
// number of vectors long, so that eight neighbouring rows lie in different banks.
#ifndef TESSERA_OPERATIONS_ATTENTION_COOPERATIVE_BACKWARD_H
#define TESSERA_OPERATIONS_ATTENTION_COOPERATIVE_BACKWARD_H

#define ATTN_BACK_CEIL_DIV(a, b) (((a) + (b)-1u) / (b))
#define ATTN_BACK_MAX(a, b) ((a) > (b) ? (a) : (b))

#define ATTN_BACK_SUBGROUPS (WG_X / LANES)
#define ATTN_BACK_OWN (ATTN_BACK_SUBGROUPS * ROWS)  // rows of a group
#define ATTN_BACK_ROW_TILES (ROWS / MATRIX_M)
#define ATTN_BACK_PAIR_TILES (STEP / MATRIX_N)  // of scores
#define ATTN_BACK_PAIR_STEPS (STEP / MATRIX_K)  // of weights
#define ATTN_BACK_HEAD_STEPS ATTN_BACK_CEIL_DIV(HEAD_DIM, MATRIX_K)
#define ATTN_BACK_HEAD_TILES ATTN_BACK_CEIL_DIV(HEAD_DIM, MATRIX_N)  // of sums
#define ATTN_BACK_VALUE_STEPS ATTN_BACK_CEIL_DIV(VALUE_DIM, MATRIX_K)
#define ATTN_BACK_VALUE_TILES ATTN_BACK_CEIL_DIV(VALUE_DIM, MATRIX_N)

// Rows of both operands of a kind, in vectors: factors of scores, and of sums.
#define ATTN_BACK_COLUMNS(steps, tiles) ATTN_BACK_MAX((steps)*MATRIX_K, (tiles)*MATRIX_N)
#define ATTN_BACK_HEAD_VECTORS (ATTN_BACK_COLUMNS(ATTN_BACK_HEAD_STEPS, ATTN_BACK_HEAD_TILES) / 8u)
#define ATTN_BACK_VALUE_VECTORS \
  (ATTN_BACK_COLUMNS(ATTN_BACK_VALUE_STEPS, ATTN_BACK_VALUE_TILES) / 8u)
#define ATTN_BACK_HEAD_STRIDE (ATTN_BACK_HEAD_VECTORS | 1u)
#define ATTN_BACK_VALUE_STRIDE (ATTN_BACK_VALUE_VECTORS | 1u)
#define ATTN_BACK_ROW_STRIDE (ATTN_BACK_HEAD_STRIDE + ATTN_BACK_VALUE_STRIDE)

// Local memory: [the group's rows of both operands, unless they are held], [rows of the other kind,
// of both] for each buffer, [a place of each sub-group's own]. Where scores stay in registers, that
// place is needed before and after the loop only, and lies over the buffers.
#define ATTN_BACK_OWN_AREA (HELD != 0u ? 0u : ATTN_BACK_OWN * ATTN_BACK_ROW_STRIDE)
#define ATTN_BACK_STAGE (STEP * ATTN_BACK_ROW_STRIDE)
#define ATTN_BACK_STAGES_END (ATTN_BACK_OWN_AREA + BUFFERS * ATTN_BACK_STAGE)
#define ATTN_BACK_PLACE_VECTORS (STEP / 4u)
#define ATTN_BACK_PLACE_STRIDE (ATTN_BACK_PLACE_VECTORS | 1u)
#define ATTN_BACK_PLACE_AREA \
  (ROWS * ATTN_BACK_PLACE_STRIDE)  // of scores, and again of their gradients
#define ATTN_BACK_PLACE ((REGISTERS != 0u ? 1u : 2u) * ATTN_BACK_PLACE_AREA)
#define ATTN_BACK_PLACES_BEGIN (REGISTERS != 0u ? ATTN_BACK_OWN_AREA : ATTN_BACK_STAGES_END)
#define ATTN_BACK_PLACES_END (ATTN_BACK_PLACES_BEGIN + ATTN_BACK_SUBGROUPS * ATTN_BACK_PLACE)
#define ATTN_BACK_VECTORS ATTN_BACK_MAX(ATTN_BACK_STAGES_END, ATTN_BACK_PLACES_END)
// Query rows of which it has two numbers, and where their keys begin and end: those of a step, for
// each buffer, or the group's own.
#define ATTN_BACK_NUMBERS (OWN_KEYS != 0u ? BUFFERS * STEP : ATTN_BACK_OWN)
#define ATTN_BACK_LOCAL_BYTES \
  (16u * ATTN_BACK_VECTORS + (REGISTERS != 0u ? 8u : 16u) * ATTN_BACK_NUMBERS + 8u)

// Vectors that one item copies per step.
#define ATTN_BACK_HEAD_COPIES ATTN_BACK_CEIL_DIV(STEP* ATTN_BACK_HEAD_VECTORS, WG_X)
#define ATTN_BACK_VALUE_COPIES ATTN_BACK_CEIL_DIV(STEP* ATTN_BACK_VALUE_VECTORS, WG_X)

// Rows of scores go to the lanes: ATTN_BACK_PARTS lanes share a row, or a lane has
// ATTN_BACK_ITEM_ROWS of them; of each it has ATTN_BACK_ITEM_GROUPS times eight pairs.
#define ATTN_BACK_PARTS (ROWS < LANES ? LANES / ROWS : 1u)
#define ATTN_BACK_ITEM_ROWS (ROWS < LANES ? 1u : ROWS / LANES)
#define ATTN_BACK_ITEM_GROUPS (STEP / (8u * ATTN_BACK_PARTS))

// 32-bit registers that one item needs, about: sums, scores and their gradients, the group's rows
// where they are held, the step on its way, addresses. The host says in MATRIX_LANES how many lanes
// hold a matrix of factors between them once.
#define ATTN_BACK_REGISTERS                                                                      \
  (ROWS *                                                                                        \
       ((ATTN_BACK_HEAD_TILES + (OWN_KEYS != 0u ? ATTN_BACK_VALUE_TILES : 0u)) * MATRIX_N +      \
        2u * STEP) /                                                                             \
       LANES +                                                                                   \
   (HELD != 0u                                                                                   \
        ? ROWS * (ATTN_BACK_HEAD_STEPS + ATTN_BACK_VALUE_STEPS) * MATRIX_K / (2u * MATRIX_LANES) \
        : 0u) +                                                                                  \
   (PREFETCH != 0u ? 4u : 0u) * (ATTN_BACK_HEAD_COPIES + ATTN_BACK_VALUE_COPIES) + 40u)

// What the kernels take for granted. Evaluate ATTN_BACK_DIVISORS first: the rest divides by them.
#define ATTN_BACK_DIVISORS                                                                        \
  (LANES > 0u && WG_X >= LANES && MATRIX_M > 0u && MATRIX_N > 0u && MATRIX_K > 0u && ROWS > 0u && \
   STEP >= 8u)
#define ATTN_BACK_VALID                                                                            \
  (WG_X % LANES == 0u && WG_X >= STEP && ROWS % MATRIX_M == 0u && ROWS <= 32u &&                   \
   STEP % MATRIX_N == 0u && STEP % MATRIX_K == 0u && MATRIX_N % 8u == 0u && MATRIX_K % 8u == 0u && \
   (ROWS < LANES ? LANES % ROWS == 0u : ROWS % LANES == 0u) &&                                     \
   STEP % (8u * ATTN_BACK_PARTS) == 0u && HELD <= 1u && (BUFFERS == 1u || BUFFERS == 2u) &&        \
   PREFETCH <= 1u && (REGISTERS == 0u || MATRIX_N == MATRIX_K))

#endif  // TESSERA_OPERATIONS_ATTENTION_COOPERATIVE_BACKWARD_H
