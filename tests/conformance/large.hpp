// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tessera::testing {

// Checks attention with operands beyond 4 GiB, forward and backward, by every variant: refused, or
// of the bits that a call of three of the batches has. Returns the exit code, 77 where no such
// device has the memory.
int run_large(const std::string& selector);

}  // namespace tessera::testing
