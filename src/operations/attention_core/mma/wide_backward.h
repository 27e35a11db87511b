// SPDX-License-Identifier: Apache-2.0
// Geometry of attention/mma/wide_backward_keys and attention/mma/wide_backward_queries, from the
// names of wide_backward.def; OWN and STEP stand for KEYS and KEY_STEP or QUERIES and
// QUERY_STEP. OpenCL C and the host read this same text.
#ifndef TESSERA_OPERATIONS_ATTENTION_MMA_WIDE_BACKWARD_H
#define TESSERA_OPERATIONS_ATTENTION_MMA_WIDE_BACKWARD_H
#include "operations/attention_core/mma/backward.h"

#define ATTN_MMA_WIDE_ITEMS 256u

// Four pairs of warps share the products of a step: tiles of so many own rows and rows of the step.
#define ATTN_MMA_WIDE_TILE_STEP(STEP) ((STEP) > 32u ? 32u : (STEP))
#define ATTN_MMA_WIDE_TILE_OWN(OWN, STEP) ((OWN) * ((STEP) / ATTN_MMA_WIDE_TILE_STEP(STEP)) / 4u)

// Local memory: [own rows of both operands][weights, and gradients of logits], then stages as
// backward.h has them. A row of weights is 128 bytes, of which gradients take the second half
// where a step leaves it; else they come behind all weights.
#define ATTN_MMA_WEIGHT_PITCH 128u
#define ATTN_MMA_GRADIENTS_START(OWN, STEP) ((STEP) > 32u ? (OWN)*ATTN_MMA_WEIGHT_PITCH : 64u)
#define ATTN_MMA_WEIGHT_BYTES(OWN, STEP) ((OWN)*ATTN_MMA_WEIGHT_PITCH * ((STEP) > 32u ? 2u : 1u))
#define ATTN_MMA_WIDE_BYTES(OWN, STEP)                            \
  ((OWN)*ATTN_MMA_PAIR_PITCH + ATTN_MMA_WEIGHT_BYTES(OWN, STEP) + \
   STAGES * ATTN_MMA_STAGE_BYTES(STEP))

// 32-bit registers of an item: SUM_ROWS rows of a quarter of the columns, and a tile's products.
#define ATTN_MMA_MOST_PITCH \
  (ATTN_HEAD_PITCH > ATTN_VALUE_PITCH ? ATTN_HEAD_PITCH : ATTN_VALUE_PITCH)
#define ATTN_MMA_WIDE_REGISTERS(OWN, STEP, SUM_ROWS, PITCH) \
  ((SUM_ROWS) / 16u * ((PITCH) / 128u) * 8u +               \
   ATTN_MMA_WIDE_TILE_OWN(OWN, STEP) * ATTN_MMA_WIDE_TILE_STEP(STEP) / 32u)

#define ATTN_MMA_WIDE_STEP_VALID(STEP) ((STEP) == 16u || (STEP) == 32u || (STEP) == 64u)
#define ATTN_MMA_WIDE_VALID                                                 \
  (WG_X == ATTN_MMA_WIDE_ITEMS && ATTN_MMA_WIDE_STEP_VALID(KEY_STEP) &&     \
   ATTN_MMA_WIDE_STEP_VALID(QUERY_STEP) && (KEYS == 64u || KEYS == 128u) && \
   (QUERIES == 64u || QUERIES == 128u) && STAGES >= 1u && STAGES <= 2u)

#endif  // TESSERA_OPERATIONS_ATTENTION_MMA_WIDE_BACKWARD_H
