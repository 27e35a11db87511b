// SPDX-License-Identifier: Apache-2.0
#include "support/reference.hpp"

#include <cstddef>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

namespace tessera::testing {

Problem problem_of(const std::string& name, const Specs& specs, Options options) {
  const Operation& operation = find_operation(name);
  std::vector<std::optional<TensorSpec>> operands(operation.operands.size());
  for (const auto& [operand, spec] : specs) operands[operation.slot(operand)] = spec;
  return make_problem(operation, std::move(operands), std::move(options));
}

Values run_reference(const Problem& problem, const Values& inputs) {
  const Operation& operation = *problem.operation;
  std::vector<std::vector<std::byte>> memory(operation.operands.size());
  std::vector<HostTensor> tensors(operation.operands.size());
  for (std::size_t slot = 0; slot < tensors.size(); ++slot) {
    if (!problem.has(slot)) continue;
    TensorSpec spec = problem.spec(slot);
    if (spec.dtype == DType::kF32) spec.dtype = DType::kF64;
    memory[slot].resize(static_cast<std::size_t>(spec.elements()) * size_of(spec.dtype));
    tensors[slot] = {.spec = spec, .data = memory[slot].data()};
  }
  for (const auto& [operand, values] : inputs) tensors[operation.slot(operand)].write(values);
  operation.reference(problem, tensors);
  Values outputs;
  for (std::size_t slot = 0; slot < tensors.size(); ++slot) {
    const std::string& name = operation.operands[slot].name;
    if (problem.has(slot) && is_written(operation.operands[slot].role))
      outputs[name] = tensors[slot].read();
  }
  return outputs;
}

std::vector<double> normal_numbers(std::size_t count, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<double> values(count);
  for (double& value : values) value = normal(generator);
  return values;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

}  // namespace tessera::testing
