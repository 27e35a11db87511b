// SPDX-License-Identifier: Apache-2.0
// Tables of as many sequences as servers will ever have: on every platform what the host says, in a
// time that grows with the sequences and not with their square; and errors everywhere at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "support/messages.hpp"
#include "tessera/operations/cumsum.hpp"
#include "tessera/operations/kv_cache.hpp"
#include "tessera/operations/recurrent.hpp"

namespace tessera {
namespace {

using testing::message_of;

// Some sequences are empty, and some boundaries lie where none may lie: they count as the nearest
// that do not contradict.
std::vector<std::int32_t> boundaries(std::int32_t sequences, std::int32_t tokens) {
  std::vector<std::int32_t> result;
  for (std::int32_t n = 0; n <= sequences; ++n) {
    result.push_back(static_cast<std::int32_t>(std::int64_t{tokens} * (n / 3 * 3) / sequences));
    if (n % 1000 == 7) result.back() = n % 2000 == 7 ? -5 : 0;
    if (n == sequences - 20) result.back() = 2147483647;
  }
  return result;
}

class ManySequences : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (select_devices(probe_devices(), GetParam()).empty()) GTEST_SKIP() << "no such device here";
    context = Context::open({.device = GetParam(), .cache_directory = ""});
  }

  // What `call` returns on the device and on the host, whatever it raises.
  template <class Call>
  void expect_equal(const Call& call) {
    std::vector<float> results[2];
    std::string errors[2];
    for (std::size_t which = 0; which < 2; ++which) {
      const Context& on = which == 0 ? host : *context;
      const Tensor result = call(on);
      errors[which] = message_of<DataError>([&] { on.synchronize(); });
      results[which] = on.download<float>(result);
    }
    EXPECT_EQ(errors[0], errors[1]);
    ASSERT_EQ(results[0].size(), results[1].size());
    std::size_t different = 0;
    for (std::size_t i = 0; i < results[0].size(); ++i)
      different += std::abs(results[0][i] - results[1][i]) > 1e-4F ? 1U : 0U;
    EXPECT_EQ(different, 0U);
  }

  static Tensor counted(const Context& on, Shape shape) {
    std::vector<float> values(
        static_cast<std::size_t>(TensorSpec::contiguous(DType::kF32, shape).elements()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 127) / 64;
    return on.upload(values, std::move(shape));
  }

  std::optional<Context> context;
  Context host = Context::open({.device = "host", .cache_directory = ""});
};

TEST_P(ManySequences, TokensFindTheirPages) {
  constexpr std::int32_t kSequences = 100000, kTokens = 30000, kPages = 1000;
  for (const bool disordered : {false, true}) {
    std::vector<std::int32_t> starts = boundaries(kSequences, kTokens), lengths, tables;
    if (!disordered) std::sort(starts.begin(), starts.end());
    for (std::int32_t& start : starts) start = disordered ? start : std::clamp(start, 0, kTokens);
    for (std::int32_t n = 0; n < kSequences; ++n) {
      lengths.push_back(4);
      tables.push_back(n % kPages);
    }
    expect_equal([&](const Context& on) {
      const Tensor cache = on.upload(std::vector<float>(kPages * 4, -1.0F), {kPages, 1, 4, 1});
      append_to_cache(on, counted(on, {kTokens, 1, 1}), {}, {.keys = cache},
                      {.block_tables = on.upload(tables, {kSequences, 1}),
                       .kv_lens = on.upload(lengths, {kSequences}),
                       .query_start_loc = on.upload(starts, {kSequences + 1})});
      return cache;
    });
  }
}

TEST_P(ManySequences, SumsStayWithinThem) {
  constexpr std::int32_t kSequences = 20000, kTokens = 25000;
  expect_equal([&](const Context& on) {
    return cumsum(on, counted(on, {1, kTokens, 1}),
                  {.cu_seqlens = on.upload(boundaries(kSequences, kTokens), {kSequences + 1})});
  });
}

TEST_P(ManySequences, StatesStayWithinThem) {
  // Vulkan takes 512 tokens of every sequence at a time on processors, and keeps their states.
  const bool is_vulkan = context->device().backend == Backend::kVulkan;
  const std::int32_t sequences = is_vulkan ? 1000 : 10000, tokens = is_vulkan ? 500 : 15000;
  expect_equal([&](const Context& on) {
    const Tensor rows = counted(on, {1, tokens, 1, 4});
    return recurrent(on, rows, rows, rows,
                     {.cu_seqlens = on.upload(boundaries(sequences, tokens), {sequences + 1})})
        .output;
  });
}

// Kinds in the record's order, and of a kind the smallest index, however often it is run.
TEST_P(ManySequences, OfErrorsOfSeveralKindsTheFirstIsTold) {
  constexpr std::int32_t kSequences = 3000, kTokens = 3000;
  std::vector<std::int32_t> starts, lengths(kSequences, 1), tables(kSequences, 9);
  for (std::int32_t n = 0; n <= kSequences; ++n) starts.push_back(n);
  const auto told = [&] {
    const Tensor cache = context->upload(std::vector<float>(8, 0.0F), {8, 1, 1, 1});
    append_to_cache(*context, counted(*context, {kTokens, 1, 1}), {}, {.keys = cache},
                    {.block_tables = context->upload(tables, {kSequences, 1}),
                     .kv_lens = context->upload(lengths, {kSequences}),
                     .query_start_loc = context->upload(starts, {kSequences + 1})});
    return message_of<DataError>([&] { context->synchronize(); });
  };
  const std::string name = "append_to_cache: ";
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(told(), name +
                          "block_tables[0] names a page outside the pool, and a new token "
                          "belongs there");
  }
  std::fill(lengths.begin() + 777, lengths.end(), -3);
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(told(), name +
                          "kv_lens[777] is less than the sequence's new tokens or more than its "
                          "pages hold");
  }
  std::fill(starts.begin() + 2345, starts.end(), kTokens + 1);
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(told(), name + "query_start_loc[2345] decreases or lies outside of the tokens");
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, ManySequences,
                         ::testing::Values("host", "opencl:cpu", "vulkan:cpu"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

}  // namespace
}  // namespace tessera
