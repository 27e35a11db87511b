// SPDX-License-Identifier: Apache-2.0
// What     The last states, of sequences that are not marked: the others have theirs already. Here, for a state that is changed
//          in place has to stay as it is until all marks are known.
// Who      An item owns a value dim of a key dim.
// Memory   States once.
// Numerics None.
// Assumes  Operands and scratch below 2^31 elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/cooperative/cooperative.def"
#include "operations/recurrence_core/cooperative/geometry.h"

layout(std430, binding = 8) writeonly buffer Final { float final[]; };
#include "recurrence/cooperative/scratch.glsl"

void main() {
  const uint groups = (STATE_SIZE + WG_X - 1u) / WG_X;
  const uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x, unit = group / groups;
  const uint element = group % groups * WG_X + gl_LocalInvocationID.x;
  sequence = unit / args.heads;
  head = unit % args.heads;
  if (sequence >= args.sequences || element >= STATE_SIZE) return;
  if (UNIT_MARK(unit) != 0u) return;
  const uint key = element / VALUE_DIM, value = element % VALUE_DIM;
  final[args.final_state.offset + sequence * args.final_state.sequence + head * args.final_state.head +
        key * args.final_state.row + value] = scratch_floats[LAST_STATE(unit) + value * KEY_DIM + key];
}
