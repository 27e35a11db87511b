// SPDX-License-Identifier: Apache-2.0
#include "operations/matmul_core/matrix_units.hpp"

#include <algorithm>
#include <utility>

#include "base/tensors/checked.hpp"
#include "operations/common/launch.hpp"
#include "operations/matmul_core/arguments.hpp"
#include "operations/matmul_core/launch.hpp"

namespace tessera::operations::matmul {

std::uint64_t block_tiles(const Product& product, const Config& config) {
  return std::uint64_t{ceil_div(product.m, config.at("BLOCK_M"))} *
         ceil_div(product.n, config.at("BLOCK_N")) * static_cast<std::uint64_t>(product.batches());
}

std::uint32_t block_splits(const Product& product, const Config& config) {
  constexpr std::int64_t kLeastTerms = 256;  // of a share
  return filling_splits(product, block_tiles(product, config), config.at("FILL"), kLeastTerms);
}

std::vector<Product> multiplied(const Problem& problem, bool rounds) {
  std::vector<Product> products;
  for (const Stage& stage : stages(problem.as<MatmulProblem>().slots, rounds)) {
    if (!multiplies(stage)) continue;
    if (auto product = product_with_terms(problem, stage)) products.push_back(std::move(*product));
  }
  return products;
}

std::int64_t product_rows(const MatmulProblem& call) {
  std::int64_t rows = call.m;
  for (const std::int64_t extent : call.batch) rows = saturating_mul(rows, extent);
  return call.slots.backward() ? std::max(rows, call.k) : rows;
}

bool fills_matrix_unit(const MatmulProblem& call) {
  constexpr std::int64_t kLeastRows = 9, kLeastColumns = 32;
  return product_rows(call) >= kLeastRows && call.columns >= kLeastColumns;
}

std::vector<Define> line_constants(const Problem& problem, const Stage& stage,
                                   std::int64_t vector) {
  const auto product = product_with_terms(problem, stage);
  const Lines a = product ? lines_of(*product, kA) : Lines{};
  const Lines b = product ? lines_of(*product, kB) : Lines{};
  const bool aligned = a.aligned && b.aligned && a.length % vector == 0 && b.length % vector == 0;
  return {{"A_BY_TERMS", a.by_terms ? 1U : 0U},
          {"B_BY_TERMS", b.by_terms ? 1U : 0U},
          {"ALIGNED", aligned ? 1U : 0U}};
}

Pass block_pass(const Stage& stage) {
  Pass pass;
  pass.name = stage.name;
  pass.bindings = with_finish({stage.slots[kA], stage.slots[kB], kScratch}, stage);
  pass.axes = dtype_axes;
  pass.args = [stage](const Problem& problem, const Config& config) {
    const auto product = product_with_terms(problem, stage);
    if (!product) return argument_bytes(abi::MatmulArgs{});
    abi::MatmulArgs args = arguments_of(*product);
    args.splits = block_splits(*product, config);
    args.partial = static_cast<abi::u32>(partial_start(problem, 0));
    return argument_bytes(args);
  };
  return pass;
}

Refusal rejects_blocks(const Problem& problem, const Config& config) {
  for (const Product& product : multiplied(problem)) {
    for (const Role role : {kA, kB}) {
      if (product.views[role].dtype != problem.dtype || !lines_of(product, role).exist)
        return "takes operands of one type that are contiguous along an axis";
    }
    if (block_tiles(product, config) * block_splits(product, config) >= std::uint64_t{1} << 31)
      return "counts tiles to 2^31";
  }
  return std::nullopt;
}

}  // namespace tessera::operations::matmul
