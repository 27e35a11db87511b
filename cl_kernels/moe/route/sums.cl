// SPDX-License-Identifier: Apache-2.0
// What     scratch: scores of each expert added up over blocks of tokens
// Who      A work-group owns a block of tokens, an item every WG_X-th expert.
// Memory   Logits once.
// Numerics Float; tokens in order.
// Assumes  Fewer than 2^31 logits of a block.
#define ARGS(name) (args.name)
#include "moe/route/items.clh"
#include "operations/moe/route/logits.h"

#define LOAD_LOGIT(token, e) load_scalar(logits, args.logits_offset + (size_t)(token) * args.logits_stride + (e))
#define LOG_SUM(token) scratch[args.sums_of_exp + (token)]
#define BLOCK_SUM(block, e) scratch[args.block_sums + (block) * args.experts + (e)]

KERNEL void moe_sums(const global scalar* restrict logits, global float* restrict scratch, const struct MoeRouteArgs args) {
#include "operations/moe/route/sums.h"
}
