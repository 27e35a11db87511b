// SPDX-License-Identifier: Apache-2.0
// A line of a table of products, and the call that is made of it.
#pragma once

#include <cstdint>

#include "operations/matmul_core/problem.hpp"

namespace tessera::operations::matmul {

// What a call has beside a and b.
enum Has : unsigned {
  kNothing = 0,
  kHasBias = 1,
  kHasAddend = 2,
  kHasGate = 4,
  kHasResidual = 8,
  kTransposeA = 16,
  kTransposeB = 32,
  kAll = kHasBias | kHasAddend | kHasGate | kHasResidual,
};

// How operands lie in memory.
enum class Layout : std::uint8_t { kContiguous, kGaps, kColumns };

struct MatmulCase {
  const char* name;
  const char* why;
  std::int64_t m = 1, n = 1, k = 1;  // n: columns of the product
  unsigned has = kNothing;
  const char* activation = "none";
  Shape batch_a{}, batch_b{};
  Shape bias{};  // empty = [n]
  const char* data = "normal";
  Layout layout = Layout::kContiguous;
  double alpha = 1, beta = 1;
  const char* b_dtype = "";  // empty = that of a
  const char* output = "";
  Shape scale_a{}, scale_b{};  // of op(a) and op(b); empty = none
  const char* quantise = "";   // output as these codes
};

// Gradients that a call can have are all wanted. Beside operands of 8 bits the others are f32.
Case make_case(const MatmulSlots& slots, DType dtype, const MatmulCase& from);

// Of factors of 8 bits.
std::vector<MatmulCase> eight_bit_table(const MatmulSlots& slots, DType dtype);

// Of forward calls whose output is quantised.
std::vector<MatmulCase> codes_table(const MatmulSlots& slots, DType dtype);

// Beside the edges of Hopper's tiles.
std::vector<MatmulCase> hopper_table(const MatmulSlots& slots, DType dtype, const Config& config);

}  // namespace tessera::operations::matmul
