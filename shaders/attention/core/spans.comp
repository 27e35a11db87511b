// SPDX-License-Identifier: Apache-2.0
// What     The table of rows where each sequence has one query and the keys from sequence_start to sequence_end.
// Who      Item (x): sequence x.
// Memory   16 bytes per sequence written.
// Numerics Whole numbers. What contradicts the operands counts as the nearest that does not, and is raised.
// Assumes  Lengths below 2^30.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/errors.glsl"
#include "operations/attention_core/core/spans_args.h"

layout(std430, binding = 0) writeonly buffer Scratch { ivec4 scratch[]; };
layout(std430, binding = 1) readonly buffer Starts { int starts[]; };
layout(std430, binding = 2) readonly buffer Ends { int ends[]; };
layout(std430, binding = 3) buffer Errors { uint errors[]; };
PUSH_ARGS(AttentionSpansArgs);

void main() {
  const uint n = gl_GlobalInvocationID.x;
  if (n >= args.batch) return;
  const int start = starts[args.starts_offset + n * args.starts_stride];
  const int end = ends[args.ends_offset + n * args.ends_stride];
  const int begin = clamp(start, 0, int(args.kv_len)), last = clamp(end, begin, int(args.kv_len));
  if (begin != start) RAISE_ERROR(errors, args.errors, SPANS_BAD_START, n);
  if (last != end) RAISE_ERROR(errors, args.errors, SPANS_BAD_END, n);
  const int first = args.band_low > INDEX_MIN ? max(begin, last - 1 + args.band_low) : begin;
  scratch[args.rows + n] = first < last ? ivec4(first, last, last - 1, 0) : ivec4(0, 0, 0, -1);
}
