// SPDX-License-Identifier: Apache-2.0
// What products with sparse matrices refuse, the laws of their reference, and the typed functions
// on the host.
#include "tessera/operations/block_sparse_matmul.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/reference.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using testing::f32;
using ::testing::HasSubstr;
using testing::i32;
using testing::normal_numbers;
using testing::problem_of;
using testing::run_reference;
using testing::Specs;
using testing::u8;
using testing::Values;

TEST(BlockSparseRefusals, SayWhatIsWrong) {
  struct Row {
    Specs specs;
    Options options;
    const char* message;
  };
  const Specs blocks{{"dense", f32({5, 12})}, {"values", f32({3, 4, 2})}, {"indices", i32({3, 2})}};
  const auto with = [&](const char* name, TensorSpec spec) {
    Specs specs = blocks;
    specs[name] = std::move(spec);
    return specs;
  };
  const Options size{{"size", std::int64_t{8}}};
  const Row rows[] = {
      {with("dense", f32({5, 12, 1})), size, "dense f32[5, 12, 1] must be [m, k]"},
      {with("values", f32({3, 4})), size,
       "values f32[3, 4] must be [values], or [blocks, rows, columns]"},
      {with("values", f32({3, 0, 2})), size, "values f32[3, 0, 2] has blocks without elements"},
      {blocks, {}, "needs size where there is no block_mask"},
      {blocks,
       {{"size", std::int64_t{7}}},
       "the sparse matrix has 7 columns, and its blocks 2, which do not divide them"},
      {with("dense", f32({5, 10})), size,
       "the sparse matrix has 10 rows, and its blocks 4, which do not divide them"},
      {with("indices", i32({4, 2})), size, "indices i32[4, 2] must be i32[3, 2]"},
      {with("block_mask", u8({3, 3})), size, "block_mask u8[3, 3] must be u8[3, 4]"},
      {blocks,
       {{"size", std::int64_t{8}}, {"side", std::string("top")}},
       "option 'side' must be right or left"},
  };
  for (const Row& row : rows) {
    try {
      (void)problem_of("block_sparse_matmul", row.specs, row.options);
      FAIL() << "not refused: " << row.message;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(row.message));
    }
  }
}

TEST(BlockSparseChecks, OfLargeCallsAreASampleOfAll) {
  std::size_t samples = 0;
  for (const char* const name : {"block_sparse_matmul", "block_sparse_matmul_backward"}) {
    const Operation& operation = find_operation(name);
    for (const Case& shape : operation.workload.cases(DType::kF32)) {
      const Problem problem = make_problem(operation, shape.operands, shape.options);
      std::vector<std::vector<std::byte>> memory(problem.operands.size());
      std::vector<HostTensor> tensors(memory.size());
      for (std::size_t slot = 0; slot < memory.size(); ++slot) {
        if (!problem.has(slot)) continue;
        const TensorSpec& spec = problem.spec(slot);
        memory[slot].resize(static_cast<std::size_t>(spec.last_element() + 1) *
                            size_of(spec.dtype));
        tensors[slot] = {.spec = spec, .data = memory[slot].data()};
      }
      operation.workload.fill(problem, shape, tensors);
      const auto all = operation.workload.expect(problem, tensors, {}, 1e300);
      const auto some = operation.workload.expect(problem, tensors, {}, 1);
      ASSERT_EQ(some.size(), all.size());
      for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_TRUE(all[i].elements.empty());
        if (some[i].elements.empty()) continue;
        ++samples;
        ASSERT_LT(some[i].elements.size(), all[i].values.size());
        for (std::size_t at = 0; at < some[i].elements.size(); ++at) {
          EXPECT_EQ(some[i].values[at], all[i].values[some[i].elements[at]]) << shape.name;
          EXPECT_EQ(some[i].bounds[at], all[i].bounds[some[i].elements[at]]) << shape.name;
        }
      }
    }
  }
  EXPECT_GT(samples, 20U);
}

