// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernel/ranking.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::attention {

// What backward.h says about a configuration of the tile kernels of the backward pass: of the
// two kernels the one that needs more.
struct TileBackwardGeometry {
  bool valid = false;
  std::uint32_t local_bytes = 0;
  std::uint32_t registers = 0;       // of one work-item, about
  kernel::Effort keys{}, queries{};  // of a round of each kernel, that is a tile of rows or of keys
};
TileBackwardGeometry tile_backward_geometry(const Config& config, std::uint32_t head_dim,
                                            std::uint32_t value_dim);

}  // namespace tessera::operations::attention
