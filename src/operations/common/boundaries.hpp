// SPDX-License-Identifier: Apache-2.0
// Packed sequences: what their boundaries count as, once for all work-groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "operations/common/boundaries_args.h"
#include "tessera/record.hpp"

namespace tessera::operations {

// What a call's boundaries cut, and where in scratch they go.
struct Boundaries {
  std::int64_t tokens = 0;
  std::uint64_t result = 0;                  // in bytes
  std::uint32_t outside = 0, decreases = 0;  // errors of the record
};

// What common/boundaries is called with; all 0 where the call has no operand `slot`.
abi::BoundariesArgs boundaries_arguments(const Problem& problem, std::size_t slot,
                                         std::size_t count, const Boundaries& call);

// Leaves the boundaries of operand `slot` in scratch, cut to [0, tokens] and to not decrease, so
// that kernels need not look at those before. `count`: an operand that says how many sequences
// there are, or kNoOperand; boundaries behind them are not read and count as the last. Launches
// nothing where the call has no boundaries.
Pass boundaries_pass(std::size_t slot, std::size_t count,
                     std::function<Boundaries(const Problem&, const Config&)> of);
// Of scratch; 0 where the call has none.
std::uint64_t boundaries_bytes(const Problem& problem, std::size_t slot);

}  // namespace tessera::operations
