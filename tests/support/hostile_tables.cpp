// SPDX-License-Identifier: Apache-2.0
#include "support/hostile_tables.hpp"

#include <memory>

#include "runtime/workbench.hpp"

namespace tessera::testing {

std::vector<Case> hostile_cases(const Operation& operation) {
  const StorageTypes types =
      operation.types.empty() ? StorageTypes(DType::kF32) : operation.types.front();
  std::vector<Case> cases = operation.workload.cases(types);
  std::erase_if(cases, [](const Case& shape) { return shape.data != "hostile"; });
  return cases;
}

std::string check_hostile_tables(const Context& context, const Operation& operation, Case shape,
                                 std::uint64_t seed, std::uint64_t count) {
  std::shared_ptr<const runtime::Plan> plan;
  for (const std::uint64_t end = seed + count; seed < end; ++seed) {
    shape.seed = seed;
    runtime::Workbench bench(*context.state(), operation, shape, 1e300);
    if (!plan) {
      const Choice choice = Executor(context).explain(bench.problem()).execution.choice;
      plan = runtime::make_plan(bench.problem(), choice, context.device(),
                                context.state()->programs());
    }
    bench.launch(*plan);
    const runtime::Verdict verdict = bench.verify(*plan);
    if (!verdict.failure.empty()) {
      return operation.name + " " + shape.name + ", seed " + std::to_string(seed) + ": " +
             verdict.failure;
    }
  }
  return {};
}

}  // namespace tessera::testing
