// SPDX-License-Identifier: Apache-2.0
#include "operations/norms/oracle.hpp"

#include <algorithm>
#include <cmath>

#include "operations/common/numerics.hpp"

namespace tessera::operations::norms {
namespace {

constexpr double kUnit = kUnitF32;
constexpr double kSmallest = 0x1p-126;  // what a device that flushes may lose

// A sum of n numbers in float, in any order, relative to the sum of their magnitudes: 8 sqrt(n)
// units if roundings are independent (Higham and Mary, SIAM J. Sci. Comput. 41(5), 2019), and a few
// for the products that are summed and the division.
double sum_error(double n) { return kUnit * (8 * std::sqrt(n) + 8); }

std::vector<double> read(std::span<const HostTensor> tensors, std::size_t slot) {
  if (slot >= tensors.size() || tensors[slot].data == nullptr) return {};
  return tensors[slot].read();
}

}  // namespace

// A row's normalised elements, and the largest errors of what leads to them.
struct NormOracle::Row {
  std::vector<double> sum, sum_error;          // s
  std::vector<double> centred, centred_error;  // s - mean
  std::vector<double> normal, normal_error;
  double scale = 0;        // 1 / sqrt(variance + epsilon)
  double scale_error = 0;  // relative
};

NormOracle::NormOracle(const Problem& problem, std::span<const HostTensor> tensors)
    : call_(problem.as<NormProblem>()),
      input_(read(tensors, kInput)),
      weight_(read(tensors, kWeight)),
      bias_(read(tensors, kBias)),
      residual_(read(tensors, kResidual)) {
  if (!call_.backward) return;
  grad_output_ = read(tensors, kGradOutput);
  grad_sum_ = read(tensors, kGradSum);
}

NormOracle::Row NormOracle::row(std::int64_t index) const {
  const auto dim = static_cast<std::size_t>(call_.dim);
  const double* x = input_.data() + static_cast<std::size_t>(index) * dim;
  const double* joins =
      residual_.empty()
          ? nullptr
          : residual_.data() + static_cast<std::size_t>(call_.residual_row(index)) * dim;
  const double count = static_cast<double>(dim);
  Row row;
  row.sum.resize(dim);
  row.sum_error.resize(dim);
  double mean = 0, mean_magnitude = 0, mean_error = 0;
  for (std::size_t i = 0; i < dim; ++i) {
    row.sum[i] = x[i] + (joins != nullptr ? joins[i] : 0);
    row.sum_error[i] = joins != nullptr ? kUnit * std::fabs(row.sum[i]) + kSmallest : 0;
    mean += row.sum[i] / count;
    mean_magnitude += std::fabs(row.sum[i]) / count;
    mean_error += row.sum_error[i] / count;
  }
  mean_error += sum_error(count) * mean_magnitude;
  if (!call_.centered) mean = mean_error = 0;

  row.centred.resize(dim);
  row.centred_error.resize(dim);
  double variance = 0, variance_error = 0;
  for (std::size_t i = 0; i < dim; ++i) {
    const double c = row.sum[i] - mean;
    const double error =
        row.sum_error[i] + mean_error + (call_.centered ? kUnit * std::fabs(c) : 0);
    row.centred[i] = c;
    row.centred_error[i] = error;
    variance += c * c / count;
    variance_error += (2 * std::fabs(c) * error + error * error) / count;
  }
  variance_error += sum_error(count) * variance + kSmallest;
  const double inside = variance + call_.epsilon;
  const double error = variance_error + 2 * kUnit * inside;
  row.scale = 1 / std::sqrt(inside);
  const double least = std::max(inside - error, call_.epsilon * (1 - 4 * kUnit));
  row.scale_error = std::max(1 / std::sqrt(std::max(least, 0.0)) / row.scale - 1,
                             1 - 1 / std::sqrt(inside + error) / row.scale) +
                    4 * kUnit;

  row.normal.resize(dim);
  row.normal_error.resize(dim);
  for (std::size_t i = 0; i < dim; ++i) {
    row.normal[i] = row.centred[i] * row.scale;
    row.normal_error[i] = row.scale * (1 + row.scale_error) * row.centred_error[i] +
                          std::fabs(row.normal[i]) * (row.scale_error + 2 * kUnit);
  }
  return row;
}

NormOracle::Forward NormOracle::forward() const {
  const auto dim = static_cast<std::size_t>(call_.dim);
  Forward result;
  for (Bounded* to : {&result.output, &result.sum}) {
    to->values.reserve(input_.size());
    to->bounds.reserve(input_.size());
  }
  for (std::int64_t index = 0; index < call_.rows; ++index) {
    const Row at = row(index);
    for (std::size_t i = 0; i < dim; ++i) {
      const double product = at.normal[i] * weight(i);
      const double value = product + (bias_.empty() ? 0 : bias_[i]);
      result.output.values.push_back(value);
      result.output.bounds.push_back(std::fabs(weight(i)) * at.normal_error[i] +
                                     2 * kUnit * (std::fabs(product) + std::fabs(value)));
      result.sum.values.push_back(at.sum[i]);
      result.sum.bounds.push_back(at.sum_error[i]);
    }
  }
  return result;
}

NormOracle::Quantised NormOracle::quantised(DType dtype) const {
  const auto dim = static_cast<std::size_t>(call_.dim);
  const double most = largest_code(dtype);
  Forward plain = forward();
  Quantised result{.codes = std::move(plain.output), .scale = {}, .sum = std::move(plain.sum)};
  for (std::size_t first = 0; first < result.codes.values.size(); first += dim) {
    double largest = 0, error = 0;
    for (std::size_t i = first; i < first + dim; ++i) {
      if (std::isnan(result.codes.values[i])) continue;  // is no largest
      largest = std::max(largest, std::fabs(result.codes.values[i]));
      error = std::max(error, result.codes.bounds[i]);
    }
    const double scale = std::max(largest, kLeastLargest) / most;
    const double scale_error = error / most + 4 * kUnit * scale;
    result.scale.values.push_back(scale);
    result.scale.bounds.push_back(scale_error);
    for (std::size_t i = first; i < first + dim; ++i) {
      double& value = result.codes.values[i];
      if (std::isnan(value) && dtype == DType::kI8) value = 0;  // which has no NaN
      value /= scale;
      result.codes.bounds[i] =
          result.codes.bounds[i] / scale + std::fabs(value) * (scale_error / scale + 4 * kUnit);
    }
  }
  return result;
}

// With g = dy w, a = mean(g) and b = mean(g n): ds = (g - a - n b) scale.
NormOracle::Backward NormOracle::backward() const {
  const auto dim = static_cast<std::size_t>(call_.dim);
  const double count = static_cast<double>(dim);
  Backward result;
  const auto empty = [](std::size_t size) {
    return Bounded{std::vector<double>(size), std::vector<double>(size)};
  };
  result.input = empty(input_.size());
  result.weight = empty(dim);
  result.bias = empty(dim);
  result.residual = empty(residual_.size());
  // Sums of magnitudes, for the errors of the sums over rows.
  std::vector<double> weight_magnitude(dim), bias_magnitude(dim),
      residual_magnitude(residual_.size());
  for (std::int64_t index = 0; index < call_.rows; ++index) {
    const Row at = row(index);
    const std::size_t first = static_cast<std::size_t>(index) * dim;
    double a = 0, a_error = 0, b = 0, b_error = 0, a_magnitude = 0, b_magnitude = 0;
    for (std::size_t i = 0; i < dim; ++i) {
      const double g = grad_output_[first + i] * weight(i), g_error = kUnit * std::fabs(g);
      a += g / count;
      a_magnitude += std::fabs(g) / count;
      a_error += g_error / count;
      b += g * at.normal[i] / count;
      b_magnitude += std::fabs(g * at.centred[i]) / count;
      b_error +=
          (g_error * std::fabs(at.centred[i]) + (std::fabs(g) + g_error) * at.centred_error[i]) /
          count;
    }
    a_error += sum_error(count) * a_magnitude;
    b_error = at.scale * (1 + at.scale_error) * (b_error + sum_error(count) * b_magnitude) +
              std::fabs(b) * (at.scale_error + 2 * kUnit);
    if (!call_.centered) a = a_error = 0;
    const std::size_t joins =
        residual_.empty() ? 0 : static_cast<std::size_t>(call_.residual_row(index)) * dim;
    for (std::size_t i = 0; i < dim; ++i) {
      const double before = grad_output_[first + i], g = before * weight(i);
      const double inside = g - a - at.normal[i] * b;
      const double inside_error =
          kUnit * (2 * std::fabs(g) + 2 * std::fabs(a) + 3 * std::fabs(at.normal[i] * b)) +
          a_error + at.normal_error[i] * std::fabs(b) +
          (std::fabs(at.normal[i]) + at.normal_error[i]) * b_error;
      const double through = inside * at.scale;
      const double beside = grad_sum_.empty() ? 0 : grad_sum_[first + i];
      const double value = through + beside;
      const double bound = at.scale * (1 + at.scale_error) * inside_error +
                           std::fabs(through) * (at.scale_error + 2 * kUnit) +
                           kUnit * (std::fabs(beside) + std::fabs(value)) + kSmallest;
      result.input.values[first + i] = value;
      result.input.bounds[first + i] = bound;
      result.weight.values[i] += before * at.normal[i];
      result.weight.bounds[i] += std::fabs(before) * at.normal_error[i];
      weight_magnitude[i] += std::fabs(before * at.normal[i]);
      result.bias.values[i] += before;
      bias_magnitude[i] += std::fabs(before);
      if (residual_.empty()) continue;
      result.residual.values[joins + i] += value;
      result.residual.bounds[joins + i] += bound;
      residual_magnitude[joins + i] += std::fabs(value);
    }
  }
  const double rows = static_cast<double>(call_.rows);
  for (std::size_t i = 0; i < dim; ++i) {
    result.weight.bounds[i] += sum_error(rows) * weight_magnitude[i];
    result.bias.bounds[i] += sum_error(rows) * bias_magnitude[i];
  }
  if (!residual_.empty() && call_.residual_broadcasts()) {
    const double terms = rows * static_cast<double>(dim) / static_cast<double>(residual_.size());
    for (std::size_t i = 0; i < residual_.size(); ++i)
      result.residual.bounds[i] += sum_error(terms) * residual_magnitude[i];
  }
  return result;
}

// ---- the reference ------------------------------------------------------------------------------

void reference_norm(const Problem& problem, std::span<HostTensor> tensors) {
  if (problem.has(kScale)) {
    const NormOracle::Quantised result =
        NormOracle(problem, tensors).quantised(problem.spec(kOutput).dtype);
    tensors[kOutput].write(result.codes.values);
    tensors[kScale].write(result.scale.values);
    if (problem.has(kSum)) tensors[kSum].write(result.sum.values);
    return;
  }
  const NormOracle::Forward result = NormOracle(problem, tensors).forward();
  tensors[kOutput].write(result.output.values);
  if (problem.has(kSum)) tensors[kSum].write(result.sum.values);
}

void reference_norm_backward(const Problem& problem, std::span<HostTensor> tensors) {
  const NormOracle::Backward result = NormOracle(problem, tensors).backward();
  tensors[kGradInput].write(result.input.values);
  if (problem.has(kGradWeight)) tensors[kGradWeight].write(result.weight.values);
  if (problem.has(kGradBias)) tensors[kGradBias].write(result.bias.values);
  if (problem.has(kGradResidual)) tensors[kGradResidual].write(result.residual.values);
}

}  // namespace tessera::operations::norms
