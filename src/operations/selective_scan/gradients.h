// SPDX-License-Identifier: Apache-2.0
// The body of state_space/scan/gradients.cl and gradients.comp. Text for OpenCL C and GLSL.

#include "operations/selective_scan/begin.h"
#include "operations/selective_scan/span.h"
#define SCAN_TAKES_U 1
#include "operations/selective_scan/prepare.h"

FLOAT4 slope[SCAN_FOURS], drate[SCAN_FOURS], entry[SCAN_FOURS];
if (SCAN_HAS(SCAN_GRAD_INITIAL)) {
#define SCAN_PASS(f)                                                             \
  {                                                                              \
    FLOAT4 given = zero;                                                         \
    if (SCAN_HAS(SCAN_FINAL))                                                    \
      given = LOAD_DFINAL(SCAN_STATE(final_state, SCAN_FIRST(f)), SCAN_LEFT(f)); \
    STORE_DINITIAL(given, SCAN_STATE(dinitial, SCAN_FIRST(f)), SCAN_LEFT(f));    \
  }
#include "operations/selective_scan/empty.h"
}

// The states behind the tokens.
UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
  slope[f] = drate[f] = entry[f] = zero;
  if (present) {
    state[f] = entry[f] = SHARE(SCAN_KEPT(made, span, f));
    slope[f] = SHARE(SCAN_KEPT(back, span, f));
  }
}
u32 inside = 0u;  // a bit for each token of a sequence
if (SCAN_HAS(SCAN_PACKED) && first < last) SPACE_FIND(first)
if (SCAN_IS_WHOLE) {
  inside = 0xffffffffu;
  UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
    if (present && first == begin) SCAN_TAKE_INITIAL(entry[f], f)
    state[f] = entry[f];
  }
  SCAN_LEAVE_WHOLE
  SCAN_EACH_TOKEN for (u32 i = 0u; i < SPAN; ++i) {
    const FLOAT4 step = BACK_STEP(i, lane);
    UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
      state[f] = SPACE_EXP2_4(step.x * rate[f]) * state[f] + step.y * FACTOR(i, 0u, f);
      INNER(i, f, item) = state[f];
    }
  }
  SCAN_EACH_TOKEN for (u32 back = 0u; back < SPAN; ++back) {
    const u32 i = SPAN - 1u - back;
    const FLOAT4 step = BACK_STEP(i, lane);
    FLOAT4 y = zero, along = zero, decay = zero;
    UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
      const FLOAT4 now = state[f], reached = slope[f] + step.z * FACTOR(i, 1u, f);
      state[f] = i > 0u ? INNER(max(i, 1u) - 1u, f, item) : entry[f];
      y += now * FACTOR(i, 1u, f);
      along += reached * FACTOR(i, 0u, f);
      slope[f] = reached * SPACE_EXP2_4(step.x * rate[f]);
      const FLOAT4 decays = state[f] * slope[f];
      decay += decays * rate[f];
      drate[f] += step.x * decays;
      OF_B(i, f, item) = step.y * reached;
      OF_C(i, f, item) = step.z * now;
    }
    BACK_SUM(0u, i, part) = y.x + y.y + (y.z + y.w);
    BACK_SUM(1u, i, part) = along.x + along.y + (along.z + along.w);
    BACK_SUM(2u, i, part) = decay.x + decay.y + (decay.z + decay.w);
  }
  if (present && first == begin && SCAN_HAS(SCAN_GRAD_INITIAL)) {
    UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f)
        STORE_DINITIAL(slope[f], SCAN_STATE(dinitial, SCAN_FIRST(f)), 4u);
  }
} else {
  for (u32 token = first; token < last; ++token) {
    const u32 i = token - first;
#include "operations/selective_scan/enter.h"
    if (held) inside |= 1u << i;
    const FLOAT4 step = BACK_STEP(i, lane);
    UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
      if (present && held)
        state[f] = SPACE_EXP2_4(step.x * rate[f]) * state[f] + step.y * FACTOR(i, 0u, f);
      INNER(i, f, item) = present && held ? state[f] : zero;
    }
  }

  anew = true;
  for (u32 behind = last; behind > first; --behind) {
    const u32 token = behind - 1u, i = token - first;
#include "operations/selective_scan/leave.h"
    const FLOAT4 step = BACK_STEP(i, lane);
    float y = 0.0f, along = 0.0f, decay = 0.0f;
    UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
      const u32 left = SCAN_LEFT(f);
      FLOAT4 reached = zero;
      const FLOAT4 now = INNER(i, f, item);
      if (present && held && left > 0u) {
        const FLOAT4 b = FACTOR(i, 0u, f), c = FACTOR(i, 1u, f);
        FLOAT4 before = entry[f];
        if (token == begin) {
          SCAN_TAKE_INITIAL(before, f)
        } else if (token > first) {
          before = INNER(i - 1u, f, item);
        }
        reached = slope[f] + step.z * c;
        y += SCAN_DOT(now, c, left);
        along += SCAN_DOT(reached, b, left);
        slope[f] = reached * SPACE_EXP2_4(step.x * rate[f]);
        before *= slope[f];
        decay += SCAN_DOT(before, rate[f], left);
        drate[f] += step.x * before;
        if (token == begin && SCAN_HAS(SCAN_GRAD_INITIAL))
          STORE_DINITIAL(slope[f], SCAN_STATE(dinitial, SCAN_FIRST(f)), left);
      }
      OF_B(i, f, item) = step.y * reached;
      OF_C(i, f, item) = step.z * now;
    }
    BACK_SUM(0u, i, part) = y;
    BACK_SUM(1u, i, part) = along;
    BACK_SUM(2u, i, part) = decay;
  }
}
SPACE_BARRIER();

