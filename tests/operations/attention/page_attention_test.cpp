// SPDX-License-Identifier: Apache-2.0
// Keys in pages: refusals, laws of the reference, what it raises, and hostile tables on
// the devices of this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "operations/attention/host_case.hpp"
#include "operations/attention_core/core/pages_args.h"
#include "operations/attention_core/problem.hpp"
#include "support/hostile_tables.hpp"
#include "support/messages.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::attention {
namespace {

using Values = std::vector<double>;

Case case_of(const std::string& operation, const std::string& name) {
  const std::vector<Case> cases = find_operation(operation).workload.cases(DType::kF32);
  return *std::ranges::find(cases, name, &Case::name);
}

// The call of `pages`, with an operand in place of its own.
std::string refusal(const std::string& operation, const std::string& operand, TensorSpec spec,
                    Options options = {}) {
  Case shape = case_of(operation, "pages");
  shape.operands.resize(find_operation(operation).operands.size());
  if (!operand.empty()) shape.operands[find_operation(operation).slot(operand)] = std::move(spec);
  return testing::message_of<InvalidArgument>(
      [&] { make_problem(find_operation(operation), shape.operands, options); });
}

TensorSpec f32(Shape shape) { return TensorSpec::contiguous(DType::kF32, std::move(shape)); }
TensorSpec i32(Shape shape) { return TensorSpec::contiguous(DType::kI32, std::move(shape)); }

TEST(PageAttention, RefusesWhatDoesNotBelongTogether) {
  const std::string op = "page_attention";
  const auto says = [&](const std::string& operand, const TensorSpec& spec,
                        const std::string& text) {
    EXPECT_EQ(refusal(op, operand, spec), op + ": " + text);
  };
  says("query", f32({3, 1, 8, 64}),
       "query f32[3, 1, 8, 64] must have the 3 axes [rows, heads, head_dim]");
  says("query", f32({4, 8, 64}),
       "query f32[4, 8, 64] and block_tables i32[3, 7] must have the same sequences");
  says("query", f32({3, 9, 64}), "the 9 query heads must be a multiple of the 2 key/value heads");
  says("query", f32({3, 8, 32}),
       "key_cache f32[23, 2, 16, 64] and query f32[3, 8, 32] must have the same head_dim");
  says("key_cache", f32({23, 2, 64}),
       "key_cache f32[23, 2, 64] must have the 4 axes [pages, kv_heads, page_size, dim]");
  says("key_cache", f32({0, 2, 16, 64}),
       "key_cache f32[0, 2, 16, 64] must have a page, a token and a head");
  says("value_cache", f32({23, 2, 8, 64}),
       "key_cache f32[23, 2, 16, 64] and value_cache f32[23, 2, 8, 64] must have the same pages, "
       "heads and page size");
  EXPECT_TRUE(refusal(op, "value_cache", TensorSpec::contiguous(DType::kF16, {23, 2, 16, 64}))
                  .starts_with(op + ": query f32, key_cache f32, value_cache f16 is no combination "
                                    "of dtypes that it takes"));
  says("key_scale", f32({23, 2, 16}), "key_cache holds no codes and takes no key_scale");
  says("value_cache", f32({23, 2, 16, 513}),
       "value_cache f32[23, 2, 16, 513] must have a last axis of 1 to 512");
  says("context_lens", i32({4}), "context_lens i32[4] must be [sequences], [3]");
  says("block_tables", i32({21}), "block_tables i32[21] must be [sequences, pages of a sequence]");
  says("block_tables", i32({3, 1 << 26}),
       "block_tables i32[3, 67108864] must have room for fewer than 2^30 tokens");
  says("block_tables", i32({1 << 30, 1}),
       "block_tables i32[1073741824, 1] must have fewer than 2^30 sequences");
  EXPECT_EQ(refusal(op, "", {}, {{"sliding_window", std::int64_t{0}}}),
            "page_attention: option 'sliding_window' must be an integer of at least 1, not '0'");
  EXPECT_EQ(refusal(op, "", {}, {{"attn_logits_soft_cap", -1.0}}),
            "page_attention: option 'attn_logits_soft_cap' must be greater than 0, not '-1'");
}

// The call of a case with codes, with an operand in place of its own, or without it.
std::string refusal_of_codes(DType code, const std::string& operand,
                             std::optional<TensorSpec> spec) {
  const Operation& operation = find_operation("page_attention");
  const std::string name = "f32_" + std::string(to_string(code));
  const auto types = std::ranges::find(operation.types, name, &StorageTypes::name);
  Case shape = operation.workload.cases(*types).front();
  shape.operands[operation.slot(operand)] = std::move(spec);
  return testing::message_of<InvalidArgument>([&] { make_problem(operation, shape.operands, {}); });
}

TEST(PageAttention, RefusesCodesWithoutTheirScales) {
  const std::string op = "page_attention: ";
  EXPECT_EQ(refusal_of_codes(DType::kI8, "value_scale", std::nullopt),
            op + "value_cache holds codes and needs value_scale");
  EXPECT_EQ(refusal_of_codes(DType::kI8, "key_scale", f32({23, 2})),
            op + "key_scale f32[23, 2] must have the axes of key_cache i8[23, 2, 16, 64] but the "
                 "last, or 1 in their place");
  EXPECT_EQ(refusal_of_codes(DType::kI8, "key_scale", f32({23, 8, 1})),
            op + "key_scale f32[23, 8, 1] must have the axes of key_cache i8[23, 2, 16, 64] but "
                 "the last, or 1 in their place");
  EXPECT_EQ(refusal_of_codes(DType::kI4, "value_cache",
                             TensorSpec::contiguous(DType::kI4, {23, 2, 16, 63})),
            op + "value_cache i4[23, 2, 16, 63] has rows that begin or end within a byte");
}

// Whatever shares a scale, codes mean what floats say that are code times scale.
TEST(PageAttention, CodesMeanThemselvesTimesTheirScale) {
  for (const std::string name : {"page_attention", "ragged_page_attention"}) {
    const Operation& operation = find_operation(name);
    const auto types = std::ranges::find(operation.types, "f32_i8", &StorageTypes::name);
    const std::vector<Case> coded = operation.workload.cases(*types);
    for (const std::string kind : {"pages", "policies", "splits", "odd_page"}) {
      const Case& shape = *std::ranges::find(coded, kind, &Case::name);
      testing::HostCase codes(operation, shape);
      operation.reference(codes.problem(), codes.tensors());
      Case plain = case_of(name, kind);
      testing::HostCase floats(operation, plain);
      const bool combined = name != "page_attention";
      for (std::size_t slot = 0; slot < operation.operands.size(); ++slot) {
        if (!floats.problem().has(slot) || is_written(operation.operands[slot].role)) continue;
        floats.tensors()[slot].write(codes.tensors()[slot].read());
      }
      const std::vector<std::pair<std::string, std::string>> pools =
          combined ? std::vector<std::pair<std::string, std::string>>{{"kv_pages", "kv_scale"}}
                   : std::vector<std::pair<std::string, std::string>>{
                         {"key_cache", "key_scale"}, {"value_cache", "value_scale"}};
      for (const auto& [pool, scale] : pools) {
        const HostTensor &rows = codes.tensors()[operation.slot(pool)],
                         &scales = codes.tensors()[operation.slot(scale)];
        Values values = rows.read();
        const Values factors = scales.read();
        const Shape &all = rows.spec.shape, &of = scales.spec.shape;
        for (std::size_t n = 0; n < values.size(); ++n) {
          const auto row = static_cast<std::int64_t>(n) / all[3];
          const std::int64_t first = of[0] > 1 ? row / (all[1] * all[2]) : 0,
                             second = of[1] > 1 ? row / all[2] % all[1] : 0,
                             third = of[2] > 1 ? row % all[2] : 0;
          values[n] *= factors[static_cast<std::size_t>((first * of[1] + second) * of[2] + third)];
        }
        floats.tensors()[operation.slot(pool)].write(values);
      }
      operation.reference(floats.problem(), floats.tensors());
      const Values wanted = floats.tensors()[operation.slot("output")].read(),
                   got = codes.tensors()[operation.slot("output")].read();
      ASSERT_EQ(wanted.size(), got.size());
      for (std::size_t n = 0; n < wanted.size(); ++n)
        EXPECT_NEAR(got[n], wanted[n], 1e-5 * (1 + std::fabs(wanted[n]))) << name << kind << n;
    }
  }
}

TEST(RaggedPageAttention, RefusesWhatDoesNotBelongTogether) {
  const std::string op = "ragged_page_attention";
  EXPECT_EQ(refusal(op, "kv_pages", f32({23, 16, 3, 64})),
            op + ": kv_pages f32[23, 16, 3, 64] must have an even number of heads, those of keys "
                 "and values by turns");
  EXPECT_EQ(refusal(op, "query_start_loc", i32({3})),
            op + ": query_start_loc i32[3] must be [sequences + 1], [4]");
  EXPECT_EQ(refusal(op, "num_seqs", i32({2})), op + ": num_seqs i32[2] must be [1]");
  EXPECT_EQ(refusal(op, "distribution", i32({2})), op + ": distribution i32[2] must be [3]");
}

TEST(RaggedDecodeAttention, RefusesWhatDoesNotBelongTogether) {
  const std::string op = "ragged_decode_attention";
  const auto says = [&](const std::string& operand, const TensorSpec& spec,
                        const std::string& text) {
    Case shape = case_of(op, "spans");
    shape.operands.resize(find_operation(op).operands.size());
    shape.operands[find_operation(op).slot(operand)] = spec;
    EXPECT_EQ(testing::message_of<InvalidArgument>(
                  [&] { make_problem(find_operation(op), shape.operands, {}); }),
              op + ": " + text);
  };
  says("query", f32({5, 2, 8, 64}),
       "query f32[5, 2, 8, 64] must be [batch, heads, head_dim] or [batch, 1, heads, head_dim]");
  says("query", f32({4, 8, 64}),
       "query f32[4, 8, 64] and key f32[5, 301, 2, 64] must have the same batch and head_dim");
  says("value", f32({5, 300, 2, 64}),
       "key f32[5, 301, 2, 64] and value f32[5, 300, 2, 64] must have the same batch, number of "
       "rows and number of heads");
  says("sequence_end", i32({4}), "sequence_end i32[4] must be [batch], [5]");
  says("position_bias", f32({3, 9}),
       "position_bias f32[3, 9] must be [positions] or [heads or kv_heads, positions]");
  says("position_bias", TensorSpec::contiguous(DType::kF16, {9}),
       "position_bias f16[9] must have the dtype of query, f32, or f32");
}

// Behind the cap, by the row of the cache and not of the sequence, and of rows that are seen alone.
TEST(RaggedDecodeAttention, AddsThePositionBiasToTheFirstRows) {
  constexpr std::size_t kBatch = 5, kRows = 301, kHeads = 8, kKvHeads = 2, kDim = 64, kFirst = 70;
  constexpr double kCap = 2;
  const Operation& operation = find_operation("ragged_decode_attention");
  testing::HostCase host(operation, case_of(operation.name, "position_bias"));
  const auto at = [&](const char* name) -> HostTensor& {
    return host.tensors()[operation.slot(name)];
  };
  at("sequence_start").write(Values{0, 3, 69, 70, 200});
  at("sequence_end").write(Values{301, 60, 72, 90, 201});
  Values keys = at("key").read(), values = at("value").read();
  for (std::size_t n = 0; n < keys.size(); ++n) {
    keys[n] = std::sin(static_cast<double>(n));
    values[n] = std::cos(static_cast<double>(n));
  }
  at("key").write(keys);
  at("value").write(values);
  operation.reference(host.problem(), host.tensors());
  const Values query = at("query").read(), biases = at("position_bias").read(),
               sinks = at("softmax_aux").read(), output = at("output").read(),
               starts = at("sequence_start").read(), ends = at("sequence_end").read();
  keys = at("key").read();
  values = at("value").read();
  for (std::size_t n = 0; n < kBatch; ++n) {
    for (std::size_t h = 0; h < kHeads; ++h) {
      double total = std::exp(sinks[0]) + std::exp(sinks[1]), sum = 0;
      for (auto j = static_cast<std::size_t>(starts[n]); j < static_cast<std::size_t>(ends[n]);
           ++j) {
        const std::size_t row = ((n * kRows + j) * kKvHeads + h / 4) * kDim;
        double dot = 0;
        for (std::size_t d = 0; d < kDim; ++d)
          dot += query[(n * kHeads + h) * kDim + d] * keys[row + d];
        const double bias = j < kFirst ? biases[h * kFirst + j] : 0;
        const double weight = std::exp(kCap * std::tanh(dot / 8 / kCap) + bias);
        total += weight;
        sum += weight * values[row + 5];
      }
      EXPECT_NEAR(output[(n * kHeads + h) * kDim + 5], sum / total, 1e-6) << n << " " << h;
    }
  }
}

// Written out, for one sequence after the other.
TEST(PageAttention, IsSoftmaxOverTheTokensOfTheTable) {
  const Operation& operation = find_operation("page_attention");
  testing::HostCase host(operation, case_of("page_attention", "pages"));
  const auto read = [&](const char* name) { return host.tensors()[operation.slot(name)].read(); };
  operation.reference(host.problem(), host.tensors());
  const Values query = read("query"), keys = read("key_cache"), values = read("value_cache"),
               lengths = read("context_lens"), table = read("block_tables"),
               output = read("output");
  constexpr std::size_t kHeads = 8, kKvHeads = 2, kDim = 64, kSize = 16, kLine = 7;
  for (std::size_t n = 0; n < lengths.size(); ++n) {
    for (std::size_t h = 0; h < kHeads; ++h) {
      Values sums(kDim, 0.0);
      double total = 0;
      for (std::size_t t = 0; t < static_cast<std::size_t>(lengths[n]); ++t) {
        const auto page = static_cast<std::size_t>(table[n * kLine + t / kSize]);
        const std::size_t at = ((page * kKvHeads + h / 4) * kSize + t % kSize) * kDim;
        const double weight = std::exp(
            std::inner_product(keys.begin() + static_cast<std::ptrdiff_t>(at),
                               keys.begin() + static_cast<std::ptrdiff_t>(at + kDim),
                               query.begin() + static_cast<std::ptrdiff_t>((n * kHeads + h) * kDim),
                               0.0) /
            8);
        total += weight;
        for (std::size_t d = 0; d < kDim; ++d) sums[d] += weight * values[at + d];
      }
      for (std::size_t d = 0; d < kDim; ++d) {
        EXPECT_NEAR(output[(n * kHeads + h) * kDim + d], total > 0 ? sums[d] / total : 0, 1e-6)
            << n << " " << h << " " << d;
      }
    }
  }
}

// What the tables of a case raise with one number changed.
std::vector<Raised> raised_by(const std::string& name, const std::string& operand,
                              std::size_t index, double value, const std::string& kind = "pages") {
  const Operation& operation = find_operation(name);
  testing::HostCase host(operation, case_of(name, kind));
  HostTensor& tensor = host.tensors()[operation.slot(operand)];
  Values values = tensor.read();
  values.at(index) = value;
  tensor.write(values);
  return operation.raises(host.problem(), host.tensors());
}

void expect_one(const std::vector<Raised>& raised, std::uint32_t error, std::uint32_t index) {
  ASSERT_EQ(raised.size(), 1U);
  EXPECT_EQ(raised[0].error, error);
  EXPECT_EQ(raised[0].index, index);
}

TEST(PageAttention, RaisesWhatIsWrongAndNothingElse) {
  const std::string op = "page_attention";
  const auto count = static_cast<double>(case_of(op, "pages").operands[1]->shape[0]);
  EXPECT_TRUE(raised_by(op, "block_tables", 0, 0).empty());
  EXPECT_TRUE(raised_by(op, "block_tables", 7 * 2 - 1, -1).empty());  // behind the length
  expect_one(raised_by(op, "block_tables", 2, count), PAGES_OUTSIDE_POOL, 2);
  expect_one(raised_by(op, "block_tables", 2, -1), PAGES_OUTSIDE_POOL, 2);
  expect_one(raised_by(op, "context_lens", 0, 7 * 16 + 1), PAGES_BAD_LENGTH, 0);
  expect_one(raised_by(op, "context_lens", 1, std::numeric_limits<std::int32_t>::min()),
             PAGES_BAD_LENGTH, 1);
  // The last 29 of 112 tokens are in pages 5 and 6; those in front may be freed.
  EXPECT_TRUE(raised_by(op, "block_tables", 4, -1, "policies").empty());
  expect_one(raised_by(op, "block_tables", 5, -1, "policies"), PAGES_OUTSIDE_POOL, 5);
  const std::string ragged = "ragged_page_attention";
  EXPECT_TRUE(raised_by(ragged, "num_seqs", 0, 1).empty());
  expect_one(raised_by(ragged, "num_seqs", 0, -3), PAGES_BAD_COUNT, 0);
  expect_one(raised_by(ragged, "query_start_loc", 0, -1), PAGES_BAD_START, 0);
  expect_one(raised_by(ragged, "context_lens", 1, 1), PAGES_MORE_ROWS, 1);
}

// On every device, by what a call gets: results, errors and guard bands. Others with
// --gtest_random_seed=N.
class HostileTables : public ::testing::TestWithParam<const char*> {};

TEST_P(HostileTables, LeaveWhatIsDefined) {
  const Operation& operation = find_operation(GetParam());
  std::size_t devices = 0;
  for (const DeviceInfo& info : probe_devices().devices) {
    const Context context = Context::open(std::to_string(info.index));
    if (context.device().backend == Backend::kHost) continue;
    ++devices;
    Case shape = case_of(operation.name, "hostile");
    std::size_t raising = 0;
    constexpr std::uint64_t kTables = 40;
    const auto first =
        1000 * static_cast<std::uint64_t>(::testing::UnitTest::GetInstance()->random_seed());
    ASSERT_EQ(testing::check_hostile_tables(context, operation, shape, first, kTables), "")
        << info.profile.name;
    for (std::uint64_t seed = first; seed < first + kTables; ++seed) {
      shape.seed = seed;
      testing::HostCase host(operation, shape);
      raising += operation.raises(host.problem(), host.tensors()).empty() ? 0 : 1;
    }
    EXPECT_GT(raising, kTables / 2);
  }
  if (devices == 0) GTEST_SKIP() << "this machine has no device but the host";
}

INSTANTIATE_TEST_SUITE_P(PageAttention, HostileTables,
                         ::testing::Values("page_attention", "ragged_page_attention",
                                           "ragged_page_attention_v3", "ragged_decode_attention"));

}  // namespace
}  // namespace tessera::operations::attention
