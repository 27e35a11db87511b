// SPDX-License-Identifier: Apache-2.0
// The body of moe/rows/clear.cl and moe/rows/clear.comp. Text for OpenCL C and GLSL.

for (u32 row = GLOBAL_ID; row < ARGS(rows); row += GLOBAL_COUNT) MAP(row) = MOE_NOWHERE;
