// SPDX-License-Identifier: Apache-2.0
// The body of moe/route/place.cl and moe/route/place.comp: the place of each choice among those of
// its expert, in the order of tokens. Text for OpenCL C and GLSL; IDS is an array in local memory.

const u32 choices = ARGS(tokens) * ARGS(top_k), first = GROUP_ID * MOE_BLOCK;
const u32 count = min(MOE_BLOCK, choices - first);
EACH(i, count) IDS[i] = ID(first + i);
BARRIER();
EACH(i, count) {
  const int e = IDS[i];
  int slot = -1;
  if (e >= 0) {
    u32 place = BLOCK_COUNT(GROUP_ID, TO_U32(e));
    for (u32 j = 0u; j < i; ++j) place += IDS[j] == e ? 1u : 0u;
    slot = place < ARGS(capacity) ? TO_INT(place) : -1;
  }
  STORE_SLOT(slot, first + i);
}
