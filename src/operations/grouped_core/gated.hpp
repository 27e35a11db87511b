// SPDX-License-Identifier: Apache-2.0
// Grouped products within variants of other operations, on Hopper: a group's matrix has the columns
// of a gate, then as many of up, and the result is act(gate) up, from registers.
#pragma once

#include <cstdint>
#include <functional>

#include "operations/grouped_core/problem.hpp"

namespace tessera::operations::matmul {

struct GatedCall {
  CallStep product{};       // of grouped_matmul; rhs has the gate's columns alone
  abi::u32 activation = 0;  // MATMUL_NONE ... of matmul_core
};

// Passes that make a gated product, in order, and what they ask of their caller's configuration and
// problem, of which `call_of` makes theirs. `slots`: the caller's operands, or kScratch. The sizes
// are the caller's own: of wrong ones nobody is told.
Way gated_hopper_way(const std::function<GatedCall(const Problem&)>& call_of,
                     const GroupedSlots& slots);
// What they keep, at the beginning of the caller's scratch.
std::uint64_t gated_scratch(std::int64_t groups);

}  // namespace tessera::operations::matmul
