// SPDX-License-Identifier: Apache-2.0
// Per-launch arguments of causal_conv1d's kernels: read by C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_CAUSAL_CONV1D_ARGS_H
#define TESSERA_OPERATIONS_CAUSAL_CONV1D_ARGS_H
#include "operations/state_space_core/args.h"

// What a call has; bits of `features`.
#define CONV_PACKED 1u
#define CONV_BIAS 2u
#define CONV_INITIAL 4u
#define CONV_FINAL 8u  // forward: final_state is wanted; backward: its gradient is given
#define CONV_SILU 16u
#define CONV_ALIGNED 32u  // rows and states are contiguous by fours
#define CONV_GRAD_INPUT 64u
#define CONV_GRAD_WEIGHT 128u
#define CONV_GRAD_BIAS 256u
#define CONV_GRAD_INITIAL 512u
#define CONV_STREAM 1024u           // processors: outputs go past the caches
#define CONV_TAPS_OF_CHANNEL 2048u  // four taps of a channel are a vector

// Where the storage types stand in `types`, two bits each: DTYPE_… of abi/shared.h.
#define CONV_TYPE_ROWS 0u  // input, states, output
#define CONV_TYPE_WEIGHT 2u
#define CONV_TYPE_BIAS 4u

TESSERA_ABI_BEGIN

struct ConvArgs {
  u32 features;  // CONV_…
  u32 types;
  u32 tokens;  // of a batch entry
  u32 batches;
  u32 sequences;
  u32 dim;
  u32 width;
  u32 chunk;   // tokens of an item
  u32 chunks;  // of a batch entry
  u32 states;  // units behind the chunks: a sequence's state each
  u32 shares;  // where the shares of the weights' gradients begin in scratch, in vectors of four
  u32 weight_offset;
  u32 weight_row;  // from channel to channel
  u32 weight_column;
  u32 bias_offset;
  u32 bias_stride;
  u32 dweight_offset;
  u32 dweight_row;
  u32 dweight_column;
  u32 dbias_offset;
  u32 dbias_stride;
  STRUCT(SpaceRows) source;  // input, which GLSL reserves
  STRUCT(SpaceRows) initial_state;
  STRUCT(SpaceRows) result;       // output, or its gradient
  STRUCT(SpaceRows) final_state;  // or its gradient
  STRUCT(SpaceRows) dinput;
  STRUCT(SpaceRows) dinitial;
};

TESSERA_ABI_END
#endif  // TESSERA_OPERATIONS_CAUSAL_CONV1D_ARGS_H
