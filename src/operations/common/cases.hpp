// SPDX-License-Identifier: Apache-2.0
// Layouts and elements of made-up operands.
#pragma once

#include <span>
#include <string_view>

#include "tessera/tensor.hpp"

namespace tessera::operations {

// A view whose last axis is contiguous and whose others lie in memory in another order: `outermost`
// names them from the outermost one inwards. `gap` unused elements follow each row.
TensorSpec strided_view(DType dtype, const Shape& shape, const Shape& outermost, std::int64_t gap,
                        std::int64_t offset);

// Of normal numbers, factors of 8 bits (data "largest": of the largest magnitude of i8) and scales
// (data "scales": one of 0, one NaN, one infinite).
void spread_codes(DType dtype, std::string_view data, std::span<double> values);
void spread_scales(std::string_view data, std::span<double> values);

}  // namespace tessera::operations
