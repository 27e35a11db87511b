// SPDX-License-Identifier: Apache-2.0
// What the operations on caches refuse, and the laws of their reference. No device is needed but
// for the typed functions, which run on the host.
#include "tessera/operations/kv_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "operations/kv_cache/launch.hpp"
#include "support/reference.hpp"
#include "tessera/error.hpp"
#include "tessera/record.hpp"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using testing::f16;
using testing::f32;
using testing::i32;
using testing::problem_of;
using testing::Specs;

TensorSpec codes(Shape shape, DType dtype = DType::kI8) {
  return TensorSpec::contiguous(dtype, std::move(shape));
}

// ---- refusals -----------------------------------------------------------------------------------

struct Refused {
  const char* operation;
  Specs specs;
  Options options;
  const char* message;
};

void expect_refusals(std::span<const Refused> rows) {
  for (const Refused& row : rows) {
    try {
      problem_of(row.operation, row.specs, row.options);
      ADD_FAILURE() << "takes what should be refused: " << row.message;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(row.message));
    }
  }
}

Specs with(Specs specs, const std::string& name, TensorSpec spec) {
  specs[name] = std::move(spec);
  return specs;
}

TEST(KvCacheRefusals, AppendSaysWhatIsWrong) {
  const Specs mapped{
      {"keys", f32({5, 2, 8})}, {"key_cache", f32({3, 2, 4, 8})}, {"slot_mapping", i32({5})}};
  const Specs tables{{"keys", f32({5, 2, 8})},
                     {"key_cache", f32({3, 2, 4, 8})},
                     {"block_tables", i32({2, 3})},
                     {"kv_lens", i32({2})},
                     {"query_start_loc", i32({3})}};
  TensorSpec spread = f32({3, 2, 4, 8});
  spread.strides = {128, 64, 16, 2};
  const Refused rows[] = {
      {"append_to_cache", with(mapped, "keys", f32({5, 8})), {}, "must be [tokens, heads, dim]"},
      {"append_to_cache", with(mapped, "keys", f32({5, 2, 6})), {}, "differ in heads or features"},
      {"append_to_cache", with(mapped, "key_cache", spread), {}, "contiguous along its last axis"},
      {"append_to_cache",
       with(mapped, "slot_mapping", i32({4})),
       {},
       "slot_mapping i32[4] must be"},
      {"append_to_cache", with(mapped, "kv_lens", i32({2})), {}, "not kv_lens beside it"},
      {"append_to_cache", with(mapped, "values", f32({5, 2, 8})), {}, "come together"},
      {"append_to_cache", with(mapped, "key_scale", f32({3, 2, 4})), {}, "takes no key_scale"},
      {"append_to_cache",
       with(mapped, "key_cache", codes({3, 2, 4, 8})),
       {},
       "holds codes and needs key_scale"},
      {"append_to_cache",
       with(with(mapped, "key_cache", codes({3, 2, 4, 8})), "key_scale", f32({3, 1, 3})),
       {},
       "does not broadcast to f32[3, 2, 4]"},
      {"append_to_cache",
       with(mapped, "key_cache", f16({3, 2, 4, 8})),
       {},
       "no combination of dtypes"},
      {"append_to_cache", with(tables, "query_start_loc", i32({2})), {}, "must be i32[3]"},
      {"append_to_cache", with(tables, "num_seqs", i32({2})), {}, "must be i32[1]"},
      {"append_to_cache",
       {{"keys", f32({5, 2, 8})}, {"key_cache", f32({3, 2, 4, 8})}, {"kv_lens", i32({2})}},
       {},
       "needs slot_mapping, or block_tables, kv_lens and query_start_loc"},
      {"append_to_cache",
       with(
           with(with(mapped, "keys", f32({5, 2, 7})), "key_cache", codes({3, 2, 4, 7}, DType::kI4)),
           "key_scale", f32({1, 1, 1})),
       {},
       "has rows that end within a byte"},
  };
  expect_refusals(rows);
}

