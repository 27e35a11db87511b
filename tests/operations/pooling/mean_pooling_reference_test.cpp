// SPDX-License-Identifier: Apache-2.0
// The laws of mean pooling's reference. No device is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "support/reference.hpp"
#include "tessera/operations/mean_pooling.hpp"

namespace tessera {
namespace {

using testing::dot;
using ::testing::DoubleNear;
using ::testing::Each;
using ::testing::ElementsAre;
using testing::f32;
using testing::i32;
using testing::normal_numbers;
using ::testing::Pointwise;
using testing::Specs;
using testing::u8;

// One way of saying which tokens count, for inputs of `batch` entries of `tokens`; packed if batch
// is 0.
struct Pooling {
  const char* name;
  bool chunked;
  std::int64_t batch, tokens, rows;  // rows of all the output
  std::string index_name;
  TensorSpec index;
  std::vector<double> indices;
  std::int64_t chunk;
};

constexpr std::int64_t kDim = 3;

std::vector<Pooling> poolings() {
  return {
      {"all", false, 2, 5, 2, "", {}, {}, 0},
      {"lengths", false, 4, 5, 4, "lengths", i32({4}), {0, 5, 2, 9}, 0},
      {"mask", false, 3, 4, 3, "mask", u8({3, 4}), {1, 0, 7, 0, 0, 0, 0, 0, 1, 1, 1, 1}, 0},
      {"packed", false, 0, 9, 5, "cu_seqlens", i32({6}), {0, 0, 3, 3, 5, 9}, 0},
      {"packed_gap", false, 0, 9, 2, "cu_seqlens", i32({3}), {2, 3, 7}, 0},
      {"chunks", true, 2, 7, 6, "", {}, {}, 3},
      {"packed_chunks", true, 0, 9, 6, "cu_seqlens", i32({6}), {0, 0, 3, 3, 5, 9}, 2},
      {"few_chunks", true, 0, 9, 2, "cu_seqlens", i32({4}), {0, 4, 5, 9}, 3},
  };
}

// The reference of one direction, on double-precision copies.
std::vector<double> run(const Pooling& pooling, bool backward, const std::vector<double>& values) {
  const std::string name =
      std::string(pooling.chunked ? "chunk_mean" : "sequence_mean") + (backward ? "_backward" : "");
  const Operation& operation = find_operation(name);
  const bool packed = pooling.batch == 0;
  const Shape x = packed ? Shape{pooling.tokens, kDim} : Shape{pooling.batch, pooling.tokens, kDim};
  const Shape y = packed || !pooling.chunked
                      ? Shape{pooling.rows, kDim}
                      : Shape{pooling.batch, pooling.rows / pooling.batch, kDim};
  Specs specs{{operation.operands.front().name, f32(backward ? y : x)}};
  if (!pooling.index_name.empty()) specs[pooling.index_name] = pooling.index;
  Options options;
  if (pooling.chunked) options["chunk"] = pooling.chunk;
  if (pooling.chunked && packed && !backward) options["chunks"] = pooling.rows;
  if (backward) options["tokens"] = pooling.tokens;
  std::map<std::string, std::vector<double>> inputs{{operation.operands.front().name, values}};
  if (!pooling.index_name.empty()) inputs[pooling.index_name] = pooling.indices;
  return testing::run_reference(testing::problem_of(name, specs, options), inputs)
      .at(operation.operands.back().name);
}

std::size_t x_size(const Pooling& pooling) {
  return static_cast<std::size_t>(std::max<std::int64_t>(pooling.batch, 1) * pooling.tokens * kDim);
}
std::size_t y_size(const Pooling& pooling) { return static_cast<std::size_t>(pooling.rows * kDim); }

TEST(MeanPoolingReference, IsThatOfTheSpecification) {
  const Pooling packed{"", false, 0, 9, 3, "cu_seqlens", i32({4}), {0, 3, 5, 9}, 0};
  std::vector<double> rows;
  for (int row = 1; row <= 9; ++row) rows.insert(rows.end(), kDim, row);
  EXPECT_THAT(run(packed, false, rows), ElementsAre(2, 2, 2, 4.5, 4.5, 4.5, 7.5, 7.5, 7.5));
  const std::vector<double> gradient = run(packed, true, std::vector<double>(9, 1));
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const std::size_t row = i / kDim;
    EXPECT_DOUBLE_EQ(gradient[i], row < 3 ? 1.0 / 3 : row < 5 ? 0.5 : 0.25) << row;
  }
}

TEST(MeanPoolingReference, MeanOfAConstantIsTheConstant) {
  for (const Pooling& pooling : poolings()) {
    SCOPED_TRACE(pooling.name);
    const std::vector<double> y = run(pooling, false, std::vector<double>(x_size(pooling), 0.3));
    EXPECT_THAT(y, Each(::testing::AnyOf(DoubleNear(0.3, 1e-15), 0.0)));
    EXPECT_THAT(y, ::testing::Contains(DoubleNear(0.3, 1e-15)));
  }
}

TEST(MeanPoolingReference, BackwardIsTheTransposeOfForward) {
  for (const Pooling& pooling : poolings()) {
    SCOPED_TRACE(pooling.name);
    const std::vector<double> x = normal_numbers(x_size(pooling), 1),
                              dy = normal_numbers(y_size(pooling), 2);
    EXPECT_NEAR(dot(dy, run(pooling, false, x)), dot(run(pooling, true, dy), x), 1e-13);
  }
}

TEST(MeanPoolingReference, BackwardAgreesWithFiniteDifferences) {
  constexpr double kStep = 1e-3;  // forward is linear: any step has no error but rounding
  for (const Pooling& pooling : poolings()) {
    SCOPED_TRACE(pooling.name);
    std::vector<double> x = normal_numbers(x_size(pooling), 3);
    const std::vector<double> dy = normal_numbers(y_size(pooling), 4), dx = run(pooling, true, dy);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double kept = x[i];
      x[i] = kept + kStep;
      const double above = dot(dy, run(pooling, false, x));
      x[i] = kept - kStep;
      const double below = dot(dy, run(pooling, false, x));
      x[i] = kept;
      EXPECT_NEAR(dx[i], (above - below) / (2 * kStep), 1e-11) << i;
    }
  }
}

