// SPDX-License-Identifier: Apache-2.0
// What     The balance loss, of scores and choices of experts, and the z loss, of the squares of log-sum-exps
// Who      One work-group, an item every WG_X-th expert or token.
// Memory   Sums of blocks, and a float of each token.
// Numerics Float; blocks in order, items as a tree.
// Assumes  WG_X is a power of 2.
#define ARGS(name) (args.name)
#include "moe/route/items.clh"

#define HAS_BALANCE (LOSSES % 2 != 0)
#define HAS_Z (LOSSES / 2 != 0)
#define LOG_SUM(token) scratch[args.sums_of_exp + (token)]
#define BLOCK_SUM(block, e) scratch[args.block_sums + (block) * args.experts + (e)]
#define STORE_BALANCE(x) balance_loss[args.balance_offset] = (x)
#define STORE_Z(x) z_loss[args.z_offset] = (x)
#define TOTAL(e) ((const global uint*)scratch)[args.totals + (e)]

KERNEL void moe_losses(const global float* restrict scratch, global float* restrict balance_loss,
                       global float* restrict z_loss, const struct MoeRouteArgs args) {
  local float space[WG_X];
#include "operations/moe/route/losses.h"
}
