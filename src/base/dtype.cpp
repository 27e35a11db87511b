// SPDX-License-Identifier: Apache-2.0
#include "tessera/dtype.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <utility>

#include "tessera/error.hpp"

namespace tessera {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t size;
};
constexpr std::array kDTypes{
    DTypeRow{DType::kF32, "f32", 4},   DTypeRow{DType::kF16, "f16", 2},
    DTypeRow{DType::kBF16, "bf16", 2}, DTypeRow{DType::kI32, "i32", 4},
    DTypeRow{DType::kU8, "u8", 1},     DTypeRow{DType::kF64, "f64", 8},
};

const DTypeRow& row(DType dtype) {
  const auto at = static_cast<std::size_t>(dtype);
  if (at < kDTypes.size()) return kDTypes[at];
  throw InvalidArgument("a dtype has the number " + std::to_string(at) + ", which stands for none");
}

// A double rounded once, to nearest even, to `mantissa` explicit bits with the given exponent
// range; the result is the bit pattern of a format of 1 + exponent + mantissa bits. Going through
// float first would round twice.
std::uint16_t round_to_bits(double value, int mantissa, int min_exponent, int max_exponent) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000U : 0U);
  const int bias = max_exponent;
  const auto infinity = static_cast<std::uint16_t>((2 * bias + 1) << mantissa);
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(sign | infinity | (1U << (mantissa - 1)));
  }
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return sign | infinity;
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), min_exponent);
  // The unit in the last place is 2^(exponent - mantissa); the quotient is exact, nearbyint rounds
  // to even.
  const auto units =
      static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, mantissa - exponent)));
  // Subnormals have no hidden bit; for normals the hidden bit adds one to the biased exponent
  // field.
  const auto field = static_cast<std::uint32_t>(exponent - min_exponent) << mantissa;
  const std::uint32_t bits = field + units;
  return static_cast<std::uint16_t>(sign | std::min<std::uint32_t>(bits, infinity));
}

}  // namespace

std::size_t size_of(DType dtype) { return row(dtype).size; }
std::string_view to_string(DType dtype) { return row(dtype).name; }

DType parse_dtype(std::string_view name) {
  std::string known;
  for (const DTypeRow& candidate : kDTypes) {
    if (candidate.name == name) return candidate.dtype;
    known += (known.empty() ? "" : ", ") + std::string(candidate.name);
  }
  throw InvalidArgument("unknown dtype '" + std::string(name) + "'; known are " + known);
}

std::uint16_t to_half_bits(double value) { return round_to_bits(value, 10, -14, 15); }
std::uint16_t to_bfloat16_bits(double value) { return round_to_bits(value, 7, -126, 127); }

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

}  // namespace tessera
