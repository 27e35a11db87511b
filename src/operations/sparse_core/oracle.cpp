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

// Sums with their magnitudes and how many terms they have.
struct Sums {
  std::vector<double> values{}, magnitudes{}, terms{};
  explicit Sums(std::size_t count) : values(count), magnitudes(count), terms(count) {}
  void add(std::size_t i, double product) {
    values[i] += product;
    magnitudes[i] += std::fabs(product);
    terms[i] += 1;
  }
};

// Of `all` rows, or values, every so many where all of them would take too long: no multiple of
// what blocks have.
std::int64_t distance_of(const Problem& problem, std::int64_t all, double max_flops) {
  const auto count = static_cast<double>(all);
  const double share = max_flops / std::max(sparse_flops(problem), 1.0);
  const double wanted = std::clamp(share * count, std::min(8.0, count), count);
  return wanted < count ? static_cast<std::int64_t>(count / wanted) | 1 : 1;
}

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
                               std::size_t slot, double max_flops) {
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
  const std::int64_t elements = problem.spec(slot).elements();
  const bool of_values = slot == slots.grad_values;
  const std::int64_t all = of_values ? elements : call.m;
  const std::int64_t distance = distance_of(problem, all, max_flops);
  const std::int64_t columns = slot == slots.output ? call.n : call.k;
  const auto element_at = [&](std::int64_t m, std::int64_t column) {
    return slot == slots.output ? output_at(m, column) : dense_at(m, column);
  };
  Expectation to{.slot = slot};
  if (distance > 1) {
    for (std::int64_t i = 0; i < all; i += distance) {
      if (of_values) to.elements.push_back(at(i));
      for (std::int64_t column = 0; column < columns && !of_values; ++column)
        to.elements.push_back(at(element_at(i, column)));
    }
  }
  const auto place_of = [&](std::int64_t m, std::int64_t column) {
    return at(distance > 1 ? m / distance * columns + column : element_at(m, column));
  };
  Sums sums(distance > 1 ? to.elements.size() : at(elements));
  for (const StoredBlock& block : stored_blocks(problem, tensors)) {
    for (std::int64_t k = 0; k < call.block_k; ++k) {
      for (std::int64_t n = 0; n < call.block_n; ++n) {
        const std::int64_t value = value_at(block.number, k, n);
        if (of_values && value % distance != 0) continue;
        for (std::int64_t m = 0; m < call.m; m += of_values ? 1 : distance) {
          const std::size_t of_dense = at(dense_at(m, block.k + k));
          const std::size_t of_output = at(output_at(m, block.n + n));
          if (slot == slots.output)
            sums.add(place_of(m, block.n + n), dense[of_dense] * values[at(value)]);
          else if (slot == slots.grad_dense)
            sums.add(place_of(m, block.k + k), gradient[of_output] * values[at(value)]);
          else
            sums.add(at(value / distance), dense[of_dense] * gradient[of_output]);
        }
      }
    }
  }
  to.values = std::move(sums.values);
  for (std::size_t i = 0; i < to.values.size(); ++i)
    to.bounds.push_back(sum_error(sums.terms[i]) * sums.magnitudes[i] +
                        smallest_number(DType::kF32));
  return to;
}

void reference_sparse(const Problem& problem, std::span<HostTensor> tensors) {
  const SparseSlots& slots = problem.as<SparseProblem>().slots;
  constexpr double kAll = 1e300;
  for (const std::size_t slot : {slots.output, slots.grad_dense, slots.grad_values}) {
    if (problem.has(slot))
      tensors[slot].write(expect_sparse_slot(problem, tensors, slot, kAll).values);
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
