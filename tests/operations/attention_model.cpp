// SPDX-License-Identifier: Apache-2.0
#include "attention_model.hpp"

#include <cmath>
#include <limits>

#include "abi/shared.h"
#include "operations/attention/dropout.hpp"

namespace tessera::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLn2 = 0.693147181F;
constexpr std::int64_t kTile = 16;
constexpr std::int64_t kSmallTile = 5;
constexpr std::int64_t kWrap = 1 << 12;

std::size_t index(std::int64_t n) { return static_cast<std::size_t>(n); }

float rounded(DType dtype, float x) {
  if (dtype == DType::kF16) return from_half_bits(to_half_bits(x));
  return dtype == DType::kBF16 ? from_bfloat16_bits(to_bfloat16_bits(x)) : x;
}

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

// The sizes of [batch, heads, rows, keys] from those of an operand with fewer axes.
Shape four_axes(Shape shape) {
  while (shape.size() < 4) shape.insert(shape.begin() + 1, 1);
  return shape;
}

}  // namespace

float AttentionModel::View::at(std::initializer_list<std::int64_t> place) const {
  return at(spec.strides.data(), place);
}

float AttentionModel::View::at(const std::int64_t* strides,
                               std::initializer_list<std::int64_t> place) const {
  std::int64_t offset = 0;
  for (const std::int64_t n : place) offset += n * *strides++;
  if (wrap > 0) offset %= wrap;
  offset += spec.offset;
  return offset < 0 || index(offset) >= memory.size() ? kNan : memory[index(offset)];
}

AttentionModel::AttentionModel(const Problem& problem, std::span<HostTensor> tensors, Fault fault)
    : problem_(problem),
      call_(problem.as<operations::AttentionProblem>()),
      tensors_(tensors),
      fault_(fault),
      scale_(static_cast<float>(is(Fault::kScaleFromDim)
                                    ? 1 / std::sqrt(static_cast<double>(call_.head_dim))
                                    : call_.scale)),
      cap_(static_cast<float>(call_.soft_cap)) {
  const operations::AttentionSlots& slots = call_.slots;
  query_ = rows(slots.query, slots.query);
  key_ = rows(slots.key, is(Fault::kKeyByValueStrides) ? slots.value : slots.key);
  value_ = rows(slots.value, is(Fault::kValueByKeyStrides) ? slots.key : slots.value);
  mask_ = view(slots.mask);
  bias_ = view(slots.bias);
  slopes_ = view(slots.alibi_slopes);
  sinks_ = view(slots.sinks);
  cu_q_ = view(slots.cum_seqlens_q);
  cu_k_ = view(slots.cum_seqlens_k);
  q_lengths_ = view(slots.q_lengths);
  kv_lengths_ = view(slots.kv_lengths);
  q_segments_ = view(slots.q_segments);
  kv_segments_ = view(slots.kv_segments);
  q_positions_ = view(slots.q_positions);
  kv_positions_ = view(slots.kv_positions);
  if (slots.output_gradient == kNoOperand) return;
  output_ = rows(slots.output, slots.output);
  log_sum_exp_ = view(slots.log_sum_exp);
  gradient_ = rows(slots.output_gradient, slots.output_gradient);
  delta_gradient_ =
      is(Fault::kDeltaOutputStrides) ? rows(slots.output_gradient, slots.output) : gradient_;
}

AttentionModel::View AttentionModel::view(std::size_t slot) const {
  if (!has(slot)) return {};
  View result{.memory = {}, .spec = problem_.spec(slot)};
  if (is(Fault::kOffsetWraps)) result.wrap = kWrap;
  const HostTensor whole{
      .spec = TensorSpec::contiguous(result.spec.dtype, {result.spec.last_element() + 1}),
      .data = tensors_[slot].data};
  for (const double value : whole.read()) result.memory.push_back(static_cast<float>(value));
  return result;
}

AttentionModel::Rows AttentionModel::rows(std::size_t slot, std::size_t strides_of) const {
  const View memory = view(slot);
  const Shape shape = operations::with_batch(problem_.spec(slot)).shape;
  const TensorSpec strides = operations::with_batch(problem_.spec(strides_of));
  Rows result{.values = {}, .rows = shape[1], .heads = shape[2], .dim = shape[3]};
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t i = 0; i < shape[1]; ++i) {
      for (std::int64_t h = 0; h < shape[2]; ++h) {
        for (std::int64_t d = 0; d < shape[3]; ++d)
          result.values.push_back(memory.at(strides.strides.data(), {b, i, h, d}));
      }
    }
  }
  return result;
}

