// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operations/pooling_core/problem.hpp"

namespace tessera::operations::pooling {

// A call by its sizes, from which the cases of all four operations are made.
struct MeanPoolingShape {
  std::int64_t batch = 1, tokens = 1;
  std::int64_t heads = 0;  // 0 = no axis of heads
  std::int64_t dim = 8;
  Pool pool = Pool::kChunks;
  std::int64_t sequences = 0;  // packed
  std::int64_t chunk = 32;     // of the chunk operations
  std::int64_t rows = 0;       // of a packed y in chunks
  std::int64_t gap =
      -1;  // not negative: views with unusual strides, and this many elements behind each dim
};

class MeanPoolingCases {
 public:
  MeanPoolingCases(bool chunked, bool backward) : chunked_(chunked), backward_(backward) {}

  std::vector<Case> conformance(DType dtype) const;
  std::vector<Case> edges(DType dtype, const Config& config) const;
  std::vector<Case> benchmarks(DType dtype) const;

 private:
  Case make(std::string name, std::string why, DType dtype, const MeanPoolingShape& shape,
            std::string data = "normal") const;
  void add_sequence_cases(std::vector<Case>& table, DType dtype) const;
  void add_chunk_cases(std::vector<Case>& table, DType dtype) const;

  bool chunked_, backward_;
};

// Writes the inputs of a case; the kinds of data are listed at its definition.
void fill_mean_pooling(const Problem& problem, const Case& shape, std::span<HostTensor> tensors);

}  // namespace tessera::operations::pooling
