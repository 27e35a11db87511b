// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan.hpp"

#include "selection/selector.hpp"
#include "tessera/error.hpp"

namespace tessera::runtime {
namespace {

bool is_empty(const Dim3& groups) { return groups.x == 0 || groups.y == 0 || groups.z == 0; }

}  // namespace

std::vector<ProgramName> program_names(const Problem& problem, const Variant& variant,
                                       const Config& config, const DeviceProfile& profile) {
  std::vector<ProgramName> names;
  if (profile.backend == Backend::kHost) return names;
  for (const Pass& pass : variant.passes) {
    if (is_empty(pass.groups(problem, config))) continue;
    names.push_back(ProgramCache::name(problem, variant, pass, config, profile));
  }
  return names;
}

std::shared_ptr<const Plan> make_plan(Problem problem, const Choice& choice,
                                      const DeviceProfile& profile, ProgramCache& programs) {
  const Operation& operation = *problem.operation;
  const Variant* variant = operation.find_variant(choice.variant);
  if (variant == nullptr)
    throw InvalidArgument(operation.name + " has no variant '" + choice.variant + "'");
  if (const Refusal no = selection::refusal(problem, *variant, choice.config, profile)) {
    throw Unsupported(operation.name + "." + variant->name + "{" + choice.config.to_string() +
                      "}: " + *no);
  }
  auto plan = std::make_shared<Plan>();
  for (const Pass& pass : variant->passes) {
    Step step;
    const bool on_host = profile.backend == Backend::kHost;
    if (!on_host) {
      step.groups = pass.groups(problem, choice.config);
      if (is_empty(step.groups)) continue;
    }
    step.group = pass.group_size ? pass.group_size(choice.config) : choice.config.group();
    step.bindings = pass.bindings;
    if (pass.args) step.arguments = pass.args(problem, choice.config);
    step.program = programs.get(problem, *variant, pass, choice.config, profile);
    plan->steps.push_back(std::move(step));
  }
  if (variant->scratch_bytes) plan->scratch_bytes = variant->scratch_bytes(problem, choice.config);
  plan->execution = std::make_shared<const Execution>(
      Execution{.operation = operation.name,
                .key = problem.key,
                .device = profile.name,
                .name = full_name(operation, *variant, choice.config, problem.dtype, profile),
                .precision = problem.precision,
                .choice = choice});
  plan->problem = std::move(problem);
  return plan;
}

void launch(const Plan& plan, device::Stream& stream, std::span<const device::BufferPtr> buffers,
            const device::BufferPtr& scratch) {
  std::vector<device::BufferPtr> bound;
  for (const Step& step : plan.steps) {
    bound.clear();
    for (const std::size_t slot : step.bindings) {
      bound.push_back(slot == kScratch ? scratch : slot == kNoOperand ? nullptr : buffers[slot]);
    }
    stream.launch({.program = step.program.get(),
                   .buffers = bound,
                   .arguments = step.arguments,
                   .groups = step.groups,
                   .group = step.group,
                   .problem = &plan.problem});
  }
}

}  // namespace tessera::runtime
