// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "operations/pooling_core/problem.hpp"

namespace tessera::operations::pooling {

// The tokens [begin, end) of a batch entry that a row is the mean of.
struct TokenSpan {
  std::int64_t batch = 0, row = 0, begin = 0, end = 0;
};

// Which tokens make which mean, by the definition. Values are row-major: x [batch, tokens,
// features], y [batch, rows, features].
class MeanPoolingOracle {
 public:
  MeanPoolingOracle(const Problem& problem, std::span<const HostTensor> tensors);

  std::vector<double> means(const std::vector<double>& x) const;
  std::vector<double> gradients(const std::vector<double>& y) const;
  std::vector<std::int64_t> counts() const;  // of tokens, by batch * rows + row

 private:
  bool counted(std::int64_t batch, std::int64_t token) const;
  std::int64_t count(const TokenSpan& span) const;

  MeanPoolingProblem call_;
  std::vector<double> mask_;      // empty = all tokens count
  std::vector<TokenSpan> spans_;  // a row without one has no tokens
};

}  // namespace tessera::operations::pooling
