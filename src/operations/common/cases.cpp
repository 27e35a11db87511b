// SPDX-License-Identifier: Apache-2.0
#include "operations/common/cases.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ranges>

namespace tessera::operations {

TensorSpec strided_view(DType dtype, const Shape& shape, const Shape& outermost, std::int64_t gap,
                        std::int64_t offset) {
  TensorSpec spec{
      .dtype = dtype, .shape = shape, .strides = Shape(shape.size(), 1), .offset = offset};
  std::int64_t stride = shape.back() + gap;
  for (const std::int64_t axis : std::views::reverse(outermost)) {
    const auto at = static_cast<std::size_t>(axis);
    spec.strides[at] = stride;
    stride *= std::max<std::int64_t>(shape[at], 1);
  }
  return spec;
}

void spread_codes(DType dtype, std::string_view data, std::span<double> values) {
  constexpr double kSpread = 40, kLargest = 128;  // of i8
  for (double& value : values) {
    if (dtype == DType::kI8) value *= kSpread;
    if (data == "largest") value = value < 1 ? -kLargest : kLargest;
  }
}

void spread_scales(std::string_view data, std::span<double> values) {
  for (double& value : values) value = std::exp2(value - 4);
  if (data != "scales" || values.size() < 4) return;
  values[0] = 0;
  values[1] = std::numeric_limits<double>::quiet_NaN();
  values[3] = std::numeric_limits<double>::infinity();
}

}  // namespace tessera::operations
