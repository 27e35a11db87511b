// SPDX-License-Identifier: Apache-2.0
// Inputs and error bounds of products, for tests, benchmarks and the tuner alike; the reference.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/system/parallel.hpp"
#include "operations/common/numerics.hpp"
#include "operations/matmul_core/cases.hpp"
#include "operations/matmul_core/oracle.hpp"

namespace tessera::operations::matmul {
namespace {

using RowOf = std::function<Bounded(std::int64_t)>;

// An output that the oracle gives row by row. `turned`: rows of op() are columns of the tensor.
struct RowWise {
  std::size_t slot = kNoOperand;
  std::int64_t rows = 0, columns = 0, rows_of_batch = 1;
  bool turned = false;
  RowOf row{};

  std::size_t place(std::int64_t row, std::int64_t column) const {
    const std::int64_t batch = row / rows_of_batch, inner = row % rows_of_batch;
    const std::int64_t first = batch * rows_of_batch * columns;
    return static_cast<std::size_t>(
        first + (turned ? column * rows_of_batch + inner : inner * columns + column));
  }
};

std::int64_t matrices(const Problem& problem, std::size_t slot) {
  const Shape& shape = problem.spec(slot).shape;
  return shape.size() < 3 ? 1
                          : std::accumulate(shape.begin(), shape.end() - 2, std::int64_t{1},
                                            std::multiplies<>());
}

std::vector<RowWise> row_wise(const Problem& problem, const MatmulOracle& oracle) {
  const auto& call = problem.as<MatmulProblem>();
  const MatmulSlots& slots = call.slots;
  std::vector<RowWise> list;
  const auto add = [&](std::size_t slot, std::int64_t rows, std::int64_t columns, bool turned,
                       RowOf row) {
    if (!problem.has(slot)) return;
    list.push_back({slot, matrices(problem, slot) * rows, columns, std::max<std::int64_t>(rows, 1),
                    turned, std::move(row)});
  };
  const auto of = [&](Bounded (MatmulOracle::*function)(std::int64_t) const) -> RowOf {
    return [&oracle, function](std::int64_t row) { return (oracle.*function)(row); };
  };
  if (call.quantised) {
    const auto codes = [&oracle, type = call.output](std::int64_t row) {
      return codes_row(type, oracle.output_row(row));
    };
    add(slots.output, call.m, call.n, false,
        [codes](std::int64_t row) { return codes(row).codes; });
    add(slots.scale, call.m, 1, false, [codes](std::int64_t row) { return codes(row).scale; });
  } else {
    add(slots.output, call.m, call.n, false, of(&MatmulOracle::output_row));
  }
  add(slots.grad_a, call.m, call.k, call.transpose_a, of(&MatmulOracle::grad_a_row));
  add(slots.grad_b, call.k, call.columns, call.transpose_b, of(&MatmulOracle::grad_b_row));
  add(slots.grad_gate, call.m, call.n, false, of(&MatmulOracle::grad_gate_row));
  add(slots.grad_addend, call.m, call.columns, false, of(&MatmulOracle::grad_addend_row));
  return list;
}

void round_bounds(const Problem& problem, Expectation& expected) {
  const DType dtype = problem.spec(expected.slot).dtype;
  for (std::size_t i = 0; i < expected.values.size(); ++i)
    expected.bounds[i] +=
        storage_unit(dtype) * (std::fabs(expected.values[i]) + expected.bounds[i]) +
        smallest_number(dtype);
}

double product_flops(const Problem& problem) {
  const auto& call = problem.as<MatmulProblem>();
  double flops = 2.0 * static_cast<double>(call.m) * static_cast<double>(call.columns) *
                 static_cast<double>(call.k);
  for (const std::int64_t extent : call.batch) flops *= static_cast<double>(extent);
  return flops;
}

std::vector<Expectation> expect(const Problem& problem, std::span<HostTensor> tensors,
                                const Arithmetic& arithmetic, double max_flops) {
  const MatmulOracle oracle(problem, tensors, arithmetic.rounds_factors);
  std::vector<Expectation> expected;
  for (const RowWise& output : row_wise(problem, oracle)) {
    // Rows at equal distances where all of them would take too long.
    const double share = max_flops / std::max(product_flops(problem), 1.0);
    const auto count = static_cast<std::int64_t>(std::clamp(
        share * static_cast<double>(output.rows), std::min(8.0, static_cast<double>(output.rows)),
        static_cast<double>(output.rows)));
    const bool all = count == output.rows && !output.turned;
    Expectation to{.slot = output.slot};
    const auto row_of = [&](std::int64_t i) {
      return count == 1 ? 0 : i * (output.rows - 1) / (count - 1);
    };
    std::vector<Bounded> rows(static_cast<std::size_t>(count));
    parallel_for(rows.size(), [&](std::size_t i) {
      rows[i] = output.row(row_of(static_cast<std::int64_t>(i)));
    });
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = row_of(i);
      const Bounded& from = rows[static_cast<std::size_t>(i)];
      to.values.insert(to.values.end(), from.values.begin(), from.values.end());
      to.bounds.insert(to.bounds.end(), from.bounds.begin(), from.bounds.end());
      if (all) continue;
      for (std::int64_t column = 0; column < output.columns; ++column)
        to.elements.push_back(output.place(row, column));
    }
    round_bounds(problem, to);
    expected.push_back(std::move(to));
  }
  const MatmulSlots& slots = problem.as<MatmulProblem>().slots;
  if (problem.has(slots.grad_bias)) {
    Bounded from = oracle.grad_bias();
    expected.push_back({.slot = slots.grad_bias, .values = from.values, .bounds = from.bounds});
    round_bounds(problem, expected.back());
  }
  return expected;
}

}  // namespace

void reference_matmul(const Problem& problem, std::span<HostTensor> tensors) {
  const MatmulOracle oracle(problem, tensors, false);
  for (const RowWise& output : row_wise(problem, oracle)) {
    std::vector<double> values(static_cast<std::size_t>(output.rows * output.columns));
    for (std::int64_t row = 0; row < output.rows; ++row) {
      const Bounded from = output.row(row);
      for (std::int64_t column = 0; column < output.columns; ++column)
        values[output.place(row, column)] = from.values[static_cast<std::size_t>(column)];
    }
    tensors[output.slot].write(values);
  }
  const MatmulSlots& slots = problem.as<MatmulProblem>().slots;
  if (problem.has(slots.grad_bias)) tensors[slots.grad_bias].write(oracle.grad_bias().values);
}

Workload matmul_workload(const MatmulSlots& slots) {
  Workload workload;
  workload.cases = [slots](DType dtype) { return conformance_cases(slots, dtype); };
  workload.edge_cases = [slots](DType dtype, const Config& config) {
    return edge_cases(slots, dtype, config);
  };
  workload.benchmarks = [slots](DType dtype) { return benchmark_cases(slots, dtype); };
  workload.fill = fill_matmul;
  workload.expect = expect;
  workload.flops = [](const Problem& problem) {
    const auto& call = problem.as<MatmulProblem>();
    const MatmulSlots& at = call.slots;
    if (!at.backward()) return product_flops(problem);
    const int products = (problem.has(at.grad_a) ? 1 : 0) + (problem.has(at.grad_b) ? 1 : 0) +
                         (call.activation.kind != 0 || problem.has(at.grad_gate) ? 1 : 0);
    return products * product_flops(problem);
  };
  return workload;
}

}  // namespace tessera::operations::matmul
