// SPDX-License-Identifier: Apache-2.0
// Units that bounds of errors are made of.
#pragma once

#include "tessera/dtype.hpp"

namespace tessera::operations {

inline constexpr double kUnitF32 = 0x1p-24;

// A unit of rounding of a storage type.
inline double storage_unit(DType dtype) {
  return dtype == DType::kF16 ? 0x1p-11 : dtype == DType::kBF16 ? 0x1p-8 : kUnitF32;
}

// The smallest number that every device keeps, and so what may be lost near 0: the spacing of
// half's smallest numbers, or all of float's that are not normal.
inline double smallest_number(DType dtype) { return dtype == DType::kF16 ? 0x1p-24 : 0x1p-126; }

}  // namespace tessera::operations
