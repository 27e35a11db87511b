// SPDX-License-Identifier: Apache-2.0
#include "operations/common/cases.hpp"

#include <algorithm>
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

}  // namespace tessera::operations
