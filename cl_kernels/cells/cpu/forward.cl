// SPDX-License-Identifier: Apache-2.0
// What     One step of recurrent cells on a CPU: gates, and the next state.
// Who      A work-item owns a panel of 16 units for some batch entries, BLOCK of them in registers at a time.
// Memory   The panel once for each BLOCK entries, from the second cache; states once for each panel.
// Numerics Float, terms in order.
// Assumes  Scratch and operands below 2^31 elements; a vector of room behind scratch.
#include "cells/cpu/step.clh"

CELL_PRODUCT(cell_gates, CELL_GATES)
#define CELL_KEEP_VALUE(block, x) \
  if (CELL_HAS(CELL_KEEPS)) STORE_KEPT(x, kept + (block)*hidden)

INLINE void take_panel(global float* scratch, global void* restrict output_elements, global void* restrict h_elements,
                       global void* restrict c_elements, global float* kept_numbers, const struct CellStepArgs args,
                       struct CellStep now, uint panel) {
  const uint direction = (uint)get_group_id(2), step = now.step;
  const uint hidden = args.hidden, terms = args.terms, tokens = args.tokens;
  const uint unit = panel * VECTOR_WIDTH, last_row = min(((uint)get_group_id(1) + 1) * args.rows, args.batch);
  const int left = (int)(hidden - unit);
  const size_t place_of_panel = direction * panels_of(&args, VECTOR_WIDTH) + panel;
  const global float* weights = scratch + args.weights + place_of_panel * terms * (CELL_GATES * VECTOR_WIDTH);
  const global float* states = scratch + now.from_state + (size_t)direction * args.batch * terms;
  const bool is_back = CELL_HAS(CELL_REVERSE) != (direction == 1);

  for (uint first = (uint)get_group_id(1) * args.rows, count; first < last_row; first += count) {
    floatv sums[BLOCK][CELL_GATES];
    count = cell_gates(sums, states, weights, terms, first, last_row);
    for (uint r = 0; r < count && first + r < last_row; ++r) {
      const uint row = first + r, entry = direction * args.batch + row;
      const uint length = (uint)SCRATCH(args.lengths + row);
      const bool is_token = step < length;
      const uint token = is_token && is_back ? length - 1 - step : step;
      const uint place = (row * tokens + token) * args.directions + direction;
      const uint cell = args.cell + entry * hidden + unit;
      const uint kept = args.kept + place * args.kept_row + unit;
      floatv before = 0.0f, c = 0.0f;
      if (!CELL_PROJECTED) before = LOAD_UNITS(now.from_state + entry * terms + unit);
      floatv h = before;
      if (CELL == CELL_LSTM) c = LOAD_UNITS(cell);
      if (is_token) {
        floatv of_input[CELL_GATES], of_hidden[CELL_GATES];
        UNROLL for (uint v = 0; v < CELL_GATES; ++v) {
          of_hidden[v] = sums[r][v] + LOAD_UNITS(args.bias + (direction * CELL_GATES + v) * hidden + unit);
          of_input[v] = LOAD_UNITS(args.product + (place * CELL_GATES + v) * hidden + unit);
        }
#include "operations/cells_core/gates.h"
        if (CELL == CELL_LSTM) STORE_UNITS(c, cell);
      }
      if (step < tokens) {
        if (CELL_PROJECTED) before = h;
        CELL_KEEP_VALUE(CELL_KEPT, is_token ? before : CELL_ZERO);
        if (!is_token) {
          UNROLL for (uint v = 0; v < CELL_KEPT; ++v) CELL_KEEP_VALUE(v, CELL_ZERO);
        }
        if (CELL_HAS(CELL_HAS_OUTPUT) && !CELL_PROJECTED)
          store_typed_part(is_token ? h : CELL_ZERO, output_elements,
                           args.out_offset + row * args.out_batch + token * args.out_token +
                               (direction * hidden + unit) * args.out_feature,
                           args.out_feature, left, CELL_TYPE(args.features));
      }
      STORE_UNITS(h, now.to_state + entry * args.to_terms + unit);
      if (now.is_last && CELL_HAS(CELL_HAS_H))
        store_typed_part(
            h, h_elements,
            args.h_offset + direction * args.h_direction + row * args.h_batch + unit * args.h_unit, args.h_unit,
            left, CELL_TYPE(args.features));
      if (now.is_last && CELL_HAS(CELL_HAS_C))
        store_typed_part(
            c, c_elements,
            args.c_offset + direction * args.c_direction + row * args.c_batch + unit * args.c_unit, args.c_unit,
            left, CELL_TYPE(args.features));
    }
  }
}

KERNEL void cells_cpu_forward(global float* scratch, global void* restrict output_elements,
                              global void* restrict h_elements, global void* restrict c_elements,
                              global float* kept_numbers, const struct CellStepArgs args) {
  for (uint i = 0; i < steps_of(&args, false); ++i) {
    const struct CellStep now = step_of(&args, i, false, VECTOR_WIDTH);
    for (uint panel = now.first_panel; panel < now.end_panel; ++panel)
      take_panel(scratch, output_elements, h_elements, c_elements, kept_numbers, args, now, panel);
  }
}
