// SPDX-License-Identifier: Apache-2.0
// The calls that tests, benchmarks and the tuner make up, and what is expected of them.
#pragma once

#include <span>
#include <vector>

#include "operations/recurrence_core/problem.hpp"

namespace tessera::operations::recurrence {

std::vector<Case> conformance_cases(const RecurrenceSlots& slots, DType dtype);
std::vector<Case> edge_cases(const RecurrenceSlots& slots, DType dtype, const Config& config);
std::vector<Case> benchmark_cases(const RecurrenceSlots& slots, DType dtype);

// Writes the inputs of a case; the kinds of data are listed at its definition.
void fill_recurrence(const Problem& problem, const Case& shape, std::span<HostTensor> tensors);

double recurrence_flops(const Problem& problem);
// `rounds`: factors of products may be rounded to the storage type.
std::vector<Expectation> expect_recurrence(const Problem& problem, std::span<HostTensor> tensors,
                                           bool rounds, double max_flops);

}  // namespace tessera::operations::recurrence
