// SPDX-License-Identifier: Apache-2.0
// lib/cpu alone. panels: rows to a panel and back, times a factor. products: four rows of floats times a
// panel. functions: exp2_from and tanh_vector.
#define LANES (VECTORS * VECTOR_WIDTH)
#include "lib/cpu/panels.clh"
#include "lib/cpu/products.clh"

KERNEL void panels(const global scalar* from, global scalar* to, global float* wild, const uint rows) {
  const int first = (int)get_group_id(0) * LANES, last = (int)rows - 1;
  const PanelRows in = {from, FEATURES};
  floatv panel[(FEATURES + VECTOR_WIDTH - 1) / VECTOR_WIDTH * VECTOR_WIDTH][VECTORS];
  load_panel(in, first, last, FEATURES, 2.0f, panel);
  for (int j = 0; j < VECTORS; ++j) {
    const int row = first + j * VECTOR_WIDTH;
    store_panel((const floatv(*)[VECTORS])panel, j, (floatv)(1.5f), (intv)(-1), FEATURES, to, FEATURES, row,
                last);
    for (int i = 0; i < VECTOR_WIDTH && row + i <= last; ++i) {
      float of_lane[VECTOR_WIDTH];
      vstorev(wildness(panel_row(in, row + i), FEATURES), 0, of_lane);
      wild[row + i] = 0.0f;
      for (int k = 0; k < VECTOR_WIDTH; ++k) wild[row + i] += of_lane[k];
    }
  }
}

PANEL_ADD_PRODUCTS(add_features, const global float*, int, 4, VECTORS, fma, NO_AHEAD)
KERNEL void products(const global float* rows, const global scalar* columns, global float* to, const uint count) {
  const PanelRows in = {columns, FEATURES};
  floatv panel[(FEATURES + VECTOR_WIDTH - 1) / VECTOR_WIDTH * VECTOR_WIDTH][VECTORS], sum[4][VECTORS];
  load_panel(in, 0, (int)count - 1, FEATURES, 1.0f, panel);
  for (int r = 0; r < 4; ++r) for (int j = 0; j < VECTORS; ++j) sum[r][j] = 0.0f;
  add_features(sum, rows, FEATURES, 1, panel[0], VECTORS, 0, FEATURES, 0, VECTORS, 0);
  for (int r = 0; r < 4; ++r)
    for (int j = 0; j < VECTORS; ++j) vstorev(sum[r][j], 0, to + r * LANES + j * VECTOR_WIDTH);
}

KERNEL void functions(const global float* x, global float* power, global float* tangent) {
  const size_t at = get_group_id(0) * VECTOR_WIDTH;
  const floatv of = vloadv(0, x + at);
  vstorev(exp2_from(of, (floatv)(EXP2_ORIGIN)), 0, power + at);
  vstorev(tanh_vector(of), 0, tangent + at);
}
