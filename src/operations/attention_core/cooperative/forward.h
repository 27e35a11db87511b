// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/cooperative/forward, from WG_X, the names of forward.def and REGISTERS.
// GLSL and the host read this same text: a host function has those names as unsigned locals.
//
// A vector is 16 bytes, the unit of local memory: eight elements or four floats. Rows are an odd
// number of vectors long, so that eight neighbouring rows lie in different banks.
#ifndef TESSERA_OPERATIONS_ATTENTION_COOPERATIVE_H
#define TESSERA_OPERATIONS_ATTENTION_COOPERATIVE_H

#define ATTN_MATRICES(length, edge) (((length) + (edge)-1u) / (edge))

#define ATTN_SUBGROUPS (WG_X / LANES)
#define ATTN_BLOCK_Q (ATTN_SUBGROUPS * ROWS)
#define ATTN_ROW_TILES (ROWS / MATRIX_M)
#define ATTN_KEY_TILES (BLOCK_K / MATRIX_N)  // of scores
#define ATTN_KEY_STEPS (BLOCK_K / MATRIX_K)  // of weights
#define ATTN_HEAD_STEPS ATTN_MATRICES(HEAD_DIM, MATRIX_K)
#define ATTN_VALUE_TILES ATTN_MATRICES(VALUE_DIM, MATRIX_N)

#define ATTN_K_VECTORS (ATTN_HEAD_STEPS * MATRIX_K / 8u)
#define ATTN_V_VECTORS (ATTN_VALUE_TILES * MATRIX_N / 8u)
#define ATTN_S_VECTORS (BLOCK_K / 4u)
#define ATTN_K_STRIDE (ATTN_K_VECTORS | 1u)
#define ATTN_V_STRIDE (ATTN_V_VECTORS | 1u)
#define ATTN_S_STRIDE (ATTN_S_VECTORS | 1u)

// Local memory: [keys; values] for each buffer, [a place of each sub-group's own]. Where scores
// stay in registers, that place is needed before and after the loop only, and lies over the
// buffers.
#define ATTN_K_AREA (BLOCK_K * ATTN_K_STRIDE)
#define ATTN_V_AREA (BLOCK_K * ATTN_V_STRIDE)
#define ATTN_BUFFER_AREA (BUFFERS * (ATTN_K_AREA + ATTN_V_AREA))
#define ATTN_OWN_AREA (ROWS * ATTN_S_STRIDE)
#define ATTN_OWN_BEGIN (REGISTERS != 0u ? 0u : ATTN_BUFFER_AREA)
#define ATTN_OWN_END (ATTN_OWN_BEGIN + ATTN_SUBGROUPS * ATTN_OWN_AREA)
#define ATTN_COOPERATIVE_VECTORS (ATTN_OWN_END > ATTN_BUFFER_AREA ? ATTN_OWN_END : ATTN_BUFFER_AREA)
#define ATTN_COOPERATIVE_LOCAL_BYTES (16u * ATTN_COOPERATIVE_VECTORS + 4u * ATTN_BLOCK_Q)

// Vectors that one item copies per step.
#define ATTN_K_COPIES ATTN_MATRICES(BLOCK_K* ATTN_K_VECTORS, WG_X)
#define ATTN_V_COPIES ATTN_MATRICES(BLOCK_K* ATTN_V_VECTORS, WG_X)

// Rows of scores go to the lanes: ATTN_PARTS lanes share a row, or a lane has ATTN_ITEM_ROWS of
// them; of each it has ATTN_ITEM_GROUPS times eight keys.
#define ATTN_PARTS (ROWS < LANES ? LANES / ROWS : 1u)
#define ATTN_ITEM_ROWS (ROWS < LANES ? 1u : ROWS / LANES)
#define ATTN_ITEM_GROUPS (BLOCK_K / (8u * ATTN_PARTS))

// 32-bit registers that one item needs, about: outputs, scores (with REGISTERS=1 those of the next
// step, too), queries, the step on its way, addresses. The host says in MATRIX_LANES how many lanes
// hold a matrix of queries between them once.
#define ATTN_COOPERATIVE_REGISTERS                                                        \
  (ROWS * (ATTN_VALUE_TILES * MATRIX_N + (REGISTERS != 0u ? 2u : 1u) * BLOCK_K) / LANES + \
   ROWS * ATTN_HEAD_STEPS * MATRIX_K / (2u * MATRIX_LANES) +                              \
   (PREFETCH != 0u ? 4u * (ATTN_K_COPIES + ATTN_V_COPIES) : 0u) + 40u)

// What the kernel takes for granted. Evaluate ATTN_COOPERATIVE_DIVISORS first: the rest divides by
// them.
#define ATTN_COOPERATIVE_DIVISORS                                                                 \
  (LANES > 0u && WG_X >= LANES && MATRIX_M > 0u && MATRIX_N > 0u && MATRIX_K > 0u && ROWS > 0u && \
   BLOCK_K >= 8u)
#define ATTN_COOPERATIVE_VALID                                                                \
  (WG_X % LANES == 0u && ROWS % MATRIX_M == 0u && ROWS <= 32u && BLOCK_K % MATRIX_N == 0u &&  \
   BLOCK_K % MATRIX_K == 0u && MATRIX_N % 8u == 0u && MATRIX_K % 8u == 0u &&                  \
   (ROWS < LANES ? LANES % ROWS == 0u : ROWS % LANES == 0u) &&                                \
   BLOCK_K % (8u * ATTN_PARTS) == 0u && (BUFFERS == 1u || BUFFERS == 2u) && PREFETCH <= 1u && \
   (REGISTERS == 0u || MATRIX_N == MATRIX_K))

#endif  // TESSERA_OPERATIONS_ATTENTION_COOPERATIVE_H
