// SPDX-License-Identifier: Apache-2.0
// The definition of grouped products and their gradients in double precision, row by row, and how
// far from it float arithmetic may end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "operations/grouped_core/problem.hpp"

namespace tessera::operations::matmul {

// The rows of a group: [first, end).
struct GroupRange {
  std::int64_t first = 0, end = 0;
};
// Of every group that has a size: negative ones count 0, ends are cut to `rows`.
std::vector<GroupRange> group_ranges(std::span<const double> sizes, std::int64_t rows);
// What is wrong with them: of sizes_errors().
std::vector<Raised> raised_by_sizes(std::span<const double> sizes, std::int64_t rows);

struct GroupedRow {
  std::vector<double> values{}, bounds{};
};

class GroupedOracle {
 public:
  GroupedOracle(const Problem& problem, std::span<const HostTensor> tensors);

  struct Output {
    std::size_t slot = kNoOperand;
    std::int64_t rows = 0, columns = 0;  // of all groups' matrices
  };
  std::vector<Output> outputs() const;  // of this call
  GroupedRow row(std::size_t slot, std::int64_t row) const;

 private:
  class Sum;
  struct Scale {
    std::vector<double> values{};
    Shape shape{};
    double at(std::array<std::int64_t, 3> place) const;
  };
  // The matrix of a row's group, counted from the first that is held; -1 where it has none.
  std::int64_t group_of(std::int64_t row) const;
  GroupRange rows_of(std::int64_t held) const;
  double rhs(std::int64_t group, std::int64_t k, std::int64_t n) const;
  void end_block(Sum& sum, std::int64_t group, std::int64_t row, std::int64_t block) const;
  bool is_exact() const;
  GroupedRow forward_row(std::int64_t row) const;
  GroupedRow transposed_row(std::int64_t row) const;
  GroupedRow grad_lhs_row(std::int64_t row) const;
  GroupedRow grad_rhs_row(std::int64_t row) const;

  const GroupedProblem& call_;
  const Problem& problem_;
  std::vector<double> lhs_{}, rhs_{}, existing_{}, grad_{};
  Scale scale_lhs_{}, scale_rhs_{};
  std::vector<GroupRange> ranges_{};
};

}  // namespace tessera::operations::matmul
