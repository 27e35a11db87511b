#version 450
// SPDX-License-Identifier: Apache-2.0
// The same as append_rows.cl. WG_X is specialization constant 0, as everywhere in Tessera.
layout(local_size_x_id = 0) in;

layout(binding = 0) readonly buffer Rows { float rows[]; };
layout(binding = 1) readonly buffer Slots { int slots[]; };
layout(binding = 2) writeonly buffer Cache { float cache[]; };
layout(binding = 3) buffer Errors { uint errors[]; };
layout(push_constant) uniform Args {
  uint features, cache_rows, rows_offset, slots_offset, cache_offset;
  uint errors_at;
} args;

void main() {
  const uint n = gl_WorkGroupID.x;
  const int slot = slots[args.slots_offset + n];
  if (slot < 0 || slot >= int(args.cache_rows)) {
    if (gl_LocalInvocationID.x == 0) atomicMin(errors[args.errors_at], n);
    return;
  }
  for (uint i = gl_LocalInvocationID.x; i < args.features; i += gl_WorkGroupSize.x) {
    cache[args.cache_offset + uint(slot) * args.features + i] = rows[args.rows_offset + n * args.features + i];
  }
}
