// SPDX-License-Identifier: Apache-2.0
// A token of a delta rule on the way back, `t` of those in local memory: `gradient` takes the
// output's and goes to the state before the token, which `state` is made of once more; `dvalue`,
// and `dbeta`, a share of each column; shares of gradients of keys and decays go to local memory.
// As in delta_step.h, tokens take turns. Text for OpenCL C and GLSL.

const u32 turn = RECUR_FOUND + (t & 1u) * 2u * RECUR_ITEMS;
const FLOAT4 beta = SPACE(RECUR_BETAS + t * WG_X + lane);
FLOAT4 found = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f), slope = found;
UNROLL for (u32 r = 0u; r < ROWS; r += 4u) {
  const u32 at = t * RECUR_KEY_FOURS + (part * ROWS + r) / 4u;
  const FLOAT4 query = SPACE(RECUR_QUERIES + at), key = SPACE(RECUR_KEYS + at);
  const FLOAT4 decay = SPACE(RECUR_DECAYS + at);
  gradient[r] += output_gradient * query.x;
  gradient[r + 1u] += output_gradient * query.y;
  gradient[r + 2u] += output_gradient * query.z;
  gradient[r + 3u] += output_gradient * query.w;
  slope += gradient[r] * key.x + gradient[r + 1u] * key.y;
  slope += gradient[r + 2u] * key.z + gradient[r + 3u] * key.w;
  state[r] = SCRATCH(RECUR_INNER(block + t, r)) * decay.x;
  state[r + 1u] = SCRATCH(RECUR_INNER(block + t, r + 1u)) * decay.y;
  state[r + 2u] = SCRATCH(RECUR_INNER(block + t, r + 2u)) * decay.z;
  state[r + 3u] = SCRATCH(RECUR_INNER(block + t, r + 3u)) * decay.w;
  found += state[r] * key.x + state[r + 1u] * key.y;
  found += state[r + 2u] * key.z + state[r + 3u] * key.w;
}
SPACE(turn + item) = found;
SPACE(turn + RECUR_ITEMS + item) = slope;
RECUR_BARRIER();
found = SPACE(turn + lane);
slope = SPACE(turn + RECUR_ITEMS + lane);
ROLLED for (u32 p = 1u; p < WG_Y; ++p) {
  found += SPACE(turn + p * WG_X + lane);
  slope += SPACE(turn + RECUR_ITEMS + p * WG_X + lane);
}
found = value - found;
const FLOAT4 change = slope * beta;
UNROLL for (u32 r = 0u; r < ROWS; r += 4u) {
  const u32 fours = (part * ROWS + r) / 4u, at = t * RECUR_KEY_FOURS + fours;
  const u32 share = RECUR_SHARES + (t * WG_X + lane) * RECUR_KEY_FOURS + fours;
  const FLOAT4 key = SPACE(RECUR_KEYS + at), decay = SPACE(RECUR_DECAYS + at);
  const FLOAT4 gained = MAKE_FLOAT4(dot(gradient[r], found), dot(gradient[r + 1u], found),
                                    dot(gradient[r + 2u], found), dot(gradient[r + 3u], found));
  const FLOAT4 spent = MAKE_FLOAT4(dot(state[r], slope), dot(state[r + 1u], slope),
                                   dot(state[r + 2u], slope), dot(state[r + 3u], slope));
  SPACE(share) = (gained - spent) * beta.x;
  gradient[r] -= change * key.x;
  gradient[r + 1u] -= change * key.y;
  gradient[r + 2u] -= change * key.z;
  gradient[r + 3u] -= change * key.w;
  if (RECUR_HAS(RECUR_GRAD_DECAY)) {
    SPACE(share + RECUR_KEY_SHARES) =
        MAKE_FLOAT4(dot(gradient[r], state[r]), dot(gradient[r + 1u], state[r + 1u]),
                    dot(gradient[r + 2u], state[r + 2u]), dot(gradient[r + 3u], state[r + 3u]));
  }
  gradient[r] *= decay.x;
  gradient[r + 1u] *= decay.y;
  gradient[r + 2u] *= decay.z;
  gradient[r + 3u] *= decay.w;
}
// Every part has the sums: the first one's count.
if (part == 0u) {
  dvalue = change;
  dbeta = found * slope;
}
