// SPDX-License-Identifier: Apache-2.0
#include "tessera/measure/targets.hpp"

#include <gtest/gtest.h>

#include <cstdint>

#include "tessera/output/usage.hpp"

namespace tessera::tool {
namespace {

TEST(BenchmarkCases, AreThoseWhoseNameContainsTheWordUnlessOneIsCalledThat) {
  const Operation& attention = *target_operations("flash_attention").front();
  const auto count = [&](const char* word) {
    return benchmark_cases(attention, DType::kF32, word).size();
  };
  EXPECT_GT(count(""), count("d64"));
  EXPECT_GT(count("s2048_d64"), 1U);
  EXPECT_EQ(count("b1_h8_s2048_d64"), 1U);  // and b1_h8_s2048_d64_causal is not among them
  EXPECT_EQ(count("no such benchmark"), 0U);
}

TEST(ParseOptions, SeedsHaveSixtyFourBits) {
  const Operation& attention = *target_operations("flash_attention").front();
  const auto seed = [&](const std::string& text) {
    return parse_options(attention, {"dropout_seed=" + text}).at("dropout_seed");
  };
  EXPECT_EQ(seed("7"), OptionValue(std::int64_t{7}));
  EXPECT_EQ(seed("-3"), OptionValue(std::int64_t{-3}));
  EXPECT_EQ(seed("9223372036854775808"), OptionValue(INT64_MIN));
  EXPECT_EQ(seed("18446744073709551615"), OptionValue(std::int64_t{-1}));
  EXPECT_THROW(seed("18446744073709551616"), UsageError);
  EXPECT_THROW(seed("1e3"), UsageError);
  EXPECT_THROW(parse_options(attention, {"num_splits=18446744073709551615"}), UsageError)
      << "a seed is not just any number";
}

TEST(SecondsBetween, TakesFiniteNumbersInRange) {
  const auto check = [](const char* text) { return why_no_seconds(text, 0.1, 1e6); };
  for (const char* good : {"0.1", "1", "1e6", "60.5"}) EXPECT_EQ(check(good), "") << good;
  for (const char* bad :
       {"nan", "-nan", "inf", "-inf", "0", "-1", "1e7", "1e999", "", "soon", "1s"})
    EXPECT_NE(check(bad), "") << bad;
}

}  // namespace
}  // namespace tessera::tool
