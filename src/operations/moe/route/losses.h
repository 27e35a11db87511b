// SPDX-License-Identifier: Apache-2.0
// The body of moe/route/losses.cl and moe/route/losses.comp. Text for OpenCL C and GLSL; SUM is of
// all items.

const u32 tokens = ARGS(tokens), blocks = (tokens + MOE_TOKENS - 1u) / MOE_TOKENS;
const float one = tokens == 0u ? 0.0f : 1.0f / TO_FLOAT(tokens);
if (HAS_BALANCE) {
  float balance = 0.0f;
  EACH(e, ARGS(experts)) {
    float sum = 0.0f;
    for (u32 block = 0u; block < blocks; ++block) sum += BLOCK_SUM(block, e);
    balance += (sum * one) * (TO_FLOAT(TOTAL(e)) * one);
  }
  balance = SUM(balance);
  if (LOCAL_ID == 0u) STORE_BALANCE(ARGS(balance) * balance);
}
if (HAS_Z) {
  float squares = 0.0f;
  EACH(token, tokens) {
    const float x = LOG_SUM(token);
    squares += x * x;
  }
  squares = SUM(squares);
  if (LOCAL_ID == 0u) STORE_Z(ARGS(z) * (squares * one));
}
