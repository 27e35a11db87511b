// SPDX-License-Identifier: Apache-2.0
// What compilers of GPUs that are not here made of the cuts of the tile kernels: *_compiled.def,
// which tests/vendors/ranking.py writes.
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/record.hpp"

namespace tessera::operations::attention {

enum class TileKernel { kForward, kKeys, kQueries };

struct TileFigures {
  std::uint32_t registers = 0;  // that an item is given
  // Something lies in memory that belongs in registers, or too few waves share a core.
  bool strains = false;
};
// The worst of all GPUs that stand for this one; nothing where nobody compiled it for any.
std::optional<TileFigures> compiled_tile(TileKernel kernel, const Config& config, std::uint32_t dim,
                                         const DeviceProfile& profile);

}  // namespace tessera::operations::attention
