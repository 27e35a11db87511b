// SPDX-License-Identifier: Apache-2.0
#include "operations/common/validate.hpp"

#include <string>
#include <utility>

#include "base/tensors/checked.hpp"
#include "kernel/option_access.hpp"
#include "operations/sparse_core/problem.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::matmul {
namespace {

void require_whole(const Problem& problem, std::int64_t extent, std::int64_t block,
                   const char* axis) {
  require(problem, extent % block == 0,
          "the sparse matrix has " + std::to_string(extent) + " " + axis + ", and its blocks " +
              std::to_string(block) + ", which do not divide them");
}

// The extent of the sparse matrix that no term has.
std::int64_t free_extent(const Problem& problem, const SparseProblem& call) {
  const SparseSlots& slots = call.slots;
  if (slots.backward()) {
    const Shape& gradient = problem.spec(slots.grad_output).shape;
    require(problem, gradient.size() == 2,
            operand_text(problem, slots.grad_output) + " must be [m, n]");
    return gradient[call.on_left ? 0 : 1];
  }
  if (const auto size = integer_option(problem, "size", 0)) return *size;
  require(problem, problem.has(slots.mask), "needs size where there is no block_mask");
  const Shape& mask = problem.spec(slots.mask).shape;
  require(problem, mask.size() == 2,
          operand_text(problem, slots.mask) + " must be [rows, columns] of blocks");
  return saturating_mul(mask[call.on_left ? 0 : 1], call.block_n);
}

void read_sparse(const Problem& problem, SparseProblem& call) {
  const SparseSlots& slots = call.slots;
  const Shape &dense = problem.spec(slots.dense).shape, &values = problem.spec(slots.values).shape;
  require(problem, dense.size() == 2, operand_text(problem, slots.dense) + " must be [m, k]");
  require(problem, values.size() == 1 || values.size() == 3,
          operand_text(problem, slots.values) + " must be [values], or [blocks, rows, columns]");
  call.on_left = kernel::choice_option(problem, "side", {"right", "left"}) == 1;
  call.m = dense[call.on_left ? 1 : 0];
  call.k = dense[call.on_left ? 0 : 1];
  call.blocks = values[0];
  if (values.size() == 3) {
    require(problem, values[1] > 0 && values[2] > 0,
            operand_text(problem, slots.values) + " has blocks without elements");
    call.block_k = values[call.on_left ? 2 : 1];
    call.block_n = values[call.on_left ? 1 : 2];
  }
  call.n = free_extent(problem, call);
  require_whole(problem, call.k, call.block_k, call.on_left ? "columns" : "rows");
  require_whole(problem, call.n, call.block_n, call.on_left ? "rows" : "columns");
  require_shape(problem, slots.indices, {call.blocks, 2});
  if (problem.has(slots.mask)) {
    Shape mask{call.blocks_k(), call.blocks_n()};
    if (call.on_left) std::swap(mask[0], mask[1]);
    require_shape(problem, slots.mask, mask);
  }
}

}  // namespace

SparseSlots sparse_slots() { return {.output = 4}; }
SparseSlots sparse_backward_slots() {
  return {.grad_output = 4, .grad_dense = 5, .grad_values = 6};
}

void validate_sparse(Problem& problem, const SparseSlots& slots) {
  SparseProblem call{.slots = slots};
  problem.dtype = problem.spec(slots.dense).dtype;
  read_sparse(problem, call);
  Shape output{call.m, call.n};
  if (call.on_left) std::swap(output[0], output[1]);
  if (slots.backward()) {
    call.output = problem.spec(slots.grad_output).dtype;
    require_shape(problem, slots.grad_output, output);
    const auto infer = [&](std::size_t gradient, std::size_t of) {
      if (problem.requested[gradient])
        problem.infer_output(gradient, problem.spec(of).dtype, problem.spec(of).shape);
    };
    infer(slots.grad_dense, slots.dense);
    infer(slots.grad_values, slots.values);
  } else {
    call.output = problem.dtype;
    if (!std::holds_alternative<std::monostate>(problem.option("output_dtype"))) {
      constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
      call.output = kTypes[kernel::choice_option(problem, "output_dtype", {"f32", "f16", "bf16"})];
    }
    problem.infer_output(slots.output, call.output, output);
  }
  problem.key = "dense=" + std::string(to_string(problem.dtype)) +
                ";values=" + std::string(to_string(problem.spec(slots.values).dtype)) +
                ";out=" + std::string(to_string(call.output)) + ";m=" + bucket(call.m) +
                ";k=" + bucket(call.k) + ";n=" + bucket(call.n) + ";blocks=" + bucket(call.blocks) +
                ";block=" + bucket(call.block_k) + "x" + bucket(call.block_n) +
                ";left=" + (call.on_left ? "1" : "0");
  problem.set_details(std::move(call));
}

}  // namespace tessera::operations::matmul
