// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tessera/record.hpp"

namespace tessera::testing {

// The folder of cl_kernels or shaders that the operation's kernels lie in.
std::string family_of(const Operation& operation);

}  // namespace tessera::testing
