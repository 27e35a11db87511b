// SPDX-License-Identifier: Apache-2.0
// The body of moe/rows/map.cl and moe/rows/map.comp: the choice that has its place at each row, the
// last one where there are several. Text for OpenCL C and GLSL.

const u32 choices = ARGS(tokens) * ARGS(top_k);
for (u32 n = GLOBAL_ID; n < choices; n += GLOBAL_COUNT) {
  MOE_PLACE(row, n, true)
  if (row != MOE_NOWHERE) MAP_LARGEST(row, TO_INT(n));
}
