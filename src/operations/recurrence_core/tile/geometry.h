// SPDX-License-Identifier: Apache-2.0
// Numbers of recurrence/tile/forward that follow from its tunables: read by C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_RECURRENCE_CORE_TILE_GEOMETRY_H
#define TESSERA_OPERATIONS_RECURRENCE_CORE_TILE_GEOMETRY_H

#define RECUR_ITEMS (WG_X * WG_Y)
#define RECUR_COLUMNS (4u * WG_X)
#define RECUR_KEY_FOURS (WG_Y * ROWS / 4u)
// Vectors of local memory: queries, keys and decays of TOKENS tokens; their values and the decays
// of those; the shares of outputs that lanes of key dims have.
#define RECUR_QUERIES 0u
#define RECUR_KEYS (TOKENS * RECUR_KEY_FOURS)
#define RECUR_DECAYS (2u * TOKENS * RECUR_KEY_FOURS)
#define RECUR_VALUES (3u * TOKENS * RECUR_KEY_FOURS)
#define RECUR_VALUE_DECAYS (RECUR_VALUES + TOKENS * WG_X)
#define RECUR_SHARES (RECUR_VALUES + 2u * TOKENS * WG_X)
#define RECUR_VECTORS (RECUR_SHARES + TOKENS * RECUR_ITEMS)

#endif  // TESSERA_OPERATIONS_RECURRENCE_CORE_TILE_GEOMETRY_H
