// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/oracle/thresholds.hpp"

#include <cmath>
#include <limits>

namespace tessera::operations::attention {
namespace {

double rounded(DType dtype, double value) {
  return dtype == DType::kF16 ? from_half_bits(to_half_bits(value))
                              : from_bfloat16_bits(to_bfloat16_bits(value));
}

}  // namespace

double rms_bound(DType dtype, const Expectation& expected, double factor) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  if (dtype != DType::kF16 && dtype != DType::kBF16) return kNone;
  const double unit = storage_unit(dtype);
  double count = 0, values = 0, roundings = 0, floats = 0;
  for (std::size_t n = 0; n < expected.values.size(); ++n) {
    const double value = expected.values[n];
    if (!std::isfinite(value)) continue;
    const double of_float = (expected.bounds[n] - unit * std::fabs(value)) / kRoundings;
    const double error = rounded(dtype, value) - value;
    values += value * value;
    roundings += error * error;
    floats += of_float * of_float;
    count += 1;
  }
  if (count < kFewestForRms) return kNone;
  const double floor = std::sqrt(roundings / count);
  if (floor == 0) return kNone;
  if (!(floor >= kLeastFloor * unit * std::sqrt(values / count))) return kNone;
  return factor * floor + std::sqrt(floats / count);
}

}  // namespace tessera::operations::attention
