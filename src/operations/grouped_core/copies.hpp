// SPDX-License-Identifier: Apache-2.0
// What Hopper's tensor copies take.
#pragma once

#include <cstdint>

#include "operations/matmul_core/core/args.h"
#include "tessera/dtype.hpp"

namespace tessera::operations::matmul {

// A matrix, or one for each group, that is contiguous along one axis, whatever else lies at
// multiples of 16 bytes.
inline bool tensor_copies_take(const abi::MatmulView& view, DType dtype, std::uint32_t rows,
                               std::uint32_t columns, std::uint32_t groups) {
  const std::uint32_t multiple = 16U / static_cast<std::uint32_t>(size_of(dtype));
  const bool by_columns = view.column == 1;
  if (!by_columns && view.row != 1) return false;
  const std::uint32_t lines = by_columns ? rows : columns,
                      step = by_columns ? view.row : view.column;
  if (lines > 1 && (step % multiple != 0 || step == 0)) return false;
  return view.offset % multiple == 0 && (groups <= 1 || view.batch2 % multiple == 0);
}

}  // namespace tessera::operations::matmul
