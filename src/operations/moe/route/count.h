// SPDX-License-Identifier: Apache-2.0
// The body of moe/route/count.cl and moe/route/count.comp: how often each expert is chosen within a
// block of choices. Text for OpenCL C and GLSL.

const u32 choices = ARGS(tokens) * ARGS(top_k), first = GROUP_ID * MOE_BLOCK;
const u32 last = min(first + MOE_BLOCK, choices);
EACH(e, ARGS(experts)) {
  u32 count = 0u;
  for (u32 i = first; i < last; ++i) count += ID(i) == TO_INT(e) ? 1u : 0u;
  BLOCK_COUNT(GROUP_ID, e) = count;
}
