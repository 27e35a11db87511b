// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tessera/record.hpp"

namespace tessera::testing {

// Checks about `count` calls with hostile tables from `seed` on, those of all operations that are
// wanted and have such cases by turns; returns the exit code, 77 where there is no such device or
// no such operation.
int run_hostile(const std::string& selector, std::uint64_t count, std::uint64_t seed,
                const std::function<bool(const Operation&)>& is_wanted);

}  // namespace tessera::testing
