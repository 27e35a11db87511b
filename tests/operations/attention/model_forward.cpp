// SPDX-License-Identifier: Apache-2.0
// The model's forward pass.
#include <algorithm>
#include <cmath>

#include "operations/attention/model.hpp"
#include "operations/attention/model_numbers.hpp"

namespace tessera::testing {
namespace {

constexpr std::int64_t kSmallTile = 5;

// Neighbours of a 16-bit number have neighbouring bits.
float truncated(DType dtype, float x) {
  if (dtype == DType::kF32) return x;
  const bool half = dtype == DType::kF16;
  const std::uint16_t bits = half ? to_half_bits(x) : to_bfloat16_bits(x);
  const auto below = static_cast<std::uint16_t>(bits - 1);
  const float nearest = rounded(dtype, x);
  if (!(std::fabs(nearest) > std::fabs(x))) return nearest;
  return half ? from_half_bits(below) : from_bfloat16_bits(below);
}

}  // namespace

void AttentionModel::tile(const Row& row, std::int64_t first, std::int64_t last,
                          Partial& partial) const {
  std::vector<float> scores(index(last - first), -kInfinity);
  float maximum = partial.maximum;
  for (std::int64_t key = first; key < last; ++key) {
    float& score = scores[index(key - first)];
    const bool tail = key >= call_.kv_len;
    if (tail) {
      if (is(Fault::kTailKeysNotMasked) && row.number >= 0) score = 0;
    } else if (sees(row, key)) {
      score = this->score(row, key).value;
    } else if (row.number >= 0 && is(Fault::kMaskIsFinite)) {
      score = -1e4F;
    } else if (cap_ > 0 && is(Fault::kMaskBeforeCap) && in_band(row, key)) {
      score = -cap_;
    }
    maximum = std::isnan(score) ? score : std::max(maximum, score);
  }
  if (is(Fault::kSinksPerTile)) {
    for (const float sink : sinks(row)) maximum = std::max(maximum, sink);
  }
  if (maximum == -kInfinity) return;
  if (is(Fault::kSmallTilesSkipped) && maximum == partial.maximum &&
      *std::ranges::max_element(scores) < maximum - 8)
    return;
  if (is(Fault::kStaleMaximum) && partial.maximum > -kInfinity) maximum = partial.maximum;
  const float rescale = exponential(partial.maximum - maximum);
  const bool nothing = is(Fault::kNothingRescaled);
  if (!nothing && !is(Fault::kSumNotRescaled)) partial.sum *= rescale;
  for (float& output : partial.output) {
    if (!nothing && !is(Fault::kOutputNotRescaled)) output *= rescale;
  }
  partial.maximum = maximum;
  if (is(Fault::kSinksPerTile)) {
    for (const float sink : sinks(row)) partial.sum += exponential(sink - maximum);
  }
  for (std::int64_t key = first; key < last; ++key) {
    const float score = scores[index(key - first)];
    if (score == -kInfinity && !is(Fault::kHiddenTimesZero)) continue;
    float weight = exponential(score - maximum);
    const bool tail = key >= call_.kv_len;
    const float kept = tail ? 0 : keep(row, key);
    partial.sum += is(Fault::kDropoutBeforeSum) && kept == 0 ? 0 : weight;
    if (is(Fault::kWeightsBf16)) weight = rounded(DType::kBF16, weight);
    if (is(Fault::kWeightsInStorage)) weight = rounded(problem_.dtype, weight);
    if (tail) continue;
    const float* const value = value_row(row, key);
    for (std::int64_t d = 0; d < call_.value_dim; ++d) {
      float& output = partial.output[index(d)];
      output += weight * kept * value[d];
      if (is(Fault::kOutputBf16)) output = rounded(DType::kBF16, output);
      if (is(Fault::kOutputInStorage)) output = rounded(problem_.dtype, output);
    }
  }
}

AttentionModel::Partial AttentionModel::split(const Row& row, std::int64_t first,
                                              std::int64_t last) const {
  Partial partial{.maximum = is(Fault::kMaximumFromZero) ? 0 : -kInfinity,
                  .output = std::vector<float>(index(call_.value_dim))};
  const std::int64_t keys = is(Fault::kSmallTiles) ? kSmallTile : kTile;
  for (std::int64_t key = first; key < last; key += keys) {
    const bool padded = key + keys > call_.kv_len;
    tile(row, key, padded ? key + keys : std::min(key + keys, last), partial);
  }
  if (is(Fault::kSinksPerSplit)) {
    const float before = partial.maximum;
    for (const float sink : sinks(row)) partial.maximum = std::max(partial.maximum, sink);
    const float rescale = before == -kInfinity ? 0 : std::exp(before - partial.maximum);
    partial.sum *= rescale;
    for (float& output : partial.output) output *= rescale;
    for (const float sink : sinks(row)) partial.sum += std::exp(sink - partial.maximum);
  }
  if (is(Fault::kEmptySplitAtZero) && partial.maximum == -kInfinity) partial.maximum = 0;
  return partial;
}

AttentionModel::Partial AttentionModel::merge(const std::vector<Partial>& parts) const {
  Partial whole{.maximum = -kInfinity, .output = std::vector<float>(index(call_.value_dim))};
  for (const Partial& part : parts) whole.maximum = std::max(whole.maximum, part.maximum);
  for (const Partial& part : parts) {
    float factor = part.maximum == -kInfinity ? 0 : std::exp(part.maximum - whole.maximum);
    if (is(Fault::kEmptySplitIsNan)) factor = std::exp(part.maximum - whole.maximum);
    if (is(Fault::kSplitsUnscaled)) factor = 1;
    const float share = is(Fault::kSplitsAveraged) && part.sum > 0 ? 1 / part.sum : 1;
    whole.sum += factor * share * part.sum;
    for (std::size_t d = 0; d < whole.output.size(); ++d)
      whole.output[d] += factor * share * part.output[d];
  }
  return whole;
}

void AttentionModel::finish(const Row& row, Partial partial, std::vector<double>& output,
                            std::vector<double>& log_sum_exp) const {
  float lse_maximum = partial.maximum, lse_sum = partial.sum;
  if (!is(Fault::kSinksPerTile) && !is(Fault::kSinksPerSplit)) {
    const std::vector<float> logits = sinks(row);
    float maximum = partial.maximum;
    for (const float sink : logits) maximum = std::max(maximum, sink);
    const float rescale = partial.maximum == -kInfinity ? 0 : std::exp(partial.maximum - maximum);
    partial.sum *= rescale;
    for (float& value : partial.output) value *= rescale;
    for (const float sink : logits) partial.sum += std::exp(sink - maximum);
    partial.maximum = maximum;
  }
  if (!is(Fault::kSinksNotInLse)) {
    lse_maximum = partial.maximum;
    lse_sum = partial.sum;
  }
  const std::int64_t start =
      ((row.batch * call_.q_len + row.index) * call_.heads + row.head) * call_.value_dim;
  const bool normalized = call_.normalize || is(Fault::kNormalizedAnyway);
  const bool empty = partial.sum == 0;
  for (std::int64_t d = 0; d < call_.value_dim; ++d) {
    if (is(Fault::kLastColumnNotWritten) && d + 1 == call_.value_dim) continue;
    float value = partial.output[index(d)];
    if (normalized) {
      if (is(Fault::kReciprocal)) {
        value = empty ? 0 : value * (1 / partial.sum);
      } else {
        value = empty ? 0 : value / partial.sum;
      }
    }
    if (empty && is(Fault::kMaskedRowIsNan)) value = kNan;
    if (empty && row.number >= 0 && is(Fault::kMaskedRowIsMean)) {
      value = 0;
      for (std::int64_t key = 0; key < call_.kv_len; ++key)
        value += value_row(row, key)[d] / static_cast<float>(call_.kv_len);
    }
    if (is(Fault::kOutputTruncated)) value = truncated(problem_.dtype, value);
    if (is(Fault::kOutputRoundedTwice)) value = rounded(DType::kBF16, value);
    output[index(start + d)] = value;
  }
  float lse = lse_sum == 0 ? -kInfinity : lse_maximum + std::log(lse_sum);
  if (lse_sum == 0 && is(Fault::kLseOfNothing)) lse = kInfinity;
  if (is(Fault::kLseBase2)) lse /= kLn2;
  if (is(Fault::kLseWithoutMaximum)) lse = lse_sum == 0 ? -kInfinity : std::log(lse_sum);
  log_sum_exp[index((row.batch * call_.heads + row.head) * call_.q_len + row.index)] = lse;
}

void AttentionModel::forward() {
  const std::int64_t rows = call_.batch * call_.heads * call_.q_len;
  std::vector<double> output(index(rows * call_.value_dim), kNan), log_sum_exp(index(rows), kNan);
  const std::int64_t splits = std::max<std::int64_t>(call_.splits, 1);
  const std::int64_t tiles = (call_.kv_len + kTile - 1) / kTile;
  for (std::int64_t n = 0; n < rows; ++n) {
    const Row row =
        row_of(n / call_.q_len / call_.heads, n / call_.q_len % call_.heads, n % call_.q_len);
    std::vector<Partial> parts;
    for (std::int64_t s = 0; s < splits; ++s) {
      const std::int64_t last = std::min((s + 1) * tiles / splits * kTile, call_.kv_len);
      parts.push_back(split(row, std::min(s * tiles / splits * kTile, last), last));
    }
    if (is(Fault::kSplitsBackwards)) std::ranges::reverse(parts);
    finish(row, splits > 1 ? merge(parts) : parts.front(), output, log_sum_exp);
    if (is(Fault::kLseFirstTile) && tiles > 1) {
      std::vector<double> ignored(output.size());
      finish(row, split(row, 0, (tiles - 1) * kTile), ignored, log_sum_exp);
    }
  }
  tensors_[call_.slots.output].write(output);
  if (has(call_.slots.log_sum_exp)) tensors_[call_.slots.log_sum_exp].write(log_sum_exp);
}

}  // namespace tessera::testing
