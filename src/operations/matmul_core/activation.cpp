// SPDX-License-Identifier: Apache-2.0
#include "operations/matmul_core/activation.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "operations/common/numerics.hpp"
#include "operations/matmul_core/core/args.h"

namespace tessera::operations::matmul {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

Activated activated(abi::u32 kind, double x) {
  switch (kind) {
    case MATMUL_RELU:
      return std::isnan(x) ? Activated{x, x} : x > 0 ? Activated{x, 1} : Activated{0, 0};
    case MATMUL_GELU: {
      const double below = std::erfc(-x / std::numbers::sqrt2) / 2;
      const double bell = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
      return {x * below, below + (bell == 0 ? 0 : x * bell)};
    }
    case MATMUL_GELU_TANH: {
      const double factor = 2 * std::sqrt(2 / std::numbers::pi);
      const double s = sigmoid(factor * (x + 0.044715 * x * x * x));
      const double change = s * (1 - s);
      return {x * s, s + (change == 0 ? 0 : x * change * factor * (1 + 3 * 0.044715 * x * x))};
    }
    case MATMUL_SILU: {
      const double s = sigmoid(x), change = s * (1 - s);
      return {x * s, s + (change == 0 ? 0 : x * change)};
    }
    default:
      return {x, 1};
  }
}

// An exponential of GLSL has 3 + 2 |x| units, of an argument that has about as many.
double activation_error(abi::u32 kind, double x, double value) {
  if (kind == MATMUL_NONE || kind == MATMUL_RELU) return 0;
  const double far = std::min(std::fabs(x), 100.0);
  const double exponent = kind == MATMUL_SILU ? far : far * (1 + far);
  return kUnitF32 * ((16 + 4 * exponent) * std::fabs(value) + 4 * std::min(std::fabs(x), 8.0)) +
         smallest_number(DType::kF32);
}

double slope_error(abi::u32 kind, double x) {
  if (kind == MATMUL_NONE || kind == MATMUL_RELU) return 0;
  return kUnitF32 * (32 + 8 * std::min(std::fabs(x), 8.0));
}

}  // namespace tessera::operations::matmul
