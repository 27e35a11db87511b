// SPDX-License-Identifier: Apache-2.0
// What     The map of tiles: whether masks, segments and positions show nothing, some or all of
//          what the rows of a tile may see of its keys; kernels skip tiles of nothing, and do not
//          test the keys of tiles of all.
// Who      Group (x, y, z): tile x of keys, tile y of rows, batch and head of the map. Its items
//          share the elements.
// Memory   Every operand of a mask once; one word per tile written.
// Numerics Whole numbers.
// Assumes  The table of rows is written.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/prelude.glsl"
#include "operations/attention_core/core/policy_args.h"
BUFFER_ARGS(AttentionCall, 7);
#define SCRATCH_BINDING 0
#include "attention/core/policy.glsl"

layout(std430, binding = SCRATCH_BINDING) writeonly buffer Map { uint map_words[]; };

shared uint all_found[WG_X];

void main() {
  const uint batch = gl_WorkGroupID.z / args.policy.map_heads;
  const uint map_head = gl_WorkGroupID.z % args.policy.map_heads;
  const uint first_row = gl_WorkGroupID.y * args.policy.map_rows;
  const uint first_key = gl_WorkGroupID.x * args.policy.map_keys;
  const uint end_row = min(first_row + args.policy.map_rows, args.core.q_len);
  const uint end_key = min(first_key + args.policy.map_keys, args.core.kv_len);

  uint found = 0u;  // bit 0: a visible key, bit 1: a hidden one
  for (uint row = first_row; row < end_row && found != 3u; ++row) {
    const RowPolicy at = policy_row(batch, map_head * args.policy.mask.group, row);
    const int end = min(int(end_key), at.end);
    for (int key = max(int(first_key), at.first) + int(gl_LocalInvocationIndex);
         key < end && found != 3u; key += int(WG_X))
      found |= policy_sees(at, key) ? 1u : 2u;
  }
  all_found[gl_LocalInvocationIndex] = found;
  barrier();
  if (gl_LocalInvocationIndex != 0u) return;
  for (uint i = 1u; i < WG_X; ++i) found |= all_found[i];
  map_words[args.policy.map + batch * args.policy.map_stride_batch +
            map_head * args.policy.map_stride_head + gl_WorkGroupID.y * args.policy.map_stride_row +
            gl_WorkGroupID.x] = found == 3u   ? MAP_SOME
                                : found == 1u ? MAP_ALL
                                              : MAP_NOTHING;
}
