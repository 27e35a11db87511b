// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tessera/record.hpp"

namespace tessera::kernel {

// Hash of what an operation's kernels are made of on a backend: the files of its variants' passes
// with everything that they include, or their SPIR-V modules. Remembered with what was tuned, so
// that an edit to kernels makes the choices for the operations that use them worthless, and no
// others.
std::string hash_of_kernels(const Operation& operation, Backend backend);

// An OpenCL C file and what it includes, however deep, in the order of their first mention.
std::vector<std::string> files_of(const std::string& file);

}  // namespace tessera::kernel
