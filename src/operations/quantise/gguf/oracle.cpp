// SPDX-License-Identifier: Apache-2.0
// GGUF's blocks as ggml's reference makes them of floats, and back.
#include <algorithm>
#include <cmath>

#include "operations/common/numerics.hpp"
#include "operations/quantise/problem.hpp"

namespace tessera::operations::quantised {
namespace {

constexpr std::size_t kBlock = 32;

struct Code {
  int value = 0;
  bool is_near_a_tie = false;  // float arithmetic may round it the other way
};

// `from` before the digits of a quotient are cut off, and 0.5 or 8.5 more than it.
bool is_near_a_step(double from) {
  return std::fabs(from - std::nearbyint(from)) <= 16 * kUnitF32 * (std::fabs(from) + 1);
}

// Halves away from zero.
Code byte_of(float quotient) {
  if (std::isnan(quotient)) return {};
  const double code = std::clamp(std::round(double{quotient}), -127.0, 127.0);
  return {static_cast<int>(code), is_near_a_step(std::fabs(double{quotient}) + 0.5)};
}

// From 0 on; 8 is zero.
Code half_byte_of(float quotient) {
  if (std::isnan(quotient)) return {.value = 8};
  const double size = double{quotient + 8.5F};
  return {static_cast<int>(std::clamp(std::floor(size), 0.0, 15.0)), is_near_a_step(size)};
}

}  // namespace

BlockCodes blocks_of(const CodesProblem& call, const std::vector<double>& floats) {
  const bool half = call.layout == Layout::kQ4_0;
  BlockCodes result;
  for (std::size_t first = 0; first < floats.size(); first += kBlock) {
    const auto x = [&](std::size_t i) { return static_cast<float>(floats[first + i]); };
    float most = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      if (std::fabs(x(i)) > std::fabs(most)) most = x(i);
    }
    const float scale = half ? most / -8.0F : std::fabs(most) / 127.0F;
    const float inverse = std::fabs(scale) >= 0x1p-126F ? 1.0F / scale : 0.0F;
    // A quotient that is off by units may have the half beside it.
    const std::uint16_t bits = to_half_bits(scale);
    const double error = std::isfinite(scale) ? 4 * kUnitF32 * std::fabs(double{scale}) : 0;
    const bool doubt = to_half_bits(scale - error) != bits || to_half_bits(scale + error) != bits;
    const auto add = [&](double byte, double bound) {
      result.bytes.push_back(byte);
      result.bounds.push_back(bound);
    };
    add(bits % 256, doubt ? 255 : 0);
    add(bits / 256, doubt ? 1 : 0);
    const auto number = double{from_half_bits(bits)};
    result.scales.push_back(number);
    result.scale_bounds.push_back(doubt ? 2 * storage_unit(DType::kF16) * std::fabs(number) +
                                              smallest_number(DType::kF16)
                                        : 0);
    for (std::size_t i = 0; i < (half ? kBlock / 2 : kBlock); ++i) {
      if (half) {
        const Code low = half_byte_of(x(i) * inverse);
        const Code high = half_byte_of(x(i + kBlock / 2) * inverse);
        add(low.value + 16 * high.value,
            (low.is_near_a_tie ? 1 : 0) + (high.is_near_a_tie ? 16 : 0));
        continue;
      }
      const Code code = byte_of(x(i) * inverse);
      // The byte before 0 is 255.
      const double step = code.value == 0 || code.value == -1 ? 255 : 1;
      add(code.value + (code.value < 0 ? 256 : 0), code.is_near_a_tie ? step : 0);
    }
  }
  return result;
}

std::vector<double> floats_of_blocks(const CodesProblem& call, const std::vector<double>& bytes) {
  const bool half = call.layout == Layout::kQ4_0;
  const auto size = static_cast<std::size_t>(block_bytes(call.layout));
  std::vector<double> floats;
  for (std::size_t first = 0; first < bytes.size(); first += size) {
    const auto byte = [&](std::size_t i) { return static_cast<int>(bytes[first + i]); };
    const auto scale = double{from_half_bits(static_cast<std::uint16_t>(byte(0) + 256 * byte(1)))};
    for (std::size_t i = 0; i < kBlock; ++i) {
      const int both = half ? byte(2 + i % 16) : byte(2 + i);
      const int code = half ? (i < 16 ? both % 16 : both / 16) - 8 : both - (both >= 128 ? 256 : 0);
      floats.push_back(scale * code);
    }
  }
  return floats;
}

}  // namespace tessera::operations::quantised