// ---- who sees whom

AttentionModel::Row AttentionModel::row_of(std::int64_t batch, std::int64_t head,
                                           std::int64_t at) const {
  Row row{.batch = batch, .head = head, .index = at, .number = at};
  row.rows = call_.q_len;
  row.keys = call_.kv_len;
  if (call_.sequences > 0) find_sequence(row);
  if (row.number < 0) return row;
  const auto length = [&](const View& view, std::int64_t most) {
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(view.at({batch})), 0, most);
  };
  if (has(call_.slots.q_lengths)) row.rows = length(q_lengths_, row.rows);
  if (has(call_.slots.kv_lengths)) row.keys = length(kv_lengths_, row.keys);
  const std::int64_t more = is(Fault::kNextSequencesRow) ? 1 : 0;
  if (row.number >= row.rows + more && !is(Fault::kRowsBeyondLength)) row.number = -1;
  if (row.keys == 0 && call_.kv_len > 0 && is(Fault::kEmptySequenceLeaks)) {
    row.keys = 1;
    row.first_key = std::min(row.first_key, call_.kv_len - 1);
  }
  row.position = row.number;
  if (call_.bottom_right && !is(Fault::kBottomRightAsTopLeft))
    row.position += is(Fault::kAlignedToWhole) ? call_.kv_len - call_.q_len : row.keys - row.rows;
  if (has(call_.slots.q_positions) && !is(Fault::kPositionsIgnored))
    row.position = static_cast<std::int64_t>(q_positions_.at({batch, at}));
  return row;
}

void AttentionModel::find_sequence(Row& row) const {
  const auto bounds = [](const View& view, std::int64_t s, std::int64_t most) {
    const auto begin = std::clamp<std::int64_t>(static_cast<std::int64_t>(view.at({s})), 0, most);
    const auto end =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(view.at({s + 1})), begin, most);
    return std::pair(begin, end);
  };
  const std::int64_t reach = is(Fault::kNextSequencesRow) ? 1 : 0;
  for (std::int64_t s = 0; s < call_.sequences; ++s) {
    if (!call_.packed && s != row.batch) continue;
    const auto [q_begin, q_end] = bounds(cu_q_, s, call_.q_len);
    const auto [k_begin, k_end] = bounds(cu_k_, s, call_.kv_len);
    row.rows = q_end - q_begin;
    row.keys = k_end - k_begin;
    if (!call_.packed) return;
    row.first_key = k_begin;
    row.number = row.index - q_begin;
    if (row.index >= q_begin && row.index < q_end + (q_end > q_begin ? reach : 0)) return;
  }
  row.number = -1;
}

std::int64_t AttentionModel::key_position(const Row& row, std::int64_t key) const {
  if (has(call_.slots.kv_positions) && !is(Fault::kPositionsIgnored))
    return static_cast<std::int64_t>(kv_positions_.at({row.batch, key}));
  return key - row.first_key;
}

bool AttentionModel::sees(const Row& row, std::int64_t key) const {
  if (row.number < 0) return false;
  const std::int64_t first = row.first_key + (is(Fault::kDropFirstKey) ? 1 : 0);
  std::int64_t last = row.first_key + row.keys;
  if (is(Fault::kDropLastKey)) --last;
  if (is(Fault::kNextSequencesKey)) ++last;
  if (is(Fault::kDropLastTile) && row.keys >= kTile) last -= row.keys % kTile;
  return key >= first && key < last && in_band(row, key) && unmasked(row, key);
}

