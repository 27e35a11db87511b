// SPDX-License-Identifier: Apache-2.0
// Numbers that the parts of the model of a kernel share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "operations/attention_core/problem.hpp"

namespace tessera::testing {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kLn2 = 0.693147181F;
inline constexpr std::int64_t kTile = 16;  // keys

inline std::size_t index(std::int64_t n) { return static_cast<std::size_t>(n); }

inline float rounded(DType dtype, float x) {
  if (dtype == DType::kF16) return from_half_bits(to_half_bits(x));
  return dtype == DType::kBF16 ? from_bfloat16_bits(to_bfloat16_bits(x)) : x;
}

// The sizes of [batch, heads, rows, keys] from those of an operand with fewer axes.
inline Shape four_axes(Shape shape) {
  while (shape.size() < 4) shape.insert(shape.begin() + 1, 1);
  return shape;
}

}  // namespace tessera::testing
