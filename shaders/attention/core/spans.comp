// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/attention/core/spans.cl; biases of 16 bits are taken out of words.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/bits16.glsl"
#include "lib/errors.glsl"
#include "operations/attention_core/core/spans_args.h"

layout(std430, binding = 0) writeonly buffer Scratch { ivec4 scratch[]; };
layout(std430, binding = 1) readonly buffer Starts { int starts[]; };
layout(std430, binding = 2) readonly buffer Ends { int ends[]; };
layout(std430, binding = 0) writeonly buffer Spread { float spread[]; };
layout(std430, binding = 3) buffer Errors { uint errors[]; };
layout(std430, binding = 4) readonly buffer Biases { uint words[]; };
PUSH_ARGS(AttentionSpansArgs);

float bias_at(uint i) {
  if (args.type == DTYPE_F32) return uintBitsToFloat(words[i]);
  const uint bits = (words[i / 2u] >> (i % 2u * 16u)) & 0xffffu;
  return args.type == DTYPE_F16 ? unpackHalf2x16(bits).x : bfloat16_pair(bits).x;
}

void main() {
  const uint n = gl_GlobalInvocationID.x, head = gl_WorkGroupID.y;
  if (head < args.heads && n < args.kv_len) {
    float bias = 0.0;
    if (n < args.biases) bias = bias_at(args.biases_offset + head * args.biases_stride_head + n * args.biases_stride);
    spread[args.to + head * args.kv_len + n] = bias;
  }
  if (n >= args.batch || head > 0u) return;
  const int start = starts[args.starts_offset + n * args.starts_stride];
  const int end = ends[args.ends_offset + n * args.ends_stride];
  const int begin = clamp(start, 0, int(args.kv_len)), last = clamp(end, begin, int(args.kv_len));
  if (begin != start) RAISE_ERROR(errors, args.errors, SPANS_BAD_START, n);
  if (last != end) RAISE_ERROR(errors, args.errors, SPANS_BAD_END, n);
  const int first = args.band_low > INDEX_MIN ? max(begin, last - 1 + args.band_low) : begin;
  scratch[args.rows + n] = first < last ? ivec4(first, last, last - 1, 0) : ivec4(0, 0, 0, -1);
}
