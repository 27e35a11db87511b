// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/attention/core/scaled_rows.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "abi/storage.h"
#include "operations/attention_core/scaled_args.h"

layout(std430, binding = 0) readonly buffer From { scalar from[]; };
layout(std430, binding = 1) writeonly buffer To { scalar to[]; };
PUSH_ARGS(AttentionScaledArgs);

void main() {
  const uint n = gl_GlobalInvocationID.x;
  if (n >= args.rows * args.heads * args.dim) return;
  const uint d = n % args.dim, head = n / args.dim % args.heads, row = n / args.dim / args.heads;
  const float x =
      load_scalar(from[args.from.offset + row * args.from.stride_row + head * args.from.stride_head + d]) /
      args.divisor * args.factor;
  float result = x > args.most ? args.most : x < -args.most ? -args.most : x;
  if (args.code != 0u) result = from_storage(args.code, to_storage(args.code, result));
  to[args.to.offset + row * args.to.stride_row + head * args.to.stride_head + d] = store_scalar(result);
}
