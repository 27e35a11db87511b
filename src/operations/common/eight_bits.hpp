// SPDX-License-Identifier: Apache-2.0
// Factors of 8 bits and their scales: what matrix products of any family take.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tessera/record.hpp"

namespace tessera::operations {

// i8 and 8-bit floats: operands of forward calls only, which scales may go with.
bool is_eight_bits(DType dtype);

// How a scale lies over its operand.
struct Scaling {
  bool blocks = false;  // of rows of op(a) or columns of op(b); else all of them or each
  bool terms = false;   // blocks of them have scales of their own
};

enum class TermAxis : std::uint8_t { kRows, kColumns };

// Of a scale over an operand as stored, whose terms run along `terms`; `block` of them, or of the
// other axis, share an element.
Scaling read_scale(const Problem& problem, std::size_t slot, std::size_t of, TermAxis terms,
                   std::int64_t block);

// What only some types of factors have: their mates, scales, and how many terms are added up.
void require_factors(const Problem& problem, std::size_t a, std::size_t b,
                     const std::array<std::size_t, 2>& scales, std::int64_t terms);

// What the type of output is where no option says it.
DType output_of_factors(const Problem& problem, std::size_t a,
                        const std::array<std::size_t, 2>& scales);

}  // namespace tessera::operations
