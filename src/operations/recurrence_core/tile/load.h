// SPDX-License-Identifier: Apache-2.0
// Puts `block_tokens` tokens from step `block_first` on into local memory. RECUR_TAKES_QUERY,
// RECUR_TAKES_GRADIENT: whether a kernel reads those. Text for OpenCL C and GLSL.

// Padding holds 0 and may not grow, or it would hold NaN: its factor is 1, and 0 where values
// decay, too, whatever their decays are.
const float padding_decay = RECUR_HAS(RECUR_GV) ? RECUR_LOWEST_DECAY : 0.0f;
for (u32 i = item; i < block_tokens * RECUR_KEY_FOURS; i += RECUR_ITEMS) {
  const u32 token = RECUR_TOKEN(block_first + i / RECUR_KEY_FOURS), k = i % RECUR_KEY_FOURS * 4u;
  const u32 here = k < ARGS(key_dim) ? min(4u, ARGS(key_dim) - k) : 0u;
  FLOAT4 query = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f), key = query;
  FLOAT4 decay = MAKE_FLOAT4(padding_decay, padding_decay, padding_decay, padding_decay);
  if (here > 0u) {
#if RECUR_TAKES_QUERY
    query = LOAD_QUERY(RECUR_ROW(query, token) + k, here);
#endif
    key = LOAD_KEY(RECUR_ROW(key, token) + k, here);
    float shared_decay = decay_of_head;
    if (RECUR_HAS(RECUR_GATE)) shared_decay += LOAD_GATE(RECUR_ROW(g, token));
    decay = MAKE_FLOAT4(shared_decay, shared_decay, shared_decay, shared_decay);
    if (RECUR_HAS(RECUR_KEY_GATE)) decay += LOAD_KEY_GATE(RECUR_ROW(g, token) + k, here);
    if (RECUR_HAS(RECUR_GK)) decay += LOAD_GK(RECUR_ROW(gk, token) + k, here);
    if (here < 4u) decay.w = padding_decay;
    if (here < 3u) decay.z = padding_decay;
    if (here < 2u) decay.y = padding_decay;
  }
#if RECUR_TAKES_QUERY
  SPACE(RECUR_QUERIES + i) = query;
#endif
  SPACE(RECUR_KEYS + i) = key;
  SPACE(RECUR_DECAYS + i) = RECUR_HAS(RECUR_GV) ? decay : RECUR_HELD(decay);
}
for (u32 i = item; i < block_tokens * WG_X; i += RECUR_ITEMS) {
  const u32 token = RECUR_TOKEN(block_first + i / WG_X);
  const u32 from = tile * RECUR_COLUMNS + 4u * (i % WG_X);
  const u32 here = from < ARGS(value_dim) ? min(4u, ARGS(value_dim) - from) : 0u;
  FLOAT4 value = MAKE_FLOAT4(0.0f, 0.0f, 0.0f, 0.0f);
  FLOAT4 decay = MAKE_FLOAT4(padding_decay, padding_decay, padding_decay, padding_decay);
#if RECUR_TAKES_GRADIENT
  FLOAT4 gradient = value;
#endif
  if (here > 0u) {
    value = LOAD_VALUE(RECUR_ROW(value, token) + from, here);
    if (RECUR_HAS(RECUR_GV)) {
      decay = LOAD_GV(RECUR_ROW(gv, token) + from, here);
      if (here < 4u) decay.w = padding_decay;
      if (here < 3u) decay.z = padding_decay;
      if (here < 2u) decay.y = padding_decay;
    }
#if RECUR_TAKES_GRADIENT
    gradient = LOAD_GRADIENT(RECUR_ROW(result, token) + from, here);
#endif
  }
  SPACE(RECUR_VALUES + i) = value;
#ifdef RECUR_DELTA
  const float beta = here > 0u ? LOAD_BETA(RECUR_ROW(beta, token)) : 0.0f;
  SPACE(RECUR_BETAS + i) = MAKE_FLOAT4(beta, beta, beta, beta);
#else
  SPACE(RECUR_VALUE_DECAYS + i) = decay;
#endif
#if RECUR_TAKES_GRADIENT
  SPACE(RECUR_GRADIENTS + i) = gradient;
#endif
}