TEST(KvCacheRefusals, GradientsOfAppendingSayWhatIsWrong) {
  const Specs mapped{{"grad_key_cache", f32({3, 2, 4, 8})}, {"slot_mapping", i32({5})}};
  const Specs tables{{"grad_key_cache", f32({3, 2, 4, 8})},
                     {"block_tables", i32({2, 3})},
                     {"kv_lens", i32({2})},
                     {"query_start_loc", i32({3})}};
  const Refused rows[] = {
      {"append_to_cache_backward", tables, {}, "needs the option tokens"},
      {"append_to_cache_backward",
       tables,
       {{"tokens", std::int64_t{-1}}},
       "an integer of at least 0"},
      {"append_to_cache_backward",
       mapped,
       {{"tokens", std::int64_t{4}}},
       "slot_mapping i32[5] must be i32[4]"},
      {"append_to_cache_backward",
       with(mapped, "grad_keys", f32({5, 2, 7})),
       {},
       "must be f32[5, 2, 8]"},
      {"append_to_cache_backward",
       with(mapped, "grad_values", f32({5, 2, 8})),
       {},
       "grad_values needs grad_value_cache"},
      {"append_to_cache_backward",
       with(mapped, "grad_value_cache", f16({3, 2, 4, 8})),
       {},
       "must have one dtype"},
      {"append_to_cache_backward",
       with(mapped, "grad_value_cache", f32({3, 2, 5, 8})),
       {},
       "differ in pages"},
      {"append_to_cache_backward",
       with(mapped, "grad_key_cache", codes({3, 2, 4, 8})),
       {},
       "grad_key_cache"},
  };
  expect_refusals(rows);
}

TEST(KvCacheRefusals, TheOthersSayWhatIsWrong) {
  const Specs pairs{
      {"source_pages", i32({3})}, {"target_pages", i32({3})}, {"pool", f32({4, 2, 8})}};
  const Refused rows[] = {
      {"copy_pages",
       with(pairs, "target_pages", i32({2})),
       {},
       "target_pages i32[2] must be i32[3]"},
      {"copy_pages", with(pairs, "pool", f32({4})), {}, "must have two to four axes"},
      {"copy_pages", with(pairs, "source", f32({9, 2, 6})), {}, "differ in more than their pages"},
      {"copy_pages", with(pairs, "source", f16({9, 2, 8})), {}, "differ in more than their pages"},
      {"quantise_cache", {{"input", f32({4, 8})}}, {}, "must be [pages, heads, page_size, dim]"},
      {"quantise_cache",
       {{"input", f32({4, 2, 3, 8})}},
       {{"dtype", std::string("u8")}},
       "i8 or i4 or e4m3fn or e5m2"},
      {"quantise_cache",
       {{"input", f32({4, 2, 3, 8})}},
       {{"scale_of", std::string("row")}},
       "token_head or page or head or tensor"},
      {"quantise_cache",
       {{"input", f32({4, 2, 3, 7})}},
       {{"dtype", std::string("i4")}},
       "has rows that end within a byte"},
      {"dequantise_cache",
       {{"codes", codes({4, 2, 3, 8})}, {"scale", f32({4, 2})}},
       {},
       "does not broadcast to f32[4, 2, 3]"},
  };
  expect_refusals(rows);
}

// ---- laws ---------------------------------------------------------------------------------------

