// SPDX-License-Identifier: Apache-2.0
// LANES items of a work-group share a row, and work-groups take rows in turns. Text for OpenCL C
// and GLSL.
#ifndef TESSERA_OPERATIONS_KV_CACHE_LINES_H
#define TESSERA_OPERATIONS_KV_CACHE_LINES_H

#define CACHE_LANES TO_U32(LANES)
#define CACHE_LANE (LOCAL_ID % CACHE_LANES)
#define CACHE_LINE (LOCAL_ID / CACHE_LANES)
#define CACHE_LINES (TO_U32(WG_X) / CACHE_LANES)
#define CACHE_FIRST (GROUP_ID * CACHE_LINES)
#define CACHE_END ARGS(rows)
#define CACHE_STEP (GROUP_COUNT * CACHE_LINES)
#define CACHE_WIDTH (ALIGNED != 0 ? 8u : 2u)
#define CACHE_PEAKS float
#define CACHE_NO_PEAK 0.0f
#define CACHE_LARGEST(peak) (peak)
#define CACHE_DIVIDE_BY(scale) const float inverse = inverse_of_scale(scale);

#endif  // TESSERA_OPERATIONS_KV_CACHE_LINES_H
