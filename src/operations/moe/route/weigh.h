// SPDX-License-Identifier: Apache-2.0
// The body of moe/route/weigh.cl and moe/route/weigh.comp: scores of the choices that have a place
// to weights. Text for OpenCL C and GLSL.

const u32 token = GLOBAL_ID, top_k = ARGS(top_k);
if (token < ARGS(tokens)) {
  float sum = 0.0f;
  for (u32 r = 0u; r < top_k; ++r)
    sum += SLOT(token * top_k + r) >= 0 ? WEIGHT(token * top_k + r) : 0.0f;
  float factor = ARGS(scale);
  if (ARGS(renormalise) != 0u) factor = sum == 0.0f ? 0.0f : ARGS(scale) / sum;
  for (u32 r = 0u; r < top_k; ++r) {
    const u32 i = token * top_k + r;
    WEIGHT(i) = SLOT(i) >= 0 ? WEIGHT(i) * factor : 0.0f;
  }
}
