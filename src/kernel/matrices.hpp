// SPDX-License-Identifier: Apache-2.0
// Which matrices a configuration of cooperative matrices multiplies: MATRIX_M, MATRIX_N, MATRIX_K,
// by sub-groups of LANES.
#pragma once

#include "tessera/device.hpp"
#include "tessera/record.hpp"

namespace tessera::kernel {

// Of variants that multiply so.
Requirements matrix_needs();

MatrixShape matrix_shape(const Problem& problem, const Config& config);
// Why the device does not multiply them so.
Refusal rejects_matrices(const Problem& problem, const Config& config,
                         const DeviceProfile& profile);

}  // namespace tessera::kernel
