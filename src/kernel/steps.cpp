// SPDX-License-Identifier: Apache-2.0
#include "kernel/steps.hpp"

#include <algorithm>

#include "kernel/precision.hpp"
#include "tessera/error.hpp"

namespace tessera::kernel {

std::vector<ResolvedStep> steps_of(const Variant& variant, const Problem& problem,
                                   const Config& config) {
  std::vector<ResolvedStep> steps;
  if (!variant.steps) {
    for (const Pass& pass : variant.passes) steps.push_back({.pass = &pass});
    return steps;
  }
  for (Step& step : variant.steps(problem, config)) {
    if (auto* call = std::get_if<CallStep>(&step)) {
      steps.push_back({.call = std::move(*call)});
      continue;
    }
    auto& launch = std::get<LaunchStep>(step);
    const auto pass = std::ranges::find(variant.passes, launch.pass, &Pass::name);
    if (pass == variant.passes.end())
      throw InvalidArgument(variant.name + " has no pass '" + launch.pass + "'");
    steps.push_back({.pass = &*pass, .launch = std::move(launch)});
  }
  return steps;
}

Problem problem_of(const CallStep& call, const Problem& caller) {
  const Operation& operation = find_operation(call.operation);
  std::vector<std::optional<TensorSpec>> specs(operation.operands.size());
  std::vector<bool> requested(specs.size(), false);
  for (const auto& [name, place] : call.operands) {
    const std::size_t slot = operation.slot(name);
    specs[slot] = place.spec;
    requested[slot] = is_written(operation.operands[slot].role);
  }
  Options options = call.options;
  if (caller.precision != Precision::kDefault && !asked_precision(options))
    options.insert_or_assign(std::string(kPrecision), std::string(to_string(caller.precision)));
  Problem problem =
      make_problem(operation, std::move(specs), std::move(options), std::move(requested));
  for (std::size_t slot = 0; slot < problem.operands.size(); ++slot) {
    const std::string& name = operation.operands[slot].name;
    const bool is_placed =
        std::ranges::count(call.operands, name, &std::pair<std::string, Place>::first) == 1;
    if (problem.has(slot) && !is_placed) {
      throw InvalidArgument(caller.operation->name + " calls " + operation.name +
                            " and has no place for its output '" + name + "'");
    }
  }
  return problem;
}

std::size_t bound_slot(const Problem& problem, std::size_t slot) {
  const std::string& stand_in = problem.operation->operands[slot].stand_in;
  if (stand_in.empty() || problem.has(slot)) return slot;
  const std::size_t other = problem.operation->slot(stand_in);
  return problem.has(other) ? other : slot;
}

}  // namespace tessera::kernel
