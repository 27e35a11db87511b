// SPDX-License-Identifier: Apache-2.0
// Passes that ways share: what surrounds the kernel that multiplies.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "operations/matmul_core/product.hpp"

namespace tessera::operations::matmul {

// Work-groups that share the terms of a product; 1 where none do.
using Splits = std::function<std::uint32_t(const Product&, const Config&)>;

// So many that `wanted` work-groups are busy where the product has `tiles`, each with `least` terms
// or more.
std::uint32_t filling_splits(const Product& product, std::uint64_t tiles, std::uint32_t wanted,
                             std::int64_t least);

// Floats of the sums of shares.
std::uint64_t partial_floats(const Product& product, std::uint32_t splits);

// matmul/core/combine after a kernel that leaves the sums of `splits` shares in scratch, and in
// place of a product that has no terms.
Pass combine_pass(const Stage& stage, const Splits& splits);
// matmul/core/ones, before all other stages: only a backward call has it.
Pass ones_pass();

}  // namespace tessera::operations::matmul
