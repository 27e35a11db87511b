// SPDX-License-Identifier: Apache-2.0
// Products drawn from a seed: operation, types, shapes, broadcast batches, strides, what is beside
// the product, and data, all of them in one call.
#pragma once

#include <cstdint>
#include <functional>

#include "support/random_calls.hpp"

namespace tessera::testing {

RandomCall random_matmul(std::uint64_t seed);

// Runs the calls of seeds first, first + 1, ... and reports each.
RandomSummary check_random_matmul(const Context& context, std::uint64_t first, std::uint64_t count,
                                  const std::function<void(const RandomResult&)>& each);

}  // namespace tessera::testing
