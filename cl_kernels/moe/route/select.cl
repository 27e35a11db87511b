// SPDX-License-Identifier: Apache-2.0
// What     The top_k experts of each token and their scores, largest first; scratch: log-sum-exp of the token's logits
// Who      A work-group owns a token at a time, an item every WG_X-th expert: its rank is how many stand in front of it.
// Memory   Logits once.
// Numerics Float; the largest logit comes off before exp; sums as trees. Of equal experts the one with the lower number is
//          in front, excluded ones (-infinity, NaN) have score 0.
// Assumes  Experts, groups and top_k up to ROOM; fewer than 2^31 choices.
#define ARGS(name) (args.name)
#include "moe/route/items.clh"
#include "operations/moe/route/logits.h"

#define LOAD_LOGIT(token, e) load_scalar(logits, args.logits_offset + (size_t)(token) * args.logits_stride + (e))
#define BIAS(e) bias[args.bias_offset + (e)]
#define STORE_LOG_SUM(x, token) scratch[args.sums_of_exp + (token)] = (x)
#define STORE_ID(e, i) ids[args.ids_offset + (i)] = (e)
#define STORE_WEIGHT(x, i) weights[args.weights_offset + (i)] = (x)

KERNEL void moe_select(const global scalar* restrict logits, const global float* restrict bias, global int* restrict ids,
                       global float* restrict weights, global float* restrict scratch, const struct MoeRouteArgs args) {
  local float LOGITS[ROOM], KEYS[ROOM], GROUP_KEYS[ROOM], space[WG_X];
  local int CHOSEN[ROOM];
#include "operations/moe/route/select.h"
}
