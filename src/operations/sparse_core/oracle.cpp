// SPDX-License-Identifier: Apache-2.0
// The definition of sparse products and their gradients, block by block, and how far from it float
// arithmetic may end.
#include <algorithm>
#include <cmath>

#include "operations/common/numerics.hpp"
#include "operations/sparse_core/args.h"
#include "operations/sparse_core/problem.hpp"

namespace tessera::operations::matmul {
namespace {

// Sums with their magnitudes and how many terms they have, as matrices of the operand's shape.
struct Sums {
  std::vector<double> values{}, magnitudes{}, terms{};
  explicit Sums(std::int64_t count)
      : values(static_cast<std::size_t>(count)), magnitudes(values.size()), terms(values.size()) {}
  void add(std::int64_t at, double product) {
    const auto i = static_cast<std::size_t>(at);
    values[i] += product;
    magnitudes[i] += std::fabs(product);
    terms[i] += 1;
  }
};

struct StoredBlock {
  std::int64_t number = 0, k = 0, n = 0;  // of its first element
};

// Those that count: inside, and not left out by the mask.
std::vector<StoredBlock> stored_blocks(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<SparseProblem>();
  const std::vector<double> indices = tensors[call.slots.indices].read();
  std::vector<double> mask;
  if (problem.has(call.slots.mask)) mask = tensors[call.slots.mask].read();
  std::vector<StoredBlock> blocks;
  for (std::int64_t e = 0; e < call.blocks; ++e) {
    const auto row = static_cast<std::int64_t>(indices[static_cast<std::size_t>(2 * e)]);
    const auto column = static_cast<std::int64_t>(indices[static_cast<std::size_t>(2 * e + 1)]);
    const std::int64_t k = call.on_left ? column : row, n = call.on_left ? row : column;
    if (k < 0 || k >= call.blocks_k() || n < 0 || n >= call.blocks_n()) continue;
    const std::int64_t columns = call.on_left ? call.blocks_k() : call.blocks_n();
    if (!mask.empty() && mask[static_cast<std::size_t>(row * columns + column)] == 0) continue;
    blocks.push_back({.number = e, .k = k * call.block_k, .n = n * call.block_n});
  }
  return blocks;
}

}  // namespace

// What an output must be, before it is rounded to its storage type.
Expectation expect_sparse_slot(const Problem& problem, std::span<HostTensor> tensors,
                               std::size_t slot) {
  const auto& call = problem.as<SparseProblem>();
  const SparseSlots& slots = call.slots;
  const bool left = call.on_left;
  const auto read = [&](std::size_t from) {
    return problem.has(from) ? tensors[from].read() : std::vector<double>{};
  };
  const std::vector<double> dense = read(slots.dense), values = read(slots.values);
  const std::vector<double> gradient = read(slots.grad_output);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const auto dense_at = [&](std::int64_t m, std::int64_t k) {
    return left ? k * call.m + m : m * call.k + k;
  };
  const auto output_at = [&](std::int64_t m, std::int64_t n) {
    return left ? n * call.m + m : m * call.n + n;
  };
  const auto value_at = [&](std::int64_t e, std::int64_t k, std::int64_t n) {
    return e * call.block_k * call.block_n + (left ? n * call.block_k + k : k * call.block_n + n);
  };
  Sums sums(problem.spec(slot).elements());
  for (const StoredBlock& block : stored_blocks(problem, tensors)) {
    for (std::int64_t k = 0; k < call.block_k; ++k) {
      for (std::int64_t n = 0; n < call.block_n; ++n) {
        const std::int64_t value = value_at(block.number, k, n);
        for (std::int64_t m = 0; m < call.m; ++m) {
          const std::int64_t of_dense = dense_at(m, block.k + k);
          const std::int64_t of_output = output_at(m, block.n + n);
          if (slot == slots.output)
            sums.add(of_output, dense[at(of_dense)] * values[at(value)]);
          else if (slot == slots.grad_dense)
            sums.add(of_dense, gradient[at(of_output)] * values[at(value)]);
          else
            sums.add(value, dense[at(of_dense)] * gradient[at(of_output)]);
        }
      }
    }
  }
  Expectation to{.slot = slot, .elements = {}, .values = std::move(sums.values)};
  for (std::size_t i = 0; i < to.values.size(); ++i)
    to.bounds.push_back(sum_error(sums.terms[i]) * sums.magnitudes[i] +
                        smallest_number(DType::kF32));
  return to;
}

void reference_sparse(const Problem& problem, std::span<HostTensor> tensors) {
  const SparseSlots& slots = problem.as<SparseProblem>().slots;
  for (const std::size_t slot : {slots.output, slots.grad_dense, slots.grad_values}) {
    if (problem.has(slot)) tensors[slot].write(expect_sparse_slot(problem, tensors, slot).values);
  }
}

std::vector<Raised> sparse_raises(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<SparseProblem>();
  const std::vector<double> indices = tensors[call.slots.indices].read();
  const std::int64_t rows = call.on_left ? call.blocks_n() : call.blocks_k();
  const std::int64_t columns = call.on_left ? call.blocks_k() : call.blocks_n();
  std::vector<Raised> raised;
  for (std::size_t e = 0; 2 * e < indices.size(); ++e) {
    const auto is_outside = [&](std::size_t side, std::int64_t count) {
      const double index = indices[2 * e + side];
      return index < 0 || index >= static_cast<double>(count);
    };
    const bool row = is_outside(0, rows);
    if (row || is_outside(1, columns))
      raised.push_back(
          {.error = SPARSE_OUTSIDE, .index = static_cast<std::uint32_t>(2 * e + (row ? 0 : 1))});
  }
  return raised;
}

}  // namespace tessera::operations::matmul
