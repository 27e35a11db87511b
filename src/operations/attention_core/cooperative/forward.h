// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/cooperative/forward, from WG_X, the names of forward.def and REGISTERS.
// GLSL and the host read this same text: a host function has those names as unsigned locals.
//
// A vector is 16 bytes, the unit of local memory: eight elements or four floats. Rows are an odd
// number of vectors long, so that eight neighbouring rows lie in different banks.
#ifndef TESSERA_OPERATIONS_ATTENTION_COOPERATIVE_H
#define TESSERA_OPERATIONS_ATTENTION_COOPERATIVE_H

#define MATRICES(length, edge) (((length) + (edge)-1u) / (edge))

#define SUBGROUPS (WG_X / LANES)
#define BLOCK_Q (SUBGROUPS * ROWS)
#define ROW_TILES (ROWS / MATRIX_M)
#define KEY_TILES (BLOCK_K / MATRIX_N)  // of scores
#define KEY_STEPS (BLOCK_K / MATRIX_K)  // of weights
#define HEAD_STEPS MATRICES(HEAD_DIM, MATRIX_K)
#define VALUE_TILES MATRICES(VALUE_DIM, MATRIX_N)

#define K_VECTORS (HEAD_STEPS * MATRIX_K / 8u)
#define V_VECTORS (VALUE_TILES * MATRIX_N / 8u)
#define S_VECTORS (BLOCK_K / 4u)
#define K_STRIDE (K_VECTORS | 1u)
#define V_STRIDE (V_VECTORS | 1u)
#define S_STRIDE (S_VECTORS | 1u)

// Local memory: [keys; values] for each buffer, [a place of each sub-group's own]. Where scores
// stay in registers, that place is needed before and after the loop only, and lies over the
// buffers.
#define K_AREA (BLOCK_K * K_STRIDE)
#define V_AREA (BLOCK_K * V_STRIDE)
#define BUFFER_AREA (BUFFERS * (K_AREA + V_AREA))
#define OWN_AREA (ROWS * S_STRIDE)
#define OWN_BEGIN (REGISTERS != 0u ? 0u : BUFFER_AREA)
#define OWN_END (OWN_BEGIN + SUBGROUPS * OWN_AREA)
#define COOPERATIVE_VECTORS (OWN_END > BUFFER_AREA ? OWN_END : BUFFER_AREA)
#define COOPERATIVE_LOCAL_BYTES (16u * COOPERATIVE_VECTORS + 4u * BLOCK_Q)

// Vectors that one item copies per step.
#define K_COPIES MATRICES(BLOCK_K* K_VECTORS, WG_X)
#define V_COPIES MATRICES(BLOCK_K* V_VECTORS, WG_X)

// Rows of scores go to the lanes: PARTS lanes share a row, or a lane has ITEM_ROWS of them; of each
// it has ITEM_GROUPS times eight keys.
#define PARTS (ROWS < LANES ? LANES / ROWS : 1u)
#define ITEM_ROWS (ROWS < LANES ? 1u : ROWS / LANES)
#define ITEM_GROUPS (BLOCK_K / (8u * PARTS))

// 32-bit registers that one item needs, about: outputs, scores (with REGISTERS=1 those of the next
// step, too), queries, the step on its way, addresses. The host says in MATRIX_LANES how many lanes
// hold a matrix of queries between them once.
#define COOPERATIVE_REGISTERS                                                        \
  (ROWS * (VALUE_TILES * MATRIX_N + (REGISTERS != 0u ? 2u : 1u) * BLOCK_K) / LANES + \
   ROWS * HEAD_STEPS * MATRIX_K / (2u * MATRIX_LANES) +                              \
   (PREFETCH != 0u ? 4u * (K_COPIES + V_COPIES) : 0u) + 40u)

// What the kernel takes for granted. Evaluate COOPERATIVE_DIVISORS first: the rest divides by them.
#define COOPERATIVE_DIVISORS                                                                      \
  (LANES > 0u && WG_X >= LANES && MATRIX_M > 0u && MATRIX_N > 0u && MATRIX_K > 0u && ROWS > 0u && \
   BLOCK_K >= 8u)
#define COOPERATIVE_VALID                                                                      \
  (WG_X % LANES == 0u && ROWS % MATRIX_M == 0u && ROWS <= 32u && BLOCK_K % MATRIX_N == 0u &&   \
   BLOCK_K % MATRIX_K == 0u && MATRIX_N % 8u == 0u && MATRIX_K % 8u == 0u &&                   \
   (ROWS < LANES ? LANES % ROWS == 0u : ROWS % LANES == 0u) && BLOCK_K % (8u * PARTS) == 0u && \
   (BUFFERS == 1u || BUFFERS == 2u) && PREFETCH <= 1u &&                                       \
   (REGISTERS == 0u || MATRIX_N == MATRIX_K))

#endif  // TESSERA_OPERATIONS_ATTENTION_COOPERATIVE_H
