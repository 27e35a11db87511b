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

// Few rows, whose kernels read b as it lies: at most eight of them where its columns are
// contiguous, or at most four where its rows are.
enum class FewRows : std::uint8_t { kNo, kAlongColumns, kAlongRows };
FewRows few_rows(const Product& product);

struct Packing {
  bool a = false, b = false;
  FewRows few_rows = FewRows::kNo;
  abi::MatmulPackArgs a_args{}, b_args{};
  std::uint64_t a_groups = 0, b_groups = 0;
  std::uint64_t floats = 0;  // of both
  Product product{};         // of what the kernel that multiplies reads
};

// `width`: floats of a vector; `scratch`: where packed matrices begin.
Packing packing_of(const Product& product, std::uint32_t width, std::uint64_t scratch, Dots dots);

}  // namespace tessera::operations::matmul
