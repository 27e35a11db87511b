// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/cpu/forward_geometry.hpp"

#include "operations/attention_core/cpu/forward.h"

namespace tessera::operations::attention {

CpuGeometry cpu_geometry(const Config& config, std::uint32_t head_dim, std::uint32_t value_dim,
                         bool bf16_dot) {
  // forward.h's macros read these locals.
  using Number = std::uint64_t;
#include "kernel/tunable_locals.inc"
#include "operations/attention_core/cpu/forward.def"
  const std::uint64_t HEAD_DIM = head_dim;
  const std::uint64_t VALUE_DIM = value_dim;
  const bool BF16_DOT = bf16_dot;
  constexpr std::uint64_t kMost = 4096;
  for (const std::uint64_t value :
       {VECTOR_WIDTH, BLOCK_Q, BLOCK_K, VECTORS, KEY_ROWS, VALUE_COLUMNS}) {
    if (value == 0 || value > kMost) return {};
  }
  if (!ATTN_CPU_VALID) return {};
  return {.valid = true,
          .private_bytes = ATTN_CPU_PRIVATE_BYTES,
          .panel_rows = static_cast<std::uint32_t>(ATTN_LANES)};
}

}  // namespace tessera::operations::attention
