// SPDX-License-Identifier: Apache-2.0
// The body of state_space/conv/combine.cl and combine.comp. Text for OpenCL C and GLSL.

const u32 fours = (ARGS(dim) + 3u) / 4u, group = GROUP_ID_Y * GROUP_COUNT_X + GROUP_ID_X;
const u32 item = group * TO_U32(WG_X) + LOCAL_ID_X, j = item / max(fours, 1u);
const u32 width = ARGS(width);
if (j <= width) {
  const u32 four = item % fours, channel = 4u * four, left = min(4u, ARGS(dim) - channel);
  FLOAT4 sum = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
  // Eight are asked for at once.
  const u32 units = ARGS(batches) * ARGS(chunks), step = (width + 1u) * fours;
  const u32 at = ARGS(shares) + j * fours + four;
  u32 unit = 0u;
  for (; unit + 8u <= units; unit += 8u) {
    FLOAT4 share[8];
    UNROLL for (u32 i = 0u; i < 8u; ++i) share[i] = SHARE(at + (unit + i) * step);
    UNROLL for (u32 i = 0u; i < 8u; ++i) sum += share[i];
  }
  for (; unit < units; ++unit) sum += SHARE(at + unit * step);
  if (j < width && CONV_HAS(CONV_GRAD_WEIGHT)) {
    STORE_DWEIGHT(
        sum, ARGS(dweight_offset) + channel * ARGS(dweight_row) + j * ARGS(dweight_column), left);
  } else if (j == width && CONV_HAS(CONV_GRAD_BIAS)) {
    STORE_DBIAS(sum, ARGS(dbias_offset) + channel * ARGS(dbias_stride), left);
  }
}
