// SPDX-License-Identifier: Apache-2.0
// What cumsum refuses, and the laws of its reference. No device is needed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/reference.hpp"
#include "support/refusal.hpp"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using testing::expect_refusal;
using testing::f32;
using testing::i32;
using testing::normal_numbers;
using testing::Specs;

// Of one head, packed where there are boundaries.
std::vector<double> sums(const std::vector<double>& input, Options options = {},
                         const std::vector<double>& boundaries = {}) {
  const auto count = static_cast<std::int64_t>(input.size());
  Specs specs{{"input", f32({1, count, 1})}};
  testing::Values values{{"input", input}};
  if (!boundaries.empty()) {
    specs["cu_seqlens"] = i32({static_cast<std::int64_t>(boundaries.size())});
    values["cu_seqlens"] = boundaries;
  }
  return testing::run_reference(testing::problem_of("cumsum", specs, std::move(options)), values)
      .at("output");
}

TEST(CumsumReference, AddsUp) {
  const std::vector<double> x{1, 2, 3, 4, 5};
  EXPECT_THAT(sums(x), ElementsAre(1, 3, 6, 10, 15));
  EXPECT_THAT(sums(x, {{"reverse", true}}), ElementsAre(15, 14, 12, 9, 5));
  EXPECT_THAT(sums(x, {{"chunk", std::int64_t{2}}}), ElementsAre(1, 3, 3, 7, 5));
  EXPECT_THAT(sums(x, {{"chunk", std::int64_t{2}}, {"reverse", true}}), ElementsAre(3, 2, 7, 4, 5));
  EXPECT_THAT(sums(x, {{"scale", 2.0}}), ElementsAre(2, 6, 12, 20, 30));
}

TEST(CumsumReference, BeginsAnewWithEachSequence) {
  const std::vector<double> x{1, 2, 3, 4, 5, 6};
  EXPECT_THAT(sums(x, {}, {1, 1, 4, 5}), ElementsAre(0, 2, 5, 9, 5, 0));
  EXPECT_THAT(sums(x, {{"reverse", true}}, {1, 1, 4, 5}), ElementsAre(0, 9, 7, 4, 5, 0));
  EXPECT_THAT(sums(x, {{"chunk", std::int64_t{2}}}, {1, 4, 6}), ElementsAre(0, 2, 5, 4, 5, 11));
  EXPECT_THAT(sums(x, {}, {3}), ElementsAre(0, 0, 0, 0, 0, 0));
  EXPECT_THAT(sums(x, {}, {-7, 4, 2, 99}), ElementsAre(1, 3, 6, 10, 5, 11));
}

TEST(CumsumReference, TheOtherDirectionIsItsTranspose) {
  const std::vector<double> x = normal_numbers(23, 1), y = normal_numbers(23, 2);
  for (const std::int64_t chunk : {1, 4, 23, 100}) {
    const Options forward{{"chunk", chunk}}, backward{{"chunk", chunk}, {"reverse", true}};
    EXPECT_NEAR(testing::dot(y, sums(x, forward)), testing::dot(sums(y, backward), x), 1e-12);
    EXPECT_NEAR(testing::dot(y, sums(x, forward, {3, 9, 20})),
                testing::dot(sums(y, backward, {3, 9, 20}), x), 1e-12);
  }
}

TEST(CumsumRefuses, WhatContradictsItself) {
  expect_refusal("cumsum", {{"input", f32({3, 4})}}, "must be [batch, seq, heads]");
  expect_refusal("cumsum", {{"input", f32({3, 4})}}, "must be [batch, heads, seq]",
                 {{"head_first", true}});
  expect_refusal("cumsum", {{"input", f32({1, 4, 2})}}, "an integer of at least 1",
                 {{"chunk", std::int64_t{0}}});
  expect_refusal("cumsum", {{"input", f32({2, 4, 2})}, {"cu_seqlens", i32({3})}},
                 "must have batch 1");
  expect_refusal("cumsum", {{"input", f32({1, 4, 2})}, {"cu_seqlens", i32({0})}},
                 "of one element more than there are sequences");
  expect_refusal("cumsum", {{"input", f32({1, 4, 2})}}, "f32 or f16 or bf16",
                 {{"output_dtype", std::string("i8")}});
}

}  // namespace
}  // namespace tessera
