// SPDX-License-Identifier: Apache-2.0
// Layouts of made-up operands.
#pragma once

#include "tessera/tensor.hpp"

namespace tessera::operations {

// A view whose last axis is contiguous and whose others lie in memory in another order: `outermost`
// names them from the outermost one inwards. `gap` unused elements follow each row.
TensorSpec strided_view(DType dtype, const Shape& shape, const Shape& outermost, std::int64_t gap,
                        std::int64_t offset);

}  // namespace tessera::operations
