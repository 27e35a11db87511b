// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/moe/route/select.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#define ARGS(name) (args.name)
#include "moe/route/items.glsl"
#include "operations/moe/route/logits.h"

layout(std430, binding = 0) readonly buffer Logits { scalar logits[]; };
layout(std430, binding = 1) readonly buffer Bias { float bias[]; };
layout(std430, binding = 2) writeonly buffer Ids { int ids[]; };
layout(std430, binding = 3) writeonly buffer Weights { float weights[]; };
layout(std430, binding = 4) writeonly buffer Scratch { float scratch[]; };
PUSH_ARGS(MoeRouteArgs);

shared float LOGITS[ROOM];
shared float KEYS[ROOM];
shared float GROUP_KEYS[ROOM];
shared int CHOSEN[ROOM];

#define LOAD_LOGIT(token, e) load_scalar(logits[args.logits_offset + (token) * args.logits_stride + (e)])
#define BIAS(e) bias[args.bias_offset + (e)]
#define STORE_LOG_SUM(x, token) scratch[args.sums_of_exp + (token)] = (x)
#define STORE_ID(e, i) ids[args.ids_offset + (i)] = (e)
#define STORE_WEIGHT(x, i) weights[args.weights_offset + (i)] = (x)

void main() {
#include "operations/moe/route/select.h"
}
