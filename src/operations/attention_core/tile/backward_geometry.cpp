// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/tile/backward_geometry.hpp"

#include <algorithm>

#include "operations/attention_core/tile/backward.h"

namespace tessera::operations::attention {
namespace {

// backward.h's macros read the names of the parameters and locals here.
TileBackwardGeometry geometry(const Config& config, std::uint32_t HEAD_DIM, std::uint32_t VALUE_DIM,
                              bool owns_keys) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/attention_core/tile/backward.def"
  const std::uint32_t BLOCK_OWN = owns_keys ? BLOCK_K : BLOCK_Q;
  const std::uint32_t BLOCK_STEP = owns_keys ? BLOCK_Q : BLOCK_K;
  constexpr std::uint32_t kMost = 4096;  // keeps every product below in 32 bits
  for (const std::uint32_t value : {WG_X, BLOCK_OWN, BLOCK_STEP, ITEM_ROWS, SLICE_D, SLICE_STEP}) {
    if (value == 0 || value > kMost) return {};
  }
  if (BLOCK_OWN < ITEM_ROWS || WG_X < ATTN_LANES_OWN || !(ATTN_TILE_BACKWARD_VALID)) return {};
  return {.valid = true,
          .local_bytes = ATTN_TILE_BACKWARD_LOCAL_BYTES,
          .registers = ATTN_TILE_BACKWARD_REGISTERS};
}

}  // namespace

TileBackwardGeometry tile_backward_geometry(const Config& config, std::uint32_t head_dim,
                                            std::uint32_t value_dim) {
  const TileBackwardGeometry keys = geometry(config, head_dim, value_dim, true);
  const TileBackwardGeometry queries = geometry(config, head_dim, value_dim, false);
  if (!keys.valid || !queries.valid) return {};
  // The queries kernel has one sum fewer than ATTN_TILE_BACKWARD_REGISTERS counts, so the keys
  // kernel leads.
  return {.valid = true,
          .local_bytes = std::max(keys.local_bytes, queries.local_bytes),
          .registers = keys.registers};
}

}  // namespace tessera::operations::attention
