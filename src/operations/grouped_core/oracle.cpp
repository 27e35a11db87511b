// SPDX-License-Identifier: Apache-2.0
#include "operations/grouped_core/oracle.hpp"

#include <algorithm>
#include <cmath>

#include "operations/common/numerics.hpp"
#include "operations/grouped_core/args.h"
#include "operations/matmul_core/core/args.h"

namespace tessera::operations::matmul {
namespace {

std::size_t at(std::int64_t row, std::int64_t columns, std::int64_t column) {
  return static_cast<std::size_t>(row * columns + column);
}

}  // namespace

std::vector<GroupRange> group_ranges(std::span<const double> sizes, std::int64_t rows) {
  std::vector<GroupRange> ranges;
  double before = 0;
  const auto cut = [&](double end) {
    return static_cast<std::int64_t>(std::min(end, static_cast<double>(rows)));
  };
  for (const double size : sizes) {
    const double end = before + std::max(size, 0.0);
    ranges.push_back({.first = cut(before), .end = cut(end)});
    before = end;
  }
  return ranges;
}

std::vector<Raised> raised_by_sizes(std::span<const double> sizes, std::int64_t rows) {
  std::vector<Raised> raised;
  double end = 0;
  for (std::size_t g = 0; g < sizes.size(); ++g) {
    end += std::max(sizes[g], 0.0);
    const auto index = static_cast<std::uint32_t>(g);
    if (sizes[g] < 0) raised.push_back({.error = GROUPED_NEGATIVE_SIZE, .index = index});
    if (sizes[g] > 0 && end > static_cast<double>(rows))
      raised.push_back({.error = GROUPED_BEYOND_ROWS, .index = index});
  }
  return raised;
}

// A row of sums, and of their magnitudes. Of i8 they are exact before they are scaled.
class GroupedOracle::Sum {
 public:
  explicit Sum(std::int64_t columns, bool exact = false)
      : row_{std::vector<double>(static_cast<std::size_t>(columns)),
             std::vector<double>(static_cast<std::size_t>(columns))},
        magnitudes_(row_.values.size()),
        block_(row_.values.size()),
        block_magnitudes_(row_.values.size()),
        exact_(exact) {}

  // One more term for all columns.
  template <class Column>
  void add(double factor, const Column& column) {
    ++terms_;
    for (std::size_t i = 0; i < block_.size(); ++i) {
      const double product = factor * column(static_cast<std::int64_t>(i));
      block_[i] += product;
      block_magnitudes_[i] += std::fabs(product);
    }
  }

  // The terms since the last block are one, which is scaled.
  template <class Column>
  void end_block(double of_row, const Column& of_column) {
    for (std::size_t i = 0; i < block_.size(); ++i) {
      const double column = of_column(static_cast<std::int64_t>(i));
      row_.values[i] += block_[i] * of_row * column;
      magnitudes_[i] += block_magnitudes_[i] * std::fabs(of_row) * std::fabs(column);
      // What is lost below the smallest number before the second scale.
      row_.bounds[i] += smallest_number(DType::kF32) * (1 + std::fabs(column));
      block_[i] = block_magnitudes_[i] = 0;
    }
  }

  // Bounds are those before a value is rounded to its storage type.
  GroupedRow finish(const double* addend, DType output = DType::kF32) {
    const bool whole = exact_ && output == DType::kI32;
    for (std::size_t i = 0; i < row_.values.size(); ++i) {
      double &value = row_.values[i], &bound = row_.bounds[i];
      value += block_[i];
      magnitudes_[i] += block_magnitudes_[i];
      bound += exact_ ? 4 * kUnitF32 * std::fabs(value) : sum_error(terms_) * magnitudes_[i];
      bound += smallest_number(DType::kF32);
      if (addend != nullptr) {
        value += addend[i];
        bound += kUnitF32 * std::fabs(value);
      }
      if (whole) bound = 0;
    }
    return std::move(row_);
  }