std::vector<float> count_up(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

class KvCacheFunctions : public ::testing::Test {
 protected:
  Tensor numbers(const std::vector<std::int32_t>& values, Shape shape = {}) {
    if (shape.empty()) shape = {static_cast<std::int64_t>(values.size())};
    return context.upload(values, std::move(shape));
  }
  Context context = Context::open({.device = "host", .cache_directory = ""});
};

// Sequence 0 has 3 tokens of 5, sequence 1 one of 1; the third is none.
TEST_F(KvCacheFunctions, TablesAndMappingsSayTheSamePlaces) {
  const Tensor keys = context.upload(count_up(8), {4, 1, 2});
  const auto append = [&](const CacheSlots& slots) {
    const Tensor cache = context.upload(std::vector<float>(24, -1.0F), {4, 1, 3, 2});
    append_to_cache(context, keys, {}, {.keys = cache}, slots);
    context.synchronize();
    return context.download<float>(cache);
  };
  const auto by_tables = append({.block_tables = numbers({2, 0, 3, -7, 9, -9}, {3, 2}),
                                 .kv_lens = numbers({5, 1, -4}),
                                 .query_start_loc = numbers({0, 3, 4, -1}),
                                 .num_seqs = numbers({2})});
  EXPECT_EQ(by_tables, append({.slot_mapping = numbers({8, 0, 1, 9})}));
  EXPECT_THAT(by_tables, ElementsAre(2, 3, 4, 5, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0,
                                     1, 6, 7, -1, -1, -1, -1));
}

TEST_F(KvCacheFunctions, TheLastOfSeveralTokensWinsAndWrongOnesAreSkipped) {
  const Tensor keys = context.upload(count_up(5), {5, 1, 1});
  const Tensor cache = context.upload(std::vector<float>(4, -1.0F), {2, 1, 2, 1});
  append_to_cache(context, keys, {}, {.keys = cache}, {.slot_mapping = numbers({3, -1, 3, 4, 0})});
  try {
    context.synchronize();
    ADD_FAILURE() << "slot 4 is outside of the pool";
  } catch (const DataError& error) {
    EXPECT_EQ(error.operand(), "slot_mapping");
    EXPECT_EQ(error.index(), 3);
  }
  EXPECT_THAT(context.download<float>(cache), ElementsAre(4, -1, -1, 2));
}

// The loss is a sum of weights times what the caches hold after two calls, so that differences of
// it are exact. Slots that both calls write, tokens for one slot and skipped ones are among them.
TEST_F(KvCacheFunctions, PullbacksInReverseGiveTheGradientsOfAllThatCameBefore) {
  const CacheSlots first{.slot_mapping = numbers({3, -1, 0, 3})};
  const CacheSlots second{.block_tables = numbers({1, 0, 1, 1}, {2, 2}),
                          .kv_lens = numbers({1, 4}),
                          .query_start_loc = numbers({0, 1, 3})};
  std::vector<float> weights(2 * 2 * 2 * 3);
  for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i * i % 29) + 1;
  std::vector<float> all[] = {std::vector<float>(4 * 2 * 3), std::vector<float>(3 * 2 * 3),
                              std::vector<float>(weights.size())};
  const auto appended = [&] {
    const Tensor cache = context.upload(all[2], {2, 2, 2, 3});
    return std::pair{vjp::append_to_cache(context, context.upload(all[0], {4, 2, 3}), {},
                                          {.keys = cache}, first),
                     std::pair{vjp::append_to_cache(context, context.upload(all[1], {3, 2, 3}), {},
                                                    {.keys = cache}, second),
                               context.download<float>(cache)}};
  };
  const auto loss = [&] {
    const std::vector<float> cache = appended().second.second;
    return std::inner_product(cache.begin(), cache.end(), weights.begin(), 0.0F);
  };
  const auto [before, behind] = appended();
  const Tensor gradient = context.upload(weights, {2, 2, 2, 3});
  const Tensor of_second = behind.first({.keys = gradient}).keys;
  const Tensor of_first = before({.keys = gradient}).keys;
  const std::vector<float> found[] = {context.download<float>(of_first),
                                      context.download<float>(of_second),
                                      context.download<float>(gradient)};
  float written = 0;
  for (std::size_t which = 0; which < 3; ++which) {
    for (std::size_t i = 0; i < all[which].size(); ++i) {
      const float without = loss();
      all[which][i] = 1;
      EXPECT_EQ(found[which][i], loss() - without) << which << " " << i;
      all[which][i] = 0;
      written += which < 2 ? found[which][i] : 0;
    }
  }
  EXPECT_GT(written, 0);
}

