// SPDX-License-Identifier: Apache-2.0
// Channels of an item of vectors.h: those of sixteen bytes. Text for OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_CAUSAL_CONV1D_CHANNELS_H
#define TESSERA_OPERATIONS_CAUSAL_CONV1D_CHANNELS_H

#define CONV_FOURS (ROWS_TYPE == DTYPE_F32 ? 1u : 2u)
#define CONV_CHANNELS (4u * CONV_FOURS)

#endif  // TESSERA_OPERATIONS_CAUSAL_CONV1D_CHANNELS_H
