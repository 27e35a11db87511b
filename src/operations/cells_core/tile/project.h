// SPDX-License-Identifier: Apache-2.0
// The body of cells/tile/project.cl and project.comp: h of one step, or its gradient. Text for
// OpenCL C and GLSL.

#define PRODUCT_VECTORS CELL_BACK_VECTORS
#include "operations/cells_core/tile/product.h"

const u32 outputs = ARGS(outputs), tokens = ARGS(tokens), step = ARGS(step);
for (u32 item = part; item < ROWS * CELL_BACK_VECTORS; item += WG_Y) {
  const u32 row = first_row + item / CELL_BACK_VECTORS;
  const u32 unit =
      (panel * CELL_BACK_VECTORS + item % CELL_BACK_VECTORS) * TO_U32(CELL_LANES) + lane;
  if (row < batch && unit < outputs) {
    const u32 entry = direction * batch + row;
    const u32 carry = ARGS(carry) + entry * ARGS(carry_terms) + unit;
    const u32 length = TO_U32(SCRATCH(ARGS(lengths) + row));
    const bool is_token = step < length;
    const bool is_back = CELL_HAS(CELL_REVERSE) != (direction == 1u);
    const u32 token = is_token && is_back ? length - 1u - step : step;
    const u32 kept = ARGS(kept) +
                     ((row * tokens + token) * ARGS(directions) + direction) * ARGS(kept_row) +
                     unit;
    const u32 out_at = ARGS(out_offset) + row * ARGS(out_batch) + token * ARGS(out_token) +
                       (direction * outputs + unit) * ARGS(out_feature);
    const float before = SCRATCH(carry);
    float h = 0.0f;
    for (u32 p = 0u; p < WG_Y; ++p)
      h += SPACE((p * ROWS * CELL_BACK_VECTORS + item) * TO_U32(CELL_LANES) + lane);
#include "operations/cells_core/project.h"
  }
}
