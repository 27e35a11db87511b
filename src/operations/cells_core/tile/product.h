// SPDX-License-Identifier: Apache-2.0
// Text of the step kernels: SPACE gets sums of ROWS rows of a state times the panel's columns,
// PRODUCT_VECTORS vectors of CELL_LANES, from each part of the terms.

const u32 lane = LOCAL_ID_X, part = LOCAL_ID_Y, panel = GROUP_ID_X, direction = GROUP_ID_Z;
const u32 first_row = GROUP_ID_Y * ROWS, batch = ARGS(batch), terms = ARGS(terms);
{
  float sums[ROWS * PRODUCT_VECTORS];
  UNROLL for (u32 i = 0u; i < ROWS * PRODUCT_VECTORS; ++i) sums[i] = 0.0f;
  const u32 weights =
      ARGS(weights) +
      (direction * GROUP_COUNT_X + panel) * terms * PRODUCT_VECTORS * TO_U32(CELL_LANES) + lane;
  const u32 state = ARGS(from_state) + direction * batch * terms;
  for (u32 four = part; four < terms / 4u; four += WG_Y) {
    FLOAT4 factors[ROWS];
    UNROLL for (u32 r = 0u; r < ROWS; ++r) factors[r] =
        SCRATCH_FOUR((state + min(first_row + r, batch - 1u) * terms) / 4u + four);
    const u32 at = weights + four * 4u * PRODUCT_VECTORS * TO_U32(CELL_LANES);
    UNROLL for (u32 v = 0u; v < PRODUCT_VECTORS; ++v) {
      const float w0 = SCRATCH(at + v * TO_U32(CELL_LANES));
      const float w1 = SCRATCH(at + (PRODUCT_VECTORS + v) * TO_U32(CELL_LANES));
      const float w2 = SCRATCH(at + (2u * PRODUCT_VECTORS + v) * TO_U32(CELL_LANES));
      const float w3 = SCRATCH(at + (3u * PRODUCT_VECTORS + v) * TO_U32(CELL_LANES));
      UNROLL for (u32 r = 0u; r < ROWS; ++r) {
        sums[r * PRODUCT_VECTORS + v] += w0 * factors[r].x + w1 * factors[r].y;
        sums[r * PRODUCT_VECTORS + v] += w2 * factors[r].z + w3 * factors[r].w;
      }
    }
  }
  UNROLL for (u32 i = 0u; i < ROWS * PRODUCT_VECTORS; ++i)
      SPACE((part * ROWS * PRODUCT_VECTORS + i) * TO_U32(CELL_LANES) + lane) = sums[i];
}
CELL_BARRIER();
