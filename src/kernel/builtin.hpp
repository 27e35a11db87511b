// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "tessera/record.hpp"

namespace tessera::kernel {

// The operations of src/operations, in the order of CMakeLists.txt. The build generates the
// definition.
std::vector<Operation> builtin_operations();

}  // namespace tessera::kernel
