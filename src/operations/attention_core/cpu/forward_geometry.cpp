// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/cpu/forward_geometry.hpp"

#include "operations/attention_core/cpu/forward.h"

namespace tessera::operations::attention {

CpuGeometry cpu_geometry(const Config& config, std::uint32_t head_dim, std::uint32_t value_dim,
                         bool bf16_dot) {
  // forward.h's macros read these names.
  const std::uint64_t VECTOR_WIDTH = config.get("VECTOR_WIDTH", 0);
  const std::uint64_t BLOCK_Q = config.get("BLOCK_Q", 0);
  const std::uint64_t BLOCK_K = config.get("BLOCK_K", 0);
  const std::uint64_t VECTORS = config.get("VECTORS", 0);
  const std::uint64_t KEY_ROWS = config.get("KEY_ROWS", 0);
  const std::uint64_t VALUE_COLUMNS = config.get("VALUE_COLUMNS", 0);
  const std::uint64_t HEAD_DIM = head_dim;
  const std::uint64_t VALUE_DIM = value_dim;
  const bool BF16_DOT = bf16_dot;
  constexpr std::uint64_t kMost = 4096;
  for (const std::uint64_t value :
       {VECTOR_WIDTH, BLOCK_Q, BLOCK_K, VECTORS, KEY_ROWS, VALUE_COLUMNS}) {
    if (value == 0 || value > kMost) return {};
  }
  if (!CPU_VALID) return {};
  return {.valid = true,
          .private_bytes = CPU_PRIVATE_BYTES,
          .panel_rows = static_cast<std::uint32_t>(LANES)};
}

}  // namespace tessera::operations::attention
