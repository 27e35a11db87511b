// SPDX-License-Identifier: Apache-2.0
// The body of moe/route/backward.cl and moe/route/backward.comp. Text for OpenCL C and GLSL. SLOPES
// is an array in local memory: the gradients of a token's scores.

const u32 experts = ARGS(experts), top_k = ARGS(top_k);
const float one = 1.0f / TO_FLOAT(ARGS(tokens));
const float balance = HAS_BALANCE ? GRAD_BALANCE * ARGS(balance) * one * one : 0.0f;
const float z = HAS_Z ? GRAD_Z * ARGS(z) * one * 2.0f : 0.0f;
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

  float sum = 0.0f, mean = 0.0f;
  if (ARGS(renormalise) != 0u) {
    for (u32 r = 0u; r < top_k; ++r) {
      const u32 i = token * top_k + r;
      if (HAS_PLACE(i)) {
        const float score = moe_score(ARGS(sigmoid), LOGITS[ID(i)], log_sum);
        sum += score;
        mean += score * GRAD_WEIGHT(i);
      }
    }
    mean = sum == 0.0f ? 0.0f : mean / sum;
  }
  EACH(e, experts) SLOPES[e] = HAS_BALANCE ? balance * TO_FLOAT(TOTAL(e)) : 0.0f;
  BARRIER();
  // One item for all choices: callers may name an expert twice.
  if (LOCAL_ID == 0u) {
    for (u32 r = 0u; r < top_k; ++r) {
      const u32 i = token * top_k + r;
      if (HAS_PLACE(i)) {
        float slope = ARGS(scale) * GRAD_WEIGHT(i);
        if (ARGS(renormalise) != 0u)
          slope = sum == 0.0f ? 0.0f : ARGS(scale) * (GRAD_WEIGHT(i) - mean) / sum;
        SLOPES[ID(i)] += slope;
      }
    }
  }
  BARRIER();
  part = 0.0f;
  if (ARGS(sigmoid) == 0u) {
    EACH(e, experts) part += SLOPES[e] * moe_exp(LOGITS[e], log_sum);
  }
  const float through = SUM(part);
  EACH(e, experts) {
    const float share = moe_exp(LOGITS[e], log_sum);
    float slope = share * (SLOPES[e] - through);
    if (ARGS(sigmoid) != 0u) {
      const float score = 1.0f / (1.0f + exp(-LOGITS[e]));
      slope = score < MOE_LEAST_SCORE ? 0.0f : SLOPES[e] * score * (1.0f - score);
    }
    STORE_GRADIENT(slope + z * log_sum * share, token, e);
  }
  BARRIER();
}
