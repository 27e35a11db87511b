// SPDX-License-Identifier: Apache-2.0
// The definitions of quantise and dequantise. Scales and quotients are floats: what codes are
// depends on it.
#include <algorithm>
#include <cmath>

#include "operations/common/numerics.hpp"
#include "operations/quantise/problem.hpp"

namespace tessera::operations::quantised {
namespace {

constexpr double kUnit = kUnitF32;

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

// Whether float arithmetic may round it the other way.
bool is_near_a_tie(double x) {
  return std::fabs(std::fabs(x - std::floor(x)) - 0.5) <= 16 * kUnit * (std::fabs(x) + 1);
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
  std::vector<double> doubts(blocks, 0);  // of a zero point that float arithmetic may round away
  for (std::size_t block = 0; block < blocks; ++block) {
    const float scale = scale_of(call, ranges[block]);
    result.scales.push_back(scale);
    result.scale_bounds.push_back(std::isfinite(scale) ? 4 * kUnit * double{scale} : 0);
    const float zero = -ranges[block].least / scale;
    result.zeros.push_back(has_zeros ? nearest(zero, 0, largest) : 0);
    doubts[block] = has_zeros && is_near_a_tie(zero) ? 1 : 0;
    result.zero_bounds.push_back(doubts[block]);
  }
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const std::size_t block = call.block_of(static_cast<std::int64_t>(i));
    const auto x = static_cast<float>(floats[i]), scale = static_cast<float>(result.scales[block]);
    const double quotient = call.is_dynamic ? x * scale : x / scale;
    // Devices may take it for 0.
    const double lost = std::fabs(x) < 0x1p-126F ? std::fabs(quotient) : 0;
    if (call.codes == DType::kE4M3FN || call.codes == DType::kE5M2) {
      const double value =
          std::isnan(quotient) ? quotient : std::clamp(quotient, -largest, largest);
      const double before = 8 * kUnit * std::fabs(value);
      result.numbers.push_back(value);
      result.unrounded.push_back(value);
      result.bounds.push_back(before + storage_unit(call.codes) * (std::fabs(value) + before) +
                              smallest_number(call.codes) + lost);
      continue;
    }
    const double least = has_zeros ? 0 : -largest, zero = result.zeros[block];
    const double number = std::isnan(quotient) ? 0 : quotient;
    result.numbers.push_back(std::clamp(nearest(number, -largest, largest) + zero, least, largest));
    result.unrounded.push_back(std::clamp(number + zero, least, largest));
    result.bounds.push_back(0.5 + 8 * kUnit * largest + doubts[block] + lost);
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
    values[i] = call.is_dynamic ? values[i] / scales[block] : values[i] * scales[block];
  }
  tensors[call.slots.floats].write(values);
}

}  // namespace tessera::operations::quantised
