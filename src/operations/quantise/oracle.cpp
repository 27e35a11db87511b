// SPDX-License-Identifier: Apache-2.0
// The definitions of quantise and dequantise. Scales and quotients are floats: what codes are
// depends on it.
#include <algorithm>
#include <cmath>

#include "operations/common/numerics.hpp"
#include "operations/quantise/problem.hpp"

namespace tessera::operations::quantised {
namespace {

struct Range {
  float least = 0, most = 0;  // 0 among them; NaN is not
};

float scale_of(const CodesProblem& call, const Range& range) {
  const float peak = std::max(-range.least, range.most);
  const auto largest = static_cast<float>(largest_code(call.codes));
  if (call.is_dynamic) return peak >= 0x1p-126F ? largest / (peak + 1.0e-6F) : 1;
  const float scale = (is_unsigned_code(call.codes) ? range.most - range.least : peak) / largest;
  if (scale >= 0x1p-126F) return scale;
  const bool floats = call.codes == DType::kE4M3FN || call.codes == DType::kE5M2;
  return floats ? 0x1p-126F : 1.0F;
}

// Rounded to nearest even within [least, most]; of NaN 0.
double nearest(double x, double least, double most) {
  return std::isnan(x) ? 0 : std::nearbyint(std::clamp(x, least, most));
}

}  // namespace

Codes codes_of(const CodesProblem& call, const std::vector<double>& floats) {
  const auto blocks = static_cast<std::size_t>(call.blocks());
  const double largest = largest_code(call.codes);
  const bool has_zeros = is_unsigned_code(call.codes);
  std::vector<Range> ranges(blocks);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    Range& range = ranges[call.block_of(static_cast<std::int64_t>(i))];
    const auto x = static_cast<float>(floats[i]);
    if (x < range.least) range.least = x;
    if (x > range.most) range.most = x;
  }
  Codes result;
  for (std::size_t block = 0; block < blocks; ++block) {
    const float scale = scale_of(call, ranges[block]);
    result.scales.push_back(scale);
    result.zeros.push_back(has_zeros ? nearest(-ranges[block].least / scale, 0, largest) : 0);
  }
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const std::size_t block = call.block_of(static_cast<std::int64_t>(i));
    const auto x = static_cast<float>(floats[i]), scale = static_cast<float>(result.scales[block]);
    const double quotient = call.is_dynamic ? x * scale : x / scale;
    // Devices may take it for 0.
    const bool is_lost = x != 0 && std::fabs(x) < 0x1p-126F;
    result.bounds.push_back(is_lost ? std::ceil(std::fabs(quotient)) : 0);
    if (call.codes == DType::kE4M3FN) {
      result.numbers.push_back(from_e4m3fn_bits(to_e4m3fn_bits(quotient)));
    } else if (call.codes == DType::kE5M2) {
      result.numbers.push_back(from_e5m2_bits(to_e5m2_bits(quotient)));
    } else {
      const double least = has_zeros ? 0 : -largest, number = nearest(quotient, -largest, largest);
      result.numbers.push_back(std::clamp(number + result.zeros[block], least, largest));
    }
  }
  return result;
}

void reference_quantise(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<CodesProblem>();
  if (call.layout != Layout::kPlain) {
    const BlockCodes codes = blocks_of(call, tensors[call.slots.floats].read());
    tensors[call.slots.codes].write(codes.bytes);
    tensors[call.slots.scale].write(codes.scales);
    return;
  }
  const Codes codes = codes_of(call, tensors[call.slots.floats].read());
  tensors[call.slots.codes].write(codes.numbers);
  tensors[call.slots.scale].write(codes.scales);
  if (problem.has(call.slots.zero)) tensors[call.slots.zero].write(codes.zeros);
}

void reference_dequantise(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<CodesProblem>();
  if (call.layout != Layout::kPlain) {
    tensors[call.slots.floats].write(floats_of_blocks(call, tensors[call.slots.codes].read()));
    return;
  }
  std::vector<double> values = tensors[call.slots.codes].read();
  const std::vector<double> scales = tensors[call.slots.scale].read();
  std::vector<double> zeros(scales.size(), 0);
  if (problem.has(call.slots.zero)) zeros = tensors[call.slots.zero].read();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t block = call.block_of(static_cast<std::int64_t>(i));
    values[i] -= zeros[block];
    const double number = call.is_dynamic ? values[i] / scales[block] : values[i] * scales[block];
    values[i] = static_cast<float>(number);
  }
  tensors[call.slots.floats].write(values);
}

}  // namespace tessera::operations::quantised
