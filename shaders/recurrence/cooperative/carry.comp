// SPDX-License-Identifier: Apache-2.0
// What     The states before all chunks of a sequence, and the last one, from what chunks make of nothing. With GOES_BACK=1
//          gradients of states behind them, from the last chunk to the first.
// Who      An item owns four key dims of a value dim, chunk after chunk.
// Memory   What chunks have left once, AHEAD chunks ahead; states once, as elements.
// Numerics Float; states are rounded to DTYPE for products alone. Sequences of which a chunk is marked, or whose states DTYPE
//          does not hold, are marked.
// Assumes  Scratch below 2^31 elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/cooperative/cooperative.def"
#include "operations/recurrence_core/cooperative/geometry.h"

layout(std430, binding = 6) readonly buffer Initial { float initial[]; };
#include "recurrence/cooperative/scratch.glsl"

#define AHEAD 8u
#define SHARE (GOES_BACK != 0u ? args.scale : 1.0)  // of what chunks make

uint place_of(uint chunk, uint chunks) { return GOES_BACK != 0u ? chunks - 1u - chunk : chunk; }

void main() {
  const uint vectors = STATE_SIZE / 4u, groups = (vectors + WG_X - 1u) / WG_X;
  const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x, unit = group / groups;
  const uint vector = group % groups * WG_X + gl_LocalInvocationID.x;
  sequence = unit / args.heads;
  head = unit % args.heads;
  if (sequence >= args.sequences || vector >= vectors) return;
  find_sequence();
  const uint chunks = (end - begin + TOKENS - 1u) / TOKENS, base = first_slot() * args.heads + head;
  const uint key = vector * 4u % KEY_DIM, value = vector * 4u / KEY_DIM;

  vec4 state = vec4(0.0);
  if (RECUR_HAS(RECUR_INITIAL)) {
    const uint at = args.initial_state.offset + sequence * args.initial_state.sequence + head * args.initial_state.head +
                    key * args.initial_state.row + value;
    [[unroll]] for (uint i = 0u; i < 4u; ++i) state[i] = initial[at + i * args.initial_state.row];
  }
  bool odd = false;
  [[dont_unroll]] for (uint first = 0u; first < chunks; first += AHEAD) {
    vec4 made[AHEAD], factors[AHEAD];
    [[unroll]] for (uint n = 0u; n < AHEAD; ++n) {
      const uint chunk = base + place_of(min(first + n, chunks - 1u), chunks) * args.heads;
      made[n] = SHARE * scratch_vectors[CHUNK_STATE(chunk) / 4u + vector];
      factors[n] = scratch_vectors[CHUNK_FACTORS(chunk) / 4u + key / 4u];
    }
    [[unroll]] for (uint n = 0u; n < AHEAD; ++n) {
      if (first + n >= chunks) break;
      const uint chunk = base + place_of(first + n, chunks) * args.heads;
      odd = odd || CHUNK_MARK(chunk) != 0u || !all(lessThanEqual(abs(state), vec4(LARGEST)));
      scratch_pairs[CHUNK_KEPT(chunk) / 4u + vector] = narrow4(state);
      state = state * factors[n] + made[n];
    }
  }
  scratch_vectors[LAST_STATE(unit) / 4u + vector] = state;
  if (odd || any(isnan(state)) || any(isinf(state))) UNIT_MARK(unit) = 1u;
}
