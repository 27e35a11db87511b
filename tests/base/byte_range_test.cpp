// SPDX-License-Identifier: Apache-2.0
// Hand-made specs: where their elements lie, and which are refused.
#include "base/tensors/byte_range.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <random>
#include <set>

#include "support/messages.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

using testing::message_of;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

// As wide as no product or sum below can leave.
using Wide = __int128;

template <class Values>
auto one_of(std::mt19937_64& random, const Values& values) {
  return *(std::begin(values) + random() % std::size(values));
}

TensorSpec hostile(std::mt19937_64& random) {
  constexpr std::int64_t kExtents[] = {1, 1, 2, 2, 3, 5, 7, 0, -1, 1 << 20, kMost >> 3, kLeast};
  constexpr std::int64_t kStrides[] = {1,       1,         2,  3,  4,     6,      10,       0,
                                       1 << 20, 1LL << 61, -1, -7, kMost, kLeast, kMost / 2};
  constexpr std::int64_t kOffsets[] = {0, 0, 0, 1, 4, 254, -1, -4, 1LL << 61, kMost, kLeast};
  constexpr int kDTypes[] = {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 99};
  TensorSpec spec;
  spec.dtype = static_cast<DType>(one_of(random, kDTypes));
  const std::size_t rank = random() % 5;
  // Most specs have one flaw at most, or nothing else would be seen.
  const bool tame = random() % 3 != 0;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    spec.shape.push_back(tame ? static_cast<std::int64_t>(random() % 5) : one_of(random, kExtents));
    spec.strides.push_back(tame && random() % 8 != 0 ? static_cast<std::int64_t>(random() % 13)
                                                     : one_of(random, kStrides));
  }
  if (random() % 16 == 0) spec.strides.resize(random() % 6, 1);
  spec.offset = one_of(random, kOffsets);
  return spec;
}

// The element at every corner: what is between two corners is between their addresses.
std::optional<ByteRange> range_by_corners(const TensorSpec& spec, std::uint64_t buffer_bytes) {
  const auto number = static_cast<unsigned>(spec.dtype);
  if (number > 5 || spec.strides.size() != spec.shape.size() || spec.offset < 0) return {};
  const auto negative = [](std::int64_t n) { return n < 0; };
  if (std::ranges::any_of(spec.shape, negative) || std::ranges::any_of(spec.strides, negative))
    return {};
  constexpr int kSizes[] = {4, 2, 2, 4, 1, 8};
  const int size = kSizes[number];
  if (std::ranges::count(spec.shape, 0) > 0) return ByteRange{};
  Wide count = size, least = Wide{1} << 120, most = -1;
  for (const std::int64_t extent : spec.shape) count = count > kMost ? count : count * extent;
  if (count > kMost) return {};
  for (std::size_t corner = 0; corner < std::size_t{1} << spec.shape.size(); ++corner) {
    Wide element = spec.offset;
    for (std::size_t axis = 0; axis < spec.shape.size(); ++axis) {
      if ((corner >> axis & 1) != 0) element += Wide{spec.shape[axis] - 1} * spec.strides[axis];
    }
    least = std::min(least, element);
    most = std::max(most, element);
  }
  if ((most + 1) * size > kMost || (most + 1) * size > Wide{buffer_bytes}) return {};
  return ByteRange{static_cast<std::uint64_t>(least * size),
                   static_cast<std::uint64_t>((most + 1) * size)};
}

// Whether two elements are one; nothing for too many.
std::optional<bool> overlaps(const TensorSpec& spec) {
  constexpr std::int64_t kMostElements = 2000;
  const std::int64_t count = spec.elements();
  if (count > kMostElements) return {};
  std::set<std::int64_t> seen;
  for (std::int64_t flat = 0; flat < count; ++flat) {
    std::int64_t rest = flat, element = spec.offset;
    for (std::size_t axis = spec.shape.size(); axis-- > 0;) {
      element += rest % spec.shape[axis] * spec.strides[axis];
      rest /= spec.shape[axis];
    }
    if (!seen.insert(element).second) return true;
  }
  return false;
}

TEST(ByteRange, IsThatOfTheCornersOrAnError) {
  std::mt19937_64 random(11);
  std::size_t accepted = 0, refused = 0;
  for (int round = 0; round < 20000; ++round) {
    const TensorSpec spec = hostile(random);
    const std::uint64_t buffer = random() % 4 == 0 ? kAnyBuffer : random() % 512;
    const auto expected = range_by_corners(spec, buffer);
    std::optional<ByteRange> found;
    try {
      found = byte_range(spec, {}, buffer);
    } catch (const InvalidArgument&) {
    }
    ASSERT_EQ(found, expected) << round;
    ++(found ? accepted : refused);
  }
  EXPECT_GT(accepted, 1000U);
  EXPECT_GT(refused, 1000U);
}

TEST(ByteRange, OutputsWithElementsThatShareMemoryAreRefused) {
  std::mt19937_64 random(12);
  std::size_t accepted = 0, refused = 0;
  for (int round = 0; round < 20000; ++round) {
    const TensorSpec spec = hostile(random);
    if (!range_by_corners(spec, kAnyBuffer)) continue;
    bool taken = true;
    try {
      check_distinct_elements(spec, {});
    } catch (const InvalidArgument&) {
      taken = false;
    }
    const auto shared = overlaps(spec);
    if (shared && *shared) {
      ASSERT_FALSE(taken) << round;
    }
    ++(taken ? accepted : refused);
  }
  EXPECT_GT(accepted, 1000U);
  EXPECT_GT(refused, 1000U);
}

