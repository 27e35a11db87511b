// SPDX-License-Identifier: Apache-2.0
// The body of moe/route/select.cl and moe/route/select.comp. Text for OpenCL C and GLSL. LOGITS,
// KEYS and CHOSEN are arrays in local memory; LARGEST and SUM are of all items.

const u32 item = LOCAL_ID, experts = ARGS(experts), top_k = ARGS(top_k);
for (u32 token = GROUP_ID; UNIFORM(token < ARGS(tokens)); token += GROUP_COUNT) {
  float largest = MOE_EXCLUDED;
  EACH(e, experts) {
    const float x = MOE_LOGIT(token, e);
    LOGITS[e] = x;
    largest = x > largest ? x : largest;
  }
  largest = LARGEST(largest);
  float part = 0.0f;
  EACH(e, experts) part += moe_exp(LOGITS[e], largest);
  const float log_sum = moe_log_sum(largest, SUM(part));
  if (item == 0u) STORE_LOG_SUM(log_sum, token);
  // Without a bias logits tell experts apart that scores no longer do.
  EACH(e, experts) {
    float key = LOGITS[e];
    if (ARGS(biased) != 0u && key > MOE_EXCLUDED)
      key = moe_score(ARGS(sigmoid), key, log_sum) + BIAS(e);
    KEYS[e] = key == key ? key : MOE_EXCLUDED;
  }
  BARRIER();
  if (ARGS(groups) > 1u) {
    const u32 size = experts / ARGS(groups);
    EACH(g, ARGS(groups)) {
      float best = MOE_EXCLUDED, second = MOE_EXCLUDED;
      for (u32 e = g * size; e < (g + 1u) * size; ++e) {
        const float key = KEYS[e];
        second = key > best ? best : key > second ? key : second;
        best = key > best ? key : best;
      }
      GROUP_KEYS[g] = ARGS(biased) != 0u && second > MOE_EXCLUDED ? best + second : best;
    }
    BARRIER();
    EACH(g, ARGS(groups)) {
      u32 rank = 0u;
      const float own = GROUP_KEYS[g];
      for (u32 i = 0u; i < ARGS(groups); ++i)
        rank += GROUP_KEYS[i] > own || (GROUP_KEYS[i] == own && i < g) ? 1u : 0u;
      CHOSEN[g] = rank < ARGS(top_groups) ? 1 : 0;
    }
    BARRIER();
    EACH(e, experts) {
      if (CHOSEN[e / size] == 0) KEYS[e] = MOE_EXCLUDED;
    }
    BARRIER();
  }
  EACH(r, top_k) CHOSEN[r] = -1;
  BARRIER();
  EACH(e, experts) {
    u32 rank = 0u;
    const float own = KEYS[e];
    for (u32 i = 0u; i < experts; ++i) rank += KEYS[i] > own || (KEYS[i] == own && i < e) ? 1u : 0u;
    if (own > MOE_EXCLUDED && rank < top_k) CHOSEN[rank] = TO_INT(e);
  }
  BARRIER();
  EACH(r, top_k) {
    const int e = CHOSEN[r];
    STORE_ID(e, token * top_k + r);
    STORE_WEIGHT(e < 0 ? 0.0f : moe_score(ARGS(sigmoid), LOGITS[e], log_sum), token * top_k + r);
  }
  BARRIER();
}
