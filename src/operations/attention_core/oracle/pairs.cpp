// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/oracle/pairs.hpp"

#include <cmath>
#include <limits>

#include "abi/shared.h"
#include "base/system/parallel.hpp"
#include "operations/attention_core/dropout.hpp"
#include "operations/attention_core/oracle/pages.hpp"
#include "operations/attention_core/oracle/thresholds.hpp"

namespace tessera::operations::attention {
namespace {

std::vector<double> read_if_any(const Problem& problem, std::span<const HostTensor> tensors,
                                std::size_t slot) {
  return problem.has(slot) ? tensors[slot].read() : std::vector<double>{};
}

std::int64_t clamped(double value, std::int64_t low, std::int64_t high) {
  return std::clamp(static_cast<std::int64_t>(value), low, high);
}

}  // namespace

std::vector<Matrix> read_heads(const HostTensor& tensor, const TensorSpec& spec) {
  return heads_of(tensor.read(), spec);
}

std::vector<Matrix> heads_of(const std::vector<double>& flat, const TensorSpec& spec) {
  const Shape shape = with_batch(spec).shape;
  const std::int64_t batches = shape[0], rows = shape[1], heads = shape[2], dim = shape[3];
  std::vector<Matrix> result(static_cast<std::size_t>(batches * heads));
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    for (std::int64_t head = 0; head < heads; ++head) {
      const double* start = flat.data() + (batch * rows * heads + head) * dim;
      result[static_cast<std::size_t>(batch * heads + head)] =
          Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>(start, rows, dim,
                                                            Eigen::OuterStride<>(heads * dim));
    }
  }
  return result;
}

AttentionPairs::AttentionPairs(const Problem& problem, std::span<const HostTensor> tensors)
    : call_(problem.as<AttentionProblem>()) {
  const AttentionSlots& slots = call_.slots;
  query_ = read_heads(tensors[slots.query], query_rows(problem));
  if (call_.is_paged()) {
    gather_pages(problem, tensors);
  } else {
    key_ =
        heads_of(read_rows(problem, tensors, slots.key, slots.key_scale), problem.spec(slots.key));
    value_ = heads_of(read_rows(problem, tensors, slots.value, slots.value_scale),
                      problem.spec(slots.value));
  }
  cu_q_ = read_if_any(problem, tensors, slots.cum_seqlens_q);
  cu_k_ = read_if_any(problem, tensors, slots.cum_seqlens_k);
  q_lengths_ = read_if_any(problem, tensors, slots.q_lengths);
  kv_lengths_ = read_if_any(problem, tensors, slots.kv_lengths);
  starts_ = read_if_any(problem, tensors, slots.sequence_start);
  ends_ = read_if_any(problem, tensors, slots.sequence_end);
  q_segments_ = read_if_any(problem, tensors, slots.q_segments);
  kv_segments_ = read_if_any(problem, tensors, slots.kv_segments);
  q_positions_ = read_if_any(problem, tensors, slots.q_positions);
  kv_positions_ = read_if_any(problem, tensors, slots.kv_positions);
  slopes_ = read_if_any(problem, tensors, slots.alibi_slopes);
  if (problem.has(slots.alibi_slopes) && problem.spec(slots.alibi_slopes).shape.size() == 2)
    slopes_stride_batch_ = call_.heads;
  sinks_ = read_if_any(problem, tensors, slots.sinks);
  if (problem.has(slots.sinks)) {
    const Shape shape = with_rank(problem.spec(slots.sinks), 2).shape;
    sinks_per_head_ = shape[1];
    sinks_heads_ = shape[0];
  }
  mask_ = broadcast(problem, tensors, slots.mask);
  bias_ = problem.has(slots.position_bias) ? position_bias(problem, tensors)
                                           : broadcast(problem, tensors, slots.bias);
  if (call_.is_paged()) return;
  for (std::int64_t batch = 0; batch < call_.batch; ++batch) {
    for (std::int64_t row = 0; row < call_.q_len; ++row) places_.push_back(place_of(batch, row));
  }
}

