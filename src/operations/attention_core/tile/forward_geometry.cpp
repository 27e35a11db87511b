// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/tile/forward_geometry.hpp"

#include "operations/attention_core/tile/forward.h"

namespace tessera::operations::attention {

TileGeometry tile_geometry(const Config& config, std::uint32_t head_dim, std::uint32_t value_dim) {
  // forward.h's macros read these locals.
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/attention_core/tile/forward.def"
  const std::uint32_t HEAD_DIM = head_dim;
  const std::uint32_t VALUE_DIM = value_dim;
  constexpr std::uint32_t kMost = 4096;  // keeps every product below in 32 bits
  for (const std::uint32_t value : {WG_X, BLOCK_Q, BLOCK_K, ITEM_ROWS, SLICE_D, SLICE_K}) {
    if (value == 0 || value > kMost) return {};
  }
  if (BLOCK_Q < ITEM_ROWS || WG_X < ATTN_LANES_Q || !(ATTN_TILE_VALID)) return {};
  const double rows = ITEM_ROWS, keys = ATTN_ITEM_KEYS, values = 4 * ATTN_ITEM_VALUES;
  const double copied_rows = BLOCK_K + (KEEP_Q != 0 ? 0 : BLOCK_Q);
  return {.valid = true,
          .local_bytes = ATTN_TILE_LOCAL_BYTES,
          .registers = ATTN_TILE_REGISTERS,
          .effort = {.items = WG_X,
                     .registers = ATTN_TILE_REGISTERS,
                     .local_bytes = ATTN_TILE_LOCAL_BYTES,
                     .products = rows * keys * HEAD_DIM + rows * values * BLOCK_K,
                     .loads = (rows + keys) * HEAD_DIM / 4 + (rows + values) * BLOCK_K / 4,
                     .copies = (copied_rows * HEAD_DIM + BLOCK_K * VALUE_DIM) / (4.0 * WG_X),
                     .others = 4 * rows * keys + rows * values,
                     .steps = 1.0 * ATTN_HEAD_SLICES + BLOCK_K / SLICE_K}};
}

}  // namespace tessera::operations::attention
