// SPDX-License-Identifier: Apache-2.0
// The body of recurrence/tile/forward.cl and forward.comp. Text for OpenCL C and GLSL.

#include "operations/recurrence_core/tile/sequence.h"
#include "operations/recurrence_core/tile/steps.h"

// The state: ROWS key dims of four columns.
FLOAT4 state[ROWS];
const u32 carried = (sequence * heads + head) * ARGS(key_dim);
UNROLL for (u32 r = 0u; r < ROWS; ++r) {
  const u32 k = part * ROWS + r;
  state[r] = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
  if (k < ARGS(key_dim) && left > 0u) {
    if (span > 0u) {
      state[r] = SCRATCH(RECUR_SPAN_STATE(span, r));
    } else if (RECUR_HAS(RECUR_RESUME)) {
      state[r] = LOAD_CARRIED((carried + k) * ARGS(value_dim) + column, left);
    } else if (RECUR_HAS(RECUR_INITIAL)) {
      state[r] = LOAD_INITIAL(RECUR_STATE(initial_state, k) + column, left);
    }
  }
}

const float decay_of_head = RECUR_DECAY_OF_HEAD;
for (u32 block = 0u; UNIFORM(block < count); block += TOKENS) {
  const u32 block_first = first + block;
  const u32 block_tokens = min(TO_U32(TOKENS), count - block);
#include "operations/recurrence_core/tile/load.h"
  RECUR_BARRIER();
  for (u32 t = 0u; UNIFORM(t < block_tokens); ++t) {
    const FLOAT4 value = SPACE(RECUR_VALUES + t * WG_X + lane);
#ifndef RECUR_DELTA
    const FLOAT4 value_decay = SPACE(RECUR_VALUE_DECAYS + t * WG_X + lane);
#endif
    FLOAT4 share = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
#ifdef RECUR_DELTA
#include "operations/recurrence_core/tile/delta_step.h"
#endif
    UNROLL for (u32 r = 0u; r < ROWS; r += 4u) {
      const u32 at = t * RECUR_KEY_FOURS + (part * ROWS + r) / 4u;
      const FLOAT4 query = SPACE(RECUR_QUERIES + at);
#ifndef RECUR_DELTA
      const FLOAT4 key = SPACE(RECUR_KEYS + at);
      const FLOAT4 decay = SPACE(RECUR_DECAYS + at);
      RECUR_DECAY(state)
      state[r] += value * key.x;
      state[r + 1u] += value * key.y;
      state[r + 2u] += value * key.z;
      state[r + 3u] += value * key.w;
#endif
      share += state[r] * query.x + state[r + 1u] * query.y;
      share += state[r + 2u] * query.z + state[r + 3u] * query.w;
    }
    SPACE(RECUR_SHARES + t * RECUR_ITEMS + item) = share;
  }
  RECUR_BARRIER();
  for (u32 i = item; i < block_tokens * WG_X; i += RECUR_ITEMS) {
    const u32 from = tile * RECUR_COLUMNS + 4u * (i % WG_X);
    if (from < ARGS(value_dim)) {
      FLOAT4 sum = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
      for (u32 p = 0u; p < WG_Y; ++p)
        sum += SPACE(RECUR_SHARES + i / WG_X * RECUR_ITEMS + p * WG_X + i % WG_X);
      STORE_OUTPUT(sum * ARGS(scale),
                   RECUR_ROW(result, RECUR_TOKEN(first + block + i / WG_X)) + from,
                   min(4u, ARGS(value_dim) - from));
    }
  }
}

UNROLL for (u32 r = 0u; r < ROWS; ++r) {
  const u32 k = part * ROWS + r;
  if (k < ARGS(key_dim) && left > 0u) {
    if (RECUR_HAS(RECUR_PAUSE)) {
      STORE_CARRIED(state[r], (carried + k) * ARGS(value_dim) + column, left);
    } else if (RECUR_HAS(RECUR_FINAL) && span + 1u == spans) {
      STORE_FINAL(state[r], RECUR_STATE(final_state, k) + column, left);
    }
  }
}
