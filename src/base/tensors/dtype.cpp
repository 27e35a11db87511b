// SPDX-License-Identifier: Apache-2.0
#include "tessera/dtype.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t bits;
};
constexpr std::array kDTypes{
    DTypeRow{DType::kF32, "f32", 32},   DTypeRow{DType::kF16, "f16", 16},
    DTypeRow{DType::kBF16, "bf16", 16}, DTypeRow{DType::kI32, "i32", 32},
    DTypeRow{DType::kU8, "u8", 8},      DTypeRow{DType::kF64, "f64", 64},
    DTypeRow{DType::kI8, "i8", 8},      DTypeRow{DType::kI4, "i4", 4},
    DTypeRow{DType::kU4, "u4", 4},      DTypeRow{DType::kE4M3FN, "e4m3fn", 8},
    DTypeRow{DType::kE5M2, "e5m2", 8},
};

const DTypeRow& row(DType dtype) try {
  const auto at = static_cast<std::size_t>(dtype);
  if (at < kDTypes.size()) return kDTypes[at];
  throw InvalidArgument("a dtype has the number " + std::to_string(at) + ", which stands for none");
} catch (...) {
  rethrow_as_error();
}

// A double that is no NaN, rounded once, to nearest even, to `mantissa` explicit bits from the
// smallest normal exponent on; the bit pattern without its sign, as if exponents had no end. Going
// through float first would round twice.
std::uint32_t round_to_bits(double value, int mantissa, int min_exponent) {
  constexpr int kMantissa = 52, kBias = 1023;  // of double
  constexpr int kBeyond = 200;                 // all formats
  constexpr std::uint64_t kHidden = std::uint64_t{1} << kMantissa;
  const auto bits = std::bit_cast<std::uint64_t>(std::fabs(value));
  const int own = static_cast<int>(bits >> kMantissa) - kBias;
  if (own == -kBias) return 0;  // subnormal doubles, too
  if (own > kBeyond) return std::numeric_limits<std::int32_t>::max();
  // The unit in the last place is 2^(exponent - mantissa): so many of double's bits are below it.
  const int exponent = std::max(own, min_exponent);
  const int below = std::min(kMantissa - mantissa + exponent - own, 63);
  const std::uint64_t significand = (bits & (kHidden - 1)) | kHidden;
  const std::uint64_t odd = (significand >> below) & 1;
  const std::uint64_t units = (significand + (std::uint64_t{1} << (below - 1)) - 1 + odd) >> below;
  // Subnormals have no hidden bit; for normals the hidden bit adds one to the biased exponent
  // field.
  return (static_cast<std::uint32_t>(exponent - min_exponent) << mantissa) +
         static_cast<std::uint32_t>(units);
}

// 16-bit formats have infinities, and their NaN keeps its sign.
std::uint16_t to_16_bits(double value, int mantissa, int min_exponent, int max_exponent) {
  const std::uint32_t sign = std::signbit(value) ? 0x8000U : 0U;
  const auto infinity = static_cast<std::uint32_t>(2 * max_exponent + 1) << mantissa;
  const std::uint32_t bits = std::isnan(value)
                                 ? infinity | (1U << (mantissa - 1))
                                 : std::min(round_to_bits(value, mantissa, min_exponent), infinity);
  return static_cast<std::uint16_t>(sign | bits);
}

// 8-bit formats saturate at `largest`.
std::uint8_t to_8_bits(double value, int mantissa, int min_exponent, std::uint32_t largest,
                       std::uint8_t nan) {
  if (std::isnan(value)) return nan;
  const std::uint32_t sign = std::signbit(value) ? 0x80U : 0U;
  return static_cast<std::uint8_t>(sign |
                                   std::min(round_to_bits(value, mantissa, min_exponent), largest));
}

// Bits of an 8-bit float that stands for a number.
float from_8_bits(std::uint8_t bits, int mantissa, int min_exponent) {
  const int magnitude = bits & 0x7F, exponent = magnitude >> mantissa;
  const int hidden = exponent == 0 ? 0 : 1 << mantissa;
  const int units = hidden + (magnitude & ((1 << mantissa) - 1));
  const float value =
      std::ldexp(static_cast<float>(units), std::max(exponent, 1) - 1 + min_exponent - mantissa);
  return (bits & 0x80U) != 0 ? -value : value;
}

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

}  // namespace

std::size_t bits_of(DType dtype) { return row(dtype).bits; }
std::size_t size_of(DType dtype) try {
  if (!is_packed(dtype)) return row(dtype).bits / 8;
  throw InvalidArgument("elements of " + std::string(to_string(dtype)) + " are no whole bytes");
} catch (...) {
  rethrow_as_error();
}
std::string_view to_string(DType dtype) { return row(dtype).name; }

DType parse_dtype(std::string_view name) try {
  std::string known;
  for (const DTypeRow& candidate : kDTypes) {
    if (candidate.name == name) return candidate.dtype;
    known += (known.empty() ? "" : ", ") + std::string(candidate.name);
  }
  throw InvalidArgument("unknown dtype '" + std::string(name) + "'; known are " + known);
} catch (...) {
  rethrow_as_error();
}

std::uint16_t to_half_bits(double value) { return to_16_bits(value, 10, -14, 15); }
std::uint16_t to_bfloat16_bits(double value) { return to_16_bits(value, 7, -126, 127); }
std::uint8_t to_e4m3fn_bits(double value) { return to_8_bits(value, 3, -6, 0x7E, 0x7F); }
std::uint8_t to_e5m2_bits(double value) { return to_8_bits(value, 2, -14, 0x7B, 0x7E); }

float from_half_bits(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16, magnitude = (bits & 0x7FFFU) << 13;
  constexpr std::uint32_t kInfinity = 0x1FU << 23;
  if (magnitude >= kInfinity) return std::bit_cast<float>(sign | 0x7F800000U | magnitude);
  // Read as a float, the bits are 2^112 too small, subnormals included.
  return std::bit_cast<float>(sign | magnitude) * 0x1p112F;
}

float from_bfloat16_bits(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

float from_e4m3fn_bits(std::uint8_t bits) {
  return (bits & 0x7F) == 0x7F ? kNaN : from_8_bits(bits, 3, -6);
}

float from_e5m2_bits(std::uint8_t bits) {
  const int magnitude = bits & 0x7F;
  if (magnitude > 0x7C) return kNaN;
  if (magnitude < 0x7C) return from_8_bits(bits, 2, -14);
  return (bits & 0x80) != 0 ? -std::numeric_limits<float>::infinity()
                            : std::numeric_limits<float>::infinity();
}

}  // namespace tessera
