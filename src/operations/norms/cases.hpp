// SPDX-License-Identifier: Apache-2.0
// The calls that tests, benchmarks and the tuner make up for the norms.
#pragma once

#include <vector>

#include "operations/norms/problem.hpp"

namespace tessera::operations::norms {

std::vector<Case> conformance_cases(bool backward, DType dtype);
std::vector<Case> edge_cases(bool backward, DType dtype, const Config& config);
std::vector<Case> benchmark_cases(bool backward, DType dtype);

// Of forward calls whose output is quantised.
std::vector<Case> quantised_cases(const StorageTypes& types);
std::vector<Case> quantised_edge_cases(const StorageTypes& types, const Config& config);
std::vector<Case> quantised_benchmarks(const StorageTypes& types);

// Writes the inputs of a case. Kinds of data: "normal"; "shifted", a mean of 1000 and a deviation
// of 1; "constant", equal elements in a row; "large", near half's largest number; "tiny", whose
// squares are below the smallest float; "wild", a NaN and infinities in the second and third row.
void fill_norm(const Problem& problem, const Case& shape, std::span<HostTensor> tensors);

}  // namespace tessera::operations::norms
