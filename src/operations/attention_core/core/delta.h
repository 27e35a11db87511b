// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/core/delta, for OpenCL C, GLSL and the host: items that share a row. The
// work-group is a multiple of it.
#ifndef TESSERA_OPERATIONS_ATTENTION_DELTA_H
#define TESSERA_OPERATIONS_ATTENTION_DELTA_H

#define DELTA_LANES 16u

#endif  // TESSERA_OPERATIONS_ATTENTION_DELTA_H
