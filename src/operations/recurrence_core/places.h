// SPDX-License-Identifier: Apache-2.0
// Where tokens, rows and states lie, by names that a kernel's body has: begin, end, batch, head,
// sequence. Text for OpenCL C and GLSL.
#ifndef TESSERA_OPERATIONS_RECURRENCE_CORE_PLACES_H
#define TESSERA_OPERATIONS_RECURRENCE_CORE_PLACES_H

#define RECUR_HAS(feature) ((ARGS(features) & (feature)) != 0u)
// The token of a step of this launch.
#define RECUR_TOKEN(step) \
  (RECUR_HAS(RECUR_REVERSE) ? end - 1u - ARGS(first) - (step) : begin + ARGS(first) + (step))
#define RECUR_ROW(rows, t) \
  (ARGS(rows.offset) + batch * ARGS(rows.batch) + (t)*ARGS(rows.token) + head * ARGS(rows.head))
#define RECUR_STATE(states, k)                                                         \
  (ARGS(states.offset) + sequence * ARGS(states.sequence) + head * ARGS(states.head) + \
   (k)*ARGS(states.row))
#define RECUR_DECAY_OF_HEAD       \
  (TO_FLOAT(head) * ARGS(slope) + \
   (RECUR_HAS(RECUR_GAMMA) ? LOAD_GAMMA(ARGS(gamma_offset) + head * ARGS(gamma_stride)) : 0.0f))

#endif  // TESSERA_OPERATIONS_RECURRENCE_CORE_PLACES_H
