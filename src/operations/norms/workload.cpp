// SPDX-License-Identifier: Apache-2.0
// Inputs and error bounds of the norms, for tests, benchmarks and the tuner alike.
#include <cmath>
#include <utility>

#include "operations/common/numerics.hpp"
#include "operations/norms/cases.hpp"
#include "operations/norms/oracle.hpp"

namespace tessera::operations::norms {
namespace {

// What a stored value must be: the oracle's, rounded once.
void add(std::vector<Expectation>& to, const Problem& problem, std::size_t slot, Bounded from) {
  if (!problem.has(slot)) return;
  const DType dtype = problem.spec(slot).dtype;
  for (std::size_t i = 0; i < from.values.size(); ++i) {
    from.bounds[i] +=
        storage_unit(dtype) * (std::fabs(from.values[i]) + from.bounds[i]) + smallest_number(dtype);
  }
  to.push_back({.slot = slot, .values = std::move(from.values), .bounds = std::move(from.bounds)});
}

}  // namespace

// Counted operations are left out: the kernels wait for memory. The bytes are those of the
// operands, the default.
Workload norm_workload(bool backward) {
  Workload workload;
  workload.cases = [backward](const StorageTypes& types) {
    if (is_quantised(types.of("output"))) return quantised_cases(types);
    return conformance_cases(backward, types);
  };
  workload.edge_cases = [backward](const StorageTypes& types, const Config& config) {
    if (is_quantised(types.of("output"))) return quantised_edge_cases(types, config);
    return edge_cases(backward, types, config);
  };
  workload.benchmarks = [backward](const StorageTypes& types) {
    if (is_quantised(types.of("output"))) return quantised_benchmarks(types);
    return benchmark_cases(backward, types);
  };
  workload.fill = fill_norm;
  workload.expect = [backward](
                        const Problem& problem, std::span<HostTensor> tensors, const Arithmetic&,
                        double /*max_flops: reading the operands takes as long as the oracle*/) {
    std::vector<Expectation> expected;
    const NormOracle oracle(problem, tensors);
    if (backward) {
      NormOracle::Backward result = oracle.backward();
      add(expected, problem, kGradInput, std::move(result.input));
      add(expected, problem, kGradWeight, std::move(result.weight));
      add(expected, problem, kGradBias, std::move(result.bias));
      add(expected, problem, kGradResidual, std::move(result.residual));
    } else if (problem.has(kScale)) {
      NormOracle::Quantised result = oracle.quantised(problem.spec(kOutput).dtype);
      add(expected, problem, kOutput, std::move(result.codes));
      add(expected, problem, kScale, std::move(result.scale));
      add(expected, problem, kSum, std::move(result.sum));
    } else {
      NormOracle::Forward result = oracle.forward();
      add(expected, problem, kOutput, std::move(result.output));
      add(expected, problem, kSum, std::move(result.sum));
    }
    return expected;
  };
  return workload;
}

}  // namespace tessera::operations::norms
