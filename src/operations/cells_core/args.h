// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of recurrent cells: read by C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_CELLS_CORE_ARGS_H
#define TESSERA_OPERATIONS_CELLS_CORE_ARGS_H
#include "abi/shared.h"

TESSERA_ABI_BEGIN

#define CELL_RNN 0
#define CELL_LSTM 1
#define CELL_GRU 2
#define CELL_LANES 16  // units that lie side by side in packed weights

// Bits of `features`.
#define CELL_HAS_BIAS 1
#define CELL_HAS_H 2
#define CELL_HAS_C 4
#define CELL_HAS_LENGTHS 8
#define CELL_BACKWARD 16  // weights are packed for the way back
#define CELL_CLEANS 32    // input is copied, with 0 behind lengths
#define CELL_REVERSE 64
#define CELL_RELU 128
#define CELL_KEEPS 256  // for the way back, see CELL_KEPT
#define CELL_LAST 512   // launch of a pass
#define CELL_WIDE 1024  // panels of vectors of units, not of the gates of CELL_LANES units
#define CELL_PROJECTS 2048
#define CELL_ALL_STEPS 4096  // a work-group takes all steps, and all panels of its batch entries
#define CELL_HAS_OUTPUT 8192
#define CELL_FIRST 16384  // launch of a call
// In arguments of steps the storage type, DTYPE_… of abi/shared.h, lies above them.
#define CELL_TYPE_SHIFT 16
#define CELL_TYPE(features) ((features) >> CELL_TYPE_SHIFT)

// Offsets and strides count elements; places in scratch count floats.
struct CellBeginArgs {
  u32 features;
  u32 type;  // DTYPE_… of abi/shared.h
  u32 batch;
  u32 tokens;
  u32 inputs;
  u32 hidden;
  u32 outputs;  // numbers of h
  u32 gates;
  u32 directions;
  u32 units;    // columns of the product, of which each has
  u32 depth;    // terms,
  u32 terms;    // by fours
  u32 vectors;  // of CELL_LANES columns in a panel
  u32 at_once;  // vectors that lie side by side; those of all terms do before the next
  u32 panels;   // of a direction
  u32 lanes;    // of packed weights that an item takes at a time: 1 or CELL_LANES
  u32 errors;
  u32 weight_offset;
  u32 weight_direction;
  u32 weight_unit;
  u32 weight_term;
  u32 weight_gate;
  u32 bias_offset;
  u32 bias_direction;
  u32 bias_row;
  u32 h_offset;
  u32 h_direction;
  u32 h_batch;
  u32 h_unit;
  u32 c_offset;
  u32 c_direction;
  u32 c_batch;
  u32 c_unit;
  u32 lengths_offset;
  u32 lengths_stride;
  u32 input_offset;
  u32 input_batch;
  u32 input_token;
  u32 input_feature;
  u32 weights;  // in scratch, as what follows
  u32 bias;
  u32 lengths;
  u32 state;  // two of [directions, batch, terms]
  u32 cell;   // [directions, batch, hidden]
  u32 carry;  // [directions, batch, outputs]
  u32 clean;  // counts elements of `type`
  u32 zeros;  // where a way wants some, and
  u32 zero_count;
};

struct CellStepArgs {
  u32 features;
  u32 step;
  u32 batch;
  u32 tokens;
  u32 hidden;
  u32 directions;
  u32 terms;
  u32 to_terms;  // between rows of to_state
  u32 rows;      // batch entries of a work-group
  u32 product;   // in scratch, as what follows: [batch, tokens, directions, gates, hidden]
  u32 weights;
  u32 bias;
  u32 lengths;
  u32 from_state;
  u32 to_state;
  u32 cell;
  u32 carry;
  u32 turned;  // of gru, as product: gradients of weight_hh h + bias_hh
  u32 kept;    // [batch, tokens, directions, kept_row], in scratch or in the operand `reserve`
  u32 kept_row;
  u32 out_offset;
  u32 out_batch;
  u32 out_token;
  u32 out_feature;
  u32 h_offset;
  u32 h_direction;
  u32 h_batch;
  u32 h_unit;
  u32 c_offset;
  u32 c_direction;
  u32 c_batch;
  u32 c_unit;
};

// h of a product of what the cells made; on the way back the gradient of h, as they take it.
struct CellProjectArgs {
  u32 features;
  u32 step;
  u32 batch;
  u32 tokens;
  u32 outputs;
  u32 directions;
  u32 terms;
  u32 to_terms;
  u32 carry_terms;  // between rows of `carry`
  u32 rows;
  u32 weights;  // in scratch, as what follows
  u32 lengths;
  u32 from_state;
  u32 to_state;
  u32 carry;  // h before the step, or the gradient that passes those behind lengths
  u32 kept;   // [batch, tokens, directions, kept_row]: h before a step as CellStepArgs has it, or
  u32 kept_row;  // the gradient of h, in scratch
  u32 out_offset;
  u32 out_batch;
  u32 out_token;
  u32 out_feature;
  u32 h_offset;
  u32 h_direction;
  u32 h_batch;
  u32 h_unit;
};

TESSERA_ABI_END

// What a kind of cell has.
#define CELL_GATES (CELL == CELL_LSTM ? 4u : CELL == CELL_GRU ? 3u : 1u)
// What a step keeps for the way back are so many blocks of `hidden` numbers: of lstm the gates and
// c before the step; of gru the gates and weight_hh h + bias_hh of the third; of rnn h. Behind them
// lie what is projected, if something is, and h before the step. Behind lengths all are 0.
#define CELL_KEPT (CELL == CELL_LSTM ? 5u : CELL == CELL_GRU ? 4u : 1u)
// Only lstm has projections.
#define CELL_PROJECTED (CELL == CELL_LSTM && CELL_HAS(CELL_PROJECTS))
// Wide panels have as many vectors for every cell.
#define CELL_BACK_VECTORS 4
#endif  // TESSERA_OPERATIONS_CELLS_CORE_ARGS_H