float skip = 0.0f, dskip = 0.0f, dbias = 0.0f;
if (present && SCAN_HAS(SCAN_D)) skip = LOAD_D(ARGS(d_offset) + channel * ARGS(d_stride));
UNROLL for (u32 i = 0u; i < SCAN_OWN_OF(SPAN); ++i) {
  const u32 in_span = SCAN_TOKEN(i), token = first + in_span;
  if (present && in_span < SPAN && token < last) {
    float y = 0.0f, along = 0.0f, decay = 0.0f;
    for (u32 other = 0u; other < WG_Y; ++other) {
      y += BACK_SUM(0u, in_span, other);
      along += BACK_SUM(1u, in_span, other);
      decay += BACK_SUM(2u, in_span, other);
    }
    // SPIR-V may not name a constant of 16 bits, which a plain 0 would become.
    float du = TO_FLOAT(ARGS(features) >> 31), draw = du, dz = du;
    if (((inside >> in_span) & 1u) != 0u) {
      du = own_gradient[i] * skip + own_width[i] * along;
      draw = own_u[i] * along + decay;
      if (SCAN_HAS(SCAN_SOFTPLUS)) draw *= space_sigmoid(own_raw[i]);
      if (SCAN_HAS(SCAN_Z)) dz = own_given[i] * (y + skip * own_u[i]) * space_silu_slope(own_z[i]);
      dskip += own_gradient[i] * own_u[i];
      dbias += draw;
    }
    if (SCAN_HAS(SCAN_GRAD_U)) STORE_DU(du, SCAN_ROW(du, token));
    if (SCAN_HAS(SCAN_GRAD_DELTA)) STORE_DDELTA(draw, SCAN_ROW(ddelta, token));
    if (SCAN_HAS(SCAN_GRAD_Z)) STORE_DZ(dz, SCAN_ROW(dz, token));
  }
}
// Of b (0) and c (1), four states of a token: the sums over the channels.
if (SCAN_HAS(SCAN_GRAD_B | SCAN_GRAD_C)) {
  const u32 lanes = min(TO_U32(WG_X), channels - tile % blocks * TO_U32(WG_X));
  for (u32 task = item; task < SPAN * SCAN_STATES / 2u; task += SCAN_ITEMS) {
    const u32 four = task % (SCAN_STATES / 4u), which = task / (SCAN_STATES / 4u) % 2u;
    const u32 i = task / (SCAN_STATES / 2u), token = first + i;
    if (token < last) {
      FLOAT4 total = zero;
      if (((inside >> i) & 1u) != 0u) {
        const u32 f = four % SCAN_FOURS, from = four / SCAN_FOURS * WG_X;
        if (lanes == WG_X) {
          UNROLL for (u32 other = 0u; other < WG_X; ++other) total +=
              which == 0u ? OF_B(i, f, from + other) : OF_C(i, f, from + other);
        } else {
          for (u32 other = 0u; other < lanes; ++other)
            total += which == 0u ? OF_B(i, f, from + other) : OF_C(i, f, from + other);
        }
      }
      const u32 n = 4u * four;
      const u32 to = ARGS(products) + ((batch * tokens + token) * tiles + tile) * 2u * states +
                     which * states + n;
      if (n < states) NUMBER(to) = total.x;
      if (n + 1u < states) NUMBER(to + 1u) = total.y;
      if (n + 2u < states) NUMBER(to + 2u) = total.z;
      if (n + 3u < states) NUMBER(to + 3u) = total.w;
    }
  }
}
TOTAL(0u, part) = dskip;
TOTAL(1u, part) = dbias;
SPACE_BARRIER();
if (present) {
  UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) SHARE(SCAN_KEPT(made, span, f)) =
      SPACE_LOG_2 * drate[f];
  if (part == 0u) {
    for (u32 other = 1u; other < WG_Y; ++other) {
      dskip += TOTAL(0u, other);
      dbias += TOTAL(1u, other);
    }
    NUMBER(SCAN_SUM(span)) = dskip;
    NUMBER(SCAN_SUM(span) + 1u) = dbias;
  }
}
