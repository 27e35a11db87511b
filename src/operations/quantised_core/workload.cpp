// SPDX-License-Identifier: Apache-2.0
// The definition of products with quantised weights in double precision, and their error bounds.
#include <algorithm>
#include <cmath>

#include "operations/common/numerics.hpp"
#include "operations/grouped_core/oracle.hpp"
#include "operations/quantised_core/problem.hpp"

namespace tessera::operations::quantised {
namespace {

// Weights as numbers: code minus zero point, [n, k], and the scale of each group of terms.
struct Weights {
  std::vector<double> values{}, scales{};
  std::int64_t groups = 1;
};

Weights read_blocks(const QuantisedProblem& call, const std::vector<double>& bytes) {
  Weights weights;
  const std::int64_t size = block_bytes(call.layout);
  weights.groups = call.k / QUANT_CHUNK;
  const std::int64_t rows = call.matrices * call.n;
  weights.values.resize(static_cast<std::size_t>(rows * call.k));
  for (std::int64_t block = 0; block < rows * weights.groups; ++block) {
    const double* from = bytes.data() + block * size;
    double* to = weights.values.data() + block * QUANT_CHUNK;
    weights.scales.push_back(
        double{from_half_bits(static_cast<std::uint16_t>(from[0] + 256 * from[1]))});
    for (int i = 0; i < QUANT_CHUNK; ++i) {
      if (call.layout == Layout::kQ8_0) {
        to[i] = from[2 + i] - (from[2 + i] >= 128 ? 256 : 0);
      } else {
        const int byte = static_cast<int>(from[2 + i % 16]);
        to[i] = (i < 16 ? byte % 16 : byte / 16) - 8;
      }
    }
  }
  return weights;
}

Weights read_weights(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<QuantisedProblem>();
  if (call.layout != Layout::kPlain) return read_blocks(call, tensors[kWeight].read());
  Weights weights{.values = tensors[kWeight].read(),
                  .scales = tensors[kScale].read(),
                  .groups = problem.spec(kScale).shape.back()};
  if (!problem.has(kZero)) return weights;
  const std::vector<double> zeros = tensors[kZero].read();
  for (std::int64_t i = 0; i < call.matrices * call.n * call.k; ++i)
    weights.values[static_cast<std::size_t>(i)] -=
        zeros[static_cast<std::size_t>(i / call.k * weights.groups + i % call.k / call.group)];
  return weights;
}

// The first row of weights of the matrix of each row; -1 where it has none.
std::vector<std::int64_t> matrices_of_rows(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<QuantisedProblem>();
  std::vector<std::int64_t> of_rows(static_cast<std::size_t>(call.m), 0);
  if (!call.is_grouped) return of_rows;
  std::ranges::fill(of_rows, -1);
  const auto ranges = matmul::group_ranges(tensors[kSizes].read(), call.m);
  for (std::size_t group = 0; group < ranges.size(); ++group) {
    const std::int64_t matrix = static_cast<std::int64_t>(group) - call.first;
    if (matrix < 0 || matrix >= call.matrices) continue;
    for (std::int64_t row = ranges[group].first; row < ranges[group].end; ++row)
      of_rows[static_cast<std::size_t>(row)] = matrix * call.n;
  }
  return of_rows;
}

Expectation expect_rows(const Problem& problem, std::span<HostTensor> tensors, std::int64_t count) {
  const auto& call = problem.as<QuantisedProblem>();
  const std::vector<double> input = tensors[kInput].read();
  const Weights weights = read_weights(problem, tensors);
  std::vector<double> factors(static_cast<std::size_t>(call.m), 1);
  if (problem.has(kInputScale)) factors = tensors[kInputScale].read();
  const std::vector<std::int64_t> matrices = matrices_of_rows(problem, tensors);
  Expectation to{.slot = kOutput};
  // Columns at equal distances where all of them would take too long.
  for (std::int64_t row = 0; row < call.m; ++row) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t column = count == 1 ? 0 : i * (call.n - 1) / (count - 1);
      const std::int64_t matrix = matrices[static_cast<std::size_t>(row)];
      const std::int64_t line = matrix + column;
      double value = 0, magnitude = 0;
      for (std::int64_t first = 0; first < call.k && matrix >= 0; first += call.group) {
        double sum = 0, size = 0;
        for (std::int64_t k = first; k < std::min(first + call.group, call.k); ++k) {
          const double product = input[static_cast<std::size_t>(row * call.k + k)] *
                                 weights.values[static_cast<std::size_t>(line * call.k + k)];
          sum += product;
          size += std::fabs(product);
        }
        double scale =
            weights.scales[static_cast<std::size_t>(line * weights.groups + first / call.group)];
        if (std::isinf(scale)) scale = std::nan("");
        value += scale * sum;
        magnitude += std::fabs(scale) * size;
      }
      double factor = factors[static_cast<std::size_t>(row)];
      if (std::isinf(factor)) factor = std::nan("");
      if (matrix < 0) factor = 1;  // nothing is read
      value *= factor;
      magnitude *= std::fabs(factor);
      const double bound =
          sum_error(static_cast<double>(call.k)) * magnitude + smallest_number(DType::kF32);
      to.values.push_back(value);
      to.bounds.push_back(bound + storage_unit(call.output) * (std::fabs(value) + bound) +
                          smallest_number(call.output));
      if (count != call.n) to.elements.push_back(static_cast<std::size_t>(row * call.n + column));
    }
  }
  return to;
}

