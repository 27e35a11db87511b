// SPDX-License-Identifier: Apache-2.0
// Passes that ways share: what surrounds the kernel that multiplies.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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

// Bindings of a kernel, with what MATMUL_FINISH_PARAMETERS or MATMUL_BINDING stand for behind them.
std::vector<std::size_t> with_finish(std::vector<std::size_t> bindings, const Stage& stage);

// matmul/core/combine after a kernel that leaves the sums of `splits` shares in scratch, and in
// place of a product that has no terms.
Pass combine_pass(const Stage& stage, const Splits& splits, std::uint64_t own_floats = 0);

// Scratch of a way with matrix units: `own_floats` of its own behind those of the stages, then the
// sums of shares.
std::uint64_t own_start(const Problem& problem);
std::uint64_t partial_start(const Problem& problem, std::uint64_t own_floats);

// What matrix units multiply: everything but sums of rows and addends; nothing where a product has
// no terms.
bool multiplies(const Stage& stage);
std::optional<Product> product_with_terms(const Problem& problem, const Stage& stage);
// Bytes, with sums_passes() for the gradient of a bias.
std::uint64_t scratch_with_sums(const Problem& problem, const Config& config, const Splits& splits,
                                std::uint64_t own_floats);

// Refuses sums of shares that scratch does not hold.
Refusal rejects_sums(const Problem& problem, const Config& config, const Splits& splits,
                     std::uint64_t own_floats);

// matmul/core/sums and what combines its shares, in place of a product with ones. The
// variant has the constant B_TYPE of sums.def.
std::vector<Pass> sums_passes(const Stage& stage, std::uint64_t own_floats);
std::uint32_t splits_of_sums(const Product& product);
// matmul/core/ones, before all other stages: only a backward call has it.
Pass ones_pass();

}  // namespace tessera::operations::matmul
