// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/tile/backward_geometry.hpp"

#include <algorithm>

#include "operations/attention_core/tile/backward.h"

namespace tessera::operations::attention {
namespace {

struct Half {
  bool valid = false;
  std::uint32_t local_bytes = 0, registers = 0;
  kernel::Effort effort{};
};

// backward.h's macros read the names of the parameters and locals here.
Half geometry(const Config& config, std::uint32_t HEAD_DIM, std::uint32_t VALUE_DIM,
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
  const double rows = ITEM_ROWS, steps = ATTN_ITEM_STEPS, dims = HEAD_DIM + VALUE_DIM;
  // Sums over the rows of a step: dk and dv, or dq.
  const double sums = 4 * (ATTN_ITEM_HEADS + (owns_keys ? ATTN_ITEM_VALUES : 0));
  const double turns = owns_keys ? 2 : 1, summed = HEAD_DIM + (owns_keys ? VALUE_DIM : 0);
  const std::uint32_t unused = owns_keys ? 0 : 4 * ITEM_ROWS * ATTN_ITEM_VALUES;
  return {.valid = true,
          .local_bytes = ATTN_TILE_BACKWARD_LOCAL_BYTES,
          .registers = ATTN_TILE_BACKWARD_REGISTERS,
          .effort = {
              .items = WG_X,
              .registers = ATTN_TILE_BACKWARD_REGISTERS - unused,
              .local_bytes = ATTN_TILE_BACKWARD_LOCAL_BYTES,
              .products = rows * steps * dims + rows * sums * BLOCK_STEP,
              .loads = (rows + steps) * dims / 4 + (turns * rows + sums) * BLOCK_STEP / 4,
              .copies = ((BLOCK_OWN + BLOCK_STEP) * dims + BLOCK_STEP * summed) / (4.0 * WG_X),
              .others = 4 * rows * steps,
              .steps = ATTN_HEAD_SLICES + ATTN_VALUE_SLICES + turns * (BLOCK_STEP / SLICE_STEP)}};
}

}  // namespace

TileBackwardGeometry tile_backward_geometry(const Config& config, std::uint32_t head_dim,
                                            std::uint32_t value_dim) {
  const Half keys = geometry(config, head_dim, value_dim, true);
  const Half queries = geometry(config, head_dim, value_dim, false);
  if (!keys.valid || !queries.valid) return {};
  // The queries kernel has one sum fewer than ATTN_TILE_BACKWARD_REGISTERS counts, so the keys
  // kernel leads.
  return {.valid = true,
          .local_bytes = std::max(keys.local_bytes, queries.local_bytes),
          .registers = keys.registers,
          .keys = keys.effort,
          .queries = queries.effort};
}

}  // namespace tessera::operations::attention
