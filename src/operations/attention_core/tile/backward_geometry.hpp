// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/record.hpp"

namespace tessera::operations::attention {

// What backward.h says about a configuration of the tile kernels of the backward pass: of the
// two kernels the one that needs more.
struct TileBackwardGeometry {
  bool valid = false;
  std::uint32_t local_bytes = 0;
  std::uint32_t registers = 0;  // of one work-item, about
};
TileBackwardGeometry tile_backward_geometry(const Config& config, std::uint32_t head_dim,
                                            std::uint32_t value_dim);

}  // namespace tessera::operations::attention
