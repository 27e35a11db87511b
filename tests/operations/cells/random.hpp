// SPDX-License-Identifier: Apache-2.0
// Layers of recurrent cells drawn from a seed: cell, types, shapes, directions, projections, what
// is left out, lengths, strides, the reserve and gradients, all of them in one call.
#pragma once

#include <cstdint>
#include <functional>

#include "support/random_calls.hpp"

namespace tessera::testing {

RandomCall random_cells(std::uint64_t seed);

// Runs the calls of seeds first, first + 1, ... and reports each.
RandomSummary check_random_cells(const Context& context, std::uint64_t first, std::uint64_t count,
                                 const std::function<void(const RandomResult&)>& each);

}  // namespace tessera::testing
