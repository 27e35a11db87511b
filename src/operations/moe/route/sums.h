// SPDX-License-Identifier: Apache-2.0
// The body of moe/route/sums.cl and moe/route/sums.comp: scores of each expert, added up over a
// block of tokens. Text for OpenCL C and GLSL.

const u32 first = GROUP_ID * MOE_TOKENS, last = min(first + MOE_TOKENS, ARGS(tokens));
EACH(e, ARGS(experts)) {
  float sum = 0.0f;
  for (u32 token = first; token < last; ++token)
    sum += moe_score(ARGS(sigmoid), MOE_LOGIT(token, e), LOG_SUM(token));
  BLOCK_SUM(GROUP_ID, e) = sum;
}
