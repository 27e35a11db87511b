// SPDX-License-Identifier: Apache-2.0
// Calls as products of blocks: the output and both gradients are one form, with operands in other
// places.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operations/sparse_core/args.h"
#include "operations/sparse_core/problem.hpp"

namespace tessera::operations::matmul {

struct SparseStage {
  enum class Step : std::uint8_t { kForward, kGradDense, kGradValues };
  std::string name{};
  Step step = Step::kForward;
  std::size_t a = kNoOperand, b = kNoOperand, result = kNoOperand;  // slots
};

std::vector<SparseStage> sparse_stages(const SparseSlots& slots);

// Results of m x n elements, each the sum of its blocks' products of k terms.
struct SparseProduct {
  std::int64_t results = 0, m = 0, n = 0, k = 0;
  DType a = DType::kF32, b = DType::kF32;
  abi::GroupedArgs args{};
  abi::SparseListArgs list{};
  bool is_empty() const { return results == 0 || m == 0 || n == 0; }
};

// Nothing where the call does not ask for it.
std::optional<SparseProduct> sparse_product(const Problem& problem, const SparseStage& stage);

std::uint64_t sparse_scratch(const Problem& problem);  // bytes of the list of any stage
// Passes of a way: before each product, which `product_of` makes, comes the list of its blocks.
std::vector<Pass> sparse_passes(const SparseSlots& slots, Pass (*product_of)(const SparseStage&));
std::vector<Define> sparse_constants(const Problem& problem, const SparseStage& stage);
Refusal rejects_sparse(const Problem& problem, const DeviceProfile& profile);

}  // namespace tessera::operations::matmul
