// SPDX-License-Identifier: Apache-2.0
// The definition of attention's policies for one (row, key) at a time, in double precision: slow
// and obvious, and written apart from what the kernels compute it by.
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <span>
#include <vector>

#include "operations/attention_core/problem.hpp"

namespace tessera::operations::attention {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// An operand head by head; index batch * heads + head.
std::vector<Matrix> read_heads(const HostTensor& tensor, const TensorSpec& spec);
// The same of elements that were read already.
std::vector<Matrix> heads_of(const std::vector<double>& flat, const TensorSpec& spec);

// Scores this far out are so far apart that only the largest has a weight: others beside them, and
// their own roundings, do not count.
inline constexpr double kFarScore = 0x1p64;

// What one key is to one row that sees it.
struct Pair {
  double score = 0;      // after cap and bias, natural units
  double slope = 1;      // of the soft cap
  double magnitude = 0;  // of what the score was summed up from, by what sums of them round
};

class AttentionPairs {
 public:
  AttentionPairs(const Problem& problem, std::span<const HostTensor> tensors);

  const AttentionProblem& call() const { return call_; }
  const Matrix& query(std::int64_t batch, std::int64_t head) const {
    return query_[static_cast<std::size_t>(batch * call_.heads + head)];
  }
  const Matrix& key(std::int64_t batch, std::int64_t head) const {
    return key_[kv_index(batch, head)];
  }
  const Matrix& value(std::int64_t batch, std::int64_t head) const {
    return value_[kv_index(batch, head)];
  }
  bool sees(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t key) const;
  Pair pair(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t key) const;
  // What dropout multiplies the weight with: 0 or 1 / (1 - probability).
  double keep(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t key) const;
  std::span<const double> sinks(std::int64_t head) const;
  std::int64_t heads_per_sinks() const { return call_.heads / sinks_heads_; }

 private:
  // A row's sequence: its rows and keys, and the row's number among them.
  struct Place {
    std::int64_t row = -1, rows = 0, first_key = 0, keys = 0;
  };
  // Values of a mask or bias with axes that may be broadcast.
  struct Broadcast {
    std::vector<double> values;
    std::int64_t batch = 0, head = 0, row = 0, key = 0, heads_per_head = 1;
    double at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
      return values[static_cast<std::size_t>(b * batch + h / heads_per_head * head + i * row +
                                             j * key)];
    }
  };

  std::size_t kv_index(std::int64_t batch, std::int64_t head) const {
    return static_cast<std::size_t>(batch * call_.kv_heads + head / call_.group());
  }
  // Keys or values of codes times their scales; the others as they are.
  std::vector<double> read_rows(const Problem& problem, std::span<const HostTensor> tensors,
                                std::size_t slot, std::size_t scale) const;
  // Keys in pages, gathered: sequences one after the other, each with room for kv_len of them.
  void gather_pages(const Problem& problem, std::span<const HostTensor> tensors);
  Place place_of(std::int64_t batch, std::int64_t row) const;
  Place place_in_sequence(std::int64_t row) const;  // of packed ones
  Broadcast broadcast(const Problem& problem, std::span<const HostTensor> tensors,
                      std::size_t slot) const;
  // Biases of the first keys of all, and 0 for the others.
  Broadcast position_bias(const Problem& problem, std::span<const HostTensor> tensors) const;
  // Places on the axis that causal masks, windows, chunks and slopes count on.
  std::int64_t position_of_row(std::int64_t batch, std::int64_t row) const;
  std::int64_t position_of_key(std::int64_t batch, std::int64_t row, std::int64_t key) const;

  AttentionProblem call_;
  std::vector<Matrix> query_, key_, value_;
  std::vector<double> cu_q_, cu_k_, q_lengths_, kv_lengths_, starts_, ends_, q_segments_,
      kv_segments_, q_positions_, kv_positions_, slopes_, sinks_;
  std::int64_t slopes_stride_batch_ = 0, sinks_per_head_ = 0, sinks_heads_ = 1;
  Broadcast mask_, bias_;
  std::vector<bool> missing_;  // keys in no page of the pool, by batch * kv_len + key
  std::vector<Place> places_;  // by batch * q_len + row
};

}  // namespace tessera::operations::attention
