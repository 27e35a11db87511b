// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of the recurrences' kernels: read by C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_RECURRENCE_CORE_ARGS_H
#define TESSERA_OPERATIONS_RECURRENCE_CORE_ARGS_H
#include "abi/shared.h"

// What a call has; bits of `features`.
#define RECUR_REVERSE 1u
#define RECUR_PACKED 2u
#define RECUR_GATE 4u      // g: a number for a token and head
#define RECUR_KEY_GATE 8u  // g: one for each key dim, too
#define RECUR_GAMMA 16u    // g_gamma
#define RECUR_GK 32u
#define RECUR_GV 64u
#define RECUR_INITIAL 128u  // forward: initial_state
#define RECUR_FINAL 256u    // forward: final_state is wanted; backward: its gradient is given
#define RECUR_ALIGNED 512u  // dims, offsets and strides are multiples of 4 elements
#define RECUR_RESUME 1024u  // the state comes from scratch, where the launch before has left it
#define RECUR_PAUSE 2048u   // the state goes there, for the launch after this one
// Gradients that are wanted.
#define RECUR_GRAD_QUERY 4096u
#define RECUR_GRAD_KEY 8192u
#define RECUR_GRAD_VALUE 16384u
#define RECUR_GRAD_G 32768u
#define RECUR_GRAD_GAMMA 65536u
#define RECUR_GRAD_GK 131072u
#define RECUR_GRAD_GV 262144u
#define RECUR_GRAD_INITIAL 524288u
#define RECUR_AGAIN 1048576u  // spans one after the other, where a factor of one is not finite
#define RECUR_GRAD_BETA 2097152u
#define RECUR_BACK 4194304u  // spans of the gradient of the state, the last one first
// Marks lie before the boundaries of sequences, the last one first.
#define RECUR_MARK_PLACE(unit) (args.boundaries - 1u - (unit))
// Those that need the state before each token.
#define RECUR_GRAD_DECAY (RECUR_GRAD_G | RECUR_GRAD_GAMMA | RECUR_GRAD_GK | RECUR_GRAD_GV)

// Tokens of a delta rule that matrix units take at once: bounds of their errors go by them.
#define RECUR_DELTA_CHUNK 64u

// Where the storage types stand in `types`, two bits each: DTYPE_… of abi/shared.h.
#define RECUR_TYPE_ROWS 0u  // query, key, value, output
#define RECUR_TYPE_G 2u
#define RECUR_TYPE_GAMMA 4u
#define RECUR_TYPE_GK 6u
#define RECUR_TYPE_GV 8u
#define RECUR_TYPE_BETA 10u

// The log decay of padding beside decays of any size: the lowest float.
#define RECUR_LOWEST_DECAY (-3.4028234e38f)

// Log decays above this have factors that floats may not hold: kernels hold minus a share of such a
// decay, of which two, or the largest that has a factor, say the same of every state: it is 0, or
// what comes of it is beyond a float, too.
#define RECUR_MOST_DECAY 88.0f
#define RECUR_LARGEST_SHARE 88.72f

// The factor of a span that is too small for a float, but not 0: the least normal one.
#define RECUR_LEAST_FACTOR 1.17549435e-38f

// Of cu_seqlens; in the order of Operation::errors.
#define RECUR_ERROR_OUTSIDE 0u
#define RECUR_ERROR_DECREASES 1u

TESSERA_ABI_BEGIN

// Where rows of an operand lie. Offsets and strides count elements; the last axis is contiguous.
struct RecurRows {
  u32 offset;
  u32 batch;
  u32 token;
  u32 head;
};

// Where the states of an operand lie: key_dim rows of value_dim contiguous floats.
struct RecurStates {
  u32 offset;
  u32 sequence;
  u32 head;
  u32 row;
};

struct RecurArgs {
  u32 features;  // RECUR_…
  u32 types;
  u32 tokens;     // of a batch entry
  u32 sequences;  // batch entries, or those that are packed
  u32 heads;
  u32 key_dim;
  u32 value_dim;
  u32 first;  // token of each sequence with which the launch begins
  u32 most;   // tokens of a sequence that it takes
  u32 spans;  // parts of each sequence that work-groups share; 1: none
  // Where the states before spans begin in scratch, in vectors of four floats, and the factors of
  // spans, in floats.
  u32 span_states;
  u32 span_factors;
  u32 boundaries;  // where those of sequences begin in scratch, in entries of 4 bytes
  f32 scale;
  f32 slope;  // head times this joins the log decay
  u32 gamma_offset;
  u32 gamma_stride;
  STRUCT(RecurRows) query;
  STRUCT(RecurRows) key;
  STRUCT(RecurRows) value;
  STRUCT(RecurRows) g;
  STRUCT(RecurRows) gk;
  STRUCT(RecurRows) gv;
  STRUCT(RecurRows) beta;
  STRUCT(RecurRows) result;  // output, or its gradient
  STRUCT(RecurStates) initial_state;
  STRUCT(RecurStates) final_state;  // or its gradient
  // Backward.
  u32 dgamma_offset;
  u32 dgamma_stride;
  u32 segment;  // tokens between states that are kept for the way back; spans are whole segments
  u32 rows;     // tokens of all batch entries, times heads
  u32 tiles;    // blocks of columns
  // Where they begin in scratch, in vectors of four floats: states before each segment; those
  // before each token of the segment that a work-group is in; shares of gradients that blocks of
  // columns have, rows of key dims by fours; sums of decays' gradients over key dims, a number a
  // row; shares of the gradients of beta, a number a row.
  u32 kept;
  u32 inner;
  u32 dquery_shares;
  u32 dkey_shares;
  u32 decay_shares;
  u32 sums;
  u32 beta_shares;
  // Of delta rules by chunks: states before chunks and gradients of those behind them, a row of key
  // dims for each column; changes of tokens and the gradients of what those are of beta.
  u32 states;
  u32 dstates;
  u32 changes;
  u32 dchanges;
  STRUCT(RecurRows) dquery;
  STRUCT(RecurRows) dkey;
  STRUCT(RecurRows) dvalue;
  STRUCT(RecurRows) dg;
  STRUCT(RecurRows) dgk;
  STRUCT(RecurRows) dgv;
  STRUCT(RecurRows) dbeta;
  STRUCT(RecurStates) dinitial;
};

// Of the pass that puts spans together.
struct RecurSpanArgs {
  u32 vectors;  // of four floats of a span's states
  u32 rows;     // key dims of an item
  u32 lanes;    // items that share key dims
  u32 items;    // of a work-group
  u32 factors;  // key dims of a work-group
  u32 spans;
  u32 span_states;
  u32 span_factors;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_RECURRENCE_CORE_ARGS_H
