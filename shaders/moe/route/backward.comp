// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/moe/route/backward.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#define ARGS(name) (args.route.name)
#include "moe/route/items.glsl"
#include "operations/moe/route/logits.h"

layout(std430, binding = 0) readonly buffer Logits { scalar logits[]; };
layout(std430, binding = 1) readonly buffer Ids { int ids[]; };
layout(std430, binding = 2) readonly buffer Slots { int slots[]; };
layout(std430, binding = 3) readonly buffer GradWeights { float grad_weights[]; };
layout(std430, binding = 4) readonly buffer GradBalance { float grad_balance[]; };
layout(std430, binding = 5) readonly buffer GradZ { float grad_z[]; };
layout(std430, binding = 6) readonly buffer Scratch { uint scratch[]; };
layout(std430, binding = 7) writeonly buffer GradLogits { scalar grad_logits[]; };
BUFFER_ARGS(MoeRouteBackwardArgs, 8);

shared float LOGITS[ROOM];
shared float SLOPES[ROOM];

#define HAS_BALANCE (LOSSES % 2u != 0u)
#define HAS_Z (LOSSES / 2u != 0u)
#define ID(i) ids[ARGS(ids_offset) + (i)]
#define HAS_PLACE(i) (slots[ARGS(slots_offset) + (i)] >= 0 && ID(i) >= 0 && ID(i) < TO_INT(ARGS(experts)))
#define GRAD_WEIGHT(i) grad_weights[args.grad_weights_offset + (i)]
#define GRAD_BALANCE grad_balance[args.grad_balance_offset]
#define GRAD_Z grad_z[args.grad_z_offset]
#define LOAD_LOGIT(token, e) load_scalar(logits[ARGS(logits_offset) + (token) * ARGS(logits_stride) + (e)])
#define TOTAL(e) scratch[ARGS(totals) + (e)]
#define STORE_GRADIENT(x, token, e) \
  grad_logits[args.grad_logits_offset + (token) * args.grad_logits_stride + (e)] = store_scalar(x)

void main() {
#include "operations/moe/route/backward.h"
}
