// SPDX-License-Identifier: Apache-2.0
// Codes of caches: what stands in place of floats, beside scales.
#pragma once

#include "tessera/dtype.hpp"

namespace tessera::operations {

inline bool is_code(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kI4 || dtype == DType::kE4M3FN ||
         dtype == DType::kE5M2;
}

// Scales are the largest magnitude over this; integers are symmetric.
inline double largest_code(DType dtype) {
  switch (dtype) {
    case DType::kI8:
      return 127;
    case DType::kI4:
      return 7;
    case DType::kE4M3FN:
      return 448;
    default:
      return 57344;
  }
}

}  // namespace tessera::operations