TEST_F(KvCacheFunctions, CodesHaveNoGradient) {
  const Tensor cache = context.upload(std::vector<std::int8_t>(8, 1), {2, 1, 2, 2});
  const Tensor scale = context.upload(std::vector<float>(4, 1.0F), {2, 1, 2});
  const PagedCache codes{.keys = cache, .key_scale = scale};
  const CacheSlots slots{.slot_mapping = numbers({0})};
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_THAT(
      message([&] {
        vjp::append_to_cache(context, context.upload(count_up(2), {1, 1, 2}), {}, codes, slots);
      }),
      HasSubstr("has no gradient"));
  EXPECT_THAT(message([&] { append_to_cache_backward(context, codes, slots); }),
              HasSubstr("have no scales"));
}

TEST_F(KvCacheFunctions, PagesInCirclesChangePlaces) {
  const Tensor pool = context.upload(count_up(8), {4, 2});
  copy_pages(context, numbers({0, 1, 2, 0, -1, 3}), numbers({1, 2, 0, 3, 2, -1}), pool);
  EXPECT_THAT(context.download<float>(pool), ElementsAre(4, 5, 0, 1, 2, 3, 0, 1));
  const Tensor other = context.upload(count_up(6), {3, 2});
  copy_pages(context, numbers({2, 1}), numbers({0, 0}), pool, other);
  EXPECT_THAT(context.download<float>(pool), ElementsAre(2, 3, 0, 1, 2, 3, 0, 1));
}

TEST_F(KvCacheFunctions, CodesAndScalesAreTheInputUpToHalfAScale) {
  std::vector<float> values = count_up(2 * 2 * 3 * 4);
  for (float& value : values) value = std::sin(value);
  const Tensor input = context.upload(values, {2, 2, 3, 4});
  for (const CacheScale scale_of :
       {CacheScale::kTokenHead, CacheScale::kPage, CacheScale::kHead, CacheScale::kTensor}) {
    for (const DType dtype : {DType::kI8, DType::kI4}) {
      const QuantisedCache cache = quantise_cache(context, input, dtype, scale_of);
      const auto back =
          context.download<float>(dequantise_cache(context, cache.codes, cache.scale));
      const double step = 1.0 / (dtype == DType::kI8 ? 127 : 7);
      for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_NEAR(back[i], values[i], 0.5 * step) << i;
    }
  }
  EXPECT_EQ(quantise_cache(context, input, DType::kI8, CacheScale::kHead).scale.shape(),
            (Shape{1, 2, 1}));
}

TEST_F(KvCacheFunctions, AppendingQuantisesAsThePoolDoes) {
  std::vector<float> values = count_up(6);
  values[4] = 0;
  values[5] = 0;  // a row of zeros
  const Tensor keys = context.upload(values, {3, 1, 2});
  const Tensor cache = context.upload(std::vector<std::int8_t>(8, 99), {2, 1, 2, 2});
  const Tensor scale = context.upload(std::vector<float>(4, -1.0F), {2, 1, 2});
  append_to_cache(context, keys, {}, {.keys = cache, .key_scale = scale},
                  {.slot_mapping = numbers({2, 0, 3})});
  EXPECT_THAT(context.download<std::int8_t>(cache), ElementsAre(85, 127, 99, 99, 0, 127, 0, 0));
  EXPECT_THAT(context.download<float>(scale), ElementsAre(3.0F / 127, -1, 1.0F / 127, 1));
}

// ---- how rows are copied ------------------------------------------------------------------------

TEST(KvCacheLaunch, UnitsDivideAllThatRowsAreMadeOf) {
  using operations::kv_cache::RowStrides;
  using operations::kv_cache::unit_of;
  const RowStrides none{};
  EXPECT_EQ(unit_of(DType::kF16, 8, none, none), 16);
  EXPECT_EQ(unit_of(DType::kF16, 12, none, none), 4);
  EXPECT_EQ(unit_of(DType::kF16, 3, none, none), 2);
  EXPECT_EQ(unit_of(DType::kF32, 8, {.offset = 1}, none), 4);
  EXPECT_EQ(unit_of(DType::kI8, 32, none, {.inner = 33}), 1);
  EXPECT_EQ(unit_of(DType::kI4, 32, none, none), 16);
  EXPECT_EQ(unit_of(DType::kI4, 32, none, {.axis0 = 2}), 1);
}

}  // namespace
}  // namespace tessera
