// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tessera::testing {

// tessera_conformance --random COUNT --seed N [DEVICE]: returns the exit code, 77 where there is no
// such device.
int run_random(int argc, char** argv);

}  // namespace tessera::testing
