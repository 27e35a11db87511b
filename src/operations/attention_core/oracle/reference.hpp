// SPDX-License-Identifier: Apache-2.0
// Rows of attention and their gradients in double precision, with the magnitudes that error bounds
// are made of.
#pragma once

#include <cmath>
#include <functional>

#include "operations/attention_core/oracle/pairs.hpp"
#include "operations/attention_core/oracle/thresholds.hpp"

namespace tessera::operations::attention {

// One row of the answer.
struct AttentionRow {
  Eigen::VectorXd output;
  Eigen::VectorXd magnitude;  // sum_j |p[j] v[j,:]|
  Eigen::VectorXd squares;    // sum_j (p[j] v[j,:])^2
  Eigen::VectorXd values;     // sum_j |keep[j] v[j,:]|
  double log_sum_exp = 0;
  double score_magnitude = 0;        // largest of the keys that may have a weight, and of sinks
  double largest_score = 0;          // what scores are compared with before exponentials
  double sum = 0;                    // of exp(score - largest_score), sinks included
  std::int64_t peak = -1;            // whose it is: a key, or kv_len + n of sink n
  std::vector<std::int64_t> keys{};  // visible ones
  Eigen::VectorXd weights{};         // of those, dropout included
  double largest_weight = 0;         // of those before dropout
  // By column of the output: a key whose weight float may have as 0, or that dropout leaves out,
  // has a value there that is not finite, and whether it counts is not promised. The other keys
  // alone do not make it NaN.
  std::vector<bool> undecided{};
};

AttentionRow attention_row(const AttentionPairs& pairs, std::int64_t batch, std::int64_t head,
                           std::int64_t row);

// Gradients, given the output and the log-sum-exp of the forward pass.
class AttentionGradients {
 public:
  // What rounding a weight, or the gradient of a score, costs before it is multiplied: a part of
  // itself, and an amount below which nothing is known. None by default.
  struct FactorRounding {
    double unit = 0, smallest = 0;
    double of(double factor) const { return unit * std::fabs(factor) + smallest; }
  };
  AttentionGradients(const Problem& problem, std::span<const HostTensor> tensors,
                     FactorRounding rounding);
  AttentionGradients(const Problem& problem, std::span<const HostTensor> tensors)
      : AttentionGradients(problem, tensors, {}) {}

  // A gradient row and its magnitude: the sum of the absolute values of its terms. What its terms
  // move by where their scores are off by their magnitudes, and by one rounding of them. What
  // rounding the factors of the terms costs: the most, as a sum, and the sum of squares.
  struct Row {
    explicit Row(std::int64_t dim)
        : value(Eigen::VectorXd::Zero(dim)),
          magnitude(value),
          moved(value),
          moved_once(value),
          rounding(value),
          rounding_squares(value) {}
    Eigen::VectorXd value, magnitude, moved, moved_once, rounding, rounding_squares;
    std::int64_t terms = 0;
  };
  // One (row, key): gradients of the logit before the cap, and of what is added to it or to the
  // score after the cap, as the call has it.
  struct Element {
    double logit = 0, bias = 0, magnitude = 0, moved = 0, moved_once = 0;
  };
  // Takes a term of element `to` of a bias or of sinks, row-major.
  using AddTerm = std::function<void(std::size_t to, const Element& term)>;
  const AttentionPairs& pairs() const { return pairs_; }
  Row query(std::int64_t batch, std::int64_t head, std::int64_t row) const;
  Row key(std::int64_t batch, std::int64_t kv_head, std::int64_t key) const;
  Row value(std::int64_t batch, std::int64_t kv_head, std::int64_t key) const;
  Element element(std::int64_t batch, std::int64_t head, std::int64_t row, std::int64_t key) const;
  void for_each_bias_term(const AddTerm& add) const;
  void for_each_sink_term(const AddTerm& add) const;

 private:
  const Matrix& gradient(std::int64_t batch, std::int64_t head) const {
    return gradient_[static_cast<std::size_t>(batch * pairs_.call().heads + head)];
  }
  // Visits (head, row) for every row of the group's heads that sees the key.
  template <class Visit>
  void for_each_row_of_key(std::int64_t batch, std::int64_t kv_head, std::int64_t key,
                           Visit visit) const;
  bool has_peak(std::size_t at) const;  // a row whose weights log_sum_exp does not give
  void find_peaks();
  bool sees_any(std::int64_t line, std::int64_t row) const;  // line: batch * heads + head
  Element sink(std::int64_t batch, std::int64_t head, std::int64_t row, std::size_t sink) const;
  // What a weight moves by, in units of kUnitF32 * roundings, where its score and what that is
  // compared with are off by so many roundings of their magnitudes.
  double moved_weight(double score, double magnitude, std::size_t at,
                      double roundings = kExpRoundings) const;
  double weight(const Pair& pair, std::int64_t batch, std::int64_t head, std::int64_t row) const;
  std::size_t index_of(std::int64_t batch, std::int64_t head, std::int64_t row) const {
    const AttentionProblem& call = pairs_.call();
    return static_cast<std::size_t>((batch * call.heads + head) * call.q_len + row);
  }

  // The gradient of a logit, multiplied by `of`.
  void add_term(Row& row, const Element& at, const Eigen::VectorXd& of) const;
  // What rounding `factor` costs, which is multiplied by `of`.
  void add_rounding(Row& row, double factor, const Eigen::VectorXd& of) const;

  AttentionPairs pairs_;
  FactorRounding rounding_{};
  Shape bias_shape_{};            // [batch, heads, rows, keys], 1 where the bias is broadcast
  std::vector<Matrix> gradient_;  // of the output, by batch and head
  // By batch, head and row. Weights are exp(score - shift) / sum: of the log-sum-exp and 1, or the
  // largest score and the sum of the row; or, where nothing is divided by the sum, the largest
  // score and 1, and its key gets the gradient of all others' shift.
  std::vector<double> log_sum_exp_, shift_, sum_, shift_magnitude_, delta_, delta_magnitude_;
  std::vector<bool> counts_;  // rows that see a key
  std::vector<std::int64_t> peak_;
};

}  // namespace tessera::operations::attention
