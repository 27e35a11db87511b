// SPDX-License-Identifier: Apache-2.0
// The beginning of the kernels' bodies: what an item owns, ROWS states of a channel in a span of
// tokens. Text for OpenCL C and GLSL.

const u32 lane = LOCAL_ID_X, part = LOCAL_ID_Y, item = part * TO_U32(WG_X) + lane;
const u32 channels = ARGS(dim) / ARGS(groups);  // of a group of channels
const u32 blocks = (channels + TO_U32(WG_X) - 1u) / TO_U32(WG_X), tiles = blocks * ARGS(groups);
const u32 work = GROUP_ID_Y * GROUP_COUNT_X + GROUP_ID_X;
const u32 tile = work % tiles, unit = work / tiles, branch = tile / blocks;
const u32 column = tile % blocks * TO_U32(WG_X) + lane, channel = branch * channels + column;
const FLOAT4 zero = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
FLOAT4 rate[SCAN_FOURS], state[SCAN_FOURS];
UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
  rate[f] = state[f] = zero;
  if (column < channels && SCAN_LEFT(f) > 0u)
    rate[f] = LOAD_A(ARGS(a_offset) + channel * ARGS(a_row) + SCAN_FIRST(f) * ARGS(a_column),
                     SCAN_LEFT(f));
}
