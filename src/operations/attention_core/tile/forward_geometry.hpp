// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernel/ranking.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::attention {

// What forward.h says about a configuration of the tile kernels.
struct TileGeometry {
  bool valid = false;
  std::uint32_t local_bytes = 0;
  std::uint32_t registers = 0;  // of one work-item, about
  kernel::Effort effort{};      // of a round, that is a tile of keys
};
TileGeometry tile_geometry(const Config& config, std::uint32_t head_dim, std::uint32_t value_dim);

}  // namespace tessera::operations::attention
