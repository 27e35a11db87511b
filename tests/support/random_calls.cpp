// SPDX-License-Identifier: Apache-2.0
#include "support/random_calls.hpp"

#include <algorithm>

#include "runtime/plan.hpp"
#include "runtime/workbench.hpp"

namespace tessera::testing {

RandomSummary run_seeds(std::uint64_t first, std::uint64_t count,
                        const std::function<RandomResult(std::uint64_t)>& run,
                        const std::function<void(const RandomResult&)>& each) {
  RandomSummary summary;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const RandomResult result = run(seed);
    if (!result.skipped.empty()) {
      ++summary.skipped[result.skipped];
    } else {
      ++(result.failure.empty() ? summary.passed : summary.failed);
      summary.mistrusted += result.mistrusted ? 1 : 0;
      ++summary.variants[result.name.substr(0, result.name.find('@'))];
      if (result.failure.empty() && result.worst > summary.worst) {
        summary.worst = result.worst;
        summary.worst_name = result.name;
      }
    }
    each(result);
  }
  return summary;
}

void check_call(const Context& context, const Operation& operation, const Case& shape,
                const Variant& variant, const Config& config, RandomResult& result) {
  constexpr double kNoLimit = 1e300;
  runtime::ContextState& state = *context.state();
  runtime::Workbench bench(state, operation, shape, kNoLimit);
  const auto plan = runtime::make_plan(bench.problem(), {.variant = variant.name, .config = config},
                                       context.device(), state.programs());
  result.mistrusted = std::ranges::any_of(
      bench.expectations(*plan),
      [](const Expectation& expected) { return !runtime::mistrusted(expected).empty(); });
  bench.launch(*plan);
  const runtime::Verdict verdict = bench.verify(*plan);
  result.worst = verdict.worst;
  result.failure = verdict.failure;
}

}  // namespace tessera::testing
