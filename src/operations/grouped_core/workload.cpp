// SPDX-License-Identifier: Apache-2.0
// The reference of grouped products and their error bounds, for tests, benchmarks and the tuner.
#include <algorithm>
#include <cmath>

#include "base/system/parallel.hpp"
#include "operations/common/numerics.hpp"
#include "operations/grouped_core/oracle.hpp"

namespace tessera::operations::matmul {
namespace {

double flops_of(const Problem& problem) {
  const auto& call = problem.as<GroupedProblem>();
  const GroupedSlots& slots = call.slots;
  const int products = slots.backward() ? (problem.has(slots.grad_lhs) ? 1 : 0) +
                                              (problem.has(slots.grad_rhs) ? 1 : 0)
                                        : 1;
  return 2.0 * products * static_cast<double>(call.m) * static_cast<double>(call.n) *
         static_cast<double>(call.k);
}

std::vector<Expectation> expect(const Problem& problem, std::span<HostTensor> tensors,
                                const Arithmetic& /*arithmetic*/, double max_flops) {
  const GroupedOracle oracle(problem, tensors);
  std::vector<Expectation> expected;
  for (const GroupedOracle::Output& output : oracle.outputs()) {
    // Rows at equal distances where all of them would take too long.
    const double share = max_flops / std::max(flops_of(problem), 1.0);
    const auto all = static_cast<double>(output.rows);
    const auto count = static_cast<std::int64_t>(std::clamp(share * all, std::min(8.0, all), all));
    Expectation to{.slot = output.slot};
    const auto row_of = [&](std::int64_t i) {
      return count == 1 ? 0 : i * (output.rows - 1) / (count - 1);
    };
    std::vector<GroupedRow> rows(static_cast<std::size_t>(count));
    parallel_for(rows.size(), [&](std::size_t i) {
      rows[i] = oracle.row(output.slot, row_of(static_cast<std::int64_t>(i)));
    });
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = row_of(i);
      const GroupedRow& from = rows[static_cast<std::size_t>(i)];
      to.values.insert(to.values.end(), from.values.begin(), from.values.end());
      to.bounds.insert(to.bounds.end(), from.bounds.begin(), from.bounds.end());
      if (count == output.rows) continue;
      for (std::int64_t column = 0; column < output.columns; ++column)
        to.elements.push_back(static_cast<std::size_t>(row * output.columns + column));
    }
    const DType dtype = problem.spec(output.slot).dtype;
    for (std::size_t i = 0; i < to.values.size(); ++i)
      to.bounds[i] +=
          storage_unit(dtype) * (std::fabs(to.values[i]) + to.bounds[i]) + smallest_number(dtype);
    expected.push_back(std::move(to));
  }
  return expected;
}

}  // namespace

void reference_grouped(const Problem& problem, std::span<HostTensor> tensors) {
  const GroupedOracle oracle(problem, tensors);
  for (const GroupedOracle::Output& output : oracle.outputs()) {
    std::vector<double> values;
    for (std::int64_t row = 0; row < output.rows; ++row) {
      const GroupedRow from = oracle.row(output.slot, row);
      values.insert(values.end(), from.values.begin(), from.values.end());
    }
    tensors[output.slot].write(values);
  }
}

std::vector<Raised> grouped_raises(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<GroupedProblem>();
  return raised_by_sizes(tensors[call.slots.sizes].read(), call.m);
}

Workload grouped_workload(const GroupedSlots& slots) {
  Workload workload;
  workload.cases = [slots](DType dtype) { return grouped_cases(slots, dtype); };
  workload.edge_cases = [slots](DType dtype, const Config& config) {
    return grouped_edges(slots, dtype, config);
  };
  workload.benchmarks = [slots](DType dtype) { return grouped_benchmarks(slots, dtype); };
  workload.fill = fill_grouped;
  workload.expect = expect;
  workload.flops = flops_of;
  return workload;
}

}  // namespace tessera::operations::matmul