// What permute() and slice() make of a tensor may be written to.
TEST(ByteRange, ViewsOfContiguousTensorsAreOutputs) {
  std::mt19937_64 random(13);
  for (int round = 0; round < 2000; ++round) {
    Shape shape(1 + random() % 4);
    for (std::int64_t& extent : shape) extent = static_cast<std::int64_t>(random() % 6);
    TensorSpec spec = TensorSpec::contiguous(DType::kF16, shape);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const std::int64_t begin = static_cast<std::int64_t>(random() % 6);
      if (begin < spec.shape[axis]) {
        spec.offset += begin * spec.strides[axis];
        spec.shape[axis] -= begin;
      }
      const std::size_t other = random() % shape.size();
      std::swap(spec.shape[axis], spec.shape[other]);
      std::swap(spec.strides[axis], spec.strides[other]);
    }
    EXPECT_NO_THROW(check_distinct_elements(spec, {})) << round;
  }
}

TEST(ByteRange, RefusalsAreSentences) {
  const auto of = [](TensorSpec spec, std::uint64_t buffer = kAnyBuffer) {
    return message_of([&] { byte_range(spec, {.call = "call", .name = "x"}, buffer); });
  };
  const DType f32 = DType::kF32;
  EXPECT_EQ(of({f32, {2, 3}, {1}, 0}), "call: x f32[2, 3] has not one stride for each axis");
  EXPECT_EQ(of({f32, {2}, {-1}, 1}), "call: x f32[2] has a negative stride along axis 0");
  EXPECT_EQ(of({f32, {2, -3}, {3, 1}, 0}), "call: x f32[2, -3] has a negative extent along axis 1");
  EXPECT_EQ(of({f32, {2}, {1}, -4}), "call: x f32[2] starts at the negative offset -4");
  EXPECT_EQ(of({f32, {2, 2}, {1LL << 61, 1}, 0}),
            "call: x f32[2, 2] reaches beyond what 64 bits can address");
  EXPECT_EQ(of({f32, {1LL << 40, 1LL << 40}, {0, 0}, 0}),
            "call: x f32[1099511627776, 1099511627776] has more elements than 64 bits can count");
  EXPECT_EQ(of({f32, {2}, {1}, 254}, 1020), "call: x f32[2] reaches byte 1024 of a buffer of 1020");
  EXPECT_EQ(of({f32, {2}, {1}, 254}, 1024), "");
  EXPECT_EQ(of({static_cast<DType>(99), {2}, {1}, 0}),
            "a dtype has the number 99, which stands for none");
  EXPECT_EQ(message_of([&] {
              check_distinct_elements({f32, {4, 3}, {2, 1}, 0}, {.call = "call", .name = "y"});
            }),
            "call: y f32[4, 3] is written to and has stride 2 along axis 0, within the 3 elements "
            "of other axes");
}

TEST(ByteRange, RowsOfPackedElementsBeginWithAByte) {
  const DType i4 = DType::kI4;
  const TensorSpec odd = TensorSpec::contiguous(i4, {2, 3, 5});
  EXPECT_EQ(odd.strides, (Shape{18, 6, 1}));
  EXPECT_TRUE(odd.is_contiguous());
  EXPECT_EQ(odd.last_element(), 34);
  EXPECT_EQ(byte_range(odd, {}), (ByteRange{0, 18}));
  EXPECT_EQ(byte_range({i4, {4}, {1}, 6}, {}), (ByteRange{3, 5}));
  EXPECT_EQ(byte_range(TensorSpec::contiguous(i4, {3, 1}), {}), (ByteRange{0, 3}));
  const auto of = [](const TensorSpec& spec) {
    return message_of([&] { byte_range(spec, {.call = "call", .name = "x"}); });
  };
  EXPECT_EQ(of({i4, {4}, {1}, 3}), "call: x i4[4] starts within a byte, at offset 3");
  EXPECT_EQ(of({i4, {4}, {2}, 0}), "call: x i4[4] is packed and has not stride 1 along axis 0");
  EXPECT_EQ(of({i4, {4, 3}, {3, 1}, 0}),
            "call: x i4[4, 3] has rows that start within a byte, with stride 3 along axis 0");
  EXPECT_THROW(size_of(i4), InvalidArgument);
  EXPECT_EQ(bits_of(i4), 4U);
}

TEST(ByteRange, QuestionsToASpecAreChecked) {
  EXPECT_THROW((TensorSpec{DType::kF32, {2, 3}, {1}, 0}.last_element()), InvalidArgument);
  EXPECT_FALSE((TensorSpec{DType::kF32, {2, 3}, {1}, 0}.is_contiguous()));
  EXPECT_FALSE((TensorSpec{DType::kF32, {kMost, kMost, 2}, {2, 2, 1}, 0}.is_contiguous()));
  EXPECT_THROW((TensorSpec{DType::kF32, {-2, 3}, {3, 1}, 0}.elements()), InvalidArgument);
  EXPECT_THROW(size_of(static_cast<DType>(99)), InvalidArgument);
  EXPECT_THROW(to_string(static_cast<DType>(99)), InvalidArgument);
  EXPECT_THROW(TensorSpec::contiguous(DType::kF32, {2, -1}), InvalidArgument);
}

}  // namespace
}  // namespace tessera
