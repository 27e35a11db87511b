// SPDX-License-Identifier: Apache-2.0
// The definition of products and their gradients in double precision, row by row, and how far from
// it float arithmetic may end. Bounds are those before a value is rounded to its storage type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "operations/matmul_core/problem.hpp"

namespace tessera::operations::matmul {

struct Bounded {
  std::vector<double> values{}, bounds{};
  explicit Bounded(std::size_t size = 0) : values(size), bounds(size) {}
};

// A row of codes and its scale, of the floats that it stands for.
struct CodesRow {
  Bounded codes{}, scale{1};
};
CodesRow codes_row(DType codes, Bounded floats);

class MatmulOracle {
 public:
  // `rounds`: gradients to the storage type, before they are multiplied; sums of products of 8-bit
  // floats to what Hopper's matrix unit keeps of them.
  MatmulOracle(const Problem& problem, std::span<const HostTensor> tensors, bool rounds);

  // Rows are counted through all batches of the operand, as op() has it: row `row` of the output,
  // of the gradient of op(a), of that of op(b).
  Bounded output_row(std::int64_t row) const;
  Bounded grad_a_row(std::int64_t row) const;
  Bounded grad_b_row(std::int64_t row) const;
  Bounded grad_gate_row(std::int64_t row) const;
  Bounded grad_addend_row(std::int64_t row) const;
  Bounded grad_bias() const;  // all of it, row-major

 private:
  // An operand as op() has it, row-major.
  struct Matrix {
    Shape leading{};
    std::int64_t rows = 1, columns = 0;
    std::vector<double> values{};
    const double* row(std::int64_t batch, std::int64_t row) const {
      return values.data() + (batch * rows + row) * columns;
    }
  };
  struct Sums;  // a row of them
  struct Shaped {
    Bounded sums{}, gate{};
  };
  Matrix read(std::span<const HostTensor> tensors, std::size_t slot, bool transposed) const;
  std::int64_t batch_of(const Matrix& operand, std::int64_t batch) const;
  double beside(const Matrix& operand, std::int64_t batch, std::int64_t row,
                std::int64_t column) const;
  double scale(const Matrix& operand, const Scaling& scaling, std::int64_t batch, std::int64_t own,
               std::int64_t block, bool rows_are_terms) const;
  Sums sums_row(std::int64_t batch, std::int64_t row) const;
  Shaped shaped_row(std::int64_t batch, std::int64_t row) const;
  void make_gradients(bool rounds);

  const Problem& problem_;
  const MatmulProblem& call_;
  bool rounds_ = false;
  std::int64_t batches_ = 1;
  Matrix a_{}, b_{}, scale_a_{}, scale_b_{}, bias_{}, addend_{}, gate_{}, residual_{},
      grad_output_{};
  std::vector<double> gradients_{}, gradient_bounds_{};  // of the sums, [batches, m, columns]
};

}  // namespace tessera::operations::matmul
