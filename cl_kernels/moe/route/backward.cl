// SPDX-License-Identifier: Apache-2.0
// What     The gradient of the logits: through weights, balance loss and z loss
// Who      A work-group owns a token at a time, an item every WG_X-th expert.
// Memory   Logits once, gradients of logits once.
// Numerics Float; sums as trees, choices of a token in order. None through the choice of experts.
// Assumes  Experts and top_k up to ROOM.
#define ARGS(name) (args.route.name)
#include "moe/route/items.clh"
#include "operations/moe/route/logits.h"

#define HAS_BALANCE (LOSSES % 2 != 0)
#define HAS_Z (LOSSES / 2 != 0)
#define ID(i) ids[ARGS(ids_offset) + (i)]
#define HAS_PLACE(i) (slots[ARGS(slots_offset) + (i)] >= 0 && ID(i) >= 0 && ID(i) < TO_INT(ARGS(experts)))
#define GRAD_WEIGHT(i) grad_weights[args.grad_weights_offset + (i)]
#define GRAD_BALANCE grad_balance[args.grad_balance_offset]
#define GRAD_Z grad_z[args.grad_z_offset]
#define LOAD_LOGIT(token, e) load_scalar(logits, ARGS(logits_offset) + (size_t)(token) * ARGS(logits_stride) + (e))
#define TOTAL(e) scratch[ARGS(totals) + (e)]
#define STORE_GRADIENT(x, token, e) \
  store_scalar(x, grad_logits, args.grad_logits_offset + (size_t)(token) * args.grad_logits_stride + (e))

KERNEL void moe_route_backward(const global scalar* restrict logits, const global int* restrict ids,
                               const global int* restrict slots, const global float* restrict grad_weights,
                               const global float* restrict grad_balance, const global float* restrict grad_z,
                               const global uint* restrict scratch, global scalar* restrict grad_logits,
                               const struct MoeRouteBackwardArgs args) {
  local float LOGITS[ROOM], SLOPES[ROOM], space[WG_X];
#include "operations/moe/route/backward.h"
}
