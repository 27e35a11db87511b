// SPDX-License-Identifier: Apache-2.0
// What     One step back through recurrent cells on a CPU: gradients of gates and of the state before; in the last
//          launch those of h0 and c0.
// Who      A work-item owns a panel of 64 units for some batch entries, BLOCK of them in registers at a time.
// Memory   The panel once for each BLOCK entries, from the second cache; gradients once for each panel.
// Numerics Float, terms in order.
// Assumes  Scratch and operands below 2^31 elements; a vector of room behind scratch.
#include "cells/cpu/step.clh"

CELL_PRODUCT(cell_back, CELL_BACK_VECTORS)
#define PANEL_UNITS (CELL_BACK_VECTORS * VECTOR_WIDTH)
#define CELL_KEPT_VALUE(block) load_typed_part(kept_numbers, kept + (block)*hidden, 1, left, DTYPE_F32)

INLINE void take_panel(global float* scratch, const global void* restrict gradient_elements,
                       global void* restrict h_elements, global void* restrict c_elements,
                       const global float* kept_numbers, const struct CellStepArgs args, struct CellStep now,
                       uint panel) {
  const uint direction = (uint)get_group_id(2), step = now.step;
  const uint hidden = args.hidden, terms = args.terms, tokens = args.tokens;
  const uint last_row = min(((uint)get_group_id(1) + 1) * args.rows, args.batch);
  const size_t place_of_panel = direction * panels_of(&args, PANEL_UNITS) + panel;
  const global float* weights = scratch + args.weights + place_of_panel * terms * PANEL_UNITS;
  const global float* states = scratch + now.from_state + (size_t)direction * args.batch * terms;
  const bool is_back = CELL_HAS(CELL_REVERSE) != (direction == 1);

  for (uint first = (uint)get_group_id(1) * args.rows, count; first < last_row; first += count) {
    floatv sums[BLOCK][CELL_BACK_VECTORS];
    count = cell_back(sums, states, weights, terms, first, last_row);
    for (uint item = 0; item < count * CELL_BACK_VECTORS; ++item) {
      const uint row = first + item / CELL_BACK_VECTORS;
      const uint unit = (panel * CELL_BACK_VECTORS + item % CELL_BACK_VECTORS) * VECTOR_WIDTH;
      if (row >= last_row || unit >= hidden) continue;
      const int left = (int)(hidden - unit);
      const uint entry = direction * args.batch + row, at = entry * hidden + unit;
      floatv dh = sums[item / CELL_BACK_VECTORS][item % CELL_BACK_VECTORS], dc = 0.0f;
      if (!CELL_PROJECTED) dh = LOAD_UNITS(args.carry + at) + dh;
      if (CELL == CELL_LSTM) dc = LOAD_UNITS(args.cell + at);
      if (now.is_last) {
        if (CELL_HAS(CELL_HAS_H))
          store_typed_part(
              dh, h_elements,
              args.h_offset + direction * args.h_direction + row * args.h_batch + unit * args.h_unit, args.h_unit,
              left, CELL_TYPE(args.features));
        if (CELL_HAS(CELL_HAS_C))
          store_typed_part(
              dc, c_elements,
              args.c_offset + direction * args.c_direction + row * args.c_batch + unit * args.c_unit, args.c_unit,
              left, CELL_TYPE(args.features));
        continue;
      }
      const uint length = (uint)SCRATCH(args.lengths + row);
      const bool is_token = step < length;
      const uint token = is_token && is_back ? length - 1 - step : step;
      const uint place = (row * tokens + token) * args.directions + direction;
      floatv gradients[CELL_GATES];
      UNROLL for (uint v = 0; v < CELL_GATES; ++v) gradients[v] = 0.0f;
      floatv turned = 0.0f;  // of gru, of weight_hh h + bias_hh of the third gate
      floatv carry = dh;
      if (is_token) {
        const uint kept = args.kept + place * args.kept_row + unit;
        if (!CELL_PROJECTED)
          dh += load_typed_part(gradient_elements,
                                args.out_offset + row * args.out_batch + token * args.out_token +
                                    (direction * hidden + unit) * args.out_feature,
                                args.out_feature, left, CELL_TYPE(args.features));
#include "operations/cells_core/gradients.h"
        if (CELL == CELL_LSTM) STORE_UNITS(dc, args.cell + at);
      }
      if (!CELL_PROJECTED) STORE_UNITS(carry, args.carry + at);
      UNROLL for (uint v = 0; v < CELL_GATES; ++v) {
        const uint to = (place * CELL_GATES + v) * hidden + unit;
        STORE_UNITS(gradients[v], args.product + to);
        if (CELL == CELL_GRU && v == 2) gradients[v] = turned;
        if (CELL == CELL_GRU) STORE_UNITS(gradients[v], args.turned + to);
        STORE_UNITS(gradients[v], now.to_state + entry * args.to_terms + v * hidden + unit);
      }
    }
  }
}

KERNEL void cells_cpu_backward(global float* scratch, const global void* restrict gradient_elements,
                               global void* restrict h_elements, global void* restrict c_elements,
                               const global float* kept_numbers, const struct CellStepArgs args) {
  for (uint i = 0; i < steps_of(&args, true); ++i) {
    const struct CellStep now = step_of(&args, i, true, PANEL_UNITS);
    for (uint panel = now.first_panel; panel < now.end_panel; ++panel)
      take_panel(scratch, gradient_elements, h_elements, c_elements, kept_numbers, args, now, panel);
  }
}
