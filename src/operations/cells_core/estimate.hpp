// SPDX-License-Identifier: Apache-2.0
// Numbers in double precision beside what float arithmetic may be off by: the variance that the
// roundings so far give, to first order and taken as independent.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "operations/common/numerics.hpp"

namespace tessera::operations::cells {

inline std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }
inline double square(double x) { return x * x; }

struct Estimate {
  double value = 0, variance = 0;
};
using Estimates = std::vector<Estimate>;

inline Estimate operator+(const Estimate& a, const Estimate& b) {
  const double sum = a.value + b.value;
  return {sum, a.variance + b.variance + square(kUnitF32 * sum)};
}
inline Estimate operator-(const Estimate& a, const Estimate& b) {
  return a + Estimate{-b.value, b.variance};
}
inline Estimate operator*(const Estimate& a, const Estimate& b) {
  const double product = a.value * b.value;
  return {product,
          square(b.value) * a.variance + square(a.value) * b.variance + square(kUnitF32 * product)};
}

// The exponential of Vulkan devices is off by 3 + 2 |x| units in the last place.
inline Estimate sigmoid(const Estimate& x) {
  const double s = 1 / (1 + std::exp(-x.value)), slope = s * (1 - s);
  const double own = kUnitF32 * (4 * s + slope * (6 + 4 * std::fabs(x.value)));
  return {s, square(slope) * x.variance + square(own)};
}
inline Estimate tanh(const Estimate& x) {
  const double t = std::tanh(x.value), slope = 1 - t * t;
  const double own = kUnitF32 * (8 * std::fabs(t) + slope * (3 + 4 * std::fabs(x.value)));
  return {t, square(slope) * x.variance + square(own)};
}
inline Estimate relu(const Estimate& x) {
  if (x.value < 0) return {};
  return x;
}

// Sums of products in float, whatever their order: `terms` of them, added to `to` for as many
// columns as it has, factor by factor.
class Sums {
 public:
  explicit Sums(std::size_t columns) : sum_(columns), variance_(columns), size_(columns) {}

  void add(const Estimate& factor, const double* row) {
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      const double term = factor.value * row[i];
      sum_[i] += term;
      size_[i] += std::fabs(term);
      variance_[i] += row[i] * row[i] * factor.variance;
    }
    ++terms_;
  }
  void add(const Estimate& factor, const Estimate* row) {
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      const double term = factor.value * row[i].value;
      sum_[i] += term;
      size_[i] += std::fabs(term);
      variance_[i] +=
          square(row[i].value) * factor.variance + square(factor.value) * row[i].variance;
    }
    ++terms_;
  }
  Estimates take() const {
    Estimates all(sum_.size());
    const double unit = kUnitF32 * (std::sqrt(static_cast<double>(terms_)) + 1);
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = {sum_[i], variance_[i] + square(unit * size_[i])};
    return all;
  }

 private:
  std::vector<double> sum_, variance_, size_;
  std::size_t terms_ = 0;
};

}  // namespace tessera::operations::cells
