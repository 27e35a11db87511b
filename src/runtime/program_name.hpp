// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tessera::runtime {

// What one program is told from another by. Variants and operations that use a kernel in the same
// way share its program.
struct ProgramName {
  std::string kernel;  // file, function and axes: "norms/rows.cl|norm_rows|DTYPE=0"
  std::string values;  // of all else that it is specialised on: "|BLOCK=8|WG_X=64"
  std::string key() const { return kernel + values; }
};

}  // namespace tessera::runtime
