// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "operations/cells_core/problem.hpp"

namespace tessera::operations::cells {

// Errors are propagated through the definition as independent (estimate.hpp); a bound is eight
// standard deviations and the rounding to storage. Ways that round factors round h to the storage
// type before it is multiplied with weight_hh. Where all would take more than `max_flops`,
// some batch entries are looked at, and forward perhaps only their first steps.
std::vector<Expectation> expect_cells(const Problem& problem, std::span<HostTensor> tensors,
                                      const Arithmetic& arithmetic, double max_flops);

}  // namespace tessera::operations::cells
