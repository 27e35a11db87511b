// SPDX-License-Identifier: Apache-2.0
// The body of recurrence/tile/states.cl and states.comp. Text for OpenCL C and GLSL.

#include "operations/recurrence_core/tile/sequence.h"
#include "operations/recurrence_core/tile/steps.h"

FLOAT4 state[ROWS];
UNROLL for (u32 r = 0u; r < ROWS; ++r) {
  const u32 k = part * ROWS + r;
  state[r] = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
  if (k < ARGS(key_dim) && left > 0u) {
    if (span > 0u) {
      state[r] = SCRATCH(RECUR_SPAN_STATE(span, r));
    } else if (RECUR_HAS(RECUR_INITIAL)) {
      state[r] = LOAD_INITIAL(RECUR_STATE(initial_state, k) + column, left);
    }
  }
}

const float decay_of_head = RECUR_DECAY_OF_HEAD;
const u32 key_fours = (ARGS(key_dim) + 3u) / 4u;
for (u32 done = 0u; UNIFORM(done < count); done += TOKENS) {
  const u32 block_first = first + done;
  const u32 block_tokens = min(TO_U32(TOKENS), count - done);
  if (RECUR_KEEPS_STATES && block_first % ARGS(segment) == 0u) {
    UNROLL for (u32 r = 0u; r < ROWS; ++r) SCRATCH(RECUR_KEPT(block_first / ARGS(segment), r)) =
        state[r];
  }
#include "operations/recurrence_core/tile/load.h"
  RECUR_BARRIER();
  for (u32 t = 0u; UNIFORM(t < block_tokens); ++t) {
    const FLOAT4 value = SPACE(RECUR_VALUES + t * WG_X + lane);
#ifdef RECUR_DELTA
#include "operations/recurrence_core/tile/delta_step.h"
#else
    const FLOAT4 value_decay = SPACE(RECUR_VALUE_DECAYS + t * WG_X + lane);
#endif
    const FLOAT4 output_gradient = SPACE(RECUR_GRADIENTS + t * WG_X + lane);
    UNROLL for (u32 r = 0u; r < ROWS; r += 4u) {
#ifndef RECUR_DELTA
      const u32 at = t * RECUR_KEY_FOURS + (part * ROWS + r) / 4u;
      const FLOAT4 key = SPACE(RECUR_KEYS + at), decay = SPACE(RECUR_DECAYS + at);
      RECUR_DECAY(state)
      state[r] += value * key.x;
      state[r + 1u] += value * key.y;
      state[r + 2u] += value * key.z;
      state[r + 3u] += value * key.w;
#endif
      SPACE(RECUR_SHARES + (t * WG_X + lane) * RECUR_KEY_FOURS + (part * ROWS + r) / 4u) =
          MAKE_FLOAT4(dot(state[r], output_gradient), dot(state[r + 1u], output_gradient),
                      dot(state[r + 2u], output_gradient), dot(state[r + 3u], output_gradient));
    }
  }
  RECUR_BARRIER();
  for (u32 i = item; i < block_tokens * key_fours; i += RECUR_ITEMS) {
    const u32 t = i / key_fours, k = i % key_fours;
    FLOAT4 sum = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
    for (u32 other = 0u; other < WG_X; ++other)
      sum += SPACE(RECUR_SHARES + (t * WG_X + other) * RECUR_KEY_FOURS + k);
    SCRATCH(RECUR_SHARE(dquery_shares, RECUR_TOKEN(block_first + t), k)) = sum * ARGS(scale);
  }
}
