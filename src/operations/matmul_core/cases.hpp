// SPDX-License-Identifier: Apache-2.0
// The calls that tests, benchmarks and the tuner make up for products.
#pragma once

#include <vector>

#include "operations/matmul_core/problem.hpp"

namespace tessera::operations::matmul {

std::vector<Case> conformance_cases(const MatmulSlots& slots, DType dtype);
std::vector<Case> edge_cases(const MatmulSlots& slots, DType dtype, const Config& config);
std::vector<Case> benchmark_cases(const MatmulSlots& slots, DType dtype);

// Writes the inputs of a case. Kinds of data: "normal"; "wild", NaN and infinities in a row of a;
// "blank", which has only NaN where beta of 0 says that nobody reads it; "far", whose sums are far
// from 0 on both sides of an activation; "largest", the ends of i8; "scales", some that are 0, NaN
// and infinite.
void fill_matmul(const Problem& problem, const Case& shape, std::span<HostTensor> tensors);

}  // namespace tessera::operations::matmul
