// SPDX-License-Identifier: Apache-2.0
// lib/cpu alone. panels: rows to a panel and back, times a factor. functions: exp2_from and tanh_vector.
#define LANES (VECTORS * VECTOR_WIDTH)
#include "lib/cpu/panels.clh"

KERNEL void panels(const global scalar* from, global scalar* to, global float* wild, const uint rows) {
  const int first = (int)get_group_id(0) * LANES, last = (int)rows - 1;
  const Rows in = {from, FEATURES};
  floatv panel[(FEATURES + VECTOR_WIDTH - 1) / VECTOR_WIDTH * VECTOR_WIDTH][VECTORS];
  load_panel(in, first, last, FEATURES, 2.0f, panel);
  for (int j = 0; j < VECTORS; ++j) {
    const int row = first + j * VECTOR_WIDTH;
    store_panel((const floatv(*)[VECTORS])panel, j, (floatv)(1.5f), FEATURES, to, FEATURES, row, last);
    for (int i = 0; i < VECTOR_WIDTH && row + i <= last; ++i) {
      float of_lane[VECTOR_WIDTH];
      vstorev(wildness(row_of(in, row + i), FEATURES), 0, of_lane);
      wild[row + i] = 0.0f;
      for (int k = 0; k < VECTOR_WIDTH; ++k) wild[row + i] += of_lane[k];
    }
  }
}

KERNEL void functions(const global float* x, global float* power, global float* tangent) {
  const size_t at = get_group_id(0) * VECTOR_WIDTH;
  const floatv of = vloadv(0, x + at);
  vstorev(exp2_from(of, (floatv)(EXP2_ORIGIN)), 0, power + at);
  vstorev(tanh_vector(of), 0, tangent + at);
}
