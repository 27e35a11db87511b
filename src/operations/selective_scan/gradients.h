// SPDX-License-Identifier: Apache-2.0
// The body of state_space/scan/gradients.cl and gradients.comp. Text for OpenCL C and GLSL.

#include "operations/selective_scan/begin.h"
#include "operations/selective_scan/span.h"

FLOAT4 slope[SCAN_FOURS], drate[SCAN_FOURS];
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
  slope[f] = drate[f] = zero;
  if (present) {
    state[f] = SHARE(SCAN_KEPT(made, span, f));
    slope[f] = SHARE(SCAN_KEPT(back, span, f));
  }
}
for (u32 token = first; token < last; ++token) {
#include "operations/selective_scan/enter.h"
  if (present && held) {
    SCAN_TAKE_WIDTH(token)
    const float u = LOAD_U(SCAN_ROW(u, token));
    UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
      if (SCAN_LEFT(f) > 0u)
        state[f] = SCAN_DECAY(width, f) * state[f] +
                   width * u * LOAD_B(SCAN_FACTOR(b, token, SCAN_FIRST(f)), SCAN_LEFT(f));
      INNER(token - first, f) = state[f];
    }
  }
}

float skip = 0.0f, dskip = 0.0f, dbias = 0.0f;
if (present && SCAN_HAS(SCAN_D)) skip = LOAD_D(ARGS(d_offset) + channel * ARGS(d_stride));
anew = true;
for (u32 behind = last; behind > first; --behind) {
  const u32 token = behind - 1u;
#include "operations/selective_scan/leave.h"
  float y = 0.0f, along = 0.0f, decay = 0.0f, u = 0.0f;
  if (present && held) u = LOAD_U(SCAN_ROW(u, token));
  UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {
    const u32 left = SCAN_LEFT(f);
    FLOAT4 of_b = zero, of_c = zero;
    if (present && held && left > 0u) {
      const FLOAT4 b = LOAD_B(SCAN_FACTOR(b, token, SCAN_FIRST(f)), left);
      const FLOAT4 c = LOAD_C(SCAN_FACTOR(c, token, SCAN_FIRST(f)), left);
      const FLOAT4 now = INNER(token - first, f), factor = SCAN_DECAY(width, f);
      FLOAT4 before;
      if (token == begin) {
        SCAN_TAKE_INITIAL(before, f)
      } else if (token == first) {
        before = SHARE(SCAN_KEPT(made, span, f));
      } else {
        before = INNER(token - first - 1u, f);
      }
      slope[f] += gradient * c;
      y += SCAN_DOT(now, c, left);
      along += SCAN_DOT(slope[f], b, left);
      of_b = width * u * slope[f];
      of_c = gradient * now;
      slope[f] *= factor;
      before *= slope[f];
      decay += SCAN_DOT(before, rate[f], left);
      drate[f] += width * before;
      if (token == begin && SCAN_HAS(SCAN_GRAD_INITIAL))
        STORE_DINITIAL(slope[f], SCAN_STATE(dinitial, SCAN_FIRST(f)), left);
    }
    PRODUCT(0u, 4u * f) = of_b.x;
    PRODUCT(0u, 4u * f + 1u) = of_b.y;
    PRODUCT(0u, 4u * f + 2u) = of_b.z;
    PRODUCT(0u, 4u * f + 3u) = of_b.w;
    PRODUCT(1u, 4u * f) = of_c.x;
    PRODUCT(1u, 4u * f + 1u) = of_c.y;
    PRODUCT(1u, 4u * f + 2u) = of_c.z;
    PRODUCT(1u, 4u * f + 3u) = of_c.w;
  }
  SUMS(item) = y;
  SUMS(SCAN_ITEMS + item) = along;
  SUMS(2u * SCAN_ITEMS + item) = decay;
  SPACE_BARRIER();
  if (present && part == 0u) {
    for (u32 other = 1u; other < WG_Y; ++other) {
      y += SUMS(other * WG_X + lane);
      along += SUMS(SCAN_ITEMS + other * WG_X + lane);
      decay += SUMS(2u * SCAN_ITEMS + other * WG_X + lane);
    }
    // SPIR-V may not name a constant of 16 bits, which a plain 0 would become.
    float du = TO_FLOAT(ARGS(features) >> 31), draw = du, dz = du;
    if (held) {
      du = gradient * skip + width * along;
      draw = u * along + decay;
      if (SCAN_HAS(SCAN_SOFTPLUS)) draw *= float_sigmoid(raw);
      if (SCAN_HAS(SCAN_Z))
        dz = LOAD_GRADIENT(SCAN_ROW(result, token)) * (y + skip * u) *
             space_silu_slope(LOAD_Z(SCAN_ROW(z, token)));
      dskip += gradient * u;
      dbias += draw;
    }
    if (SCAN_HAS(SCAN_GRAD_U)) STORE_DU(du, SCAN_ROW(du, token));
    if (SCAN_HAS(SCAN_GRAD_DELTA)) STORE_DDELTA(draw, SCAN_ROW(ddelta, token));
    if (SCAN_HAS(SCAN_GRAD_Z)) STORE_DZ(dz, SCAN_ROW(dz, token));
  }
  if (SCAN_HAS(SCAN_GRAD_B | SCAN_GRAD_C)) {
    for (u32 i = item; i < 2u * ARGS(states); i += SCAN_ITEMS) {
      const u32 which = i / ARGS(states), n = i % ARGS(states);
      float sum = 0.0f;
      for (u32 other = 0u; other < WG_X; ++other)
        sum += PRODUCT_OF(which, n % ROWS, n / ROWS * WG_X + other);
      NUMBER(ARGS(products) + ((batch * tokens + token) * tiles + tile) * 2u * ARGS(states) + i) =
          sum;
    }
  }
  SPACE_BARRIER();
}
if (present) {
  UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) SHARE(SCAN_KEPT(made, span, f)) = drate[f];
  if (part == 0u) {
    NUMBER(SCAN_SUM(span)) = dskip;
    NUMBER(SCAN_SUM(span) + 1u) = dbias;
  }
}