// Against the dense product with the matrix written out: on both sides, blocks of one place added.
TEST(BlockSparseReference, IsTheProductWithTheMatrixWrittenOut) {
  const std::vector<double> dense = normal_numbers(2 * 6, 1), values = normal_numbers(3 * 2 * 3, 2);
  const std::vector<double> indices{0, 1, 2, 0, 0, 1};
  std::vector<double> matrix(6 * 6, 0);
  for (std::size_t e = 0; e < 3; ++e) {
    for (std::size_t i = 0; i < 6; ++i) {
      const auto row = static_cast<std::size_t>(indices[2 * e]) * 2 + i / 3;
      const auto column = static_cast<std::size_t>(indices[2 * e + 1]) * 3 + i % 3;
      matrix[row * 6 + column] += values[6 * e + i];
    }
  }
  const auto run = [&](Shape shape, const char* side) {
    return run_reference(
               problem_of(
                   "block_sparse_matmul",
                   {{"dense", f32(shape)}, {"values", f32({3, 2, 3})}, {"indices", i32({3, 2})}},
                   {{"size", std::int64_t{6}}, {"side", std::string(side)}}),
               {{"dense", dense}, {"values", values}, {"indices", indices}})
        .at("output");
  };
  const std::vector<double> right = run({2, 6}, "right"), left = run({6, 2}, "left");
  for (std::size_t m = 0; m < 2; ++m) {
    for (std::size_t n = 0; n < 6; ++n) {
      double of_right = 0, of_left = 0;
      for (std::size_t k = 0; k < 6; ++k) {
        of_right += dense[m * 6 + k] * matrix[k * 6 + n];
        of_left += matrix[n * 6 + k] * dense[k * 2 + m];
      }
      EXPECT_NEAR(right[m * 6 + n], of_right, 1e-12);
      EXPECT_NEAR(left[n * 2 + m], of_left, 1e-12);
    }
  }
}

// A step along a random direction changes <output, weights> by what the gradients say.
TEST(BlockSparseReference, GradientsAreSlopes) {
  for (const char* side : {"right", "left"}) {
    const bool left = side[0] == 'l';
    const Specs specs{{"dense", f32(left ? Shape{6, 3} : Shape{3, 6})},
                      {"values", f32(left ? Shape{2, 4, 3} : Shape{2, 3, 4})},
                      {"indices", i32({2, 2})}};
    const Shape output = left ? Shape{8, 3} : Shape{3, 8};
    Values at{{"dense", normal_numbers(18, 3)},
              {"values", normal_numbers(24, 4)},
              {"indices", {1, 0, 0, 1}}};
    const std::vector<double> weights = normal_numbers(24, 5);
    const Options named{{"side", std::string(side)}};
    const auto value = [&](const Values& from) {
      Options options = named;
      options["size"] = std::int64_t{8};
      return testing::dot(
          run_reference(problem_of("block_sparse_matmul", specs, options), from).at("output"),
          weights);
    };
    Specs backward = specs;
    backward["grad_output"] = f32(output);
    backward["grad_dense"] = specs.at("dense");
    backward["grad_values"] = specs.at("values");
    Values given = at;
    given["grad_output"] = weights;
    const Values gradients =
        run_reference(problem_of("block_sparse_matmul_backward", backward, named), given);
    for (const std::string name : {"dense", "values"}) {
      const std::vector<double> step = normal_numbers(at.at(name).size(), 6);
      Values moved = at;
      for (std::size_t i = 0; i < step.size(); ++i) moved[name][i] += step[i];
      EXPECT_NEAR(value(moved) - value(at), testing::dot(gradients.at("grad_" + name), step), 1e-10)
          << side << " " << name;
    }
  }
}

TEST(BlockSparseMatmul, LeavesOutWhatTheMaskAndTheMatrixDo) {
  const Context context = Context::open({.device = "host", .cache_directory = ""});
  const Tensor dense = context.upload(std::vector<float>{1, 2}, {1, 2});
  const Tensor values = context.upload(std::vector<float>{10, 20, 40, 80}, {4});
  const auto indices = [&](std::vector<std::int32_t> list) { return context.upload(list, {4, 2}); };
  const Tensor mask = context.upload(std::vector<std::uint8_t>{1, 0, 1, 1, 1, 1}, {2, 3});
  const BlockSparse sparse{
      .values = values, .indices = indices({0, 0, 0, 1, 1, 2, 1, 2}), .block_mask = mask};
  EXPECT_THAT(context.download<float>(block_sparse_matmul(context, dense, sparse)),
              ElementsAre(10, 0, 240));
  const Tensor gradient = context.upload(std::vector<float>{1, 1, 3}, {1, 3});
  const BlockSparseGradients gradients =
      block_sparse_matmul_backward(context, dense, sparse, gradient);
  EXPECT_THAT(context.download<float>(gradients.dense), ElementsAre(10, 360));
  EXPECT_THAT(context.download<float>(gradients.values), ElementsAre(1, 0, 6, 6));
  const Tensor output = block_sparse_matmul(
      context, dense, {.values = values, .indices = indices({0, 0, 1, 3, -1, 0, 1, 1}), .size = 3});
  try {
    context.synchronize();
    ADD_FAILURE() << "blocks 1 and 2 are outside";
  } catch (const DataError& error) {
    EXPECT_EQ(error.operand(), "indices");
    EXPECT_EQ(error.index(), 3);
  }
  EXPECT_THAT(context.download<float>(output), ElementsAre(10, 160, 0));
}

}  // namespace
}  // namespace tessera
