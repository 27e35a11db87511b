// SPDX-License-Identifier: Apache-2.0
// What     The map of tiles: whether masks, segments and positions show nothing, some or all of what the rows of a tile
//          may see of its keys; kernels skip tiles of nothing, and do not test the keys of tiles of all.
// Who      Group (x, y, z): tile x of keys, tile y of rows, batch and head of the map. Its items share the elements.
// Memory   Every operand of a mask once; one word per tile written.
// Numerics Whole numbers.
// Assumes  The table of rows is written.
#include "attention/core/policy.clh"

KERNEL void attention_map(global uint* scratch, POLICY_KERNEL_PARAMETERS, const struct AttentionCall call) {
  const Policies policy_operands = MAKE_POLICIES(call, scratch), *policies = &policy_operands;
  const uint batch = get_group_id(2) / call.policy.map_heads, map_head = get_group_id(2) % call.policy.map_heads;
  const uint first_row = get_group_id(1) * call.policy.map_rows, first_key = get_group_id(0) * call.policy.map_keys;
  const uint end_row = min(first_row + call.policy.map_rows, call.core.q_len);
  const uint end_key = min(first_key + call.policy.map_keys, call.core.kv_len);

  uint found = 0;  // bit 0: a visible key, bit 1: a hidden one
  for (uint row = first_row; row < end_row && found != 3; ++row) {
    const RowPolicy at = policy_row(policies, batch, map_head * call.policy.mask.group, row);
    const int end = min((int)end_key, at.end);
    for (int key = max((int)first_key, at.first) + (int)get_local_id(0); key < end && found != 3; key += WG_X)
      found |= policy_sees(policies, at, key) ? 1 : 2;
  }
  local uint all[WG_X];
  all[get_local_id(0)] = found;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_local_id(0) != 0) return;
  for (uint i = 1; i < WG_X; ++i) found |= all[i];
  scratch[call.policy.map + batch * call.policy.map_stride_batch + map_head * call.policy.map_stride_head +
          get_group_id(1) * call.policy.map_stride_row + get_group_id(0)] =
      found == 3 ? MAP_SOME : found == 1 ? MAP_ALL : MAP_NOTHING;
}