std::vector<double> AttentionPairs::read_rows(const Problem& problem,
                                              std::span<const HostTensor> tensors, std::size_t slot,
                                              std::size_t scale) const {
  std::vector<double> rows = tensors[slot].read();
  if (!call_.has_codes()) return rows;
  const std::vector<double> scales = tensors[scale].read();
  const Shape &shape = problem.spec(slot).shape, &of = problem.spec(scale).shape;
  const auto at = [&](std::int64_t row) {  // the scale of a row, by those of the axes that it has
    const std::int64_t index[] = {row / (shape[1] * shape[2]), row / shape[2] % shape[1],
                                  row % shape[2]};
    std::int64_t number = 0;
    for (std::size_t axis = 0; axis < 3; ++axis)
      number = number * of[axis] + (of[axis] == 1 ? 0 : index[axis]);
    return static_cast<std::size_t>(number);
  };
  const auto dim = static_cast<std::size_t>(shape[3]);
  for (std::size_t n = 0; n < rows.size(); ++n)
    rows[n] *= scales[at(static_cast<std::int64_t>(n / dim))];
  return rows;
}

void AttentionPairs::gather_pages(const Problem& problem, std::span<const HostTensor> tensors) {
  const std::vector<PagedSequence> sequences = paged_sequences(problem, tensors);
  const std::int64_t room = call_.kv_len, size = call_.paged.size;
  const auto line = [&](std::int64_t sequence) { return call_.packed ? sequence * room : 0; };
  if (call_.packed) call_.kv_len = call_.paged.sequences * room;
  const auto gather = [&](std::size_t slot, std::size_t scale, const TensorSpec& spec,
                          bool values) {
    const std::vector<double> flat = read_rows(problem, tensors, slot, scale);
    const bool combined = call_.slots.key == call_.slots.value;
    const std::int64_t dim = spec.shape[3], heads = call_.kv_heads;
    std::vector<Matrix> all(static_cast<std::size_t>(call_.batch * heads),
                            Matrix::Zero(call_.kv_len, dim));
    parallel_for(sequences.size(), [&](std::size_t at) {
      const auto n = static_cast<std::int64_t>(at);
      for (std::int64_t key = 0; key < sequences[at].keys; ++key) {
        const std::int64_t page = sequences[at].pages[static_cast<std::size_t>(key / size)];
        for (std::int64_t head = 0; page >= 0 && head < heads; ++head) {
          const std::int64_t token =
              combined ? (page * size + key % size) * 2 * heads + 2 * head + values
                       : (page * heads + head) * size + key % size;
          const std::int64_t batch = call_.packed ? 0 : n;
          all[static_cast<std::size_t>(batch * heads + head)].row(line(n) + key) =
              Eigen::Map<const Eigen::RowVectorXd>(flat.data() + token * dim, dim);
        }
      }
    });
    return all;
  };
  key_ = gather(call_.slots.key, call_.slots.key_scale, key_rows(problem), false);
  value_ = gather(call_.slots.value, call_.slots.value_scale, value_rows(problem), true);
  missing_.resize(static_cast<std::size_t>(call_.paged.sequences * room));
  places_.resize(static_cast<std::size_t>(call_.batch * call_.q_len));
  for (std::int64_t n = 0; n < call_.paged.sequences; ++n) {
    const PagedSequence& sequence = sequences[static_cast<std::size_t>(n)];
    for (std::int64_t key = 0; key < sequence.keys; ++key) {
      missing_[static_cast<std::size_t>(n * room + key)] =
          sequence.pages[static_cast<std::size_t>(key / size)] < 0;
    }
    for (std::int64_t row = 0; row < sequence.rows; ++row) {
      places_[static_cast<std::size_t>(sequence.first_row + row)] = {
          .row = row, .rows = sequence.rows, .first_key = line(n), .keys = sequence.keys};
    }
  }
}

