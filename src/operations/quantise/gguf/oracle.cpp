// SPDX-License-Identifier: Apache-2.0
// GGUF's blocks as ggml's reference makes them of floats, and back.
#include <algorithm>
#include <cmath>

#include "operations/quantise/problem.hpp"

namespace tessera::operations::quantised {
namespace {

constexpr std::size_t kBlock = 32;

// Halves away from zero; of NaN 0.
int byte_of(float quotient) {
  if (std::isnan(quotient)) return 0;
  return static_cast<int>(std::clamp(std::round(quotient), -127.0F, 127.0F));
}

// From 0 on; 8 is zero, and NaN.
int half_byte_of(float quotient) {
  if (std::isnan(quotient)) return 8;
  return static_cast<int>(std::clamp(std::floor(quotient + 8.5F), 0.0F, 15.0F));
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
    const std::uint16_t bits = to_half_bits(scale);
    result.bytes.push_back(bits % 256);
    result.bytes.push_back(bits / 256);
    result.scales.push_back(double{from_half_bits(bits)});
    for (std::size_t i = 0; i < (half ? kBlock / 2 : kBlock); ++i) {
      int byte = 0;
      if (half) {
        byte = half_byte_of(x(i) * inverse) + 16 * half_byte_of(x(i + kBlock / 2) * inverse);
      } else {
        byte = byte_of(x(i) * inverse);
      }
      result.bytes.push_back(byte < 0 ? byte + 256 : byte);
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
