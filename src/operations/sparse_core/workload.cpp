// SPDX-License-Identifier: Apache-2.0
// The record's common part, and made-up calls of sparse products.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "base/normal_numbers.hpp"
#include "kernel/repeated.hpp"
#include "operations/common/cases.hpp"
#include "operations/common/numerics.hpp"
#include "operations/sparse_core/problem.hpp"

namespace tessera::operations::matmul {
namespace {

struct SparseCase {
  const char* name;
  const char* why;
  std::int64_t m = 1, k = 1, n = 1;
  std::int64_t block_k = 0, block_n = 0;  // 0: single values
  std::int64_t blocks = 1;
  bool left = false, mask = false;
  std::int64_t gap = 0;
  const char* data = "normal";  // blocks in places of their own
  const char* values = "";      // empty = the dtype of dense
  const char* output = "";
};

std::vector<SparseCase> sparse_cases() {
  return {{.name = "blocks",
           .why = "blocks that divide no tile",
           .m = 37,
           .k = 72,
           .n = 60,
           .block_k = 24,
           .block_n = 20,
           .blocks = 5},
          {.name = "blocks_32",
           .why = "whole vectors",
           .m = 64,
           .k = 128,
           .n = 96,
           .block_k = 32,
           .block_n = 32,
           .blocks = 7},
          {.name = "wide",
           .why = "blocks longer than what a tile takes at a time",
           .m = 20,
           .k = 160,
           .n = 144,
           .block_k = 80,
           .block_n = 72,
           .blocks = 3},
          {.name = "whole_tiles",
           .why = "blocks of matrix units, columns of none among them",
           .m = 268,
           .k = 256,
           .n = 640,
           .block_k = 128,
           .block_n = 128,
           .blocks = 6,
           .mask = true},
          {.name = "whole_tiles_left",
           .why = "the same on the left",
           .m = 200,
           .k = 192,
           .n = 512,
           .block_k = 64,
           .block_n = 256,
           .blocks = 5,
           .left = true},
          {.name = "whole_tiles_often",
           .why = "more tiles than work-groups, and blocks that are stored twice",
           .m = 24,
           .k = 128,
           .n = 17920,
           .block_k = 64,
           .block_n = 128,
           .blocks = 60,
           .gap = 8,
           .data = "hostile"},
          {.name = "whole_tiles_wide",
           .why = "more results than a list of matrix units' blocks sorts",
           .m = 3,
           .k = 64,
           .n = 262400,
           .block_k = 64,
           .block_n = 128,
           .blocks = 40},
          {.name = "left",
           .why = "the sparse matrix on the left",
           .m = 21,
           .k = 48,
           .n = 60,
           .block_k = 16,
           .block_n = 20,
           .blocks = 6,
           .left = true},
          {.name = "values", .why = "single values", .m = 19, .k = 40, .n = 33, .blocks = 100},
          {.name = "values_left",
           .why = "single values on the left",
           .m = 19,
           .k = 40,
           .n = 33,
           .blocks = 100,
           .left = true},
          {.name = "twice",
           .why = "several blocks of one place are added",
           .m = 9,
           .k = 16,
           .n = 12,
           .block_k = 8,
           .block_n = 4,
           .blocks = 40,
           .data = "anywhere"},
          {.name = "one_place",
           .why = "all values in one place",
           .m = 5,
           .k = 8,
           .n = 6,
           .blocks = 300,
           .data = "one"},
          {.name = "masked",
           .why = "blocks that the mask leaves out, which may hold NaN",
           .m = 12,
           .k = 32,
           .n = 24,
           .block_k = 8,
           .block_n = 8,
           .blocks = 9,
           .mask = true},
          {.name = "masked_left",
           .why = "the same on the left",
           .m = 12,
           .k = 32,
           .n = 24,
           .block_k = 8,
           .block_n = 12,
           .blocks = 6,
           .left = true,
           .mask = true},
          {.name = "hostile",
           .why = "blocks outside, which may hold NaN, are left out and raised",
           .m = 10,
           .k = 24,
           .n = 16,
           .block_k = 8,
           .block_n = 4,
           .blocks = 20,
           .data = "hostile"},
          {.name = "hostile_values",
           .why = "the same of single values, on the left",
           .m = 10,
           .k = 24,
           .n = 16,
           .blocks = 90,
           .left = true,
           .data = "hostile"},
          {.name = "gaps",
           .why = "unused memory between rows",
           .m = 13,
           .k = 30,
           .n = 28,
           .block_k = 10,
           .block_n = 7,
           .blocks = 6,
           .gap = 3},
          {.name = "empty",
           .why = "no blocks: the output is 0",
           .m = 7,
           .k = 16,
           .n = 8,
           .block_k = 8,
           .block_n = 8,
           .blocks = 0},
          {.name = "no_rows",
           .why = "nothing to write",
           .m = 0,
           .k = 16,
           .n = 8,
           .block_k = 8,
           .block_n = 8,
           .blocks = 2},
          {.name = "many",
           .why = "more results than the list takes at a time",
           .m = 3,
           .k = 200,
           .n = 300,
           .blocks = 500},
          {.name = "float_values",
           .why = "operands of two types, sums that are not rounded",
           .m = 18,
           .k = 24,
           .n = 16,
           .block_k = 8,
           .block_n = 8,
           .blocks = 4,
           .values = "f32",
           .output = "f32"}};
}

TensorSpec sparse_layout(DType dtype, const Shape& shape, std::int64_t gap) {
  if (gap == 0) return TensorSpec::contiguous(dtype, shape);
  return strided_view(dtype, shape, shape.size() == 3 ? Shape{0, 1} : Shape{0}, gap, gap);
}

Case make_sparse(const SparseSlots& slots, DType dtype, const SparseCase& from) {
  Case result{.name = from.name, .why = from.why, .data = from.data};
  const DType values = *from.values != '\0' ? parse_dtype(from.values) : dtype;
  const DType output = *from.output != '\0' ? parse_dtype(from.output) : dtype;
  const auto turned = [&](std::int64_t rows, std::int64_t columns) {
    return from.left ? Shape{columns, rows} : Shape{rows, columns};
  };
  result.operands.resize(slots.backward() ? slots.grad_values + 1 : slots.output + 1);
  result.operands[slots.dense] = sparse_layout(dtype, turned(from.m, from.k), from.gap);
  Shape shape{from.blocks};
  if (from.block_k != 0) {
    for (const std::int64_t extent : turned(from.block_k, from.block_n)) shape.push_back(extent);
  }
  result.operands[slots.values] = sparse_layout(values, shape, shape.size() == 3 ? from.gap : 0);
  result.operands[slots.indices] = sparse_layout(DType::kI32, {from.blocks, 2}, from.gap);
  if (from.mask)
    result.operands[slots.mask] =
        TensorSpec::contiguous(DType::kU8, turned(from.k / from.block_k, from.n / from.block_n));
  if (from.left) result.options["side"] = std::string("left");
  const TensorSpec product = sparse_layout(output, turned(from.m, from.n), from.gap);
  if (slots.backward()) {
    result.operands[slots.grad_output] = product;
    result.operands[slots.grad_dense] = result.operands[slots.dense];
    result.operands[slots.grad_values] = result.operands[slots.values];
    return result;
  }
  if (from.gap != 0) result.operands[slots.output] = product;
  result.options["size"] = from.n;
  if (*from.output != '\0') result.options["output_dtype"] = std::string(from.output);
  return result;
}

// Rows and columns of blocks, by the kind of data.
std::vector<double> made_up_indices(const SparseProblem& call, const std::string& data,
                                    std::mt19937_64& generator) {
  const std::int64_t rows = call.on_left ? call.blocks_n() : call.blocks_k();
  const std::int64_t columns = call.on_left ? call.blocks_k() : call.blocks_n();
  std::vector<std::int64_t> places(
      static_cast<std::size_t>(std::max<std::int64_t>(rows * columns, 1)));
  std::iota(places.begin(), places.end(), std::int64_t{0});
  std::ranges::shuffle(places, generator);
  std::vector<double> indices;
  const double hostile[] = {-1,
                            1e9,
                            2147483647.0,
                            -2147483648.0,
                            static_cast<double>(rows),
                            static_cast<double>(columns)};
  for (std::int64_t e = 0; e < call.blocks; ++e) {
    const std::size_t which = data == "one"      ? 0
                              : data == "normal" ? static_cast<std::size_t>(e) % places.size()
                                                 : generator() % places.size();
    indices.push_back(static_cast<double>(places[which] / std::max<std::int64_t>(columns, 1)));
    indices.push_back(static_cast<double>(places[which] % std::max<std::int64_t>(columns, 1)));
    if (data == "hostile" && e % 4 == 1)
      indices[indices.size() - 1 - generator() % 2] = hostile[generator() % 6];
  }
  return indices;
}

void fill_sparse(const Problem& problem, const Case& shape, std::span<HostTensor> tensors) {
  const auto& call = problem.as<SparseProblem>();
  const SparseSlots& slots = call.slots;
  std::mt19937_64 generator(shape.seed * 1000003 + 3);
  const std::vector<double> indices = made_up_indices(call, shape.data, generator);
  tensors[slots.indices].write(indices);
  std::vector<double> mask;
  if (problem.has(slots.mask)) {
    mask.resize(static_cast<std::size_t>(problem.spec(slots.mask).elements()));
    for (double& element : mask)
      element = generator() % 3 == 0 ? 0 : static_cast<double>(1 + generator() % 255);
    tensors[slots.mask].write(mask);
  }
  for (const std::size_t slot : {slots.dense, slots.values, slots.grad_output}) {
    if (!problem.has(slot)) continue;
    const auto elements = static_cast<std::size_t>(problem.spec(slot).elements());
    std::vector<double> values = normal_numbers(elements, generator);
    if (slot == slots.values) {
      values = repeated(std::move(values), elements);
      const std::int64_t rows = call.on_left ? call.blocks_n() : call.blocks_k();
      const std::int64_t columns = call.on_left ? call.blocks_k() : call.blocks_n();
      const auto each = static_cast<std::size_t>(call.block_k * call.block_n);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double row = indices[2 * (i / each)], column = indices[2 * (i / each) + 1];
        const bool inside = row >= 0 && row < static_cast<double>(rows) && column >= 0 &&
                            column < static_cast<double>(columns);
        const bool counts =
            inside &&
            (mask.empty() ||
             mask[static_cast<std::size_t>(row * static_cast<double>(columns) + column)] != 0);
        if (!counts) values[i] = std::nan("");
      }
    }
    kernel::write_repeated(tensors[slot], values);
  }
}

}  // namespace

