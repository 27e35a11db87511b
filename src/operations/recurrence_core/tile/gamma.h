// SPDX-License-Identifier: Apache-2.0
// The body of recurrence/tile/gamma.cl and gamma.comp. Text for OpenCL C and GLSL.

const u32 head = GROUP_ID_X, item = LOCAL_ID_X;
float sum = 0.0f;
for (u32 row = item * ARGS(heads) + head; row < ARGS(rows); row += WG_X * ARGS(heads))
  sum += SCRATCH_FLOAT(4u * ARGS(sums) + row);
SUMS(item) = sum;
RECUR_BARRIER();
if (item == 0u) {
  for (u32 other = 1u; other < WG_X; ++other) sum += SUMS(other);
  STORE_DGAMMA(sum, ARGS(dgamma_offset) + head * ARGS(dgamma_stride));
}
