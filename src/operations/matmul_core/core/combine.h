// SPDX-License-Identifier: Apache-2.0
// The body of matmul/core/combine, in the text that OpenCL C and GLSL share.

const u32 vectors = (ARGS(n) + 3u) / 4u, each = ARGS(batches) * ARGS(m) * vectors;
for (u32 unit = GROUP_ID_X * TO_U32(WG_X) + LOCAL_ID_X; unit < each;
     unit += GROUP_COUNT_X * TO_U32(WG_X)) {
  FLOAT4 sum = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
  for (u32 split = 0u; split < ARGS(splits); ++split) sum += LOAD_PARTIAL(split * each + unit);
  const u32 column = unit % vectors * 4u, rest = unit / vectors;
  matmul_finish(MATMUL_ARGUMENTS rest / ARGS(m), rest % ARGS(m), column, sum);
}