TEST(MeanPoolingReference, NoTokensGiveZero) {
  const Pooling lengths{"", false, 2, 3, 2, "lengths", i32({2}), {0, -4}, 0};
  EXPECT_THAT(run(lengths, false, std::vector<double>(18, 1)), Each(0));
  EXPECT_THAT(run(lengths, true, std::vector<double>(6, 1)), Each(0));
  const Pooling mask{"", false, 1, 3, 1, "mask", u8({1, 3}), {0, 0, 0}, 0};
  EXPECT_THAT(run(mask, false, std::vector<double>(9, 1)), Each(0));
  EXPECT_THAT(run(mask, true, std::vector<double>(3, 1)), Each(0));
}

TEST(MeanPoolingReference, PackedIsOneCallForEachSequence) {
  const std::vector<double> x = normal_numbers(9 * kDim, 5);
  for (const std::int64_t chunk : {0, 1, 2, 3, 100}) {
    SCOPED_TRACE(chunk);
    const std::vector<std::int32_t> boundaries{0, 0, 4, 4, 5, 9};
    const std::int64_t rows = chunk == 0 ? 5 : chunk_offsets(boundaries, chunk).back();
    const Pooling packed{"",   chunk != 0,   0,        9,
                         rows, "cu_seqlens", i32({6}), {boundaries.begin(), boundaries.end()},
                         chunk};
    std::vector<double> one_by_one;
    for (std::size_t s = 0; s + 1 < boundaries.size(); ++s) {
      const std::int64_t begin = boundaries[s], tokens = boundaries[s + 1] - begin;
      const std::int64_t own_rows = chunk == 0 ? 1 : (tokens + chunk - 1) / chunk;
      const std::vector<double> part =
          run({"", chunk != 0, 1, tokens, own_rows, "", {}, {}, chunk}, false,
              {x.begin() + begin * kDim, x.begin() + (begin + tokens) * kDim});
      one_by_one.insert(one_by_one.end(), part.begin(), part.end());
    }
    EXPECT_THAT(run(packed, false, x), Pointwise(DoubleNear(1e-15), one_by_one));
  }
}

TEST(MeanPoolingReference, OneChunkIsTheSequence) {
  const std::vector<double> x = normal_numbers(2 * 5 * kDim, 6);
  EXPECT_EQ(run({"", true, 2, 5, 2, "", {}, {}, 5}, false, x),
            run({"", false, 2, 5, 2, "", {}, {}, 0}, false, x));
  EXPECT_EQ(run({"", true, 2, 5, 10, "", {}, {}, 1}, false, x), x);
}

TEST(MeanPoolingReference, IndicesAreClamped) {
  const std::vector<double> x = normal_numbers(9 * kDim, 7);
  const auto packed = [&](std::vector<double> indices) {
    return run({"", false, 0, 9, 3, "cu_seqlens", i32({4}), std::move(indices), 0}, false, x);
  };
  EXPECT_EQ(packed({-7, 3, 5, 1e6}), packed({0, 3, 5, 9}));
  // A sequence that ends before it begins is empty; the next one is read from where it says it
  // begins.
  const std::vector<double> decreasing = packed({0, 6, 2, 9});
  EXPECT_THAT(std::vector<double>(decreasing.begin() + kDim, decreasing.begin() + 2 * kDim),
              Each(0));
  EXPECT_DOUBLE_EQ(decreasing[2 * kDim], packed({2, 9, 9, 9})[0]);
}

}  // namespace
}  // namespace tessera
