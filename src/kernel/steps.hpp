// SPDX-License-Identifier: Apache-2.0
// What a variant does on a problem, step by step.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::kernel {

// A launch of a pass, or a call of another operation.
struct ResolvedStep {
  const Pass* pass = nullptr;
  LaunchStep launch{};
  std::optional<CallStep> call{};  // where there is no pass

  Dim3 groups(const Problem& problem, const Config& config) const {
    return launch.groups ? *launch.groups : pass->groups(problem, config);
  }
  std::vector<std::byte> args(const Problem& problem, const Config& config) const {
    if (launch.args) return *launch.args;
    return pass->args ? pass->args(problem, config) : std::vector<std::byte>{};
  }
};

// Variant::steps, or each pass once. Throws InvalidArgument for a pass that there is not.
std::vector<ResolvedStep> steps_of(const Variant& variant, const Problem& problem,
                                   const Config& config);

// The problem of a call that a variant makes for `caller`, whose precision it inherits.
Problem problem_of(const CallStep& call, const Problem& caller);

// The operand that a kernel which binds `slot` finds there: itself or, where the call has it
// instead, its Operand::stand_in.
std::size_t bound_slot(const Problem& problem, std::size_t slot);

}  // namespace tessera::kernel
