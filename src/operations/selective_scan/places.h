// SPDX-License-Identifier: Apache-2.0
// Where rows, factors and states lie, by names that a kernel's body has, and the arithmetic of a
// step. Text for OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_SELECTIVE_SCAN_PLACES_H
#define TESSERA_OPERATIONS_SELECTIVE_SCAN_PLACES_H

#define SCAN_FOURS (ROWS / 4u)
#define SCAN_ITEMS (WG_X * WG_Y)
#define SCAN_HAS(feature) ((ARGS(features) & (feature)) != 0u)
#define SCAN_ROW_OF(name, of_channel) \
  (ARGS(name.offset) + batch * ARGS(name.batch) + (of_channel)*ARGS(name.feature))
#define SCAN_ROW(name, t) (SCAN_ROW_OF(name, channel) + (t)*ARGS(name.token))
#define SCAN_FACTOR(name, t, n)                                          \
  (ARGS(name.offset) + batch * ARGS(name.batch) + (t)*ARGS(name.token) + \
   branch * ARGS(name.group) + (n)*ARGS(name.state))
#define SCAN_STATE(name, n)                                                       \
  (ARGS(name.offset) + sequence * ARGS(name.batch) + channel * ARGS(name.token) + \
   (n)*ARGS(name.feature))

// Of an item's fours of states: the first, and how many there are.
#define SCAN_FIRST(f) (part * ROWS + 4u * (f))
#define SCAN_LEFT(f) (SCAN_FIRST(f) < ARGS(states) ? min(4u, ARGS(states) - SCAN_FIRST(f)) : 0u)

// In vectors of scratch: an item's states of a span. In floats: two numbers of a span and channel.
#define SCAN_KEPT(base, of_span, f) \
  (ARGS(base) +                     \
   (((batch * ARGS(spans) + (of_span)) * tiles + tile) * SCAN_FOURS + (f)) * SCAN_ITEMS + item)
#define SCAN_SUM(of_span) \
  (ARGS(sums) + 2u * (((batch * ARGS(spans) + (of_span)) * tiles + tile) * WG_X + lane))

// What is behind the states is 0, but no product with it counts.
#define SCAN_DOT(one, two, left)                                                         \
  (((left) > 0u ? (one).x * (two).x : 0.0f) + ((left) > 1u ? (one).y * (two).y : 0.0f) + \
   ((left) > 2u ? (one).z * (two).z : 0.0f) + ((left) > 3u ? (one).w * (two).w : 0.0f))

#define SCAN_TAKE_INITIAL(to, f)                                                 \
  {                                                                              \
    to = zero;                                                                   \
    if (SCAN_HAS(SCAN_INITIAL) && SCAN_LEFT(f) > 0u)                             \
      to = LOAD_INITIAL(SCAN_STATE(initial_state, SCAN_FIRST(f)), SCAN_LEFT(f)); \
  }

// Of blocks.h. A block's tokens of an item; elements of b that it takes there, and of c as many:
// the token, the state, and where they are put. A step of a channel; b (0) and c (1) of a token;
// what a part of the states adds to an output.
#define SCAN_STATES (ROWS * WG_Y)
#define SCAN_OWN_OF(tokens) (((tokens) + WG_Y - 1u) / WG_Y)
#define SCAN_OWN SCAN_OWN_OF(BLOCK)
#define SCAN_TOKEN(i) ((i)*WG_Y + part)
#define SCAN_IS_TOKEN(i) (BLOCK % WG_Y == 0u || SCAN_TOKEN(i) < BLOCK)
#define SCAN_TAKEN_OF(tokens) (((tokens)*SCAN_STATES + SCAN_ITEMS - 1u) / SCAN_ITEMS)
#define SCAN_TAKEN SCAN_TAKEN_OF(BLOCK)
#define SCAN_TOKEN_OF(i) (((i)*SCAN_ITEMS + item) / SCAN_STATES)
#define SCAN_STATE_OF(i) min(((i)*SCAN_ITEMS + item) % SCAN_STATES, states - 1u)
#define SCAN_ELEMENT_OF(i, which) \
  ((SCAN_TOKEN_OF(i) * 2u + (which)) * SCAN_STATES + ((i)*SCAN_ITEMS + item) % SCAN_STATES)
#define STEP(i) steps[(i)*WG_X + lane]
#define FACTOR(i, which, f) \
  factors[((i)*2u + (which)) * (SCAN_STATES / 4u) + part * SCAN_FOURS + (f)]
#define PRODUCT_OF_PART(i, other) sums[((i)*WG_Y + (other)) * WG_X + lane]

// Of the way back, in a span: a step; an item's states behind a token, and where these were what
// its channel adds to the gradients of b and c; what parts of states add to an output, to the
// gradient of what the step adds to states, and to that of the step itself; sums over tokens.
#define BACK_STEP(i, of_lane) back_steps[(i)*WG_X + (of_lane)]
#define INNER(i, f, by) inner[((i)*SCAN_FOURS + (f)) * SCAN_ITEMS + (by)]
#define OF_B(i, f, by) of_b[((i)*SCAN_FOURS + (f)) * SCAN_ITEMS + (by)]
#define OF_C(i, f, by) INNER(i, f, by)
#define BACK_SUM(which, i, other) sums[(((which)*SPAN + (i)) * WG_Y + (other)) * WG_X + lane]
#define TOTAL(which, other) totals[((which)*WG_Y + (other)) * WG_X + lane]
// A span has all of its tokens, of one sequence, and items all of their states: nothing of it needs
// to be asked of each token. Its last one may find the gradient of the sequence's final state.
#define SCAN_IS_WHOLE (held && full && first + SPAN == last && last <= end)
#define SCAN_LEAVE_WHOLE                                                    \
  if (present && last == end) {                                             \
    UNROLL for (u32 f = 0u; f < SCAN_FOURS; ++f) {                          \
      slope[f] = zero;                                                      \
      if (SCAN_HAS(SCAN_FINAL))                                             \
        slope[f] = LOAD_DFINAL(SCAN_STATE(final_state, SCAN_FIRST(f)), 4u); \
    }                                                                       \
  }
#define SPACE_LOG_2 0.693147181f
// Spans whose states are asked for at once.
#define SCAN_CARRIED_AT_ONCE (ROWS < 32u ? 32u / ROWS : 1u)

// exp(x) = 2^(x log2(e)): the rounded constant and two products put the exponent off by 2.3 units
// of |x|, of which rough_exp() and the product before it allow for 3; devices' functions keep the 8
// that do not grow with x.

#endif  // TESSERA_OPERATIONS_SELECTIVE_SCAN_PLACES_H
