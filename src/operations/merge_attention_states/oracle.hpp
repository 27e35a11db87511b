// SPDX-License-Identifier: Apache-2.0
// The definition of merged attention states in double precision, and how far from it float
// arithmetic may end.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "operations/merge_attention_states/problem.hpp"

namespace tessera::operations::attention_states {

struct Bounded {
  std::vector<double> values{}, bounds{};
};

// By slot, row-major; before rounding to the storage type. Empty where the call has no such
// operand.
using States = std::array<Bounded, kGradOtherSum + 1>;
States merged_states(const Problem& problem, std::span<const HostTensor> tensors);

}  // namespace tessera::operations::attention_states
