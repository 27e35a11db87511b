// SPDX-License-Identifier: Apache-2.0
// Where rows lie, by names that a kernel's body has: batch, sequence, begin, channel, left. Text
// for OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_CAUSAL_CONV1D_PLACES_H
#define TESSERA_OPERATIONS_CAUSAL_CONV1D_PLACES_H

#define CONV_HAS(feature) ((ARGS(features) & (feature)) != 0u)
#define CONV_ROW(rows, t)                                                \
  (ARGS(rows.offset) + batch * ARGS(rows.batch) + (t)*ARGS(rows.token) + \
   channel * ARGS(rows.feature))
#define CONV_STATE(rows, r)                                                 \
  (ARGS(rows.offset) + sequence * ARGS(rows.batch) + (r)*ARGS(rows.token) + \
   channel * ARGS(rows.feature))

// What stands `back` tokens before `at`, which is no further back than the state reaches.
#define CONV_TAKE(x, at, back)                                                             \
  {                                                                                        \
    x = zero;                                                                              \
    if ((at)-begin >= (back)) {                                                            \
      x = LOAD_INPUT(CONV_ROW(source, (at) - (back)), left);                               \
    } else if (CONV_HAS(CONV_INITIAL)) {                                                   \
      x = LOAD_INITIAL(CONV_STATE(initial_state, WIDTH - 1u + (at)-begin - (back)), left); \
    }                                                                                      \
  }

// Channels of an item, side by side.
#ifndef CONV_CHANNELS
#define CONV_CHANNELS 4u
#endif

// The units: chunks of tokens, then the states of sequences.
#define CONV_UNITS (ARGS(batches) * ARGS(chunks) + ARGS(states))

#endif  // TESSERA_OPERATIONS_CAUSAL_CONV1D_PLACES_H
