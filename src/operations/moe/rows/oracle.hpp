// SPDX-License-Identifier: Apache-2.0
// The definition of dispatch and combine in double precision, and how far from it float arithmetic
// may end.
#pragma once

#include <span>
#include <vector>

#include "operations/moe/rows.hpp"

namespace tessera::operations::moe {

struct BoundedRows {
  std::vector<double> values{}, bounds{};
};
struct MovedRows {
  BoundedRows rows{};          // kTo, or kGradRows backward
  BoundedRows grad_weights{};  // backward
};
MovedRows moved_rows(const Problem& problem, std::span<const HostTensor> tensors);

}  // namespace tessera::operations::moe
