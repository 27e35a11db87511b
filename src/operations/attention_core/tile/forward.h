// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/tile/forward, from WG_X and the names of forward.def. OpenCL C, GLSL and
// the host read this same text: a host function has those names as unsigned locals and evaluates
// TILE_VALID, TILE_LOCAL_BYTES and TILE_REGISTERS.
//
// A vector is four floats, the unit of local memory. Rows that lanes stride over are an odd number
// of vectors long, so that eight neighbouring rows start in different banks.
#ifndef TESSERA_OPERATIONS_FLASH_ATTENTION_TILE_H
#define TESSERA_OPERATIONS_FLASH_ATTENTION_TILE_H

#define TILE_CEIL_DIV(a, b) (((a) + (b)-1u) / (b))
#define TILE_MAX(a, b) ((a) > (b) ? (a) : (b))

// The work-group is LANES_Q x LANES_K items. Item (lane_q, lane_k) owns query rows
// lane_q + LANES_Q * r, and of keys and of value features those of vectors lane_k + LANES_K * g.
#define LANES_Q (BLOCK_Q / ITEM_ROWS)
#define LANES_K (WG_X / LANES_Q)
#define ITEM_KEYS (BLOCK_K / LANES_K)
#define ITEM_VALUES TILE_CEIL_DIV(VALUE_DIM, 4u * LANES_K)  // vectors

#define HEAD_SLICES TILE_CEIL_DIV(HEAD_DIM, SLICE_D)
#define SLICE_VECTORS (SLICE_D / 4u)
#define Q_STRIDE ((KEEP_Q != 0u ? HEAD_SLICES * SLICE_VECTORS : SLICE_VECTORS) | 1u)
#define K_STRIDE (SLICE_VECTORS | 1u)
#define P_STRIDE ((BLOCK_K / 4u) | 1u)
#define V_STRIDE (ITEM_VALUES * LANES_K)

// Local memory: [queries, if they stay][{queries, if they do not; keys} or {weights; values}].
#define Q_AREA (BLOCK_Q * Q_STRIDE)
#define K_AREA (BLOCK_K * K_STRIDE)
#define P_AREA (BLOCK_Q * P_STRIDE)
#define V_AREA (SLICE_K * V_STRIDE)
#define TILE_VECTORS                                         \
  (KEEP_Q != 0u ? Q_AREA + TILE_MAX(K_AREA, P_AREA + V_AREA) \
                : TILE_MAX(Q_AREA + K_AREA, P_AREA + V_AREA))
#define TILE_LOCAL_BYTES (16u * TILE_VECTORS)

// Vectors that one item copies per slice, COPY_ROWS rows apart, values LANES_Q rows.
#define COPY_ROWS (WG_X / SLICE_VECTORS)
#define Q_COPIES TILE_CEIL_DIV(BLOCK_Q, COPY_ROWS)
#define K_COPIES TILE_CEIL_DIV(BLOCK_K, COPY_ROWS)
#define V_COPIES (TILE_CEIL_DIV(SLICE_K, LANES_Q) * ITEM_VALUES)
#define TILE_COPIES TILE_MAX(K_COPIES + Q_COPIES, V_COPIES)

// 32-bit registers that one item needs, about: outputs, row state, the larger of the two products,
// the slice on its way, addresses. Compilers take more if nothing stops them.
#define TILE_REGISTERS                                                           \
  (4u * ITEM_ROWS * ITEM_VALUES + 2u * ITEM_ROWS +                               \
   TILE_MAX(ITEM_ROWS * ITEM_KEYS + 4u * ITEM_KEYS + 8u, 4u * ITEM_ROWS + 16u) + \
   (PREFETCH != 0u ? 4u * TILE_COPIES : 0u) + 32u)

// What the kernels take for granted. Evaluate TILE_DIVISORS first: the rest divides by them.
#define TILE_DIVISORS                                                                             \
  (ITEM_ROWS > 0u && BLOCK_Q >= ITEM_ROWS && WG_X >= LANES_Q && SLICE_D >= 4u && SLICE_K >= 4u && \
   WG_X >= SLICE_VECTORS)
#define TILE_POWER_OF_2(n) (((n) & ((n)-1u)) == 0u)
#define TILE_VALID                                                                    \
  (TILE_DIVISORS && TILE_POWER_OF_2(WG_X) && TILE_POWER_OF_2(LANES_Q) &&              \
   BLOCK_Q % ITEM_ROWS == 0u && WG_X >= 4u * LANES_Q && BLOCK_K > 0u &&               \
   BLOCK_K % (4u * LANES_K) == 0u && BLOCK_K % SLICE_K == 0u && SLICE_K % 4u == 0u && \
   SLICE_D % 4u == 0u && WG_X % SLICE_VECTORS == 0u && KEEP_Q <= 1u && PREFETCH <= 1u)

#endif  // TESSERA_OPERATIONS_FLASH_ATTENTION_TILE_H
