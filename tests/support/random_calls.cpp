// SPDX-License-Identifier: Apache-2.0
#include "support/random_calls.hpp"

#include <algorithm>
#include <numeric>
#include <sstream>
#include <utility>
#include <vector>

#include "runtime/plan.hpp"
#include "runtime/workbench.hpp"
#include "selection/selector.hpp"
#include "tessera/error.hpp"

namespace tessera::testing {

void vary_strides(Draw& draw, TensorSpec& spec) {
  std::vector<std::size_t> order(spec.shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (order.size() > 1 && draw.chance(0.35)) std::swap(order.back(), order[order.size() - 2]);
  const bool aligned = draw.chance(0.5);
  std::int64_t stride = draw.chance(0.1) ? 2 : 1;
  for (std::size_t n = order.size(); n-- > 0;) {
    spec.strides[order[n]] = stride;
    stride *= std::max<std::int64_t>(spec.shape[order[n]], 1);
    stride = aligned ? (stride + 7) / 8 * 8 + 8 * draw.below(2) : stride + draw.below(6);
  }
  spec.offset = aligned ? 8 * draw.below(3) : draw.below(9);
}

std::string describe_operands(const Case& shape) {
  std::ostringstream text;
  for (const auto& spec : shape.operands)
    text << " " << (spec ? spec->to_string() : std::string("-"));
  for (const auto& [name, value] : shape.options) text << " " << name << "=" << to_string(value);
  return text.str();
}

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

RandomResult run_call(const Context& context, const RandomCall& call) {
  const Operation& operation = find_operation(call.operation);
  RandomResult result{.seed = call.shape.seed};
  result.name = call.operation + " " + call.shape.name;
  try {
    const Problem problem = make_problem(operation, call.shape.operands, call.shape.options);
    std::vector<std::pair<const Variant*, Config>> kernels;
    result.skipped = "no variant of " + call.operation + " takes it";
    for (const Variant& variant : operation.variants) {
      if (selection::refusal(problem, variant, context.device())) continue;
      for (const Config& config : variant.space(problem, context.device())) {
        if (selection::refusal(problem, variant, config, context.device())) continue;
        kernels.emplace_back(&variant, config);
        break;
      }
    }
    if (kernels.empty()) return result;
    result.skipped.clear();
    const auto& [variant, config] = kernels[call.kernel % kernels.size()];
    result.name = full_name(operation, *variant, config, call.dtype, context.device()) + " " +
                  call.shape.name;
    check_call(context, operation, call.shape, *variant, config, result);
  } catch (const Error& error) {
    result.failure = error.what();
  }
  return result;
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