 private:
  GroupedRow row_;
  std::vector<double> magnitudes_, block_, block_magnitudes_;
  double terms_ = 0;
  bool exact_ = false;
};

GroupedOracle::GroupedOracle(const Problem& problem, std::span<const HostTensor> tensors)
    : call_(problem.as<GroupedProblem>()), problem_(problem) {
  const GroupedSlots& slots = call_.slots;
  const auto read = [&](std::size_t slot) {
    return problem.has(slot) ? tensors[slot].read() : std::vector<double>{};
  };
  const auto shape = [&](std::size_t slot) {
    return problem.has(slot) ? problem.spec(slot).shape : Shape{};
  };
  lhs_ = read(slots.lhs);
  rhs_ = read(slots.rhs);
  existing_ = read(slots.existing);
  grad_ = read(slots.grad_output);
  scale_lhs_ = {read(slots.scale_lhs), shape(slots.scale_lhs)};
  scale_rhs_ = {read(slots.scale_rhs), shape(slots.scale_rhs)};
  ranges_ = group_ranges(read(slots.sizes), call_.m);
}

std::vector<GroupedOracle::Output> GroupedOracle::outputs() const {
  const GroupedSlots& slots = call_.slots;
  std::vector<Output> list;
  for (const std::size_t slot :
       {slots.output, slots.grad_lhs, slots.grad_rhs, slots.grad_existing}) {
    if (!problem_.has(slot)) continue;
    const Shape& shape = problem_.spec(slot).shape;
    list.push_back({.slot = slot,
                    .rows = shape.size() == 3 ? shape[0] * shape[1] : shape[0],
                    .columns = shape.back()});
  }
  return list;
}

GroupedRow GroupedOracle::row(std::size_t slot, std::int64_t row) const {
  if (slot == call_.slots.output)
    return call_.slots.transposed ? transposed_row(row) : forward_row(row);
  if (slot == call_.slots.grad_lhs) return grad_lhs_row(row);
  if (slot == call_.slots.grad_rhs) return grad_rhs_row(row);
  // The gradient of existing_out: that of the output where no group is held.
  Sum sum(call_.n);
  return sum.finish(group_of(row) < 0 ? grad_.data() + at(row, call_.n, 0) : nullptr);
}

std::int64_t GroupedOracle::group_of(std::int64_t row) const {
  for (std::size_t g = 0; g < ranges_.size(); ++g) {
    if (row < ranges_[g].first || row >= ranges_[g].end) continue;
    const std::int64_t held = static_cast<std::int64_t>(g) - call_.first;
    return held >= 0 && held < call_.held ? held : -1;
  }
  return -1;
}

GroupRange GroupedOracle::rows_of(std::int64_t held) const {
  const auto group = static_cast<std::size_t>(held + call_.first);
  return group < ranges_.size() ? ranges_[group] : GroupRange{};
}

double GroupedOracle::rhs(std::int64_t group, std::int64_t k, std::int64_t n) const {
  return call_.transpose_rhs ? rhs_[at(group * call_.n + n, call_.k, k)]
                             : rhs_[at(group * call_.k + k, call_.n, n)];
}

// An element, counted from the right; all share it along axes of one.
double GroupedOracle::Scale::at(std::array<std::int64_t, 3> place) const {
  if (values.empty()) return 1;
  std::int64_t index = 0, step = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t extent = shape[shape.size() - 1 - i];
    if (extent != 1) index += place[i] * step;
    step *= extent;
  }
  return values[static_cast<std::size_t>(index)];
}

// Ends a block of terms of a row of a group's product.
void GroupedOracle::end_block(Sum& sum, std::int64_t group, std::int64_t row,
                              std::int64_t block) const {
  if (scale_lhs_.values.empty() && scale_rhs_.values.empty()) return;
  const auto along = [](const Scaling& scaling, std::int64_t own) {
    return scaling.blocks ? own / MATMUL_BLOCK : own;
  };
  sum.end_block(scale_lhs_.at({block, along(call_.scale_lhs, row), 0}), [&](std::int64_t n) {
    const std::int64_t column = along(call_.scale_rhs, n);
    return call_.transpose_rhs ? scale_rhs_.at({block, column, group})
                               : scale_rhs_.at({column, block, group});
  });
}

