// SPDX-License-Identifier: Apache-2.0
// A product as kernels take it.
#pragma once

#include <vector>

#include "operations/matmul_core/product.hpp"

namespace tessera::operations::matmul {

// Arguments without what a way adds: splits, partial, packed_….
abi::MatmulArgs arguments_of(const Product& product);

// Operand a or b as lines that are contiguous: terms of a row (or column), or rows (or columns) of
// a term. Aligned: each line of each matrix begins at a multiple of 16 bytes.
struct Lines {
  bool exist = true, by_terms = true, aligned = true;
  std::int64_t length = 0;
};
Lines lines_of(const Product& product, Role role);

// What every way refuses: operands or counts beyond 32 bits, too many axes.
Refusal rejects_products(const Problem& problem, const DeviceProfile& profile);

// The build-time axis STORAGE16 of shaders.
// The constants A_TYPE, B_TYPE and BLOCKS of a stage.
std::vector<Define> type_constants(const Problem& problem, const Stage& stage);

}  // namespace tessera::operations::matmul
