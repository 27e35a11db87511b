// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/mma/backward_keys and attention/mma/backward_queries, from WG_X and the
// names of backward.def; OWN_TILES and STEP stand for KEY_TILES and KEY_STEP or QUERY_TILES and
// QUERY_STEP. OpenCL C and the host read this same text.
#ifndef TESSERA_OPERATIONS_ATTENTION_MMA_BACKWARD_H
#define TESSERA_OPERATIONS_ATTENTION_MMA_BACKWARD_H
#include "operations/attention_core/mma/forward.h"

// Rows of a group: keys or query rows.
#define ATTN_MMA_OWN(OWN_TILES) (ATTN_WARPS * 16u * (OWN_TILES))
// Local memory: [own rows of both operands], then for each of two stages [rows of the other kind,
// of both operands][log_sum_exp and delta of those rows].
#define ATTN_MMA_PAIR_PITCH (ATTN_HEAD_PITCH + ATTN_VALUE_PITCH)
#define ATTN_MMA_STAGE_BYTES(STEP) ((STEP) * (ATTN_MMA_PAIR_PITCH + 8u))
#define ATTN_MMA_BACKWARD_BYTES(OWN_TILES, STEP) \
  (ATTN_MMA_OWN(OWN_TILES) * ATTN_MMA_PAIR_PITCH + 2u * ATTN_MMA_STAGE_BYTES(STEP))

// 32-bit registers of an item: sums, scores and their gradients.
#define ATTN_MMA_BACKWARD_REGISTERS(OWN_TILES, STEP, SUM_STEPS) \
  ((OWN_TILES) * ((SUM_STEPS)*8u + (STEP)))

#define ATTN_MMA_BACKWARD_VALID                                                             \
  (WG_X % 64u == 0u && WG_X >= 64u && WG_X <= 256u && KEY_TILES >= 1u && KEY_TILES <= 2u && \
   QUERY_TILES >= 1u && QUERY_TILES <= 2u && KEY_STEP % 32u == 0u && KEY_STEP > 0u &&       \
   QUERY_STEP % 16u == 0u && QUERY_STEP > 0u)

#endif  // TESSERA_OPERATIONS_ATTENTION_MMA_BACKWARD_H
