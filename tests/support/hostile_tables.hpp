// SPDX-License-Identifier: Apache-2.0
// Calls whose tables hold anything: results, errors and the guard bands of every buffer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tessera/context.hpp"
#include "tessera/record.hpp"

namespace tessera::testing {

// The operation's cases of hostile data.
std::vector<Case> hostile_cases(const Operation& operation);

// What is wrong with the first of `count` calls from `seed` on, by what a call gets on the device;
// empty: nothing.
std::string check_hostile_tables(const Context& context, const Operation& operation, Case shape,
                                 std::uint64_t seed, std::uint64_t count);

}  // namespace tessera::testing
