// SPDX-License-Identifier: Apache-2.0
// The body of cells/tile/forward.cl and forward.comp: one step. Text for OpenCL C and GLSL.

#define PRODUCT_VECTORS CELL_GATES
#include "operations/cells_core/tile/product.h"

const u32 hidden = ARGS(hidden), tokens = ARGS(tokens), step = ARGS(step);
const u32 unit = panel * TO_U32(CELL_LANES) + lane;
for (u32 r = part; r < ROWS; r += WG_Y) {
  const u32 row = first_row + r;
  if (row < batch && unit < hidden) {
    const u32 length = TO_U32(SCRATCH(ARGS(lengths) + row));
    const bool is_token = step < length;
    const bool is_back = CELL_HAS(CELL_REVERSE) != (direction == 1u);
    const u32 token = is_token && is_back ? length - 1u - step : step;
    const u32 place = (row * tokens + token) * ARGS(directions) + direction;
    const u32 entry = direction * batch + row;
    const u32 kept = ARGS(kept) + place * ARGS(kept_row) + unit;
    float before = 0.0f, c = 0.0f;
    if (!CELL_PROJECTED) before = SCRATCH(ARGS(from_state) + entry * terms + unit);
    float h = before;
    if (CELL == CELL_LSTM) c = SCRATCH(ARGS(cell) + entry * hidden + unit);
    if (is_token) {
      float of_input[CELL_GATES], of_hidden[CELL_GATES];
      UNROLL for (u32 v = 0u; v < CELL_GATES; ++v) {
        float sum = 0.0f;
        for (u32 p = 0u; p < WG_Y; ++p)
          sum += SPACE(((p * ROWS + r) * CELL_GATES + v) * TO_U32(CELL_LANES) + lane);
        of_hidden[v] = sum + SCRATCH(ARGS(bias) + (direction * CELL_GATES + v) * hidden + unit);
        of_input[v] = SCRATCH(ARGS(product) + (place * CELL_GATES + v) * hidden + unit);
      }
#include "operations/cells_core/gates.h"
      if (CELL == CELL_LSTM) SCRATCH(ARGS(cell) + entry * hidden + unit) = c;
    }
    if (step < tokens) {
      const u32 at = ARGS(out_offset) + row * ARGS(out_batch) + token * ARGS(out_token) +
                     (direction * hidden + unit) * ARGS(out_feature);
      if (CELL_PROJECTED) before = h;
      CELL_KEEP_VALUE(CELL_KEPT, is_token ? before : 0.0f);
      if (!is_token) {
        UNROLL for (u32 v = 0u; v < CELL_KEPT; ++v) CELL_KEEP_VALUE(v, 0.0f);
      }
      if (CELL_HAS(CELL_HAS_OUTPUT) && !CELL_PROJECTED) STORE_OUTPUT(is_token ? h : 0.0f, at);
    }
    SCRATCH(ARGS(to_state) + entry * ARGS(to_terms) + unit) = h;
    if (CELL_HAS(CELL_LAST)) {
      if (CELL_HAS(CELL_HAS_H))
        STORE_H(h, ARGS(h_offset) + direction * ARGS(h_direction) + row * ARGS(h_batch) +
                       unit * ARGS(h_unit));
      if (CELL_HAS(CELL_HAS_C))
        STORE_C(c, ARGS(c_offset) + direction * ARGS(c_direction) + row * ARGS(c_batch) +
                       unit * ARGS(c_unit));
    }
  }
}
