// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "kernel/steps.hpp"
#include "selection/asked.hpp"
#include "selection/heuristics.hpp"
#include "selection/selector.hpp"
#include "tessera/error.hpp"

namespace tessera::runtime {
namespace {

bool is_empty(const Dim3& groups) { return groups.x == 0 || groups.y == 0 || groups.z == 0; }

// Adds the launches of a call, and of those that it makes.
class Planner {
 public:
  Planner(Plan& plan, const DeviceProfile& profile, ProgramCache& programs,
          const ChooseCall& choose, bool in_parts)
      : plan_(plan), profile_(profile), programs_(programs), choose_(choose), in_parts_(in_parts) {}

  // `operands`: where this call's operands are, by slot. `depth`: how many calls are around it.
  // `told_at`: its errors are those of the call around it from that word on.
  void add(const std::shared_ptr<const Problem>& problem, const Choice& choice,
           const std::vector<Binding>& operands, std::size_t depth,
           std::optional<std::uint32_t> told_at = std::nullopt) {
    const Operation& operation = *problem->operation;
    const Variant* variant = operation.find_variant(choice.variant);
    if (variant == nullptr)
      throw InvalidArgument(operation.name + " has no variant '" + choice.variant + "'");
    if (const Refusal no = selection::refusal(*problem, *variant, choice.config, profile_)) {
      throw Unsupported(operation.name + "." + variant->name + "{" + choice.config.to_string() +
                        "}: " + *no);
    }
    plan_.rounds_factors = plan_.rounds_factors || variant->rounds_factors;
    reserve_scratch(*problem, *variant, choice.config, depth);
    const std::uint32_t first_error = told_at.value_or(plan_.error_words);
    if (!told_at && !operation.errors.empty()) {
      plan_.errors.push_back({&operation, first_error});
      plan_.error_words += static_cast<std::uint32_t>(operation.errors.size());
    }
    Call call{problem, *variant, choice.config, operands, depth, first_error};
    for (const kernel::ResolvedStep& step : kernel::steps_of(*variant, *problem, choice.config)) {
      if (step.call) {
        add_call(call, *step.call);
      } else {
        add_launch(call, step);
      }
    }
  }

 private:
  struct Call {
    const std::shared_ptr<const Problem>& problem;
    const Variant& variant;
    const Config& config;
    const std::vector<Binding>& operands;
    std::size_t depth;
    std::uint32_t first_error;
    bool launches = false;  // has done so
  };

  void reserve_scratch(const Problem& problem, const Variant& variant, const Config& config,
                       std::size_t depth) {
    if (!variant.scratch_bytes) return;
    const std::uint64_t bytes = variant.scratch_bytes(problem, config);
    if (plan_.scratch_bytes.size() <= depth) plan_.scratch_bytes.resize(depth + 1, 0);
    plan_.scratch_bytes[depth] = std::max(plan_.scratch_bytes[depth], bytes);
  }

  // Where a caller's errors contain those of a call, by their kinds and in their order, they are
  // told as the caller's, of its operands.
  static std::optional<std::uint32_t> told_by(const Call& caller, const Operation& callee) {
    const std::vector<ErrorKind>& all = caller.problem->operation->errors;
    const auto at = std::ranges::search(all, callee.errors, {}, &ErrorKind::kind, &ErrorKind::kind);
    if (callee.errors.empty() || at.empty()) return std::nullopt;
    return caller.first_error + static_cast<std::uint32_t>(at.begin() - all.begin());
  }

  static Binding binding_of(const Call& call, std::size_t slot) {
    if (slot == kScratch) return {Binding::Kind::kScratch, call.depth};
    if (slot == kErrors) return {Binding::Kind::kErrors};
    if (slot == kNoOperand) return {};
    return call.operands[kernel::bound_slot(*call.problem, slot)];
  }

  void add_launch(Call& call, const kernel::ResolvedStep& step) {
    const Pass& pass = *step.pass;
    PlannedLaunch launch;
    if (profile_.backend != Backend::kHost) {
      launch.groups = step.groups(*call.problem, call.config);
      if (is_empty(launch.groups)) return;
    }
    launch.group = pass.group_size ? pass.group_size(call.config) : call.config.group();
    for (const std::size_t slot : pass.bindings) launch.bindings.push_back(binding_of(call, slot));
    launch.arguments = step.args(*call.problem, call.config);
    if (pass.errors_at && *pass.errors_at + sizeof(std::uint32_t) > launch.arguments.size()) {
      throw InvalidArgument(call.variant.name + ": errors_at of pass '" + pass.name +
                            "' lies beyond its arguments");
    }
    launch.errors_at = pass.errors_at;
    launch.first_error = call.first_error;
    launch.problem = call.problem;
    launch.program = programs_.get(*call.problem, call.variant, pass, call.config, profile_,
                                   in_parts_ ? std::optional(launch.groups) : std::nullopt);
    launch.is_first = !std::exchange(call.launches, true);
    plan_.launches.push_back(std::move(launch));
  }

