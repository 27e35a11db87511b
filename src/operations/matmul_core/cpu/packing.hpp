// SPDX-License-Identifier: Apache-2.0
// Which operands of a product CPUs pack, and where: rows of a and panels of b, as floats or words.
#pragma once

#include <array>
#include <cstdint>

#include "operations/matmul_core/cpu/pack_args.h"
#include "operations/matmul_core/product.hpp"

namespace tessera::operations::matmul {

// Words of several terms that processors multiply at once, as DOT of lib/cpu/words has them.
enum class Dots : std::uint32_t { kNone, kBf16, kI8 };

// At most eight rows, and columns of b that are contiguous: dots of those as they lie.
bool has_few_rows(const Product& product);

struct Packing {
  bool a = false, b = false;
  bool few_rows = false;
  abi::MatmulPackArgs a_args{}, b_args{};
  std::uint64_t a_groups = 0, b_groups = 0;
  std::uint64_t floats = 0;  // of both
  Product product{};         // of what the kernel that multiplies reads
};

// `width`: floats of a vector; `scratch`: where packed matrices begin.
Packing packing_of(const Product& product, std::uint32_t width, std::uint64_t scratch, Dots dots);

}  // namespace tessera::operations::matmul
