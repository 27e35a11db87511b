// SPDX-License-Identifier: Apache-2.0
#include "tessera/targets.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tessera::tool
