// SPDX-License-Identifier: Apache-2.0
// The largest magnitude of a row. Text for OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_NORMS_QUANTISED_LARGEST_H
#define TESSERA_OPERATIONS_NORMS_QUANTISED_LARGEST_H

// The larger one of `most` and the magnitudes of `value`, by components. NaN is none.
FUNCTION FLOAT4 norm_larger(FLOAT4 most, FLOAT4 value) {
  const FLOAT4 magnitude = ABSOLUTE(value);
  return MAKE_FLOAT4(
      magnitude.x > most.x ? magnitude.x : most.x, magnitude.y > most.y ? magnitude.y : most.y,
      magnitude.z > most.z ? magnitude.z : most.z, magnitude.w > most.w ? magnitude.w : most.w);
}

// Over the items of a line, the same in all of them, in the work-group memory and the way of
// norm_total(). Values are not negative.
FUNCTION float norm_largest(NORM_PARAMETERS u32 line, u32 lane, float value) {
  const u32 first = line * NORM_LINE;
  float largest = value;
  if (NORM_WARPS != 0u) {
    largest = NORM_WARP_LARGEST(largest);
    if (lane % 32u == 0u) NORM_SPACE(first + lane / 32u) = largest;
    NORM_BARRIER();
    largest = NORM_SPACE(first);
    UNROLL for (u32 warp = 1u; warp < NORM_WARPS; ++warp) largest =
        max(largest, NORM_SPACE(first + warp));
    NORM_BARRIER();
    return largest;
  }
  NORM_SPACE(first + lane) = largest;
  for (u32 other = TO_U32(WG_X) + lane; other < NORM_LINE; other += TO_U32(WG_X))
    NORM_SPACE(first + other) = 0.0f;
  NORM_BARRIER();
  if (TO_U32(WG_X) > NORM_FOLD) {
    if (lane < NORM_FOLD) {
      for (u32 other = lane + NORM_FOLD; other < TO_U32(WG_X); other += NORM_FOLD)
        largest = max(largest, NORM_SPACE(first + other));
      NORM_SPACE(first + lane) = largest;
    }
    NORM_BARRIER();
  }
  const u32 vector = first / 4u;
  const FLOAT4 all = max(max(NORM_SPACE4(vector), NORM_SPACE4(vector + 1u)),
                         max(NORM_SPACE4(vector + 2u), NORM_SPACE4(vector + 3u)));
  NORM_BARRIER();
  return max(max(all.x, all.y), max(all.z, all.w));
}

#endif  // TESSERA_OPERATIONS_NORMS_QUANTISED_LARGEST_H
