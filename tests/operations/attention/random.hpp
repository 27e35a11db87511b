// SPDX-License-Identifier: Apache-2.0
// Attention calls drawn from a seed: operation, options, shapes, strides and data, all of them in
// one call, and a kernel to run it on. A seed gives the same call on every machine; kernels are
// drawn from a small pool, because a CPU's compiler takes seconds for each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "tessera/context.hpp"

namespace tessera::testing {

struct RandomAttention {
  std::string operation;
  DType dtype = DType::kF32;
  Case shape;                // its name says everything that was drawn
  std::uint64_t kernel = 0;  // which of those that accept the call, modulo their number
  std::uint64_t splits = 1;  // for kernels that split keys where the call pins no number
};

RandomAttention random_attention(std::uint64_t seed);

struct RandomResult {
  std::uint64_t seed = 0;
  std::string name{};     // full name and case
  std::string failure{};  // empty = passed
  std::string skipped{};  // why it did not run; empty = it ran
  bool mistrusted = false;
  double worst = 0;  // error over bound
};

struct RandomSummary {
  std::size_t passed = 0, failed = 0, mistrusted = 0;
  std::map<std::string, std::size_t> skipped;   // by reason
  std::map<std::string, std::size_t> variants;  // that ran, how often
  double worst = 0;
  std::string worst_name;
};

// Runs the calls of seeds first, first + 1, … and reports each.
RandomSummary check_random_attention(const Context& context, std::uint64_t first,
                                     std::uint64_t count,
                                     const std::function<void(const RandomResult&)>& each);

}  // namespace tessera::testing
