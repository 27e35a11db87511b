// SPDX-License-Identifier: Apache-2.0
// The body of moe/route/scan.cl and moe/route/scan.comp: the choices of each expert in front of
// each block and in all, and where experts begin. Text for OpenCL C and GLSL; KEPT is an array in
// local memory.

const u32 blocks = (ARGS(tokens) * ARGS(top_k) + MOE_BLOCK - 1u) / MOE_BLOCK;
EACH(e, ARGS(experts)) {
  u32 before = 0u;
  for (u32 block = 0u; block < blocks; ++block) {
    const u32 count = BLOCK_COUNT(block, e);
    BLOCK_COUNT(block, e) = before;
    before += count;
  }
  TOTAL(e) = before;
  KEPT[e] = min(before, ARGS(capacity));
  if (OUTPUTS != 0) STORE_COUNT(KEPT[e], e);
}
BARRIER();
EACH(e, ARGS(experts) + 1u) {
  u32 offset = 0u;
  if (ARGS(capacity) != MOE_NO_CAPACITY) {
    offset = e * ARGS(capacity);
  } else {
    for (u32 i = 0u; i < e; ++i) offset += KEPT[i];
  }
  if (OUTPUTS != 0) STORE_OFFSET(offset, e);
}
