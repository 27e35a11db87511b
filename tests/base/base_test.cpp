// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <limits>

#include "base/hash.hpp"
#include "base/system/log.hpp"
#include "base/tensors/checked.hpp"

namespace tessera {
namespace {

constexpr auto kMax = std::numeric_limits<std::uint64_t>::max();
constexpr auto kMaxSigned = std::numeric_limits<std::int64_t>::max();
constexpr auto kMinSigned = std::numeric_limits<std::int64_t>::min();

TEST(CheckedArithmetic, Edges) {
  EXPECT_EQ(checked_add(kMax, 0), kMax);
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_add(kMaxSigned, 1), std::nullopt);
  EXPECT_EQ(checked_add(kMinSigned, -1), std::nullopt);
  EXPECT_EQ(checked_add(kMinSigned, kMaxSigned), -1);
  EXPECT_EQ(checked_mul(std::uint64_t{1} << 32, std::uint64_t{1} << 31), std::uint64_t{1} << 63);
  EXPECT_EQ(checked_mul(std::uint64_t{1} << 32, std::uint64_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_mul(kMinSigned, -1), std::nullopt);
  EXPECT_EQ(checked_mul(kMaxSigned, -1), -kMaxSigned);
  EXPECT_EQ(checked_product<std::uint64_t>({}), 1U);
  EXPECT_EQ(checked_product<std::uint64_t>({kMax, kMax, 0}), 0U) << "no element at all";
  EXPECT_EQ(checked_product<std::uint64_t>({kMax, 2}), std::nullopt);
  static_assert(checked_mul(std::int64_t{6}, 7) == 42);
}

TEST(CheckedArithmetic, ThrowingFormsSayWhatItWas) {
  EXPECT_EQ(mul_or_throw(std::int64_t{6}, 7, "x"), 42);
  EXPECT_EQ(add_or_throw(std::uint64_t{6}, 7, "x"), 13U);
  try {
    mul_or_throw(kMax, 2, "bytes of q");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "bytes of q does not fit into 64 bits: 18446744073709551615 * 2");
  }
  EXPECT_THROW(add_or_throw(kMaxSigned, 1, "x"), InvalidArgument);
}

// Files on users' disks depend on these.
TEST(Hashes, AreXxh3) {
  EXPECT_EQ(hash128(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash128("a"), hash128(std::string("a")));
  EXPECT_NE(hash128("a"), hash128("b"));
  EXPECT_EQ(hash128(std::string(1000, 'x')).size(), 32U);
}

TEST(Logging, LevelsAreOrdered) {
  EXPECT_FALSE(log_enabled(LogLevel::kOff));
  for (int level = 2; level <= static_cast<int>(LogLevel::kDebug); ++level) {
    // Whatever TESSERA_LOG says: a chattier level is never on while a quieter one is off.
    EXPECT_LE(log_enabled(static_cast<LogLevel>(level)),
              log_enabled(static_cast<LogLevel>(level - 1)));
  }
}

}  // namespace
}  // namespace tessera