double sparse_flops(const Problem& problem) {
  const auto& call = problem.as<SparseProblem>();
  const int products = call.slots.backward() ? (problem.has(call.slots.grad_dense) ? 1 : 0) +
                                                   (problem.has(call.slots.grad_values) ? 1 : 0)
                                             : 1;
  return 2.0 * products * static_cast<double>(call.m) *
         static_cast<double>(call.blocks * call.block_k * call.block_n);
}

Workload sparse_workload(const SparseSlots& slots) {
  Workload workload;
  workload.cases = [slots](DType dtype) {
    std::vector<Case> cases;
    for (const SparseCase& from : sparse_cases()) cases.push_back(make_sparse(slots, dtype, from));
    return cases;
  };
  workload.benchmarks = [slots](DType dtype) {
    std::vector<Case> cases;
    for (const SparseCase& from : std::vector<SparseCase>{{.name = "quarter_8192",
                                  .why = "a quarter of blocks of 128",
                                  .m = 8192,
                                  .k = 8192,
                                  .n = 8192,
                                  .block_k = 128,
                                  .block_n = 128,
                                  .blocks = 1024},
                                                          {.name = "quarter_1024",
                                                          .why = "for processors",
                                                          .m = 1024,
                                                          .k = 1024,
                                                          .n = 1024,
                                                          .block_k = 128,
                                                          .block_n = 128,
                                                          .blocks = 16},
                                                          {.name = "values_4096",
                                                          .why = "single values",
                                                          .m = 256,
                                                          .k = 4096,
                                                          .n = 4096,
                                                          .blocks = 167772}})
      cases.push_back(make_sparse(slots, dtype, from));
    return cases;
  };
  workload.fill = fill_sparse;
  workload.expect = [slots](const Problem& problem, std::span<HostTensor> tensors,
                            const Arithmetic&, double max_flops) {
    std::vector<Expectation> expected;
    for (const std::size_t slot : {slots.output, slots.grad_dense, slots.grad_values}) {
      if (!problem.has(slot) || problem.spec(slot).elements() == 0) continue;
      Expectation to = expect_sparse_slot(problem, tensors, slot, max_flops);
      const DType dtype = problem.spec(slot).dtype;
      for (std::size_t i = 0; i < to.values.size(); ++i)
        to.bounds[i] +=
            storage_unit(dtype) * (std::fabs(to.values[i]) + to.bounds[i]) + smallest_number(dtype);
      expected.push_back(std::move(to));
    }
    return expected;
  };
  workload.flops = sparse_flops;
  return workload;
}

