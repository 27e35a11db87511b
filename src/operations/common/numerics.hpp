// SPDX-License-Identifier: Apache-2.0
// Units that bounds of errors are made of.
#pragma once

#include <cmath>

#include "base/tensors/rounding.hpp"
#include "tessera/dtype.hpp"

namespace tessera::operations {

// The smallest number that every device keeps, and so what may be lost near 0: the spacing of
// half's smallest numbers, or all of float's that are not normal. Of 8 bits half the spacing, since
// their conversions are exact to the last bit.
inline double smallest_number(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 0x1p-24;
    case DType::kE4M3FN:
      return 0x1p-10;
    case DType::kE5M2:
      return 0x1p-17;
    case DType::kI8:
    case DType::kI4:
      return 0.5;
    default:
      return 0x1p-126;
  }
}

// The largest finite one of a type of 16 or 32 bits.
inline double largest_number(DType dtype) {
  return dtype == DType::kF16 ? 65504 : dtype == DType::kBF16 ? 0x1.FEp127 : 0x1.FFFFFEp127;
}

// A sum of n products in float, in any order, relative to the sum of their magnitudes: 8 sqrt(n)
// units if roundings are independent (Higham and Mary, SIAM J. Sci. Comput. 41(5), 2019), and a few
// for what happens around it.
inline double sum_error(double n) { return kUnitF32 * (8 * std::sqrt(n) + 8); }

}  // namespace tessera::operations