AttentionPairs::Broadcast AttentionPairs::broadcast(const Problem& problem,
                                                    std::span<const HostTensor> tensors,
                                                    std::size_t slot) const {
  if (!problem.has(slot)) return {};
  const Shape shape = with_pair_axes(problem.spec(slot)).shape;
  Broadcast result{.values = tensors[slot].read()};
  result.key = shape[3] > 1 ? 1 : 0;
  result.row = shape[2] > 1 ? shape[3] : 0;
  result.head = shape[1] > 1 ? shape[2] * shape[3] : 0;
  result.batch = shape[0] > 1 ? shape[1] * shape[2] * shape[3] : 0;
  result.heads_per_head = call_.heads / std::max<std::int64_t>(shape[1], 1);
  return result;
}

AttentionPairs::Broadcast AttentionPairs::position_bias(const Problem& problem,
                                                        std::span<const HostTensor> tensors) const {
  const Shape shape = with_rank(problem.spec(call_.slots.position_bias), 2).shape;
  const std::vector<double> biases = tensors[call_.slots.position_bias].read();
  Broadcast result{.values = std::vector<double>(static_cast<std::size_t>(shape[0] * call_.kv_len)),
                   .head = call_.kv_len,
                   .key = 1,
                   .heads_per_head = call_.heads / shape[0]};
  for (std::int64_t head = 0; head < shape[0]; ++head) {
    for (std::int64_t key = 0; key < std::min(shape[1], call_.kv_len); ++key) {
      result.values[static_cast<std::size_t>(head * call_.kv_len + key)] =
          biases[static_cast<std::size_t>(head * shape[1] + key)];
    }
  }
  return result;
}

AttentionPairs::Place AttentionPairs::place_of(std::int64_t batch, std::int64_t row) const {
  const auto at = static_cast<std::size_t>(batch);
  Place place{.row = row, .rows = call_.q_len, .first_key = 0, .keys = call_.kv_len};
  if (!starts_.empty()) {
    place.first_key = clamped(starts_[at], 0, call_.kv_len);
    place.keys = clamped(ends_[at], place.first_key, call_.kv_len) - place.first_key;
    return place;
  }
  if (call_.packed) return place_in_sequence(row);
  if (call_.sequences > 0) {
    place.rows = clamped(cu_q_[at + 1] - cu_q_[at], 0, call_.q_len);
    place.keys = clamped(cu_k_[at + 1] - cu_k_[at], 0, call_.kv_len);
  }
  if (!q_lengths_.empty()) place.rows = clamped(q_lengths_[at], 0, place.rows);
  if (!kv_lengths_.empty()) place.keys = clamped(kv_lengths_[at], 0, place.keys);
  return place.row < place.rows ? place : Place{};
}

// Halving the list says which sequence, whatever the order of the offsets.
AttentionPairs::Place AttentionPairs::place_in_sequence(std::int64_t row) const {
  std::size_t at = 0, last = static_cast<std::size_t>(call_.sequences);
  while (last - at > 1) {
    const std::size_t middle = (at + last) / 2;
    (cu_q_[middle] <= static_cast<double>(row) ? at : last) = middle;
  }
  const std::int64_t q_begin = clamped(cu_q_[at], 0, call_.q_len);
  const std::int64_t q_end = clamped(cu_q_[at + 1], q_begin, call_.q_len);
  const std::int64_t k_begin = clamped(cu_k_[at], 0, call_.kv_len);
  const std::int64_t k_end = clamped(cu_k_[at + 1], k_begin, call_.kv_len);
  if (row < q_begin || row >= q_end) return {};
  return {
      .row = row - q_begin, .rows = q_end - q_begin, .first_key = k_begin, .keys = k_end - k_begin};
}

std::int64_t AttentionPairs::position_of_row(std::int64_t batch, std::int64_t row) const {
  const auto at = static_cast<std::size_t>(batch * call_.q_len + row);
  if (!q_positions_.empty()) return static_cast<std::int64_t>(q_positions_[at]);
  const Place& place = places_[at];
  return place.row + (call_.bottom_right ? place.keys - place.rows : 0);
}