bool GroupedOracle::is_exact() const {
  return problem_.dtype == DType::kI8 && !call_.scale_lhs.terms && !call_.scale_rhs.terms;
}

GroupedRow GroupedOracle::forward_row(std::int64_t row) const {
  Sum sum(call_.n, is_exact());
  const std::int64_t group = group_of(row);
  const bool blocks = call_.scale_lhs.terms || call_.scale_rhs.terms;
  const std::int64_t each = blocks ? MATMUL_BLOCK : std::max<std::int64_t>(call_.k, 1);
  for (std::int64_t k = 0; k < call_.k && group >= 0; ++k) {
    sum.add(lhs_[at(row, call_.k, k)], [&](std::int64_t n) { return rhs(group, k, n); });
    if ((k + 1) % each == 0 || k + 1 == call_.k) end_block(sum, group, row, k / each);
  }
  const bool keeps = group < 0 && !existing_.empty();
  return sum.finish(keeps ? existing_.data() + at(row, call_.n, 0) : nullptr, call_.output);
}

// Row k of a group: the sum over its rows i of lhs[k, i] rhs[i, :].
GroupedRow GroupedOracle::transposed_row(std::int64_t row) const {
  Sum sum(call_.n, is_exact());
  const GroupRange range = rows_of(row / call_.k);
  for (std::int64_t i = range.first; i < range.end; ++i)
    sum.add(lhs_[at(row % call_.k, call_.m, i)],
            [&](std::int64_t n) { return rhs_[at(i, call_.n, n)]; });
  if (range.first < range.end) end_block(sum, 0, row % call_.k, 0);
  return sum.finish(existing_.empty() ? nullptr : existing_.data() + at(row, call_.n, 0),
                    call_.output);
}

GroupedRow GroupedOracle::grad_lhs_row(std::int64_t row) const {
  if (!call_.slots.transposed) {
    Sum sum(call_.k);
    const std::int64_t group = group_of(row);
    for (std::int64_t n = 0; n < call_.n && group >= 0; ++n)
      sum.add(grad_[at(row, call_.n, n)], [&](std::int64_t k) { return rhs(group, k, n); });
    return sum.finish(nullptr);
  }
  // lhs is [k, m]: its columns are in groups.
  GroupedRow result{std::vector<double>(static_cast<std::size_t>(call_.m)),
                    std::vector<double>(static_cast<std::size_t>(call_.m))};
  for (std::int64_t i = 0; i < call_.m; ++i) {
    Sum sum(1);
    const std::int64_t group = group_of(i);
    for (std::int64_t n = 0; n < call_.n && group >= 0; ++n)
      sum.add(rhs_[at(i, call_.n, n)],
              [&](std::int64_t) { return grad_[at(group * call_.k + row, call_.n, n)]; });
    const GroupedRow one = sum.finish(nullptr);
    result.values[static_cast<std::size_t>(i)] = one.values[0];
    result.bounds[static_cast<std::size_t>(i)] = one.bounds[0];
  }
  return result;
}

GroupedRow GroupedOracle::grad_rhs_row(std::int64_t row) const {
  if (call_.slots.transposed) {
    Sum sum(call_.n);
    const std::int64_t group = group_of(row);
    for (std::int64_t k = 0; k < call_.k && group >= 0; ++k)
      sum.add(lhs_[at(k, call_.m, row)],
              [&](std::int64_t n) { return grad_[at(group * call_.k + k, call_.n, n)]; });
    return sum.finish(nullptr);
  }
  const std::int64_t rows = call_.transpose_rhs ? call_.n : call_.k;
  const std::int64_t columns = call_.transpose_rhs ? call_.k : call_.n;
  const std::int64_t inner = row % rows;
  const GroupRange range = rows_of(row / rows);
  Sum sum(columns);
  for (std::int64_t i = range.first; i < range.end; ++i) {
    const double* left = lhs_.data() + at(i, call_.k, 0);
    const double* right = grad_.data() + at(i, call_.n, 0);
    if (call_.transpose_rhs) std::swap(left, right);
    sum.add(left[inner], [&](std::int64_t column) { return right[column]; });
  }
  return sum.finish(nullptr);
}

}  // namespace tessera::operations::matmul
