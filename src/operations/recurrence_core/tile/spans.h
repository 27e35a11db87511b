// SPDX-License-Identifier: Apache-2.0
// The body of recurrence/tile/spans.cl and spans.comp: what a span makes of nothing, or the first
// one of the state before it, and the factors that it has for a state before it. With RECUR_BACK it
// is the gradient of the state, from the last step to the first: queries and gradients of outputs
// stand for keys and values, and what joins a token decays with it. A factor that is
// not finite says nothing of that state, so a launch behind recurrence/tile/carry takes the spans
// of such units one after the other. Text for OpenCL C and GLSL.

#include "operations/recurrence_core/tile/sequence.h"
#include "operations/recurrence_core/tile/steps.h"

// The factor of a step more. Only a factor of 0 makes it 0.
#define RECUR_LONGER(factor, decay)                                                \
  ((factor) > 0.0f && (decay) > 0.0f ? max((factor) * (decay), RECUR_LEAST_FACTOR) \
                                     : (factor) * (decay))

FLOAT4 state[ROWS];
float factor[ROWS];
UNROLL for (u32 r = 0u; r < ROWS; ++r) {
  const u32 k = part * ROWS + r;
  state[r] = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
  factor[r] = 1.0f;
  if (RECUR_HAS(RECUR_INITIAL) && span == 0u && k < ARGS(key_dim) && left > 0u)
    state[r] = LOAD_INITIAL(RECUR_STATE(initial_state, k) + column, left);
}

const bool again = RECUR_HAS(RECUR_AGAIN), back = RECUR_HAS(RECUR_BACK);
u32 rounds = 1u;
WILD(item) = 0;
if (again && span == 0u) {  // launches may have more work-groups than units
  for (u32 i = item; i < (spans - 1u) * WG_Y * ROWS; i += RECUR_ITEMS) {
    const float found = SCRATCH_FLOAT(RECUR_SPAN_FACTOR(i / (WG_Y * ROWS), i % (WG_Y * ROWS)));
    if (!(found < 3.4028234e38f)) WILD(item) = 1;
  }
}
RECUR_BARRIER();
if (again) {
  int wild = 0;
  for (u32 i = 0u; i < RECUR_ITEMS; ++i) wild = max(wild, WILD(i));
  rounds = wild > 0 ? spans - 1u : 0u;
}

const float decay_of_head = RECUR_DECAY_OF_HEAD;
for (u32 round = 0u; UNIFORM(round < rounds); ++round) {
  const u32 here = span + round;
  first = here * most;
  count = first < length ? min(most, length - first) : 0u;
  if (back) {
    const u32 stop = min((spans - here) * most, length);
    count = stop - min((spans - 1u - here) * most, length);
    first = length - stop;
  }
  for (u32 done = 0u; UNIFORM(done < count); done += TOKENS) {
    const u32 block_tokens = min(TO_U32(TOKENS), count - done);
    const u32 block_first = first + done;
#include "operations/recurrence_core/tile/load.h"
    RECUR_BARRIER();
    for (u32 t = 0u; UNIFORM(t < block_tokens); ++t) {
      const FLOAT4 value = SPACE(RECUR_VALUES + t * WG_X + lane) * ARGS(scale);
      UNROLL for (u32 r = 0u; r < ROWS; r += 4u) {
        const u32 at = t * RECUR_KEY_FOURS + (part * ROWS + r) / 4u;
        const FLOAT4 key = SPACE(RECUR_KEYS + at), decay = SPACE(RECUR_DECAYS + at);
        FLOAT4 whole = decay;
        if (RECUR_GROWS(decay)) {
          const FLOAT4 share = RECUR_HALF(decay);
          whole = RECUR_FIRST(decay) * share * share;
        }
        if (!back) RECUR_DECAY(state)
        state[r] += value * key.x;
        state[r + 1u] += value * key.y;
        state[r + 2u] += value * key.z;
        state[r + 3u] += value * key.w;
        if (back) RECUR_DECAY(state)
        factor[r] = RECUR_LONGER(factor[r], whole.x);
        factor[r + 1u] = RECUR_LONGER(factor[r + 1u], whole.y);
        factor[r + 2u] = RECUR_LONGER(factor[r + 2u], whole.z);
        factor[r + 3u] = RECUR_LONGER(factor[r + 3u], whole.w);
      }
    }
    RECUR_BARRIER();
  }
  if (present) {
    const u32 to = again ? here + 1u : here;
    UNROLL for (u32 r = 0u; r < ROWS; ++r) {
      SCRATCH(RECUR_SPAN_STATE(to, r)) = state[r];
      if (lane == 0u && !again) SCRATCH_FLOAT(RECUR_SPAN_FACTOR(span, part * ROWS + r)) = factor[r];
    }
  }
}
