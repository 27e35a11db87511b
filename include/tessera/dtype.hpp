// SPDX-License-Identifier: Apache-2.0
// Element types of tensors, and host-side values of the storage formats that C++ has no type for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tessera/export.hpp"

namespace tessera {

enum class DType : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kI32,
  kU8,
  kF64,
  kI8,
  // Two to a byte along the last axis, the even element in the low half; i4 in two's complement.
  // Rows begin with a byte: see TensorSpec.
  kI4,
  kU4,
  // 8-bit floats of the Open Compute Project: 448 is e4m3fn's largest value, 57344 e5m2's.
  kE4M3FN,
  kE5M2,
};

TESSERA_API std::size_t bits_of(DType dtype);
inline bool is_packed(DType dtype) { return bits_of(dtype) < 8; }
TESSERA_API std::size_t size_of(DType dtype);  // bytes; throws InvalidArgument for packed ones
// "f32", "f16", "bf16", "i32", "u8", "f64", "i8", "i4", "u4", "e4m3fn", "e5m2"
TESSERA_API std::string_view to_string(DType dtype);
TESSERA_API DType parse_dtype(std::string_view name);  // throws InvalidArgument
TESSERA_API std::uint16_t to_half_bits(double value);  // IEEE binary16, round to nearest even
TESSERA_API float from_half_bits(std::uint16_t bits);
TESSERA_API std::uint16_t to_bfloat16_bits(double value);  // round to nearest even
TESSERA_API float from_bfloat16_bits(std::uint16_t bits);
// Round to nearest even and saturate, infinities too; NaN stays NaN.
TESSERA_API std::uint8_t to_e4m3fn_bits(double value);
TESSERA_API float from_e4m3fn_bits(std::uint8_t bits);
TESSERA_API std::uint8_t to_e5m2_bits(double value);
TESSERA_API float from_e5m2_bits(std::uint8_t bits);

// Storage of one binary16 value.
struct Half {
  std::uint16_t bits = 0;
  Half() = default;
  explicit Half(double value) : bits(to_half_bits(value)) {}
  explicit operator float() const { return from_half_bits(bits); }
};

// Storage of one bfloat16 value.
struct BFloat16 {
  std::uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(double value) : bits(to_bfloat16_bits(value)) {}
  explicit operator float() const { return from_bfloat16_bits(bits); }
};

// Storage of one 8-bit float.
struct Float8E4M3FN {
  std::uint8_t bits = 0;
  Float8E4M3FN() = default;
  explicit Float8E4M3FN(double value) : bits(to_e4m3fn_bits(value)) {}
  explicit operator float() const { return from_e4m3fn_bits(bits); }
};
struct Float8E5M2 {
  std::uint8_t bits = 0;
  Float8E5M2() = default;
  explicit Float8E5M2(double value) : bits(to_e5m2_bits(value)) {}
  explicit operator float() const { return from_e5m2_bits(bits); }
};

// C++ types that hold one element; packed dtypes have none.
template <class T>
inline constexpr bool kIsElement = false;
template <class T>
inline constexpr DType kDTypeOf = DType::kF32;

#define TESSERA_ELEMENT(Type, Value)             \
  template <>                                    \
  inline constexpr bool kIsElement<Type> = true; \
  template <>                                    \
  inline constexpr DType kDTypeOf<Type> = Value;
TESSERA_ELEMENT(float, DType::kF32)
TESSERA_ELEMENT(Half, DType::kF16)
TESSERA_ELEMENT(BFloat16, DType::kBF16)
TESSERA_ELEMENT(std::int32_t, DType::kI32)
TESSERA_ELEMENT(std::uint8_t, DType::kU8)
TESSERA_ELEMENT(double, DType::kF64)
TESSERA_ELEMENT(std::int8_t, DType::kI8)
TESSERA_ELEMENT(Float8E4M3FN, DType::kE4M3FN)
TESSERA_ELEMENT(Float8E5M2, DType::kE5M2)
#undef TESSERA_ELEMENT

}  // namespace tessera
