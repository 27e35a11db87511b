// SPDX-License-Identifier: Apache-2.0
// Which operands of a product CPUs pack, and where: rows of a and panels of b, as floats.
#pragma once

#include <array>
#include <cstdint>

#include "operations/matmul_core/cpu/pack_args.h"
#include "operations/matmul_core/product.hpp"

namespace tessera::operations::matmul {

struct Packing {
  bool a = false, b = false;
  abi::MatmulPackArgs a_args{}, b_args{};
  std::uint64_t a_groups = 0, b_groups = 0;
  std::uint64_t floats = 0;  // of both
  Product product{};         // of what the kernel that multiplies reads
};

// `width`: floats of a vector; `scratch`: where packed matrices begin.
Packing packing_of(const Product& product, std::uint32_t width, std::uint64_t scratch);

}  // namespace tessera::operations::matmul