  void add_call(const Call& caller, const CallStep& step) {
    const auto problem = std::make_shared<const Problem>(kernel::problem_of(step, *caller.problem));
    std::vector<Binding> operands(problem->operands.size());
    for (const auto& [name, place] : step.operands)
      operands[problem->operation->slot(name)] = binding_of(caller, place.slot);
    add(problem,
        choose_ ? choose_(*problem, step.variant)
                : choose_by_rules(*problem, step.variant, profile_),
        operands, caller.depth + 1, told_by(caller, *problem->operation));
  }

  Plan& plan_;
  const DeviceProfile& profile_;
  ProgramCache& programs_;
  const ChooseCall& choose_;
  bool in_parts_;
};

}  // namespace

Choice choose_by_rules(const Problem& problem, const std::string& variant,
                       const DeviceProfile& profile) {
  const Variant* only =
      variant.empty() ? nullptr : &selection::known_variant(problem, variant, Tier::kOverride);
  auto choice = selection::heuristic_choice(problem, profile, only);
  if (!choice) throw Unsupported("nothing here can do " + problem.operation->name);
  return *std::move(choice);
}

std::vector<ProgramName> program_names(const Problem& problem, const Variant& variant,
                                       const Config& config, const DeviceProfile& profile) {
  std::vector<ProgramName> names;
  if (profile.backend == Backend::kHost) return names;
  for (const kernel::ResolvedStep& step : kernel::steps_of(variant, problem, config)) {
    if (step.call) {
      const Problem called = kernel::problem_of(*step.call, problem);
      const Choice choice = choose_by_rules(called, step.call->variant, profile);
      for (ProgramName& name : program_names(
               called, *called.operation->find_variant(choice.variant), choice.config, profile))
        names.push_back(std::move(name));
    } else if (!is_empty(step.groups(problem, config))) {
      names.push_back(ProgramCache::name(problem, variant, *step.pass, config, profile));
    }
  }
  return names;
}

std::shared_ptr<const Plan> make_plan(Problem problem, const Choice& choice,
                                      const DeviceProfile& profile, ProgramCache& programs,
                                      const ChooseCall& choose, bool in_parts) {
  auto plan = std::make_shared<Plan>();
  plan->in_parts = in_parts;
  const auto call = std::make_shared<const Problem>(std::move(problem));
  std::vector<Binding> operands(call->operands.size());
  for (std::size_t slot = 0; slot < operands.size(); ++slot)
    operands[slot] = {Binding::Kind::kOperand, slot};
  Planner(*plan, profile, programs, choose, in_parts).add(call, choice, operands, 0);
  plan->execution = std::make_shared<const Execution>(
      Execution{.operation = call->operation->name,
                .key = call->key,
                .device = profile.name,
                .name = full_name(*call->operation, *call->operation->find_variant(choice.variant),
                                  choice.config, call->types, profile),
                .precision = call->precision,
                .choice = choice});
  plan->problem = *call;
  return plan;
}

void launch(const Plan& plan, device::Stream& stream, const Memory& memory,
            const MakeLaunch& make) {
  std::vector<device::BufferPtr> bound;
  std::vector<std::byte> patched;
  for (const PlannedLaunch& each : plan.launches) {
    bound.clear();
    for (const Binding& binding : each.bindings) {
      switch (binding.kind) {
        case Binding::Kind::kNothing:
          bound.push_back(nullptr);
          break;
        case Binding::Kind::kOperand:
          bound.push_back(memory.operands[binding.number]);
          break;
        case Binding::Kind::kScratch:
          // A variant without scratch_bytes may bind it all the same.
          bound.push_back(binding.number < memory.scratch.size() ? memory.scratch[binding.number]
                                                                 : nullptr);
          break;
        case Binding::Kind::kErrors:
          bound.push_back(memory.errors);
          break;
      }
    }
    const std::uint32_t first_error = memory.first_error + each.first_error;
    std::span<const std::byte> arguments = each.arguments;
    if (each.errors_at) {
      patched = each.arguments;
      std::memcpy(patched.data() + *each.errors_at, &first_error, sizeof first_error);
      arguments = patched;
    }
    const device::Launch launch{.program = each.program.get(),
                                .buffers = bound,
                                .arguments = arguments,
                                .groups = each.groups,
                                .group = each.group,
                                .problem = each.problem.get(),
                                .errors = each.is_first ? memory.errors.get() : nullptr,
                                .first_error = first_error};
    if (make) {
      make(stream, launch, each.arguments);
    } else {
      stream.launch(launch);
    }
  }
}

}  // namespace tessera::runtime
