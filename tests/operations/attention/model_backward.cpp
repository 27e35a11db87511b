// SPDX-License-Identifier: Apache-2.0
// The model's gradients.
#include <algorithm>
#include <cmath>

#include "operations/attention/model.hpp"
#include "operations/attention/model_numbers.hpp"
#include "operations/attention_core/core/policy_args.h"

namespace tessera::testing {

// In the order of the operands' elements.
struct AttentionModel::Gradients {
  std::vector<float> query, key, value, bias, sinks;
  std::vector<bool> seen;  // by batch and key/value row
};

void AttentionModel::accumulate(const Row& row, Gradients& gradients) const {
  const std::int64_t at = (row.batch * call_.q_len + row.index) * call_.heads + row.head;
  const std::int64_t head = kv_head(row.head);
  const float* const query = query_.at(row.batch, row.index, row.head);
  const float* const gradient = gradient_.at(row.batch, row.index, row.head);
  const float* const output = output_.at(row.batch, row.index, row.head);
  const float* const delta_gradient = delta_gradient_.at(row.batch, row.index, row.head);
  float delta = 0;
  for (std::int64_t d = 0; d < call_.value_dim; ++d) delta += delta_gradient[d] * output[d];
  if (is(Fault::kDeltaMissing)) delta = 0;
  const float lse = log_sum_exp_.spec.shape.size() == 3
                        ? log_sum_exp_.at({row.batch, row.head, row.index})
                        : log_sum_exp_.at({row.head, row.index});
  const std::vector<float> logits = sinks(row);
  // Weights are exp(score - shift). Delta comes off by weight, or off the largest score alone.
  float shift = is(Fault::kLseBase2) ? lse * kLn2 : lse, sum = 1;
  std::int64_t peak = -1;
  const bool normalized = call_.normalize || is(Fault::kPeakIgnored);
  const bool coarse = (has(call_.slots.bias) || has(call_.slots.alibi_slopes)) &&
                      std::fabs(lse) > COARSE_LOG_SUM_EXP && !is(Fault::kCoarseLseTaken);
  if (!call_.normalize || coarse) {
    shift = -kInfinity;
    for (std::int64_t key = 0; key < call_.kv_len; ++key) {
      if (!sees(row, key)) continue;
      const float value = score(row, key).value;
      if (value > shift) peak = key;
      shift = std::max(shift, value);
    }
    for (std::size_t n = 0; n < logits.size(); ++n) {
      if (logits[n] > shift) peak = call_.kv_len + static_cast<std::int64_t>(n);
      shift = std::max(shift, logits[n]);
    }
  }
  if (call_.normalize && coarse) {
    sum = 0;
    for (std::int64_t key = 0; key < call_.kv_len; ++key) {
      if (sees(row, key)) sum += std::exp(score(row, key).value - shift);
    }
    for (const float logit : logits) sum += std::exp(logit - shift);
  }
  const auto delta_at = [&](std::int64_t key, float p) {
    return normalized ? p * delta : key == peak ? delta : 0;
  };
  bool counts = is(Fault::kHiddenDelta);  // for sinks: the row sees a key
  const bool last_of_group = row.head % call_.group() + 1 == call_.group();
  for (std::int64_t key = 0; key < call_.kv_len; ++key) {
    if (lse == -kInfinity && is(Fault::kEmptyRowIsNan)) gradients.query[index(at)] = kNan;
    bool seen = sees(row, key);
    Score s{};
    if (seen) {
      s = score(row, key);
    } else if (cap_ > 0 && is(Fault::kMaskBeforeCap) && in_band(row, key)) {
      s = {.value = -cap_, .slope = 0};
      seen = true;
    }
    if (!seen && is(Fault::kHiddenKeyTimesZero)) {
      for (std::int64_t d = 0; d < call_.head_dim; ++d)
        gradients.query[index(at * call_.head_dim + d)] += 0 * key_row(row, key)[d];
    }
    counts = counts || seen;
    if (!seen || lse == -kInfinity) continue;
    const float p = std::exp(s.value - shift) / sum;
    const float kept = keep(row, key);
    const float* const keys = key_row(row, key);
    const float* const values = value_row(row, key);
    float dp = 0;
    for (std::int64_t d = 0; d < call_.value_dim; ++d) dp += gradient[d] * values[d];
    const float drop_p = is(Fault::kDropoutNotInDp) ? 1 : kept;
    const float share = delta_at(key, p);
    float ds = p * drop_p * dp - (is(Fault::kDeltaDropped) ? drop_p * share : share);
    if (is(Fault::kScoreGradientBf16)) ds = rounded(DType::kBF16, ds);
    const float du = ds * s.slope;
    const float dq_scale = is(Fault::kQueryGradientUnscaled) ? 1 : scale_;
    const float dk_scale = is(Fault::kKeyGradientUnscaled) ? 1 : scale_;
    const std::int64_t to = (row.batch * call_.kv_len + key) * call_.kv_heads + head;
    gradients.seen[index(to)] = true;
    const bool key_row = !is(Fault::kLastRowMissing) || row.index + 1 < call_.q_len;
    for (std::int64_t d = 0; d < call_.head_dim; ++d) {
      float& dq = gradients.query[index(at * call_.head_dim + d)];
      float& dk = gradients.key[index(to * call_.head_dim + d)];
      if (is(Fault::kQueryGradientLastTile) && key % kTile == 0) dq = 0;
      dq += dq_scale * du * keys[d];
      if (!key_row || (is(Fault::kKeyGradientOneHead) && !last_of_group)) continue;
      dk += dk_scale * du * query[d];
      if (is(Fault::kKeyGradientInStorage)) dk = rounded(problem_.dtype, dk);
    }
    const float weight = is(Fault::kValueGradientOfScores) ? ds
                         : is(Fault::kDropoutNotInDv)      ? p
                                                           : p * kept;
    for (std::int64_t d = 0; d < call_.value_dim && weight != 0; ++d) {
      if (!key_row || (is(Fault::kValueGradientOneHead) && !last_of_group)) continue;
      gradients.value[index(to * call_.value_dim + d)] += weight * gradient[d];
    }
    if (!gradients.bias.empty()) {
      const Shape shape = four_axes(problem_.spec(call_.slots.bias_gradient).shape);
      const std::int64_t place[4] = {row.batch, row.head * shape[1] / call_.heads, row.index, key};
      std::int64_t flat = 0;
      for (std::size_t axis = 0; axis < 4; ++axis)
        flat = flat * shape[axis] + (shape[axis] > 1 ? place[axis] : 0);
      float& db = gradients.bias[index(flat)];
      if (is(Fault::kBiasGradientNotSummed)) db = 0;
      const bool after = call_.bias_after_cap != is(Fault::kBiasGradientAfterCap);
      db += (after ? ds : du) * (is(Fault::kBiasGradientScaled) ? scale_ : 1);
    }
  }
  if (gradients.sinks.empty() || !counts || std::isinf(lse)) return;
  if (is(Fault::kSinkGradientOneBatch) && row.batch + 1 < call_.batch) return;
  const std::int64_t heads = sinks_.spec.shape.size() == 2 ? sinks_.spec.shape[0] : 1;
  for (std::size_t n = 0; n < logits.size(); ++n) {
    const float share =
        delta_at(call_.kv_len + static_cast<std::int64_t>(n), std::exp(logits[n] - shift) / sum);
    gradients.sinks[index(row.head * heads / call_.heads) * logits.size() + n] +=
        is(Fault::kSinkGradientSign) ? share : -share;
  }
}

void AttentionModel::backward() {
  const operations::attention::AttentionSlots& slots = call_.slots;
  const auto zeros = [&](std::size_t slot) {
    return std::vector<float>(has(slot) ? index(problem_.spec(slot).elements()) : 0);
  };
  Gradients gradients{
      .query = zeros(slots.query_gradient),
      .key = zeros(slots.key_gradient),
      .value = zeros(slots.value_gradient),
      .bias = zeros(slots.bias_gradient),
      .sinks = zeros(slots.sinks_gradient),
      .seen = std::vector<bool>(index(call_.batch * call_.kv_len * call_.kv_heads))};
  const std::int64_t rows = call_.batch * call_.heads * call_.q_len;
  for (std::int64_t n = 0; n < rows; ++n) {
    const std::int64_t at = is(Fault::kRowsBackwards) ? rows - 1 - n : n;
    accumulate(
        row_of(at / call_.q_len / call_.heads, at / call_.q_len % call_.heads, at % call_.q_len),
        gradients);
  }
  for (std::size_t n = 0; n < gradients.seen.size(); ++n) {
    if (!is(Fault::kHiddenGradientNotWritten) || gradients.seen[n]) continue;
    gradients.key[n * index(call_.head_dim)] = kNan;
  }
  const auto write = [&](std::size_t slot, const std::vector<float>& values) {
    if (has(slot)) tensors_[slot].write(std::vector<double>(values.begin(), values.end()));
  };
  write(slots.query_gradient, gradients.query);
  write(slots.key_gradient, gradients.key);
  write(slots.value_gradient, gradients.value);
  write(slots.bias_gradient, gradients.bias);
  write(slots.sinks_gradient, gradients.sinks);
}

}  // namespace tessera::testing
