// SPDX-License-Identifier: Apache-2.0
// What     One step of a projection of recurrent cells on a CPU: h, or on the way back its gradient.
// Who      A work-item owns a panel of 64 outputs for some batch entries, BLOCK of them in registers at a time.
// Memory   The panel once for each BLOCK entries, from the second cache; states once for each panel.
// Numerics Float, terms in order.
// Assumes  Scratch and operands below 2^31 elements; a vector of room behind scratch.
#include "cells/cpu/step.clh"

CELL_PRODUCT(cell_projection, CELL_BACK_VECTORS)
#define CELL_STORE(x, at) STORE_UNITS(x, at)
#define CELL_KEEP(x) STORE_KEPT(x, kept)
#define CELL_GRADIENT load_typed_part(elements, out_at, args.out_feature, left, CELL_TYPE(args.features))
#define CELL_STORE_OUTPUT(x) store_typed_part(x, elements, out_at, args.out_feature, left, CELL_TYPE(args.features))
#define CELL_STORE_H(x)                                                                                       \
  store_typed_part(x, h_elements,                                                                             \
                   args.h_offset + direction * args.h_direction + row * args.h_batch + unit * args.h_unit,    \
                   args.h_unit, left, CELL_TYPE(args.features))

KERNEL void cells_cpu_project(global float* scratch, global void* restrict elements, global void* restrict h_elements,
                              global float* kept_numbers, const struct CellProjectArgs args) {
  const uint panel = (uint)get_group_id(0), panels = (uint)get_num_groups(0), direction = (uint)get_group_id(2);
  const uint outputs = args.outputs, terms = args.terms, tokens = args.tokens, step = args.step;
  const uint last_row = min(((uint)get_group_id(1) + 1) * args.rows, args.batch);
  const global float* weights =
      scratch + args.weights + (size_t)(direction * panels + panel) * terms * (CELL_BACK_VECTORS * VECTOR_WIDTH);
  const global float* states = scratch + args.from_state + (size_t)direction * args.batch * terms;
  const bool is_back = CELL_HAS(CELL_REVERSE) != (direction == 1);

  for (uint first = (uint)get_group_id(1) * args.rows, count; first < last_row; first += count) {
    floatv sums[BLOCK][CELL_BACK_VECTORS];
    count = cell_projection(sums, states, weights, terms, first, last_row);
    for (uint item = 0; item < count * CELL_BACK_VECTORS; ++item) {
      const uint row = first + item / CELL_BACK_VECTORS;
      const uint unit = (panel * CELL_BACK_VECTORS + item % CELL_BACK_VECTORS) * VECTOR_WIDTH;
      if (row >= last_row || unit >= outputs) continue;
      const int left = (int)(outputs - unit);
      const uint entry = direction * args.batch + row, carry = args.carry + entry * args.carry_terms + unit;
      const uint length = (uint)SCRATCH(args.lengths + row);
      const bool is_token = step < length;
      const uint token = is_token && is_back ? length - 1 - step : step;
      const uint kept = args.kept + ((row * tokens + token) * args.directions + direction) * args.kept_row + unit;
      const uint out_at = args.out_offset + row * args.out_batch + token * args.out_token +
                          (direction * outputs + unit) * args.out_feature;
      const floatv before = LOAD_UNITS(carry);
      floatv h = sums[item / CELL_BACK_VECTORS][item % CELL_BACK_VECTORS];
#include "operations/cells_core/project.h"
    }
  }
}
