// SPDX-License-Identifier: Apache-2.0
#include "operations/grouped_core/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "operations/common/numerics.hpp"
#include "operations/grouped_core/args.h"

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

// A row of sums, and of their magnitudes.
class GroupedOracle::Sum {
 public:
  explicit Sum(std::int64_t columns)
      : row_{std::vector<double>(static_cast<std::size_t>(columns)), {}},
        magnitudes_(row_.values.size()) {}

  // One more term for all columns.
  void add(double factor, const std::function<double(std::int64_t)>& column) {
    ++terms_;
    for (std::size_t i = 0; i < row_.values.size(); ++i) {
      const double product = factor * column(static_cast<std::int64_t>(i));
      row_.values[i] += product;
      magnitudes_[i] += std::fabs(product);
    }
  }

  // Bounds are those before a value is rounded to its storage type.
  GroupedRow finish(const double* addend) {
    row_.bounds.resize(row_.values.size());
    for (std::size_t i = 0; i < row_.values.size(); ++i) {
      row_.bounds[i] = sum_error(terms_) * magnitudes_[i] + smallest_number(DType::kF32);
      if (addend == nullptr) continue;
      row_.values[i] += addend[i];
      row_.bounds[i] += kUnitF32 * std::fabs(row_.values[i]);
    }
    return std::move(row_);
  }

 private:
  GroupedRow row_;
  std::vector<double> magnitudes_;
  double terms_ = 0;
};

GroupedOracle::GroupedOracle(const Problem& problem, std::span<const HostTensor> tensors)
    : call_(problem.as<GroupedProblem>()), problem_(problem) {
  const GroupedSlots& slots = call_.slots;
  const auto read = [&](std::size_t slot) {
    return problem.has(slot) ? tensors[slot].read() : std::vector<double>{};
  };
  lhs_ = read(slots.lhs);
  rhs_ = read(slots.rhs);
  existing_ = read(slots.existing);
  grad_ = read(slots.grad_output);
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
  return sum.finish(group_of(row) < 0 ? &grad_[at(row, call_.n, 0)] : nullptr);
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

GroupedRow GroupedOracle::forward_row(std::int64_t row) const {
  Sum sum(call_.n);
  const std::int64_t group = group_of(row);
  for (std::int64_t k = 0; k < call_.k && group >= 0; ++k)
    sum.add(lhs_[at(row, call_.k, k)], [&](std::int64_t n) { return rhs(group, k, n); });
  const bool keeps = group < 0 && !existing_.empty();
  return sum.finish(keeps ? &existing_[at(row, call_.n, 0)] : nullptr);
}

// Row k of a group: the sum over its rows i of lhs[k, i] rhs[i, :].
GroupedRow GroupedOracle::transposed_row(std::int64_t row) const {
  Sum sum(call_.n);
  const GroupRange range = rows_of(row / call_.k);
  for (std::int64_t i = range.first; i < range.end; ++i)
    sum.add(lhs_[at(row % call_.k, call_.m, i)],
            [&](std::int64_t n) { return rhs_[at(i, call_.n, n)]; });
  return sum.finish(existing_.empty() ? nullptr : &existing_[at(row, call_.n, 0)]);
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
    const double* left = &lhs_[at(i, call_.k, 0)];
    const double* right = &grad_[at(i, call_.n, 0)];
    if (call_.transpose_rhs) std::swap(left, right);
    sum.add(left[inner], [&](std::int64_t column) { return right[column]; });
  }
  return sum.finish(nullptr);
}

}  // namespace tessera::operations::matmul
