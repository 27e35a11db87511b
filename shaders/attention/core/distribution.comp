// SPDX-License-Identifier: Apache-2.0
// As cl_kernels/attention/core/distribution.cl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "lib/errors.glsl"
#include "operations/attention_core/distribution_args.h"

layout(std430, binding = 0) readonly buffer Ends { int ends[]; };
layout(std430, binding = 1) readonly buffer Starts { int starts[]; };
layout(std430, binding = 2) buffer Errors { uint errors[]; };
PUSH_ARGS(AttentionDistributionArgs);

#define END(n) ends[args.offset + uint(n) * args.stride]
#define START(n) starts[args.starts_offset + uint(n) * args.starts_stride]
#define RAISE(error, index) RAISE_ERROR(errors, args.errors, error, uint(index))

void main() {
  const int n = int(gl_GlobalInvocationID.x), most = int(args.sequences);
  if (n < 3) {
    const int before = n > 0 ? END(max(n - 1, 0)) : 0;
    if (END(n) < before || END(n) > most) RAISE(DISTRIBUTION_OUT_OF_ORDER, n);
  }
  if (n < min(END(0), most)) {
    const int first = START(n), end = START(n + 1);
    if (end < first || uint(end) - uint(first) != 1u) RAISE(DISTRIBUTION_NOT_ONE_ROW, n);
  }
}
