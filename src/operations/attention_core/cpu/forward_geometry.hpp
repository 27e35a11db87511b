// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/record.hpp"

namespace tessera::operations::attention {

// What forward.h says about a configuration of the CPU kernels; `bf16_dot`: of cpu_bf16_forward.
struct CpuGeometry {
  bool valid = false;
  std::uint64_t private_bytes = 0;  // of one work-item
  std::uint32_t panel_rows = 0;
};
CpuGeometry cpu_geometry(const Config& config, std::uint32_t head_dim, std::uint32_t value_dim,
                         bool bf16_dot);

}  // namespace tessera::operations::attention
