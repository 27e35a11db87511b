// SPDX-License-Identifier: Apache-2.0
// The definition of the norms in double precision, row by row, and how far from it float arithmetic
// may end. thresholds() of a value are bounds before it is rounded to its storage type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "operations/norms/problem.hpp"

namespace tessera::operations::norms {

struct Bounded {
  std::vector<double> values{}, bounds{};
};

class NormOracle {
 public:
  NormOracle(const Problem& problem, std::span<const HostTensor> tensors);

  // Row-major, in the shape of the operand. forward() gives output and sum, backward() the
  // gradients by slot from kGradInput on; those of operands that the call lacks are empty.
  struct Forward {
    Bounded output, sum;
  };
  struct Backward {
    Bounded input, weight, bias, residual;
  };
  Forward forward() const;
  // The same with codes for output, before they are rounded, and a scale for each row.
  struct Quantised {
    Bounded codes, scale, sum;
  };
  Quantised quantised(DType dtype) const;
  Backward backward() const;

 private:
  struct Row;
  Row row(std::int64_t index) const;
  double weight(std::size_t column) const { return weight_.empty() ? 1 : weight_[column]; }

  const NormProblem& call_;
  std::vector<double> input_, weight_, bias_, residual_, grad_output_, grad_sum_;
};

}  // namespace tessera::operations::norms
