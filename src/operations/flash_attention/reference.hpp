// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <Eigen/Dense>
#include <cstdint>
#include <span>
#include <vector>

#include "operations/flash_attention/problem.hpp"

namespace tessera::operations {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// One row of the answer, and the magnitudes that its error bound is made of.
struct AttentionRow {
  Eigen::VectorXd output;
  Eigen::VectorXd magnitude;  // sum_j p[j] |v[j,:]|
  double log_sum_exp = 0;
  double score_magnitude = 0;  // largest scale * sum_d |q[d] k[j,d]| over the visible j
  std::int64_t keys = 0;       // visible ones
};

// Holds the operands of a call in double precision, head by head.
class AttentionOracle {
 public:
  AttentionOracle(const Problem& problem, std::span<const HostTensor> tensors);
  AttentionRow row(std::int64_t batch, std::int64_t head, std::int64_t i) const;

 private:
  std::vector<Matrix> to_heads(const std::vector<double>& flat, std::int64_t rows,
                               std::int64_t heads, std::int64_t dim) const;

  FlashAttentionProblem call_;
  std::vector<Matrix> query_, key_, value_;  // by batch * heads + head
};

}  // namespace tessera::operations
