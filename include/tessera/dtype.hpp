// SPDX-License-Identifier: Apache-2.0
// Element types of tensors, and host-side values of the two 16-bit storage formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tessera/export.hpp"

namespace tessera {

enum class DType : std::uint8_t { kF32, kF16, kBF16, kI32, kU8, kF64 };

TESSERA_API std::size_t size_of(DType dtype);
TESSERA_API std::string_view to_string(DType dtype);   // "f32", "f16", "bf16", "i32", "u8", "f64"
TESSERA_API DType parse_dtype(std::string_view name);  // throws InvalidArgument
TESSERA_API std::uint16_t to_half_bits(double value);  // IEEE binary16, round to nearest even
TESSERA_API float from_half_bits(std::uint16_t bits);
TESSERA_API std::uint16_t to_bfloat16_bits(double value);  // round to nearest even
TESSERA_API float from_bfloat16_bits(std::uint16_t bits);

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
#undef TESSERA_ELEMENT

}  // namespace tessera
