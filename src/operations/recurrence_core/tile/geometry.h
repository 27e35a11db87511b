// SPDX-License-Identifier: Apache-2.0
// Numbers of recurrence/tile/forward that follow from its tunables: read by C++, OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_RECURRENCE_CORE_TILE_GEOMETRY_H
#define TESSERA_OPERATIONS_RECURRENCE_CORE_TILE_GEOMETRY_H

#define RECUR_ITEMS (WG_X * WG_Y)
#define RECUR_COLUMNS (4u * WG_X)
#define RECUR_KEY_FOURS (WG_Y * ROWS / 4u)
// Vectors of local memory: queries, keys and decays of TOKENS tokens; values, their decays,
// gradients of outputs; and, by kernel, the shares that lanes have of sums over the work-group.
#define RECUR_QUERIES 0u
#define RECUR_KEYS (TOKENS * RECUR_KEY_FOURS)
#define RECUR_DECAYS (2u * TOKENS * RECUR_KEY_FOURS)
#define RECUR_VALUES (3u * TOKENS * RECUR_KEY_FOURS)
#define RECUR_VALUE_DECAYS (RECUR_VALUES + TOKENS * WG_X)
#define RECUR_BETAS RECUR_VALUE_DECAYS  // of delta rules, whose values have no decays
#define RECUR_GRADIENTS (RECUR_VALUES + 2u * TOKENS * WG_X)
#define RECUR_SHARES (RECUR_VALUES + 3u * TOKENS * WG_X)
// Shares of sums over columns, a row of key dims for each lane, and over key dims, a vector of
// columns for each item.
#define RECUR_KEY_SHARES (TOKENS * WG_X * RECUR_KEY_FOURS)
#define RECUR_COLUMN_SHARES (TOKENS * RECUR_ITEMS)
#define RECUR_FORWARD_VECTORS (RECUR_SHARES + RECUR_COLUMN_SHARES)
#define RECUR_STATES_VECTORS (RECUR_SHARES + RECUR_KEY_SHARES)
#define RECUR_GRADIENTS_VECTORS (RECUR_SHARES + 2u * (RECUR_KEY_SHARES + RECUR_COLUMN_SHARES))
// Delta rules: the shares that items have of products with keys, of every other token; of the
// gradient, too, on the way back.
#define RECUR_FOUND_VECTORS (2u * RECUR_ITEMS)
#define RECUR_DELTA_FORWARD_VECTORS (RECUR_FORWARD_VECTORS + RECUR_FOUND_VECTORS)
#define RECUR_DELTA_STATES_VECTORS (RECUR_STATES_VECTORS + RECUR_FOUND_VECTORS)
#define RECUR_DELTA_GRADIENTS_VECTORS (RECUR_GRADIENTS_VECTORS + 2u * RECUR_FOUND_VECTORS)

#endif  // TESSERA_OPERATIONS_RECURRENCE_CORE_TILE_GEOMETRY_H