// The gradient of the input, row by row.
Expectation expect_gradient(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<QuantisedProblem>();
  const std::vector<double> gradient = tensors[kGradOutput].read();
  const Weights weights = read_weights(problem, tensors);
  const std::vector<std::int64_t> matrices = matrices_of_rows(problem, tensors);
  Expectation to{.slot = kGradInput};
  for (std::int64_t row = 0; row < call.m; ++row) {
    const std::int64_t matrix = matrices[static_cast<std::size_t>(row)];
    for (std::int64_t k = 0; k < call.k; ++k) {
      double value = 0, magnitude = 0;
      for (std::int64_t n = 0; n < call.n && matrix >= 0; ++n) {
        const std::int64_t line = matrix + n;
        double scale =
            weights.scales[static_cast<std::size_t>(line * weights.groups + k / call.group)];
        if (std::isinf(scale)) scale = std::nan("");
        const double product = gradient[static_cast<std::size_t>(row * call.n + n)] * scale *
                               weights.values[static_cast<std::size_t>(line * call.k + k)];
        value += product;
        magnitude += std::fabs(product);
      }
      const double bound =
          sum_error(static_cast<double>(call.n)) * magnitude + smallest_number(DType::kF32);
      to.values.push_back(value);
      to.bounds.push_back(bound + storage_unit(call.output) * (std::fabs(value) + bound) +
                          smallest_number(call.output));
    }
  }
  return to;
}

double flops_of(const Problem& problem) {
  const auto& call = problem.as<QuantisedProblem>();
  return 2.0 * static_cast<double>(call.m) * static_cast<double>(call.n) *
         static_cast<double>(call.k);
}

}  // namespace

std::vector<Raised> raised_by_groups(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<QuantisedProblem>();
  if (!call.is_grouped) return {};
  return matmul::raised_by_sizes(tensors[kSizes].read(), call.m);
}

void reference_quantised_matmul(const Problem& problem, std::span<HostTensor> tensors) {
  tensors[kOutput].write(expect_rows(problem, tensors, problem.as<QuantisedProblem>().n).values);
}

void reference_quantised_backward(const Problem& problem, std::span<HostTensor> tensors) {
  tensors[kGradInput].write(expect_gradient(problem, tensors).values);
}

Workload quantised_backward_workload() {
  Workload workload;
  workload.cases = [](DType dtype) { return quantised_backward_cases(dtype); };
  workload.fill = fill_quantised_matmul;
  workload.expect = [](const Problem& problem, std::span<HostTensor> tensors, const Arithmetic&,
                       double /*max_flops*/) {
    return std::vector<Expectation>{expect_gradient(problem, tensors)};
  };
  workload.flops = flops_of;
  return workload;
}

Workload quantised_matmul_workload() {
  Workload workload;
  workload.cases = [](DType dtype) { return quantised_matmul_cases(dtype); };
  workload.benchmarks = [](DType dtype) { return quantised_matmul_benchmarks(dtype); };
  workload.fill = fill_quantised_matmul;
  workload.expect = [](const Problem& problem, std::span<HostTensor> tensors, const Arithmetic&,
                       double max_flops) {
    const auto all = static_cast<double>(problem.as<QuantisedProblem>().n);
    const double share = max_flops / std::max(flops_of(problem), 1.0);
    const auto count = static_cast<std::int64_t>(std::clamp(share * all, std::min(64.0, all), all));
    return std::vector<Expectation>{expect_rows(problem, tensors, count)};
  };
  workload.flops = flops_of;
  return workload;
}

}  // namespace tessera::operations::quantised
