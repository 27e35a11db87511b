// SPDX-License-Identifier: Apache-2.0
// How long configurations of the tile kernels take by the model of kernel/ranking.hpp.
#pragma once

#include "tessera/record.hpp"

namespace tessera::operations::attention {

double tile_cycles(const Problem& problem, const Config& config, const DeviceProfile& profile);
double tile_backward_cycles(const Problem& problem, const Config& config,
                            const DeviceProfile& profile);

}  // namespace tessera::operations::attention
