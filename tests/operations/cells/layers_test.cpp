// SPDX-License-Identifier: Apache-2.0
// The typed functions of lstm, gru and rnn: layers, and the way back through them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "support/reference.hpp"
#include "tessera/error.hpp"
#include "tessera/operations/gru.hpp"
#include "tessera/operations/lstm.hpp"
#include "tessera/operations/rnn.hpp"

namespace tessera {
namespace {

using ::testing::HasSubstr;
using testing::normal_numbers;

constexpr std::int64_t kBatch = 2, kTokens = 3, kFeatures = 3, kHidden = 2, kLayers = 2;

class CellLayers : public ::testing::Test {
 protected:
  Tensor made_up(const Shape& shape) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    std::vector<float> values;
    for (const double x : normal_numbers(static_cast<std::size_t>(count), seed_++))
      values.push_back(static_cast<float>(x / 2));
    return context_.upload(values, shape);
  }
  // Two layers of two directions.
  std::vector<CellWeights> layers(std::int64_t gates) {
    std::vector<CellWeights> all;
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
      const std::int64_t rows = gates * kHidden, from = layer == 0 ? kFeatures : 2 * kHidden;
      all.push_back({.weight_ih = made_up({2, rows, from}),
                     .weight_hh = made_up({2, rows, kHidden}),
                     .bias_ih = made_up({2, rows}),
                     .bias_hh = made_up({2, rows})});
    }
    return all;
  }
  Tensor input() { return made_up({kBatch, kTokens, kFeatures}); }
  Tensor states() { return made_up({2 * kLayers, kBatch, kHidden}); }

  Context context_ = Context::open("host");
  unsigned seed_ = 1;
};

TEST_F(CellLayers, TakeTheOutputOfTheOneBefore) {
  const std::vector<CellWeights> all = layers(4);
  const Tensor x = input(), h0 = states(), c0 = states();
  const CellResult both = lstm(context_, x, all, {.h0 = h0, .c0 = c0});
  const CellResult first =
      lstm(context_, x, {all[0]}, {.h0 = h0.slice(0, 0, 2), .c0 = c0.slice(0, 0, 2)});
  const CellResult second =
      lstm(context_, first.output, {all[1]}, {.h0 = h0.slice(0, 2, 4), .c0 = c0.slice(0, 2, 4)});
  const auto numbers = [&](const Tensor& tensor) { return context_.download<float>(tensor); };
  EXPECT_EQ(numbers(both.output), numbers(second.output));
  EXPECT_EQ(numbers(both.h_n.slice(0, 0, 2)), numbers(first.h_n));
  EXPECT_EQ(numbers(both.c_n.slice(0, 2, 4)), numbers(second.c_n));
}

TEST_F(CellLayers, AreLeftOnTheWayBack) {
  const std::vector<CellWeights> all = layers(3);
  const Tensor x = input(), h0 = states();
  const auto [result, pullback] = vjp::gru(context_, x, all, {.h0 = h0});
  const Tensor weights = made_up(result.output.shape()), last = made_up(result.h_n.shape());
  const CellGradients gradients = pullback(weights, last);
  const auto dot = [&](const Tensor& a, const Tensor& b) {
    const std::vector<float> p = context_.download<float>(a), q = context_.download<float>(b);
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) sum += static_cast<double>(p[i]) * q[i];
    return sum;
  };
  // Along a direction in all operands at once, by central differences.
  const auto moved = [&](const Tensor& from, const Tensor& along, float step) {
    std::vector<float> p = context_.download<float>(from);
    const std::vector<float> q = context_.download<float>(along);
    for (std::size_t i = 0; i < p.size(); ++i) p[i] += step * q[i];
    return context_.upload(p, from.shape());
  };
  const Tensor dx = made_up(x.shape()), dh = made_up(h0.shape());
  const Tensor dw = made_up(all[0].weight_ih.shape()), du = made_up(all[0].weight_hh.shape());
  const Tensor db = made_up(all[1].bias_hh.shape());
  const auto objective = [&](float step) {
    std::vector<CellWeights> there = all;
    there[0].weight_ih = moved(all[0].weight_ih, dw, step);
    there[0].weight_hh = moved(all[0].weight_hh, du, step);
    there[1].bias_hh = moved(all[1].bias_hh, db, step);
    const CellResult value = gru(context_, moved(x, dx, step), there, {.h0 = moved(h0, dh, step)});
    return dot(value.output, weights) + dot(value.h_n, last);
  };
  const double slope =
      dot(gradients.input, dx) + dot(gradients.h0, dh) + dot(gradients.layers[0].weight_ih, dw) +
      dot(gradients.layers[0].weight_hh, du) + dot(gradients.layers[1].bias_hh, db);
  EXPECT_NEAR((objective(1e-2F) - objective(-1e-2F)) / 2e-2, slope, 1e-3);
  EXPECT_GT(std::fabs(slope), 0.05);
  EXPECT_FALSE(static_cast<bool>(gradients.c0));
}

// Of two directions and layers, each with a projection of its own.
TEST_F(CellLayers, ProjectTheirOutputs) {
  constexpr std::int64_t kProjection = 3;
  std::vector<CellWeights> all;
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    all.push_back({.weight_ih = made_up({2, 4 * kHidden, layer == 0 ? kFeatures : 2 * kProjection}),
                   .weight_hh = made_up({2, 4 * kHidden, kProjection}),
                   .weight_hr = made_up({2, kProjection, kHidden})});
  }
  const Tensor c0 = states();
  const auto [result, pullback] = vjp::lstm(context_, input(), all, {.c0 = c0});
  EXPECT_EQ(result.output.shape(), (Shape{kBatch, kTokens, 2 * kProjection}));
  EXPECT_EQ(result.h_n.shape(), (Shape{2 * kLayers, kBatch, kProjection}));
  EXPECT_EQ(result.c_n.shape(), (Shape{2 * kLayers, kBatch, kHidden}));
  const CellGradients gradients = pullback(made_up(result.output.shape()));
  for (std::size_t layer = 0; layer < all.size(); ++layer)
    EXPECT_EQ(gradients.layers[layer].weight_hr.shape(), all[layer].weight_hr.shape());
  EXPECT_EQ(gradients.c0.shape(), c0.shape());
}

TEST_F(CellLayers, RefuseWhatContradictsItself) {
  const std::vector<CellWeights> all = layers(1);
  const auto message = [&](auto call) {
    try {
      call();
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_THAT(message([&] { rnn(context_, input(), {}); }), HasSubstr("at least one layer"));
  EXPECT_THAT(message([&] { rnn(context_, input(), all, {.h0 = states().slice(0, 0, 2)}); }),
              HasSubstr("must have 4 states, one for each layer and direction"));
  EXPECT_THAT(message([&] { rnn(context_, {}, all); }), HasSubstr("input"));
  EXPECT_THAT(message([&] { lstm(context_, input(), all); }), HasSubstr("must be f32[2, 8, 3]"));
}

}  // namespace
}  // namespace tessera
