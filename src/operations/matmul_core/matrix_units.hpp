// SPDX-License-Identifier: Apache-2.0
// What ways share whose work-groups multiply tiles of BLOCK_M by BLOCK_N with matrix units.
#pragma once

#include <cstdint>
#include <vector>

#include "operations/matmul_core/problem.hpp"
#include "operations/matmul_core/product.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::matmul {

std::uint64_t block_tiles(const Product& product, const Config& config);
// Shares of the terms, so that tiles fill FILL work-groups.
std::uint32_t block_splits(const Product& product, const Config& config);

// The products of a call that are multiplied, those with terms; `rounds` as stages() has it.
std::vector<Product> multiplied(const Problem& problem, bool rounds = true);

// Rows of all batches of a call, or of the gradient of b, which has one for each term; 2^63 - 1
// where they would wrap.
std::int64_t product_rows(const MatmulProblem& call);
// Whether rows and columns fill the tiles of a matrix unit to a good part.
bool fills_matrix_unit(const MatmulProblem& call);

// The constants A_BY_TERMS, B_BY_TERMS and ALIGNED; aligned lines are whole vectors of `vector`
// elements, where that is more than 1.
std::vector<Define> line_constants(const Problem& problem, const Stage& stage, std::int64_t vector);

// A pass that multiplies: its name, bindings, axes and arguments. The way adds the rest.
Pass block_pass(const Stage& stage);

// Refuses operands that are not all of the problem's dtype and contiguous along an axis, and tiles
// that cannot be counted.
Refusal rejects_blocks(const Problem& problem, const Config& config);

}  // namespace tessera::operations::matmul
