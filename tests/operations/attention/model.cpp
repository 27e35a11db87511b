// SPDX-License-Identifier: Apache-2.0
// What the model's passes share: operands, who sees whom, scores.
#include "operations/attention/model.hpp"

#include <algorithm>
#include <cmath>

#include "abi/shared.h"
#include "operations/attention/model_numbers.hpp"
#include "operations/attention_core/dropout.hpp"

namespace tessera::testing {
namespace {

constexpr std::int64_t kWrap = 1 << 12;

}  // namespace

float AttentionModel::View::at(std::initializer_list<std::int64_t> place) const {
  return at(spec.strides.data(), place);
}

float AttentionModel::View::at(const std::int64_t* strides,
                               std::initializer_list<std::int64_t> place) const {
  return static_cast<float>(number_at(strides, place));
}

std::int64_t AttentionModel::View::index_at(std::initializer_list<std::int64_t> place) const {
  return static_cast<std::int64_t>(number_at(spec.strides.data(), place));
}

double AttentionModel::View::number_at(const std::int64_t* strides,
                                       std::initializer_list<std::int64_t> place) const {
  std::int64_t offset = 0;
  for (const std::int64_t n : place) offset += n * *strides++;
  if (wrap > 0) offset %= wrap;
  offset += spec.offset;
  return offset < 0 || index(offset) >= memory.size() ? double{kNan} : memory[index(offset)];
}

AttentionModel::AttentionModel(const Problem& problem, std::span<HostTensor> tensors, Fault fault)
    : problem_(problem),
      call_(problem.as<operations::attention::AttentionProblem>()),
      tensors_(tensors),
      fault_(fault),
      scale_(static_cast<float>(is(Fault::kScaleFromDim)
                                    ? 1 / std::sqrt(static_cast<double>(call_.head_dim))
                                    : call_.scale)),
      cap_(static_cast<float>(call_.soft_cap)) {
  const operations::attention::AttentionSlots& slots = call_.slots;
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
  result.memory = whole.read();
  return result;
}

AttentionModel::Rows AttentionModel::rows(std::size_t slot, std::size_t strides_of) const {
  const View memory = view(slot);
  const Shape shape = operations::attention::with_batch(problem_.spec(slot)).shape;
  const TensorSpec strides = operations::attention::with_batch(problem_.spec(strides_of));
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
    return std::clamp<std::int64_t>(view.index_at({batch}), 0, most);
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
    row.position = q_positions_.index_at({batch, at});
  return row;
}

void AttentionModel::find_sequence(Row& row) const {
  const auto offset = [](const View& view, std::int64_t s) { return view.index_at({s}); };
  const auto bounds = [&](const View& view, std::int64_t s, std::int64_t most) {
    const auto begin = std::clamp<std::int64_t>(offset(view, s), 0, most);
    return std::pair(begin, std::clamp<std::int64_t>(offset(view, s + 1), begin, most));
  };
  if (!call_.packed) {
    const auto length = [&](const View& view, std::int64_t most) {
      if (is(Fault::kPaddedOffsetsClamped)) {
        const auto [begin, end] = bounds(view, row.batch, most);
        return end - begin;
      }
      return std::clamp<std::int64_t>(offset(view, row.batch + 1) - offset(view, row.batch), 0,
                                      most);
    };
    row.rows = length(cu_q_, call_.q_len);
    row.keys = length(cu_k_, call_.kv_len);
    return;
  }
  // Without the fault: the last sequence that begins at the row or before, by halves.
  std::int64_t s = 0, last = call_.sequences;
  const std::int64_t index = row.index - (is(Fault::kNextSequencesRow) ? 1 : 0);
  while (last - s > 1) {
    const std::int64_t middle = (s + last) / 2;
    (offset(cu_q_, middle) <= std::max<std::int64_t>(index, 0) ? s : last) = middle;
  }
  const auto [q_begin, q_end] = bounds(cu_q_, s, call_.q_len);
  const auto [k_begin, k_end] = bounds(cu_k_, s, call_.kv_len);
  row.rows = q_end - q_begin;
  row.keys = k_end - k_begin;
  row.first_key = k_begin;
  row.number = row.index - q_begin;
  const std::int64_t reach = is(Fault::kNextSequencesRow) ? 1 : 0;
  if (row.number < 0 || row.index >= q_end + reach) row.number = -1;
}

std::int64_t AttentionModel::key_position(const Row& row, std::int64_t key) const {
  if (has(call_.slots.kv_positions) && !is(Fault::kPositionsIgnored))
    return kv_positions_.index_at({row.batch, key});
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
  const std::int64_t p = row.position;
  std::int64_t k = key_position(row, key);
  if (is(Fault::kDistanceWraps)) k = p + static_cast<std::int32_t>(k - p);
  if (is(Fault::kFarDistanceHidden) && std::abs(k - p) >= INDEX_MAX) return false;
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
  if (k < p - call_.window_left - left || k > p + call_.window_right + right) return false;
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
  if (has(call_.slots.bias) && !is(Fault::kBiasMissing) && !is(Fault::kInfiniteBiasSeen)) {
    const float bias =
        pair_value(bias_, row, key, Fault::kBiasBatchStride, Fault::kBiasOfQueryHead);
    if (bias == -kInfinity || (is(Fault::kLowestBiasHides) && bias < -60000)) return false;
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
    std::int64_t away = from - key_position(row, key);
    if (is(Fault::kDistanceWraps)) away = static_cast<std::int32_t>(away);
    const auto distance = static_cast<float>(away);
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
  const bool dropped =
      operations::attention::dropout_word(seed, static_cast<std::uint64_t>(number)) <
      operations::attention::dropout_threshold(call_.dropout);
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

}  // namespace tessera::testing
