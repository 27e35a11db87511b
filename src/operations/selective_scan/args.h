// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of selective_scan's kernels: read by C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_SELECTIVE_SCAN_ARGS_H
#define TESSERA_OPERATIONS_SELECTIVE_SCAN_ARGS_H
#include "operations/state_space_core/args.h"

// What a call has; bits of `features`.
#define SCAN_PACKED 1u
#define SCAN_D 2u
#define SCAN_Z 4u
#define SCAN_BIAS 8u
#define SCAN_SOFTPLUS 16u
#define SCAN_INITIAL 32u
#define SCAN_FINAL 64u     // forward: final_state is wanted; backward: its gradient is given
#define SCAN_ALIGNED 128u  // a and states are contiguous by fours
#define SCAN_BACK 256u     // spans are put together from the last one on
#define SCAN_GRAD_U 512u
#define SCAN_GRAD_DELTA 1024u
#define SCAN_GRAD_A 2048u
#define SCAN_GRAD_B 4096u
#define SCAN_GRAD_C 8192u
#define SCAN_GRAD_D 16384u
#define SCAN_GRAD_Z 32768u
#define SCAN_GRAD_BIAS 65536u
#define SCAN_GRAD_INITIAL 131072u

// Where the storage types stand in `types`, two bits each: DTYPE_… of abi/shared.h.
#define SCAN_TYPE_ROWS 0u  // u, delta, b, c, z, output
#define SCAN_TYPE_A 2u
#define SCAN_TYPE_D 4u
#define SCAN_TYPE_BIAS 6u

// What an item of the kernels for CPUs has room for: vectors of channels, and states of a channel.
#define SCAN_CPU_VECTORS 4
#define SCAN_CPU_STATES 256

TESSERA_ABI_BEGIN

// Where b or c lies. Offsets and strides count elements.
struct ScanFactors {
  u32 offset;
  u32 batch;
  u32 token;
  u32 group;
  u32 state;
};

struct ScanArgs {
  u32 features;  // SCAN_…
  u32 types;
  u32 tokens;  // of a batch entry
  u32 batches;
  u32 sequences;
  u32 dim;
  u32 groups;
  u32 states;  // of a channel
  u32 span;    // tokens that a work-group takes
  u32 spans;   // of a batch entry
  // Of the work-groups: channels, parts of the states, states of an item.
  u32 lanes;
  u32 parts;
  u32 rows;
  // Where they begin in scratch. In vectors of four floats: what spans make of no state, then the
  // states before them, then their shares of a's gradient; what they make of no gradient, then the
  // gradients of the states behind them. In floats: two numbers of a span and channel, the sum of
  // steps and whether the state before counts behind it, then shares of the gradients of d and of
  // delta_bias; the shares of the gradients of b and c of each block of channels.
  u32 made;
  u32 back;
  u32 sums;
  u32 products;
  u32 a_offset;
  u32 a_row;
  u32 a_column;
  u32 d_offset;
  u32 d_stride;
  u32 bias_offset;
  u32 bias_stride;
  u32 da_offset;
  u32 da_row;
  u32 da_column;
  u32 dd_offset;
  u32 dd_stride;
  u32 dbias_offset;
  u32 dbias_stride;
  STRUCT(SpaceRows) u;
  STRUCT(SpaceRows) delta;
  STRUCT(SpaceRows) z;
  STRUCT(SpaceRows) result;         // output, or its gradient
  STRUCT(SpaceRows) initial_state;  // [sequences, dim, state], as are the other states
  STRUCT(SpaceRows) final_state;    // or its gradient
  STRUCT(SpaceRows) du;
  STRUCT(SpaceRows) ddelta;
  STRUCT(SpaceRows) dz;
  STRUCT(SpaceRows) dinitial;
  STRUCT(ScanFactors) b;
  STRUCT(ScanFactors) c;
  STRUCT(ScanFactors) db;
  STRUCT(ScanFactors) dc;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_SELECTIVE_SCAN_ARGS_H
