// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/tile/forward, from WG_X and the names of forward.def. OpenCL C, GLSL and
// the host read this same text: a host function has those names as unsigned locals and evaluates
// ATTN_TILE_VALID, ATTN_TILE_LOCAL_BYTES and ATTN_TILE_REGISTERS.
//
// A vector is four floats, the unit of local memory. Rows that lanes stride over are an odd number
// of vectors long, so that eight neighbouring rows start in different banks.
#ifndef TESSERA_OPERATIONS_FLASH_ATTENTION_TILE_H
#define TESSERA_OPERATIONS_FLASH_ATTENTION_TILE_H

#define ATTN_TILE_CEIL_DIV(a, b) (((a) + (b)-1u) / (b))
#define ATTN_TILE_MAX(a, b) ((a) > (b) ? (a) : (b))

// The work-group is ATTN_LANES_Q x ATTN_LANES_K items. Item (lane_q, lane_k) owns query rows
// lane_q + ATTN_LANES_Q * r, and of keys and of value features those of vectors lane_k +
// ATTN_LANES_K * g.
#define ATTN_LANES_Q (BLOCK_Q / ITEM_ROWS)
#define ATTN_LANES_K (WG_X / ATTN_LANES_Q)
#define ATTN_ITEM_KEYS (BLOCK_K / ATTN_LANES_K)
#define ATTN_ITEM_VALUES ATTN_TILE_CEIL_DIV(VALUE_DIM, 4u * ATTN_LANES_K)  // vectors

#define ATTN_HEAD_SLICES ATTN_TILE_CEIL_DIV(HEAD_DIM, SLICE_D)
#define ATTN_SLICE_VECTORS (SLICE_D / 4u)
#define ATTN_Q_STRIDE \
  ((KEEP_Q != 0u ? ATTN_HEAD_SLICES * ATTN_SLICE_VECTORS : ATTN_SLICE_VECTORS) | 1u)
#define ATTN_K_STRIDE (ATTN_SLICE_VECTORS | 1u)
#define ATTN_P_STRIDE ((BLOCK_K / 4u) | 1u)
#define ATTN_V_STRIDE (ATTN_ITEM_VALUES * ATTN_LANES_K)

// Local memory: [queries, if they stay][{queries, if they do not; keys} or {weights; values}].
#define ATTN_Q_AREA (BLOCK_Q * ATTN_Q_STRIDE)
#define ATTN_K_AREA (BLOCK_K * ATTN_K_STRIDE)
#define ATTN_P_AREA (BLOCK_Q * ATTN_P_STRIDE)
#define ATTN_V_AREA (SLICE_K * ATTN_V_STRIDE)
#define ATTN_TILE_VECTORS                                                             \
  (KEEP_Q != 0u ? ATTN_Q_AREA + ATTN_TILE_MAX(ATTN_K_AREA, ATTN_P_AREA + ATTN_V_AREA) \
                : ATTN_TILE_MAX(ATTN_Q_AREA + ATTN_K_AREA, ATTN_P_AREA + ATTN_V_AREA))
#define ATTN_TILE_LOCAL_BYTES (16u * ATTN_TILE_VECTORS)

// Vectors that one item copies per slice, ATTN_COPY_ROWS rows apart, values ATTN_LANES_Q rows.
#define ATTN_COPY_ROWS (WG_X / ATTN_SLICE_VECTORS)
#define ATTN_Q_COPIES ATTN_TILE_CEIL_DIV(BLOCK_Q, ATTN_COPY_ROWS)
#define ATTN_K_COPIES ATTN_TILE_CEIL_DIV(BLOCK_K, ATTN_COPY_ROWS)
#define ATTN_V_COPIES (ATTN_TILE_CEIL_DIV(SLICE_K, ATTN_LANES_Q) * ATTN_ITEM_VALUES)
#define ATTN_TILE_COPIES ATTN_TILE_MAX(ATTN_K_COPIES + ATTN_Q_COPIES, ATTN_V_COPIES)

// 32-bit registers that one item needs, about: outputs, row state, the larger of the two products,
// the slice on its way, addresses. Compilers take more if nothing stops them.
#define ATTN_TILE_REGISTERS                                                                     \
  (4u * ITEM_ROWS * ATTN_ITEM_VALUES + 2u * ITEM_ROWS +                                         \
   ATTN_TILE_MAX(ITEM_ROWS * ATTN_ITEM_KEYS + 4u * ATTN_ITEM_KEYS + 8u, 4u * ITEM_ROWS + 16u) + \
   (PREFETCH != 0u ? 4u * ATTN_TILE_COPIES : 0u) + 32u)

// What the kernels take for granted. Evaluate ATTN_TILE_DIVISORS first: the rest divides by them.
#define ATTN_TILE_DIVISORS                                                            \
  (ITEM_ROWS > 0u && BLOCK_Q >= ITEM_ROWS && WG_X >= ATTN_LANES_Q && SLICE_D >= 4u && \
   SLICE_K >= 4u && WG_X >= ATTN_SLICE_VECTORS)
#define ATTN_TILE_POWER_OF_2(n) (((n) & ((n)-1u)) == 0u)
#define ATTN_TILE_VALID                                                                      \
  (ATTN_TILE_DIVISORS && ATTN_TILE_POWER_OF_2(WG_X) && ATTN_TILE_POWER_OF_2(ATTN_LANES_Q) && \
   BLOCK_Q % ITEM_ROWS == 0u && WG_X >= 4u * ATTN_LANES_Q && BLOCK_K > 0u &&                 \
   BLOCK_K % (4u * ATTN_LANES_K) == 0u && BLOCK_K % SLICE_K == 0u && SLICE_K % 4u == 0u &&   \
   SLICE_D % 4u == 0u && WG_X % ATTN_SLICE_VECTORS == 0u && KEEP_Q <= 1u && PREFETCH <= 1u)

#endif  // TESSERA_OPERATIONS_FLASH_ATTENTION_TILE_H
