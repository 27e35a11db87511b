// SPDX-License-Identifier: Apache-2.0
// The body of cells/tile/backward.cl and backward.comp: one step, from the last to the first, and
// behind it a launch that gives the gradients of states. Text for OpenCL C and GLSL.

#define PRODUCT_VECTORS CELL_BACK_VECTORS
#include "operations/cells_core/tile/product.h"

const u32 hidden = ARGS(hidden), tokens = ARGS(tokens), step = ARGS(step);
for (u32 item = part; item < ROWS * CELL_BACK_VECTORS; item += WG_Y) {
  const u32 row = first_row + item / CELL_BACK_VECTORS;
  const u32 unit =
      (panel * CELL_BACK_VECTORS + item % CELL_BACK_VECTORS) * TO_U32(CELL_LANES) + lane;
  if (row < batch && unit < hidden) {
    const u32 entry = direction * batch + row, at = entry * hidden + unit;
    float dh = 0.0f, dc = 0.0f;
    if (!CELL_PROJECTED) dh = SCRATCH(ARGS(carry) + at);
    for (u32 p = 0u; p < WG_Y; ++p)
      dh += SPACE((p * ROWS * CELL_BACK_VECTORS + item) * TO_U32(CELL_LANES) + lane);
    if (CELL == CELL_LSTM) dc = SCRATCH(ARGS(cell) + at);
    if (CELL_HAS(CELL_LAST)) {
      if (CELL_HAS(CELL_HAS_H))
        STORE_H(dh, ARGS(h_offset) + direction * ARGS(h_direction) + row * ARGS(h_batch) +
                        unit * ARGS(h_unit));
      if (CELL_HAS(CELL_HAS_C))
        STORE_C(dc, ARGS(c_offset) + direction * ARGS(c_direction) + row * ARGS(c_batch) +
                        unit * ARGS(c_unit));
    } else {
      const u32 length = TO_U32(SCRATCH(ARGS(lengths) + row));
      const bool is_token = step < length;
      const bool is_back = CELL_HAS(CELL_REVERSE) != (direction == 1u);
      const u32 token = is_token && is_back ? length - 1u - step : step;
      const u32 place = (row * tokens + token) * ARGS(directions) + direction;
      const u32 kept = ARGS(kept) + place * ARGS(kept_row) + unit;
      float gradients[CELL_GATES];
      UNROLL for (u32 v = 0u; v < CELL_GATES; ++v) gradients[v] = 0.0f;
      float turned = 0.0f;  // of gru, of weight_hh h + bias_hh of the third gate
      float carry = dh;
      if (is_token) {
        if (!CELL_PROJECTED)
          dh += LOAD_GRADIENT(ARGS(out_offset) + row * ARGS(out_batch) + token * ARGS(out_token) +
                              (direction * hidden + unit) * ARGS(out_feature));
#include "operations/cells_core/gradients.h"
        if (CELL == CELL_LSTM) SCRATCH(ARGS(cell) + at) = dc;
      }
      if (!CELL_PROJECTED) SCRATCH(ARGS(carry) + at) = carry;
      UNROLL for (u32 v = 0u; v < CELL_GATES; ++v) {
        const u32 to = (place * CELL_GATES + v) * hidden + unit;
        SCRATCH(ARGS(product) + to) = gradients[v];
        if (CELL == CELL_GRU && v == 2u) gradients[v] = turned;
        if (CELL == CELL_GRU) SCRATCH(ARGS(turned) + to) = gradients[v];
        SCRATCH(ARGS(to_state) + entry * ARGS(to_terms) + v * hidden + unit) = gradients[v];
      }
    }
  }
}
