// SPDX-License-Identifier: Apache-2.0
// Where tokens, rows and states lie, by names that a kernel's body has: begin, end, batch, head,
// sequence. Text for OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_RECURRENCE_CORE_PLACES_H
#define TESSERA_OPERATIONS_RECURRENCE_CORE_PLACES_H

// Kernels of delta rules define RECUR_DELTA; they know no other decay than g.
#ifdef RECUR_DELTA
#define RECUR_HAS(feature) \
  ((ARGS(features) & (feature) & ~(RECUR_GAMMA | RECUR_GK | RECUR_GV)) != 0u)
#else
#define RECUR_HAS(feature) ((ARGS(features) & (feature)) != 0u)
#endif
// The token of a step.
#define RECUR_TOKEN(step) (RECUR_HAS(RECUR_REVERSE) ? end - 1u - (step) : begin + (step))
#define RECUR_ROW(rows, t) \
  (ARGS(rows.offset) + batch * ARGS(rows.batch) + (t)*ARGS(rows.token) + head * ARGS(rows.head))
#define RECUR_STATE(states, k)                                                         \
  (ARGS(states.offset) + sequence * ARGS(states.sequence) + head * ARGS(states.head) + \
   (k)*ARGS(states.row))
#define RECUR_DECAY_OF_HEAD       \
  (TO_FLOAT(head) * ARGS(slope) + \
   (RECUR_HAS(RECUR_GAMMA) ? LOAD_GAMMA(ARGS(gamma_offset) + head * ARGS(gamma_stride)) : 0.0f))

// Backward, in vectors of scratch: the state before a segment of a sequence; the state before a
// token of the segment that a work-group is in; the share that a block of columns has of a gradient
// of four key dims.
#define RECUR_KEPT(segment_of_sequence, r)                                                    \
  (ARGS(kept) +                                                                               \
   (((((batch * tokens + begin) / ARGS(segment) + sequence + (segment_of_sequence)) * heads + \
      head) *                                                                                 \
         tiles +                                                                              \
     tile) *                                                                                  \
        ROWS +                                                                                \
    (r)) *                                                                                    \
       RECUR_ITEMS +                                                                          \
   item)
#define RECUR_INNER(step, r) \
  (ARGS(inner) + ((group * ARGS(segment) + (step)) * ROWS + (r)) * RECUR_ITEMS + item)
// In vectors of scratch, the state before a span; in floats, the factor of a key dim over a span.
#define RECUR_SPAN_STATE(span, r) \
  (ARGS(span_states) + (((span)*units + unit) * ROWS + (r)) * RECUR_ITEMS + item)
#define RECUR_SPAN_FACTOR(span, k) (ARGS(span_factors) + ((span)*units + unit) * WG_Y * ROWS + (k))
#define RECUR_SHARE(shares, t, four)                                         \
  (ARGS(shares) +                                                            \
   (tile * ARGS(rows) + (batch * ARGS(tokens) + (t)) * ARGS(heads) + head) * \
       ((ARGS(key_dim) + 3u) / 4u) +                                         \
   (four))
// In floats, the share of the gradient of beta.
#define RECUR_BETA_SHARE(t) \
  (4u * ARGS(beta_shares) + tile * ARGS(rows) + (batch * ARGS(tokens) + (t)) * ARGS(heads) + head)

#endif  // TESSERA_OPERATIONS_RECURRENCE_CORE_PLACES_H
