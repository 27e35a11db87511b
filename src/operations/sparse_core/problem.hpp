// SPDX-License-Identifier: Apache-2.0
// A call of a product with a sparse matrix, or of its gradients, after validation. Products with
// the sparse matrix on the left are those with it on the right, transposed: inside, output [m, n] =
// dense [m, k] sparse [k, n], whichever way operands lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "operations/common/ways.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::matmul {

struct SparseSlots {
  std::size_t dense = 0, values = 1, indices = 2, mask = 3;
  std::size_t output = kNoOperand;  // forward
  std::size_t grad_output = kNoOperand, grad_dense = kNoOperand, grad_values = kNoOperand;
  bool backward() const { return grad_output != kNoOperand; }
};

SparseSlots sparse_slots();
SparseSlots sparse_backward_slots();

// An axis of an operand and its strides: which one is m, k or n depends on the side.
struct SparseProblem {
  SparseSlots slots{};
  bool on_left = false;  // output = sparse dense
  std::int64_t m = 0, k = 0, n = 0;
  std::int64_t block_k = 1, block_n = 1;  // 1 x 1: single values
  std::int64_t blocks = 0;                // that are stored
  DType output = DType::kF32;

  std::int64_t blocks_k() const { return k / block_k; }
  std::int64_t blocks_n() const { return n / block_n; }
};

void validate_sparse(Problem& problem, const SparseSlots& slots);
Operation sparse_record(const std::string& name, const SparseSlots& slots);

void reference_sparse(const Problem& problem, std::span<HostTensor> tensors);
double sparse_flops(const Problem& problem);
// What an output must be, before it is rounded to its storage type: of a sample of rows, or of
// values, where all of them would take more than `max_flops`.
Expectation expect_sparse_slot(const Problem& problem, std::span<HostTensor> tensors,
                               std::size_t slot, double max_flops);
std::vector<Raised> sparse_raises(const Problem& problem, std::span<HostTensor> tensors);
Workload sparse_workload(const SparseSlots& slots);

Way sparse_hopper_way(const SparseSlots& slots);  // of calls forward
Way sparse_elements_way(const SparseSlots& slots);
// By the tiles of grouped_core, which has these ways, too.
Way sparse_tile_way(const SparseSlots& slots);
Way sparse_cpu_way(const SparseSlots& slots);

}  // namespace tessera::operations::matmul