std::int64_t AttentionPairs::position_of_key(std::int64_t batch, std::int64_t row,
                                             std::int64_t key) const {
  if (!kv_positions_.empty())
    return static_cast<std::int64_t>(
        kv_positions_[static_cast<std::size_t>(batch * call_.kv_len + key)]);
  return key - places_[static_cast<std::size_t>(batch * call_.q_len + row)].first_key;
}

bool AttentionPairs::sees(std::int64_t batch, std::int64_t head, std::int64_t row,
                          std::int64_t key) const {
  const auto row_at = static_cast<std::size_t>(batch * call_.q_len + row);
  const auto key_at = static_cast<std::size_t>(batch * call_.kv_len + key);
  const Place& place = places_[row_at];
  if (place.row < 0 || key < place.first_key || key >= place.first_key + place.keys) return false;
  if (!missing_.empty() && missing_[key_at]) return false;
  const std::int64_t p = position_of_row(batch, row), k = position_of_key(batch, row, key);
  if (call_.causal && k > p) return false;
  if (k < p - call_.window_left || k > p + call_.window_right) return false;
  if (call_.chunk > 0 && FLOOR_DIV(p, call_.chunk) != FLOOR_DIV(k, call_.chunk)) return false;
  if (!q_segments_.empty() &&
      (q_segments_[row_at] < 0 || q_segments_[row_at] != kv_segments_[key_at]))
    return false;
  if (!bias_.values.empty() &&
      bias_.at(batch, head, row, key) == -std::numeric_limits<double>::infinity())
    return false;
  return mask_.values.empty() || mask_.at(batch, head, row, key) != 0;
}

Pair AttentionPairs::pair(std::int64_t batch, std::int64_t head, std::int64_t row,
                          std::int64_t key) const {
  const auto q = query(batch, head).row(row);
  const auto k = this->key(batch, head).row(key);
  double u = call_.scale * q.dot(k);
  Pair pair{.magnitude = (1 + sum_growth(call_.head_dim)) * std::fabs(call_.scale) *
                         q.cwiseAbs().dot(k.cwiseAbs())};
  if (!slopes_.empty()) {
    const double slope = slopes_[static_cast<std::size_t>(batch * slopes_stride_batch_ + head)];
    const auto distance = static_cast<double>(
        std::abs(position_of_row(batch, row) - position_of_key(batch, row, key)));
    u -= slope * distance;
    pair.magnitude += std::fabs(slope) * distance;
  }
  const double bias = bias_.values.empty() ? 0 : bias_.at(batch, head, row, key);
  pair.magnitude += std::fabs(bias);
  if (!call_.bias_after_cap) {
    u += bias;
    if (std::fabs(bias) > kFarScore && u == bias) pair.magnitude = 0;  // nothing was rounded
  }
  if (call_.soft_cap > 0) {
    const double t = std::tanh(u / call_.soft_cap);
    u = call_.soft_cap * t;
    pair.slope = 1 - t * t;
  }
  pair.score = u + (call_.bias_after_cap ? bias : 0);
  if (std::isinf(pair.score)) pair.magnitude = 0;  // no rounding moves it
  if (std::fabs(bias) > kFarScore && pair.score == bias) pair.magnitude = 0;
  return pair;
}

double AttentionPairs::keep(std::int64_t batch, std::int64_t head, std::int64_t row,
                            std::int64_t key) const {
  if (call_.dropout == 0) return 1;
  const auto number = static_cast<std::uint64_t>(
      ((batch * call_.heads + head) * call_.q_len + row) * call_.kv_len + key);
  return dropout_word(call_.seed, number) < dropout_threshold(call_.dropout)
             ? 0
             : 1 / (1 - call_.dropout);
}

std::span<const double> AttentionPairs::sinks(std::int64_t head) const {
  if (sinks_per_head_ == 0) return {};
  const std::int64_t of = head / heads_per_sinks();
  return std::span(sinks_).subspan(static_cast<std::size_t>(of * sinks_per_head_),
                                   static_cast<std::size_t>(sinks_per_head_));
}

}  // namespace tessera::operations::attention
