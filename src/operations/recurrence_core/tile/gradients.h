// SPDX-License-Identifier: Apache-2.0
// The body of recurrence/tile/gradients.cl and gradients.comp. Text for OpenCL C and GLSL.

#include "operations/recurrence_core/tile/sequence.h"
#include "operations/recurrence_core/tile/steps.h"

// The gradient of the state.
FLOAT4 gradient[ROWS];
UNROLL for (u32 r = 0u; r < ROWS; ++r) {
  const u32 k = part * ROWS + r;
  gradient[r] = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
  if (k < ARGS(key_dim) && left > 0u) {
    if (span + 1u < spans) {
      gradient[r] = SCRATCH(RECUR_SPAN_STATE(spans - 1u - span, r));
    } else if (RECUR_HAS(RECUR_FINAL)) {
      gradient[r] = LOAD_DFINAL(RECUR_STATE(final_state, k) + column, left);
    }
  }
}

const float decay_of_head = RECUR_DECAY_OF_HEAD;
const u32 key_fours = (ARGS(key_dim) + 3u) / 4u;
for (u32 segments = (count + ARGS(segment) - 1u) / ARGS(segment); UNIFORM(segments > 0u);
     --segments) {
  const u32 segment = first / ARGS(segment) + segments - 1u;
  const u32 segment_first = segment * ARGS(segment);
  const u32 segment_tokens = min(ARGS(segment), first + count - segment_first);
  // The states of the segment once more, where they are needed.
  const u32 again = RECUR_KEEPS_STATES ? segment_tokens : 0u;
  {
    FLOAT4 state[ROWS];
    UNROLL for (u32 r = 0u; r < ROWS; ++r) {
      state[r] = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
      if (again > 0u) state[r] = SCRATCH(RECUR_KEPT(segment, r));
    }
    for (u32 block = 0u; UNIFORM(block < again); block += TOKENS) {
      const u32 block_first = segment_first + block;
      const u32 block_tokens = min(TO_U32(TOKENS), again - block);
#include "operations/recurrence_core/tile/load.h"
      RECUR_BARRIER();
      for (u32 t = 0u; UNIFORM(t < block_tokens); ++t) {
        const FLOAT4 value = SPACE(RECUR_VALUES + t * WG_X + lane);
#ifdef RECUR_DELTA
        UNROLL for (u32 r = 0u; r < ROWS; ++r) SCRATCH(RECUR_INNER(block + t, r)) = state[r];
#include "operations/recurrence_core/tile/delta_step.h"
#else
        const FLOAT4 value_decay = SPACE(RECUR_VALUE_DECAYS + t * WG_X + lane);
        UNROLL for (u32 r = 0u; r < ROWS; r += 4u) {
          const u32 at = t * RECUR_KEY_FOURS + (part * ROWS + r) / 4u;
          const FLOAT4 key = SPACE(RECUR_KEYS + at), decay = SPACE(RECUR_DECAYS + at);
          UNROLL for (u32 i = 0u; i < 4u; ++i) SCRATCH(RECUR_INNER(block + t, r + i)) =
              state[r + i];
          RECUR_DECAY(state)
          state[r] += value * key.x;
          state[r + 1u] += value * key.y;
          state[r + 2u] += value * key.z;
          state[r + 3u] += value * key.w;
        }
#endif
      }
      RECUR_BARRIER();
    }
  }
  for (u32 blocks = (segment_tokens + TOKENS - 1u) / TOKENS; UNIFORM(blocks > 0u); --blocks) {
    const u32 block = (blocks - 1u) * TOKENS, block_first = segment_first + block;
    const u32 block_tokens = min(TO_U32(TOKENS), segment_tokens - block);
#include "operations/recurrence_core/tile/load.h"
    RECUR_BARRIER();
    for (u32 back = block_tokens; UNIFORM(back > 0u); --back) {
      const u32 t = back - 1u;
      const FLOAT4 value = SPACE(RECUR_VALUES + t * WG_X + lane);
      const FLOAT4 output_gradient = SPACE(RECUR_GRADIENTS + t * WG_X + lane) * ARGS(scale);
      FLOAT4 dvalue = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
      FLOAT4 state[ROWS];  // before the token
#ifdef RECUR_DELTA
      FLOAT4 dbeta = dvalue;
#include "operations/recurrence_core/tile/delta_back.h"
#define RECUR_SECOND_SHARE dbeta
#else
      const FLOAT4 value_decay = SPACE(RECUR_VALUE_DECAYS + t * WG_X + lane);
      FLOAT4 dgv = dvalue;
#define RECUR_SECOND_SHARE dgv
      UNROLL for (u32 r = 0u; r < ROWS; r += 4u) {
        const u32 fours = (part * ROWS + r) / 4u, at = t * RECUR_KEY_FOURS + fours;
        const u32 share = RECUR_SHARES + (t * WG_X + lane) * RECUR_KEY_FOURS + fours;
        const FLOAT4 query = SPACE(RECUR_QUERIES + at), key = SPACE(RECUR_KEYS + at);
        const FLOAT4 decay = SPACE(RECUR_DECAYS + at);
        gradient[r] += output_gradient * query.x;
        gradient[r + 1u] += output_gradient * query.y;
        gradient[r + 2u] += output_gradient * query.z;
        gradient[r + 3u] += output_gradient * query.w;
        SPACE(share) = MAKE_FLOAT4(dot(gradient[r], value), dot(gradient[r + 1u], value),
                                   dot(gradient[r + 2u], value), dot(gradient[r + 3u], value));
        dvalue += gradient[r] * key.x + gradient[r + 1u] * key.y;
        dvalue += gradient[r + 2u] * key.z + gradient[r + 3u] * key.w;
        RECUR_DECAY_FIRST(gradient)
        if (RECUR_HAS(RECUR_GRAD_DECAY)) {
          const FLOAT4 one = MAKE_FLOAT4(1.0f, 1.0f, 1.0f, 1.0f);
          UNROLL for (u32 i = 0u; i < 4u; ++i) state[r + i] =
              SCRATCH(RECUR_INNER(block + t, r + i));
          RECUR_DECAY_REST(state)
          const FLOAT4 a = gradient[r] * state[r], b = gradient[r + 1u] * state[r + 1u];
          const FLOAT4 c = gradient[r + 2u] * state[r + 2u], d = gradient[r + 3u] * state[r + 3u];
          SPACE(share + RECUR_KEY_SHARES) =
              MAKE_FLOAT4(dot(a, one), dot(b, one), dot(c, one), dot(d, one));
          dgv += (a + b) + (c + d);
        }
        RECUR_DECAY_REST(gradient)
      }
#endif
      const u32 share = RECUR_SHARES + 2u * RECUR_KEY_SHARES + t * RECUR_ITEMS + item;
      SPACE(share) = dvalue;
      SPACE(share + RECUR_COLUMN_SHARES) = RECUR_SECOND_SHARE;
    }
    RECUR_BARRIER();
    for (u32 i = item; i < block_tokens * key_fours; i += RECUR_ITEMS) {
      const u32 t = i / key_fours, k = i % key_fours, token = RECUR_TOKEN(block_first + t);
      FLOAT4 dkey = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f), ddecay = dkey;
      ROLLED for (u32 other = 0u; other < WG_X; ++other) {
        const u32 share = RECUR_SHARES + (t * WG_X + other) * RECUR_KEY_FOURS + k;
        dkey += SPACE(share);
        if (RECUR_HAS(RECUR_GRAD_DECAY)) ddecay += SPACE(share + RECUR_KEY_SHARES);
      }
      SCRATCH(RECUR_SHARE(dkey_shares, token, k)) = dkey;
      if (RECUR_HAS(RECUR_GRAD_DECAY)) SCRATCH(RECUR_SHARE(decay_shares, token, k)) = ddecay;
    }
#ifdef RECUR_DELTA
    for (u32 t = item; t < block_tokens; t += RECUR_ITEMS) {
      const u32 share =
          RECUR_SHARES + 2u * RECUR_KEY_SHARES + RECUR_COLUMN_SHARES + t * RECUR_ITEMS;
      FLOAT4 dbeta = SPACE(share);
      ROLLED for (u32 other = 1u; other < WG_X; ++other) dbeta += SPACE(share + other);
      SCRATCH_FLOAT(RECUR_BETA_SHARE(RECUR_TOKEN(block_first + t))) =
          (dbeta.x + dbeta.y) + (dbeta.z + dbeta.w);
    }
#endif
    for (u32 i = item; i < block_tokens * WG_X; i += RECUR_ITEMS) {
      const u32 from = tile * RECUR_COLUMNS + 4u * (i % WG_X);
      const u32 here = from < ARGS(value_dim) ? min(4u, ARGS(value_dim) - from) : 0u;
      const u32 token = RECUR_TOKEN(block_first + i / WG_X);
      FLOAT4 dvalue = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
#ifndef RECUR_DELTA
      FLOAT4 dgv = dvalue;
#endif
      for (u32 p = 0u; p < WG_Y; ++p) {
        const u32 share =
            RECUR_SHARES + 2u * RECUR_KEY_SHARES + i / WG_X * RECUR_ITEMS + p * WG_X + i % WG_X;
        dvalue += SPACE(share);
#ifndef RECUR_DELTA
        dgv += SPACE(share + RECUR_COLUMN_SHARES);
#endif
      }
      if (here > 0u) {
        if (RECUR_HAS(RECUR_GRAD_VALUE))
          STORE_DVALUE(dvalue, RECUR_ROW(dvalue, token) + from, here);
#ifndef RECUR_DELTA
        if (RECUR_HAS(RECUR_GRAD_GV)) STORE_DGV(dgv, RECUR_ROW(dgv, token) + from, here);
#endif
      }
    }
  }
}

if (RECUR_HAS(RECUR_GRAD_INITIAL) && span == 0u && left > 0u) {
  UNROLL for (u32 r = 0u; r < ROWS; ++r) {
    const u32 k = part * ROWS + r;
    if (k < ARGS(key_dim)) STORE_DINITIAL(gradient[r], RECUR_STATE(dinitial, k) + column, left);
  }
}
