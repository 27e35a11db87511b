// SPDX-License-Identifier: Apache-2.0
// The largest score of a row, and what its weights add up to, by all items of a work-group: for what
// cannot be told from log_sum_exp. After attention/core/policy.glsl and the operands q and k.
#ifndef TESSERA_ATTENTION_ROW_PEAK_GLSL
#define TESSERA_ATTENTION_ROW_PEAK_GLSL

// A row, by what its scores are made from.
struct PeakRow {
  RowPolicy policy;
  uint head, head_dim;
  uint query, keys;  // where they begin, the keys of its kv head
};

// {largest, whose, sum}: base-2 scores of keys, and of sinks, of which number n counts as key
// kv_len + n; the first of equals wins, and -1 is of a row that sees nothing. sum: of
// exp2(score - largest), sinks included.
struct RowPeak {
  float largest;
  int key;
  float sum;
};

shared float peak_scores[WG_X];
shared int peak_keys[WG_X];

// MASKED_SCORE where the row does not see the key.
float key_score(PeakRow row, int key) {
  if (!policy_sees(row.policy, key)) return MASKED_SCORE;
  const uint from = row.keys + uint(key) * CORE(k_stride_row);
  float dot_product = 0.0;
  for (uint d = 0u; d < row.head_dim; ++d)
    dot_product = fma(load_scalar(q[row.query + d]), load_scalar(k[from + d]), dot_product);
  return policy_score(row.policy, key, dot_product * CORE(scale)).x;
}

uint sinks_of(PeakRow row) { return (RULE(features) & POLICY_SINKS) != 0u ? RULE(sinks) : 0u; }

float sink_score(PeakRow row, uint n) {
  const uint first =
      RULE(sinks_offset) + row.head / RULE(sinks_group) * RULE(sinks_stride_head);
  return exponent_of_score(
      SINK_VALUE(first + n * RULE(sinks_stride), RULE(features) & POLICY_WIDE_SINKS));
}

// Whether the row sees a key, for every item; without sinks nobody asks, and the answer is no.
bool sees_key(PeakRow row, uint item) {
  const int end = sinks_of(row) > 0u ? row.policy.end : row.policy.first;
  bool seen = false;
  for (int key = row.policy.first + int(item); key < end && !seen; key += int(WG_X))
    seen = policy_sees(row.policy, key) && policy_score(row.policy, key, 0.0).x != MASKED_SCORE;
  peak_keys[item] = seen ? 1 : 0;
  barrier();
  int any_found = 0;
  for (uint i = 0u; i < WG_X; ++i) any_found |= peak_keys[i];
  barrier();
  return any_found != 0;
}

// isinf() may be compiled away.
bool is_lowest(float x) { return FLOAT_BITS(x) == 0xff800000u; }
bool is_infinite(float x) { return (FLOAT_BITS(x) & 0x7fffffffu) == 0x7f800000u; }

// A score more: what the sum holds shrinks where it is the largest. Of scores of -infinity nothing
// stays.
void peak_add(inout RowPeak peak, float score, int key) {
  if (peak.key < 0 || score > peak.largest) {
    const bool keeps = peak.key >= 0 && !is_lowest(peak.largest);
    peak = RowPeak(score, key, keeps ? peak.sum * exp2(peak.largest - score) : 0.0);
  }
  peak.sum += exp2(score - peak.largest);
}

// Every item gets the same.
RowPeak find_peak(PeakRow row, uint item) {
  RowPeak own = RowPeak(0.0, -1, 0.0);
  for (int key = row.policy.first + int(item); key < row.policy.end; key += int(WG_X)) {
    const float score = key_score(row, key);
    if (score != MASKED_SCORE) peak_add(own, score, key);
  }
  for (uint n = item; n < sinks_of(row); n += WG_X)
    peak_add(own, sink_score(row, n), int(CORE(kv_len) + n));
  peak_scores[item] = own.largest;
  peak_keys[item] = own.key;
  barrier();
  RowPeak peak = own;
  for (uint i = 0u; i < WG_X; ++i) {
    if (peak_keys[i] < 0) continue;
    if (peak.key < 0 || peak_scores[i] > peak.largest ||
        (peak_scores[i] == peak.largest && peak_keys[i] < peak.key))
      peak = RowPeak(peak_scores[i], peak_keys[i], 0.0);
  }
  barrier();
  const bool counts = own.key >= 0 && !(is_lowest(own.largest) && !is_lowest(peak.largest));
  peak_scores[item] = counts ? own.sum * exp2(own.largest - peak.largest) : 0.0;
  barrier();
  peak.sum = 0.0;
  for (uint i = 0u; i < WG_X; ++i) peak.sum += peak_scores[i];
  return peak;
}

// Whether weights are not made from this log_sum_exp.
bool is_coarse(float log_sum_exp) {
  return (RULE(features) & POLICY_ADDS) != 0u && abs(log_sum_exp) > COARSE_LOG_SUM_EXP &&
         !is_infinite(log_sum_exp);
}

#endif  // TESSERA_ATTENTION_ROW_PEAK_GLSL