bool AttentionModel::in_band(const Row& row, std::int64_t key) const {
  const std::int64_t p = row.position, k = key_position(row, key);
  if (call_.causal) {
    const std::int64_t last = p + (is(Fault::kCausalLong) ? 1 : is(Fault::kCausalShort) ? -1 : 0);
    if (k > last) return false;
  }
  const std::int64_t left = is(Fault::kWindowLeftLong)    ? 1
                            : is(Fault::kWindowLeftShort) ? -1
                                                          : 0,
                     right = is(Fault::kWindowRightLong)    ? 1
                             : is(Fault::kWindowRightShort) ? -1
                                                            : 0;
  if (call_.window_left < INDEX_MAX && k < p - call_.window_left - left) return false;
  if (call_.window_right < INDEX_MAX && k > p + call_.window_right + right) return false;
  if (call_.chunk > 0 && !is(Fault::kChunkIgnored)) {
    const std::int64_t chunk = call_.chunk + (is(Fault::kChunkLong) ? 1 : 0);
    if (FLOOR_DIV(p, chunk) != FLOOR_DIV(k, chunk)) return false;
  }
  return true;
}

bool AttentionModel::unmasked(const Row& row, std::int64_t key) const {
  if (has(call_.slots.q_segments) && !is(Fault::kSegmentsIgnored)) {
    const float mine = q_segments_.at({row.batch, row.index});
    if (mine != kv_segments_.at({row.batch, key})) return false;
    if (mine < 0 && !is(Fault::kPaddingSeesPadding)) return false;
  }
  if (!has(call_.slots.mask) || is(Fault::kMaskIgnored)) return true;
  return pair_value(mask_, row, key, Fault::kMaskBatchStride, Fault::kMaskHeadStride) != 0;
}

// ---- scores

float AttentionModel::pair_value(const View& view, const Row& row, std::int64_t key,
                                 Fault batch_fault, Fault head_fault) const {
  const Shape shape = four_axes(view.spec.shape);
  const std::vector<std::int64_t>& own = view.spec.strides;
  std::int64_t strides[4] = {own.front(), 0, 0, own.back()};
  if (own.size() >= 3) strides[2] = own[own.size() - 2];
  if (own.size() == 4) strides[1] = own[1];
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (shape[axis] == 1) strides[axis] = 0;
  }
  std::int64_t head = row.head * shape[1] / call_.heads;
  if (is(Fault::kBiasOfQueryHead) && head_fault == Fault::kBiasOfQueryHead)
    head = row.head % shape[1];
  if (is(Fault::kMaskHeadStride) && head_fault == Fault::kMaskHeadStride) head = 0;
  return view.at(strides, {is(batch_fault) ? 0 : row.batch, head, row.index, key});
}

std::int64_t AttentionModel::kv_head(std::int64_t head) const {
  if (is(Fault::kGroupModulo)) return head % call_.kv_heads;
  return is(Fault::kGroupFirst) ? 0 : head / call_.group();
}

const float* AttentionModel::key_row(const Row& row, std::int64_t key) const {
  return key_.at(row.batch, key, kv_head(row.head));
}

const float* AttentionModel::value_row(const Row& row, std::int64_t key) const {
  return value_.at(row.batch, key, kv_head(row.head));
}

AttentionModel::Score AttentionModel::score(const Row& row, std::int64_t key) const {
  const std::int64_t dim = call_.head_dim - (is(Fault::kDropLastFeature) ? 1 : 0);
  const bool on_query = is(Fault::kQueryInStorage) || is(Fault::kScaleOnQuery);
  const float* const query = query_.at(row.batch, row.index, row.head);
  const float* const keys = key_row(row, key);
  float u = 0;
  for (std::int64_t d = 0; d < dim; ++d) {
    float q = query[d];
    if (on_query) q *= scale_;
    if (is(Fault::kQueryInStorage)) q = rounded(problem_.dtype, q);
    u += q * keys[d];
  }
  const bool biased = has(call_.slots.bias) && !is(Fault::kBiasMissing);
  const float bias =
      biased ? pair_value(bias_, row, key, Fault::kBiasBatchStride, Fault::kBiasOfQueryHead) : 0;
  if (is(Fault::kBiasScaled)) u += bias;
  if (!on_query && !is(Fault::kScaleMissing)) u *= scale_;
  if (is(Fault::kScaleTwice)) u *= scale_;
  if (is(Fault::kScoresF16)) u = rounded(DType::kF16, u);
  if (has(call_.slots.alibi_slopes)) {
    const std::int64_t head = is(Fault::kSlopeOfKeyHead) ? row.head / call_.group() : row.head;
    const bool whole = slopes_.spec.shape.size() == 2;
    const float slope = whole ? slopes_.at({row.batch, head}) : slopes_.at({head});
    const std::int64_t from = is(Fault::kSlopeFromTopLeft) ? row.number : row.position;
    const auto distance = static_cast<float>(from - key_position(row, key));
    u -= slope * (is(Fault::kSlopeSigned) ? distance : std::fabs(distance));
  }
  const bool after = call_.bias_after_cap != is(Fault::kBiasAfterCap);
  if (!after && !is(Fault::kBiasScaled)) u += bias;
  Score result{.value = u};
  if (cap_ > 0 && !is(Fault::kCapMissing)) {
    result.tanh = std::tanh(u / cap_);
    result.value = is(Fault::kCapClamps) ? std::clamp(u, -cap_, cap_) : cap_ * result.tanh;
    result.slope = is(Fault::kSlopeOfCapMissing)  ? 1
                   : is(Fault::kSlopeOfCapLinear) ? 1 - result.tanh
                                                  : 1 - result.tanh * result.tanh;
  }
  if (after) result.value += bias;
  return result;
}

