// SPDX-License-Identifier: Apache-2.0
// A token of a delta rule, `t` of those in local memory: `state` decays, and what it then holds for
// the key moves towards `value`. RECUR_FOUND: where shares of products begin; tokens take turns, so
// that a barrier is enough. Text for OpenCL C and GLSL.

const u32 turn = RECUR_FOUND + (t & 1u) * RECUR_ITEMS;
FLOAT4 found = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
UNROLL for (u32 r = 0u; r < ROWS; r += 4u) {
  const u32 at = t * RECUR_KEY_FOURS + (part * ROWS + r) / 4u;
  const FLOAT4 key = SPACE(RECUR_KEYS + at), decay = SPACE(RECUR_DECAYS + at);
  RECUR_DECAY(state)
  found += state[r] * key.x + state[r + 1u] * key.y;
  found += state[r + 2u] * key.z + state[r + 3u] * key.w;
}
SPACE(turn + item) = found;
RECUR_BARRIER();
found = SPACE(turn + lane);
for (u32 p = 1u; p < WG_Y; ++p) found += SPACE(turn + p * WG_X + lane);
const FLOAT4 change = (value - found) * SPACE(RECUR_BETAS + t * WG_X + lane);
UNROLL for (u32 r = 0u; r < ROWS; r += 4u) {
  const FLOAT4 key = SPACE(RECUR_KEYS + t * RECUR_KEY_FOURS + (part * ROWS + r) / 4u);
  state[r] += change * key.x;
  state[r + 1u] += change * key.y;
  state[r + 2u] += change * key.z;
  state[r + 3u] += change * key.w;
}
