// SPDX-License-Identifier: Apache-2.0
// Products drawn from a seed: operation, types, shapes, broadcast batches, strides, what is beside
// the product, and data, all of them in one call, and a variant to run it on. A seed gives the same
// call on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "support/random_calls.hpp"

namespace tessera::testing {

struct RandomMatmul {
  std::string operation;
  DType dtype = DType::kF32;  // of a
  Case shape;                 // its name says everything that was drawn
  std::uint64_t kernel = 0;   // which of the variants that accept the call, modulo their number
};

RandomMatmul random_matmul(std::uint64_t seed);

// Runs the calls of seeds first, first + 1, ... and reports each.
RandomSummary check_random_matmul(const Context& context, std::uint64_t first, std::uint64_t count,
                                  const std::function<void(const RandomResult&)>& each);

}  // namespace tessera::testing