float AttentionModel::keep(const Row& row, std::int64_t key) const {
  if (call_.dropout == 0 || is(Fault::kDropoutMissing)) return 1;
  const std::int64_t head = is(Fault::kDropoutOfHeadZero) ? 0 : row.head;
  const bool swapped = is(Fault::kDropoutNumber);
  const std::int64_t number =
      (row.batch * call_.heads + head) * call_.q_len * call_.kv_len +
      (swapped ? key * call_.q_len + row.index : row.index * call_.kv_len + key);
  const std::uint64_t seed = is(Fault::kDropoutSeedLow) ? call_.seed & 0xFFFFFFFF : call_.seed;
  const bool dropped = operations::dropout_word(seed, static_cast<std::uint64_t>(number)) <
                       operations::dropout_threshold(call_.dropout);
  if (dropped) return 0;
  return is(Fault::kDropoutUnscaled) ? 1 : static_cast<float>(1 / (1 - call_.dropout));
}

std::vector<float> AttentionModel::sinks(const Row& row) const {
  if (!has(call_.slots.sinks) || is(Fault::kSinksMissing)) return {};
  const Shape& shape = sinks_.spec.shape;
  std::vector<float> logits;
  for (std::int64_t n = 0; n < shape.back(); ++n) {
    const std::int64_t head =
        is(Fault::kSinksOfHeadZero) ? 0 : row.head * shape.front() / call_.heads;
    float logit = shape.size() == 2 ? sinks_.at({head, n}) : sinks_.at({n});
    if (is(Fault::kSinksScaled)) logit *= scale_;
    if (is(Fault::kSinksCapped) && cap_ > 0) logit = cap_ * std::tanh(logit / cap_);
    logits.push_back(logit);
    if (is(Fault::kFirstSinkOnly)) break;
  }
  return logits;
}

float AttentionModel::exponential(float x) const {
  const float result = std::exp(x);
  return is(Fault::kCoarseExp) ? result * (1 + 0x1p-12F) : result;
}

// ---- forward

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

// ---- backward

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
  float shift = is(Fault::kLseBase2) ? lse * kLn2 : lse;
  std::int64_t peak = -1;
  const bool normalized = call_.normalize || is(Fault::kPeakIgnored);
  if (!call_.normalize) {
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
  const auto delta_at = [&](std::int64_t key, float p) {
    return normalized ? p * delta : key == peak ? delta : 0;
  };
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
    if (!seen || lse == -kInfinity) continue;
    const float p = std::exp(s.value - shift);
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
    for (std::int64_t d = 0; d < call_.value_dim; ++d) {
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
  if (gradients.sinks.empty() || lse == -kInfinity) return;
  if (is(Fault::kSinkGradientOneBatch) && row.batch + 1 < call_.batch) return;
  const std::int64_t heads = sinks_.spec.shape.size() == 2 ? sinks_.spec.shape[0] : 1;
  for (std::size_t n = 0; n < logits.size(); ++n) {
    const float share =
        delta_at(call_.kv_len + static_cast<std::int64_t>(n), std::exp(logits[n] - shift));
    gradients.sinks[index(row.head * heads / call_.heads) * logits.size() + n] +=
        is(Fault::kSinkGradientSign) ? share : -share;
  }
}

void AttentionModel::backward() {
  const operations::AttentionSlots& slots = call_.slots;
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
