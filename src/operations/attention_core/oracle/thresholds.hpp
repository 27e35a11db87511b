// SPDX-License-Identifier: Apache-2.0
// How much error attention may have: the one table of it. Raising a number asks for a run of
// tests/operations/attention/mutants_test.cpp that still kills every mutant.
#pragma once

#include "operations/common/numerics.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::attention {

// Roundings of float, in units of kUnitF32 times magnitude times growth. Simulated correct kernels
// needed at most 3.3 forward and backward.
inline constexpr double kRoundings = 8;
// Of log_sum_exp, weights and gradients. OpenCL C 1.2, section 7.4, has exp within 3 ulp and
// correct kernels needed 3.3; Vulkan's SPIR-V environment allows 3 + 2 |x|, and an exp that is off
// by all of it in one direction needed 9.7.
inline constexpr double kExpRoundings = 8;
inline constexpr double kVulkanExpRoundings = 16;
// Of a score, by its whole magnitude: where bias or slope join the product, in base 2, and that of
// what it is compared with. Each has a mean square of at most a third of its largest.
inline constexpr double kScoreRoundings = 3;
// Added to magnitude and root of length in the growth: the roundings that every row has.
inline constexpr double kLeastGrowth = 8;
// Root mean square of the errors over that of rounding the exact result, 16-bit storage. AOTriton
// (docs/attention-kernel-numerical-error-lessons) measured 0.7 to 1.02 for correct kernels.
inline constexpr double kRmsFactor = 1.5;
inline constexpr double kQueryGradientRmsFactor = 2;
// Of unit times the root mean square of the values: below, rounding costs next to nothing, as for
// constant values, and the bounds of the elements decide.
inline constexpr double kLeastFloor = 0.01;
inline constexpr double kFewestForRms = 64;  // values: the mean of fewer says little
// Below, float weights may be flushed to 0: each of them counts for that much.
inline constexpr double kSmallestWeight = 0x1p-126;

// A sum of products rounds once a term at most, whatever its order and whatever the signs (Higham,
// Accuracy and Stability of Numerical Algorithms, 3.1). Where magnitudes count for kRoundings, that
// of a sum counts for so much. Of equal terms added one after the other float needs a quarter of
// it.
inline double sum_growth(std::int64_t terms) { return static_cast<double>(terms) / kRoundings; }

inline double exp_roundings(Backend backend) {
  return backend == Backend::kVulkan ? kVulkanExpRoundings : kExpRoundings;
}

// Expectation::rms_bound of values that a kernel rounds to `dtype` once: `factor` times what that
// costs, and one of the roundings of float that their bounds allow.
double rms_bound(DType dtype, const Expectation& expected, double factor);

}  // namespace tessera::operations::attention
