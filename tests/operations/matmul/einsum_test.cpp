// SPDX-License-Identifier: Apache-2.0
// einsum on the host against sums over all labels, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tessera/error.hpp"
#include "tessera/operations/matmul.hpp"

namespace tessera {
namespace {

using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

const std::map<char, std::int64_t> kExtents{{'b', 2}, {'h', 3}, {'q', 4}, {'k', 5},
                                            {'d', 6}, {'e', 1}, {'m', 7}};

Shape shape_of(const std::string& labels) {
  Shape shape;
  for (const char label : labels) shape.push_back(kExtents.at(label));
  return shape;
}

std::vector<float> values(const Shape& shape, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  std::vector<float> list(static_cast<std::size_t>(
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>())));
  std::ranges::generate(list, [&] { return draw(generator); });
  return list;
}

// The definition: one loop over the places of all labels.
std::vector<float> sums(const std::string& a, const std::string& b, const std::string& output,
                        const std::vector<float>& x, const std::vector<float>& y) {
  std::string all = a + b;
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::map<char, std::int64_t> at;
  for (const char label : all) at[label] = 0;
  const auto place = [&](const std::string& labels) {
    std::int64_t index = 0;
    for (const char label : labels) index = index * kExtents.at(label) + at[label];
    return static_cast<std::size_t>(index);
  };
  std::vector<float> result(values(shape_of(output), 0).size(), 0.0F);
  for (bool more = true; more;) {
    result[place(output)] += x[place(a)] * y[place(b)];
    more = false;
    for (const char label : all) {
      if (++at[label] < kExtents.at(label)) {
        more = true;
        break;
      }
      at[label] = 0;
    }
  }
  return result;
}

class Einsum : public ::testing::TestWithParam<std::vector<const char*>> {};

TEST_P(Einsum, IsTheSumOverAllLabels) {
  const std::string equation = GetParam()[0], a = GetParam()[1], b = GetParam()[2],
                    output = GetParam()[3];
  const Context context = Context::open("host");
  const auto x = values(shape_of(a), 1), y = values(shape_of(b), 2);
  const Tensor left = context.upload(x, shape_of(a)), right = context.upload(y, shape_of(b));
  const auto [result, pullback] = vjp::einsum(context, equation, left, right);
  EXPECT_EQ(result.shape(), shape_of(output));
  EXPECT_THAT(context.download<float>(result),
              Pointwise(FloatNear(1e-5F), sums(a, b, output, x, y)));
  if (equation.find("bb") != std::string::npos) return;
  const auto dy = values(shape_of(output), 3);
  const auto [dx, dright] = pullback(context.upload(dy, shape_of(output)));
  EXPECT_THAT(context.download<float>(dx), Pointwise(FloatNear(1e-5F), sums(output, b, a, dy, y)));
  EXPECT_THAT(context.download<float>(dright),
              Pointwise(FloatNear(1e-5F), sums(a, output, b, x, dy)));
}

INSTANTIATE_TEST_SUITE_P(
    Equations, Einsum,
    ::testing::Values(std::vector<const char*>{"qd,dk->qk", "qd", "dk", "qk"},
                      std::vector<const char*>{"qd,dk", "qd", "dk", "kq"},
                      std::vector<const char*>{"bhqd, bhkd -> bhqk", "bhqd", "bhkd", "bhqk"},
                      std::vector<const char*>{"bqhd,bkhd->bhqk", "bqhd", "bkhd", "bhqk"},
                      std::vector<const char*>{"bhqk,bkhd->bqhd", "bhqk", "bkhd", "bqhd"},
                      std::vector<const char*>{"bqhd,hdm->bqm", "bqhd", "hdm", "bqm"},
                      std::vector<const char*>{"bqm,hdm->bhdq", "bqm", "hdm", "bhdq"},
                      std::vector<const char*>{"q,k->kq", "q", "k", "kq"},
                      std::vector<const char*>{"qd,qd->", "qd", "qd", ""},
                      std::vector<const char*>{"qd,qd->qd", "qd", "qd", "qd"},
                      std::vector<const char*>{"qed,edk->kqe", "qed", "edk", "kqe"},
                      std::vector<const char*>{"bbd,dk->bk", "bbd", "dk", "bk"}));

// One matrix for all batches, by strides of 0: each of its repetitions has a gradient of its own.
TEST(EinsumGradients, OfWhatRepeatsInMemoryAreThoseOfItsElements) {
  const Context context = Context::open("host");
  const auto once = values({4, 6}, 1), y = values({2, 5, 6}, 2), dy = values({2, 4, 5}, 3);
  std::vector<float> twice = once;
  twice.insert(twice.end(), once.begin(), once.end());
  const Tensor stored = context.upload(once, {4, 6});
  const TensorSpec spec{.dtype = DType::kF32, .shape = {2, 4, 6}, .strides = {0, 6, 1}};
  const Tensor right = context.upload(y, {2, 5, 6});
  const auto [result, pullback] =
      vjp::einsum(context, "bqd,bkd->bqk", Tensor{spec, stored.buffer()}, right);
  EXPECT_THAT(context.download<float>(result),
              Pointwise(FloatNear(1e-5F), sums("bqd", "bkd", "bqk", twice, y)));
  const auto [dx, dright] = pullback(context.upload(dy, {2, 4, 5}));
  EXPECT_EQ(dx.shape(), (Shape{2, 4, 6}));
  EXPECT_THAT(context.download<float>(dx),
              Pointwise(FloatNear(1e-5F), sums("bqk", "bkd", "bqd", dy, y)));
  EXPECT_THAT(context.download<float>(dright),
              Pointwise(FloatNear(1e-5F), sums("bqd", "bqk", "bkd", twice, dy)));
}

TEST(EinsumRefusals, SayWhatIsWrong) {
  const Context context = Context::open("host");
  const auto of = [&](const Shape& shape) { return context.upload(values(shape, 1), shape); };
  struct Row {
    const char* equation;
    Shape a, b;
    const char* message;
  };
  const Row rows[] = {
      {"ab", {2, 3}, {3, 2}, "einsum: 'ab' does not name two operands"},
      {"ab,bc,cd->ad", {2, 3}, {3, 2}, "does not name two operands, with a comma between"},
      {"...ab,bc->ac", {2, 3}, {3, 2}, "an ellipsis is not taken"},
      {"a1,bc->ac", {2, 3}, {3, 2}, "holds '1', which is no letter"},
      {"abc,bc->a", {2, 3}, {3, 2}, "a f32[2, 3] has not the axes 'abc'"},
      {"ab,bc->ad", {2, 3}, {3, 2}, "no operand has label 'd' of the output"},
      {"ab,bc->aca", {2, 3}, {3, 2}, "the output has label 'a' twice"},
      {"ab,bc->ac", {2, 3}, {4, 2}, "label 'b' has extent 3 in a and 4 in b"},
      {"aa,ac->c", {2, 3}, {2, 2}, "label 'a' has extents 2 and 3 in a"},
      {"ab,cd->ac", {2, 3}, {3, 2}, "'b' is in a alone and not in the output"},
      {"ab,ba->", {2, 3}, {3, 2}, "that are summed do not lie one behind the other"}};
  for (const Row& row : rows) {
    try {
      einsum(context, row.equation, of(row.a), of(row.b));
      ADD_FAILURE() << row.equation << " was taken";
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(row.message)) << row.equation;
    }
  }
  EXPECT_THROW(einsum(context, "ab,bc", {}, of({3, 2})), InvalidArgument);
  const auto [result, pullback] = vjp::einsum(context, "aa,ab->ab", of({2, 2}), of({2, 3}));
  EXPECT_THROW(pullback(result), Unsupported);
}

}  // namespace
}  // namespace tessera
