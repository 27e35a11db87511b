// SPDX-License-Identifier: Apache-2.0
// Factors of a state, and what float arithmetic may be off by in a product with one.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/tensors/rounding.hpp"

namespace tessera::operations::recurrence {

// exp of a log decay, and what float may be off by, relative. The functions of devices are good to
// 3 units in the last place in OpenCL, and to 3 + 2 |x| in Vulkan; x is a sum of terms, each of
// which is rounded. What is below the smallest float may be lost.
inline constexpr double kMostDouble = std::numeric_limits<double>::max();
struct Factor {
  double value = 0, error = 0, lost = 0;
};
inline Factor factor_of(double exponent, double size) {
  Factor factor{.value = std::exp(exponent)};
  // Nothing is left of an empty state, however fast it grows.
  if (std::isfinite(exponent)) factor.value = std::min(factor.value, kMostDouble);
  if (exponent == 0 && size == 0) return factor;
  factor.error = kUnitF32 * (8 + 8 * std::min(size, 256.0));
  factor.lost = std::isfinite(exponent) && factor.value < 0x1p-125 ? 0x1p-125 : 0;
  return factor;
}

// Devices need not keep numbers below the smallest float: of a product or sum of a magnitude of at
// most `size`, min(size, 2^-126) may be lost. Bounds hold this once for each product with a decay,
// for each term that is added to a state, and for each term of an output.
inline double lost_of(double size) { return std::min(size, 0x1p-126); }

}  // namespace tessera::operations::recurrence
