// SPDX-License-Identifier: Apache-2.0
// The body of moe/ffn/sizes.cl and moe/ffn/sizes.comp: rows of each expert. Text for OpenCL C and
// GLSL.

for (u32 e = GLOBAL_ID; e < ARGS(experts); e += GLOBAL_COUNT)
  SIZE(e) = TO_INT(TO_U32(START(e + 1u)) - TO_U32(START(e)));
