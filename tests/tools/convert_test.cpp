// SPDX-License-Identifier: Apache-2.0
#include "tessera/files/convert.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "tessera/error.hpp"

namespace tessera::tool {
namespace {

template <class T>
FileTensor tensor_of(ElementType type, std::initializer_list<T> values) {
  FileTensor tensor{type, {static_cast<std::int64_t>(values.size())}, {}};
  tensor.bytes.resize(values.size() * sizeof(T));
  std::memcpy(tensor.bytes.data(), values.begin(), tensor.bytes.size());
  return tensor;
}

template <class T>
std::vector<T> values_of(const Converted& converted) {
  std::vector<T> values(converted.bytes.size() / sizeof(T));
  std::memcpy(values.data(), converted.bytes.data(), converted.bytes.size());
  return values;
}

TEST(Convert, RoundsOnceToNearestEven) {
  // 1 + 2^-11 + 2^-30 lies above the middle of two halves; through float it would land on the
  // middle and round down.
  const FileTensor wide =
      tensor_of<double>(ElementType::kF64, {1 + 0x1p-11 + 0x1p-30, 1 + 0x1p-11, -2.5});
  const auto halves = values_of<std::uint16_t>(convert(wide, DType::kF16, "x"));
  EXPECT_EQ(halves, (std::vector<std::uint16_t>{0x3c01, 0x3c00, 0xc100}));
  const auto floats = values_of<float>(convert(wide, DType::kF32, "x"));
  EXPECT_EQ(floats[2], -2.5F);
}

TEST(Convert, CountsFiniteValuesThatBecomeInfinite) {
  const FileTensor tensor =
      tensor_of<float>(ElementType::kF32, {1e6F, -1e6F, std::numeric_limits<float>::infinity(),
                                           std::numeric_limits<float>::quiet_NaN(), 65504.F});
  const Converted half = convert(tensor, DType::kF16, "x");
  EXPECT_EQ(half.overflowed, 2U);
  const auto bits = values_of<std::uint16_t>(half);
  EXPECT_EQ(bits[0], 0x7c00);
  EXPECT_EQ(bits[4], 0x7bff);
  EXPECT_EQ(bits[3] & 0x7c00, 0x7c00);
  EXPECT_NE(bits[3] & 0x3ff, 0);
  EXPECT_EQ(convert(tensor, DType::kBF16, "x").overflowed, 0U);
}

TEST(Convert, WidensBfloat16Exactly) {
  const FileTensor tensor = tensor_of<std::uint16_t>(ElementType::kBF16, {0x3f80, 0xc000, 0x0001});
  const FileTensor wide = widen_to_f32(tensor);
  EXPECT_EQ(wide.type, ElementType::kF32);
  const auto values = values_of<float>({wide.bytes, 0});
  EXPECT_EQ(values, (std::vector<float>{1.F, -2.F, std::ldexp(1.F, -133)}));
}

TEST(Convert, ChecksTheRangeOfIntegers) {
  const auto as_i32 = [](const FileTensor& tensor) {
    return values_of<std::int32_t>(convert(tensor, DType::kI32, "x"));
  };
  EXPECT_EQ(as_i32(tensor_of<std::int64_t>(ElementType::kI64, {-5, 2147483647})),
            (std::vector<std::int32_t>{-5, 2147483647}));
  EXPECT_EQ(as_i32(tensor_of<std::uint8_t>(ElementType::kBool, {0, 1, 7})),
            (std::vector<std::int32_t>{0, 1, 1}));
  for (const std::int64_t value : {std::int64_t{2147483648}, std::int64_t{-2147483649},
                                   std::numeric_limits<std::int64_t>::min()}) {
    EXPECT_THROW(as_i32(tensor_of<std::int64_t>(ElementType::kI64, {value})), InvalidArgument);
  }
  EXPECT_THROW(as_i32(tensor_of<std::uint64_t>(ElementType::kU64, {~std::uint64_t{0}})),
               InvalidArgument);
  const FileTensor negative = tensor_of<std::int8_t>(ElementType::kI8, {-1});
  EXPECT_THROW(convert(negative, DType::kU8, "x"), InvalidArgument);
  EXPECT_THROW(convert(tensor_of<float>(ElementType::kF32, {1}), DType::kI32, "x"),
               InvalidArgument);
}

TEST(Convert, AnOperandKeepsTheDtypeOfItsFile) {
  const auto unasked = [](const Operand& operand, ElementType file) {
    return operand_dtype(operand, file, std::nullopt, DType::kF16);
  };
  const Operand query{.name = "query", .dtypes = {DType::kF32, DType::kF16, DType::kBF16}};
  EXPECT_EQ(unasked(query, ElementType::kF32), DType::kF32);
  EXPECT_EQ(unasked(query, ElementType::kBF16), DType::kBF16);
  EXPECT_EQ(unasked(query, ElementType::kF64), DType::kF32);
  EXPECT_EQ(unasked(query, ElementType::kI64), DType::kF16);
  const Operand sums{.name = "log_sum_exp", .dtypes = {DType::kF32}};
  EXPECT_EQ(unasked(sums, ElementType::kF16), DType::kF32);
  const Operand wide{.name = "wide", .dtypes = {DType::kF32, DType::kF64}};
  EXPECT_EQ(unasked(wide, ElementType::kF64), DType::kF64);
  const Operand lengths{.name = "lengths", .dtypes = {DType::kI32}};
  EXPECT_EQ(unasked(lengths, ElementType::kU8), DType::kI32);
  EXPECT_THROW(unasked(lengths, ElementType::kF32), InvalidArgument);
  const Operand mask{.name = "mask", .dtypes = {DType::kU8, DType::kI32}};
  EXPECT_EQ(unasked(mask, ElementType::kBool), DType::kU8);
  EXPECT_EQ(unasked(mask, ElementType::kI64), DType::kI32);
}

TEST(Convert, QuantisedOperandsKeepTheirBits) {
  const Operand weight{.name = "weight",
                       .dtypes = {DType::kF16, DType::kI8, DType::kE4M3FN, DType::kI4}};
  const auto becomes = [&](ElementType file) {
    return operand_dtype(weight, file, std::nullopt, DType::kF16);
  };
  EXPECT_EQ(becomes(ElementType::kI8), DType::kI8);
  EXPECT_EQ(becomes(ElementType::kE4M3FN), DType::kE4M3FN);
  EXPECT_EQ(becomes(ElementType::kE5M2), DType::kF16);  // exactly
  EXPECT_EQ(becomes(ElementType::kF32), DType::kF16);   // nothing is quantised unasked
  const Operand packed{.name = "packed", .dtypes = {DType::kI4}};
  EXPECT_EQ(operand_dtype(packed, ElementType::kI8, std::nullopt, DType::kF16), DType::kI4);
  // Integers are codes wherever an operand takes some, of 4 bits too.
  const Operand either{.name = "either", .dtypes = {DType::kF16, DType::kI4, DType::kU4}};
  EXPECT_EQ(operand_dtype(either, ElementType::kI8, std::nullopt, DType::kF16), DType::kI4);
  EXPECT_EQ(operand_dtype(either, ElementType::kU8, DType::kF16, DType::kF16), DType::kU4);
  EXPECT_EQ(operand_dtype(either, ElementType::kF32, std::nullopt, DType::kF16), DType::kF16);
}

TEST(Convert, FilesHoldPackedElementsOneToAByte) {
  FileTensor tensor = tensor_of<std::int8_t>(ElementType::kI8, {1, -2, 7, -8, 0, 3});
  tensor.shape = {2, 3};
  const Converted packed = convert(tensor, DType::kI4, "x");
  EXPECT_EQ(values_of<std::uint8_t>(packed), (std::vector<std::uint8_t>{0xE1, 0x07, 0x08, 0x03}));
  const FileTensor back = to_file(packed.bytes, DType::kI4, {2, 3});
  EXPECT_EQ(back.type, ElementType::kI8);
  EXPECT_EQ(back.bytes, tensor.bytes);
  const FileTensor large = tensor_of<std::int8_t>(ElementType::kI8, {8});
  EXPECT_THROW(convert(large, DType::kI4, "x"), InvalidArgument);
  EXPECT_EQ(values_of<std::uint8_t>(convert(large, DType::kE4M3FN, "x")),
            (std::vector<std::uint8_t>{0x50}));
}

TEST(Convert, AnOperandBecomesWhatIsAskedForWhereItMay) {
  const Operand query{.name = "query", .dtypes = {DType::kF32, DType::kF16, DType::kBF16}};
  for (const ElementType file : {ElementType::kF32, ElementType::kF64, ElementType::kI64})
    EXPECT_EQ(operand_dtype(query, file, DType::kBF16, DType::kF16), DType::kBF16);
  const Operand sums{.name = "log_sum_exp", .dtypes = {DType::kF32}};
  EXPECT_EQ(operand_dtype(sums, ElementType::kF16, DType::kF16, DType::kF16), DType::kF32);
  const Operand lengths{.name = "lengths", .dtypes = {DType::kI32}};
  EXPECT_EQ(operand_dtype(lengths, ElementType::kU8, DType::kF16, DType::kF16), DType::kI32);
}

}  // namespace
}  // namespace tessera::tool
