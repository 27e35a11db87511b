// SPDX-License-Identifier: Apache-2.0
// Units of rounding.
#pragma once

#include "tessera/dtype.hpp"

namespace tessera {

inline constexpr double kUnitF32 = 0x1p-24;

// Of a storage type; integers have none.
inline double storage_unit(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return kUnitF32;
    case DType::kF16:
      return 0x1p-11;
    case DType::kBF16:
      return 0x1p-8;
    case DType::kE4M3FN:
      return 0x1p-4;
    case DType::kE5M2:
      return 0x1p-3;
    default:
      return 0;
  }
}

}  // namespace tessera
