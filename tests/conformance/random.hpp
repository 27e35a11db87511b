// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::testing {

// One that is another one after every edit to a kernel, so that tests do not draw the same calls
// for ever, and the same one until then.
std::uint64_t seed_of_the_kernels();

// Families whose calls can be drawn; the first is the one that is meant where none is named.
const std::vector<std::string>& random_families();

// Checks `count` calls drawn from `seed` on; returns the exit code, 77 where there is no such
// device.
int run_random(const std::string& selector, const std::string& family, std::uint64_t count,
               std::uint64_t seed);

}  // namespace tessera::testing
