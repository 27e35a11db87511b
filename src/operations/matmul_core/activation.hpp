// SPDX-License-Identifier: Apache-2.0
// Activations in double precision, and how far from them the float arithmetic of
// core/activation.h may end.
#pragma once

#include "abi/shared.h"

namespace tessera::operations::matmul {

struct Activated {
  double value = 0, slope = 1;
};
Activated activated(abi::u32 kind, double x);  // MATMUL_NONE ... of core/args.h

// The steepest slope of an activation, and the largest change of a slope: those of gelu.
constexpr double kSteepestActivation = 1.13, kActivationBend = 1;

// Of the value and of the slope, beside what x brings with it.
double activation_error(abi::u32 kind, double x, double value);
double slope_error(abi::u32 kind, double x);

}  // namespace tessera::operations::matmul
