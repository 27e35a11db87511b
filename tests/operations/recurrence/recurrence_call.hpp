// SPDX-License-Identifier: Apache-2.0
// Calls of recurrences for the laws of their reference.
#pragma once

#include "support/sequence_fixture.hpp"

namespace tessera::testing {

inline constexpr std::int64_t kTokens = 11, kHeads = 2, kKeys = 3, kColumns = 4;
inline constexpr double kError = 1e-12;  // of sums in another order

// Without values.
inline SequenceCall recurrence_call(std::string operation) {
  const Shape heads{kHeads}, keys{kHeads, kKeys}, columns{kHeads, kColumns};
  return {.operation = std::move(operation),
          .tokens = kTokens,
          .rows = {{"query", keys},
                   {"key", keys},
                   {"value", columns},
                   {"beta", heads},
                   {"g", heads},
                   {"gk", keys},
                   {"gv", columns},
                   {"output", columns}},
          .whole = {{"g_gamma", heads}},
          .state = {kHeads, kKeys, kColumns},
          .error = kError};
}

}  // namespace tessera::testing
