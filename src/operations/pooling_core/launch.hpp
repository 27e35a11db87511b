// SPDX-License-Identifier: Apache-2.0
// What the kernels of mean pooling are launched with.
#pragma once

#include <cstdint>

#include "operations/pooling_core/args.h"
#include "operations/pooling_core/problem.hpp"

namespace tessera::operations::pooling {

// The features of a token as the kernels see them: heads that lie one behind the other are one.
struct Features {
  std::int64_t heads = 1, dim = 1;
  std::int64_t columns() const { return heads * ((dim + 3) / 4); }  // of four features of one head
};
Features features_of(const Problem& problem);

// Whether every column of four features starts at a multiple of four elements, in x and y.
bool is_aligned(const Problem& problem);

// Scratch memory: what mean_prepare finds, then the splits' partial sums, then their counts.
struct MeanPoolingScratch {
  std::uint64_t prepared = 0;        // ints
  std::uint64_t partial_sums = 0;    // where they begin, in vectors of 4 floats
  std::uint64_t partial_counts = 0;  // where they begin, in ints
  std::uint64_t bytes = 0;
};
MeanPoolingScratch scratch_of(const Problem& problem, std::uint32_t splits);

abi::MeanPoolingArgs arguments(const Problem& problem, std::uint32_t splits);

}  // namespace tessera::operations::pooling
