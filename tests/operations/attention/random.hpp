// SPDX-License-Identifier: Apache-2.0
// Attention calls drawn from a seed: operation, options, shapes, strides and data, all of them in
// one call, and a kernel to run it on. A seed gives the same call on every machine; kernels are
// drawn from a small pool, because a CPU's compiler takes seconds for each: mostly of what the
// quick table builds there.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "support/random_calls.hpp"
#include "tessera/context.hpp"

namespace tessera::testing {

struct RandomAttention {
  std::string operation;
  DType dtype = DType::kF32;
  Case shape;                // its name says everything that was drawn
  std::uint64_t kernel = 0;  // which of those that accept the call, modulo their number
  std::uint64_t splits = 1;  // for kernels that split keys where the call pins no number
};

// Without f16 such calls are of bf16: on lavapipe, for PoCL sees the same kernels in f16.
RandomAttention random_attention(std::uint64_t seed, bool with_f16 = true);

// Runs the calls of seeds first, first + 1, … and reports each.
RandomSummary check_random_attention(const Context& context, std::uint64_t first,
                                     std::uint64_t count,
                                     const std::function<void(const RandomResult&)>& each);

}  // namespace tessera::testing