Operation sparse_record(const std::string& name, const SparseSlots& slots) {
  Operation operation;
  operation.name = name;
  operation.options = {{.name = "side",
                        .fallback = std::string("right"),
                        .type = "one of right, left",
                        .doc = "of the sparse matrix in the product"}};
  if (!slots.backward()) {
    operation.options.push_back(
        {.name = "size",
         .type = "int",
         .doc = "columns of the sparse matrix, rows of one on the left; as block_mask says"});
    operation.options.push_back({.name = "output_dtype",
                                 .type = "one of f32, f16, bf16",
                                 .doc = "of output; that of dense where it is not set"});
  }
  operation.errors = {{.kind = "block_outside_matrix",
                       .operand = "indices",
                       .sentence = "names no block of the matrix, and counts nothing"}};
  operation.validate = [slots](Problem& problem) { validate_sparse(problem, slots); };
  operation.reference = reference_sparse;
  operation.raises = sparse_raises;
  if (!slots.backward()) add_ways(operation, list_of(sparse_hopper_way(slots)));
  add_ways(operation,
           list_of(sparse_cpu_way(slots), sparse_tile_way(slots), sparse_elements_way(slots)));
  operation.workload = sparse_workload(slots);
  return operation;
}

}  // namespace tessera::operations::matmul
