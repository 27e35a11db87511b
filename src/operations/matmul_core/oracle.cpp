// SPDX-License-Identifier: Apache-2.0
#include "operations/matmul_core/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "operations/common/codes.hpp"
#include "operations/common/eight_bits.hpp"
#include "operations/common/numerics.hpp"
#include "operations/matmul_core/activation.hpp"
#include "operations/matmul_core/core/args.h"

namespace tessera::operations::matmul {
namespace {

// Of a sum of n products of 8-bit floats by Hopper's matrix unit, relative to that of their sizes.
// An instruction adds 32 products and what there is as multiples of 2^-13 of the largest of them,
// each cut off (DeepSeek-V3, arXiv 2412.19437, section 3.3.2: "around 14 bits").
double narrow_sum_error(double n) {
  constexpr double kCut = 0x1p-13, kProducts = 32;
  return std::min(1.0, kCut * (n + std::ceil(n / kProducts)));
}

constexpr double kUnit = kUnitF32;
constexpr double kSmallest = 0x1p-126;  // what a device that flushes may lose

}  // namespace

struct MatmulOracle::Sums {
  std::vector<double> values{}, bounds{};
  std::vector<Activated> shaped{};  // of each column, or of each even one
  std::vector<double> value_bounds{}, slope_bounds{};
};

MatmulOracle::Matrix MatmulOracle::read(std::span<const HostTensor> tensors, std::size_t slot,
                                        bool transposed) const {
  Matrix matrix;
  if (!problem_.has(slot) || tensors[slot].data == nullptr) return matrix;
  const Shape& shape = problem_.spec(slot).shape;
  matrix.columns = shape.back();
  if (shape.size() > 1) matrix.rows = shape[shape.size() - 2];
  if (shape.size() > 2) matrix.leading.assign(shape.begin(), shape.end() - 2);
  HostTensor stored = tensors[slot];
  if (transposed) std::swap(matrix.rows, matrix.columns);
  if (transposed && shape.size() > 1) {
    std::swap(stored.spec.shape.back(), stored.spec.shape[shape.size() - 2]);
    std::swap(stored.spec.strides.back(), stored.spec.strides[shape.size() - 2]);
  }
  matrix.values = stored.read();
  return matrix;
}

MatmulOracle::MatmulOracle(const Problem& problem, std::span<const HostTensor> tensors, bool rounds)
    : problem_(problem), call_(problem.as<MatmulProblem>()), rounds_(rounds) {
  const MatmulSlots& slots = call_.slots;
  for (const std::int64_t extent : call_.batch) batches_ *= extent;
  a_ = read(tensors, slots.a, call_.transpose_a);
  b_ = read(tensors, slots.b, call_.transpose_b);
  scale_a_ = read(tensors, slots.scale_a, call_.transpose_a);
  scale_b_ = read(tensors, slots.scale_b, call_.transpose_b);
  bias_ = read(tensors, slots.bias, false);
  if (call_.beta != 0) addend_ = read(tensors, slots.addend, false);
  gate_ = read(tensors, slots.gate, false);
  residual_ = read(tensors, slots.residual, false);
  grad_output_ = read(tensors, slots.grad_output, false);
  if (slots.backward()) make_gradients(rounds);
}

// The batch of an operand that takes part in batch `batch` of the output.
std::int64_t MatmulOracle::batch_of(const Matrix& operand, std::int64_t batch) const {
  std::int64_t result = 0, step = 1;
  for (std::size_t i = 0; i < call_.batch.size(); ++i) {
    const std::int64_t extent = call_.batch[call_.batch.size() - 1 - i];
    const std::int64_t place = batch % extent;
    batch /= extent;
    if (i >= operand.leading.size()) continue;
    const std::int64_t own = operand.leading[operand.leading.size() - 1 - i];
    if (own != 1) result += place * step;
    step *= own;
  }
  return result;
}

// An element of an operand beside the product, which repeats along axes of extent 1.
double MatmulOracle::beside(const Matrix& operand, std::int64_t batch, std::int64_t row,
                            std::int64_t column) const {
  return operand.row(batch_of(operand, batch),
                     operand.rows == 1 ? 0 : row)[operand.columns == 1 ? 0 : column];
}

// Of row `own` of op(a) or column `own` of op(b) and a block of terms.
double MatmulOracle::scale(const Matrix& operand, const Scaling& scaling, std::int64_t batch,
                           std::int64_t own, std::int64_t block, bool rows_are_terms) const {
  if (operand.values.empty()) return 1;
  const std::int64_t along = scaling.blocks ? own / MATMUL_BLOCK : own;
  const std::int64_t term = scaling.terms ? block : 0;
  return rows_are_terms ? beside(operand, batch, term, along) : beside(operand, batch, along, term);
}

MatmulOracle::Sums MatmulOracle::sums_row(std::int64_t batch, std::int64_t row) const {
  const auto columns = static_cast<std::size_t>(call_.columns);
  Sums sums;
  sums.values.assign(columns, 0);
  std::vector<double> magnitude(columns);
  sums.bounds.resize(columns);
  const double* a = a_.row(batch_of(a_, batch), row);
  const std::int64_t b_batch = batch_of(b_, batch);
  const bool blocks = call_.scale_a.terms || call_.scale_b.terms;
  const bool scales = !scale_a_.values.empty() || !scale_b_.values.empty();
  const std::int64_t each = blocks ? MATMUL_BLOCK : std::max<std::int64_t>(call_.k, 1);
  std::vector<double> of_block(columns), block_magnitude(columns);
  for (std::int64_t first = 0; first < call_.k; first += each) {
    std::ranges::fill(of_block, 0);
    std::ranges::fill(block_magnitude, 0);
    for (std::int64_t k = first; k < std::min(first + each, call_.k); ++k) {
      const double* b = b_.row(b_batch, k);
      const double factor = a[k];
      for (std::size_t n = 0; n < columns; ++n) {
        const double product = factor * b[n];
        of_block[n] += product;
        block_magnitude[n] += std::fabs(product);
      }
    }
    const std::int64_t block = first / MATMUL_BLOCK;
    const double of_row = scale(scale_a_, call_.scale_a, batch, row, block, false);
    for (std::size_t n = 0; n < columns; ++n) {
      const double of_column =
          scale(scale_b_, call_.scale_b, batch, static_cast<std::int64_t>(n), block, true);
      sums.values[n] += of_block[n] * of_row * of_column;
      magnitude[n] += block_magnitude[n] * std::fabs(of_row) * std::fabs(of_column);
      // What is lost below the smallest number before the second scale.
      if (scales) sums.bounds[n] += kSmallest * (1 + std::fabs(of_column));
    }
  }
  // Sums of i8 are exact before they are scaled.
  const bool whole = problem_.dtype == DType::kI8 && !blocks;
  double error = !whole                        ? sum_error(static_cast<double>(call_.k))
                 : call_.output == DType::kI32 ? 0
                                               : 4 * kUnit;
  if (rounds_ && problem_.dtype != DType::kI8 && is_eight_bits(problem_.dtype))
    error += narrow_sum_error(static_cast<double>(std::min(each, call_.k)));
  const abi::u32 kind = call_.activation.kind;
  for (std::size_t n = 0; n < columns; ++n) {
    const auto column = static_cast<std::int64_t>(n);
    double& z = sums.values[n];
    const double size = whole ? std::fabs(z) : magnitude[n];
    z = call_.alpha * z;
    double bound = std::fabs(call_.alpha) * (size * error + sums.bounds[n]);
    if (call_.output != DType::kI32) bound += kUnit * std::fabs(z);
    if (!bias_.values.empty()) {
      z += beside(bias_, batch, row, column);
      bound += kUnit * std::fabs(z);
    }
    if (!addend_.values.empty()) {
      const double more = call_.beta * beside(addend_, batch, row, column);
      z += more;
      bound += kUnit * (std::fabs(more) + std::fabs(z));
    }
    bound += kSmallest;
    sums.bounds[n] = bound;
    sums.shaped.push_back(activated(kind, z));
    sums.value_bounds.push_back(kind == MATMUL_NONE
                                    ? bound
                                    : kSteepestActivation * bound +
                                          activation_error(kind, z, sums.shaped.back().value));
    const bool at_the_corner = kind == MATMUL_RELU && std::fabs(z) <= bound;
    sums.slope_bounds.push_back(kind == MATMUL_NONE || (kind == MATMUL_RELU && !at_the_corner) ? 0
                                : at_the_corner                                                ? 1
                                                : kActivationBend * bound + slope_error(kind, z));
  }
  return sums;
}

Bounded MatmulOracle::output_row(std::int64_t row) const {
  const std::int64_t batch = row / std::max<std::int64_t>(call_.m, 1);
  row %= std::max<std::int64_t>(call_.m, 1);
  const Sums sums = sums_row(batch, row);
  Bounded result(static_cast<std::size_t>(call_.n));
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const auto column = static_cast<std::int64_t>(i);
    const std::size_t n = call_.activation.paired ? 2 * i : i;
    double y = sums.shaped[n].value, bound = sums.value_bounds[n];
    if (call_.activation.paired) {
      const double up = sums.values[n + 1];
      bound = bound * (std::fabs(up) + sums.bounds[n + 1]) + std::fabs(y) * sums.bounds[n + 1];
      y *= up;
      bound += kUnit * std::fabs(y);
    }
    if (!gate_.values.empty()) {
      const double gate = beside(gate_, batch, row, column);
      y *= gate;
      bound = bound * std::fabs(gate) + kUnit * std::fabs(y);
    }
    if (!residual_.values.empty()) {
      y += beside(residual_, batch, row, column);
      bound += kUnit * std::fabs(y);
    }
    result.values[i] = y;
    result.bounds[i] = bound + kSmallest;
  }
  return result;
}

// With y = act(z) gate and dy: dz = dy gate act'(z), dgate = dy act(z). Of pairs y = act(z) up
// gate.
MatmulOracle::Shaped MatmulOracle::shaped_row(std::int64_t batch, std::int64_t row) const {
  const bool paired = call_.activation.paired;
  Sums sums;
  if (call_.shapes_gradient(problem_)) sums = sums_row(batch, row);
  Shaped result{Bounded(static_cast<std::size_t>(call_.columns)),
                Bounded(static_cast<std::size_t>(call_.n))};
  for (std::size_t i = 0; i < static_cast<std::size_t>(call_.n); ++i) {
    const auto column = static_cast<std::int64_t>(i);
    const double dy = beside(grad_output_, batch, row, column);
    if (sums.values.empty()) {
      result.sums.values[i] = dy;
      continue;
    }
    const std::size_t n = paired ? 2 * i : i;
    const double through = gate_.values.empty() ? dy : dy * beside(gate_, batch, row, column);
    const double up = paired ? sums.values[n + 1] : 1, up_bound = paired ? sums.bounds[n + 1] : 0;
    const auto product = [](double x, double x_bound, double y, double y_bound) {
      return std::fabs(x) * y_bound + x_bound * (std::fabs(y) + y_bound) +
             4 * kUnit * std::fabs(x * y);
    };
    const Activated& shape = sums.shaped[n];
    const double value_bound = product(shape.value, sums.value_bounds[n], up, up_bound);
    const double slope_bound = product(shape.slope, sums.slope_bounds[n], up, up_bound);
    result.gate.values[i] = dy * (shape.value * up);
    result.gate.bounds[i] = std::fabs(dy) * value_bound + kSmallest;
    result.sums.values[n] = through * (shape.slope * up);
    result.sums.bounds[n] = std::fabs(through) * slope_bound + kSmallest;
    if (!paired) continue;
    result.sums.values[n + 1] = through * shape.value;
    result.sums.bounds[n + 1] =
        std::fabs(through) * (sums.value_bounds[n] + 4 * kUnit * std::fabs(shape.value)) +
        kSmallest;
  }
  return result;
}

void MatmulOracle::make_gradients(bool rounds) {
  const bool shapes = call_.shapes_gradient(problem_);
  const std::int64_t rows = batches_ * call_.m;
  for (std::int64_t row = 0; row < rows; ++row) {
    Shaped shaped = shaped_row(row / call_.m, row % call_.m);
    if (rounds && shapes) {
      for (std::size_t n = 0; n < shaped.sums.values.size(); ++n)
        shaped.sums.bounds[n] += storage_unit(problem_.dtype) *
                                     (std::fabs(shaped.sums.values[n]) + shaped.sums.bounds[n]) +
                                 smallest_number(problem_.dtype);
    }
    gradients_.insert(gradients_.end(), shaped.sums.values.begin(), shaped.sums.values.end());
    gradient_bounds_.insert(gradient_bounds_.end(), shaped.sums.bounds.begin(),
                            shaped.sums.bounds.end());
  }
}

Bounded MatmulOracle::grad_gate_row(std::int64_t row) const {
  return shaped_row(row / call_.m, row % call_.m).gate;
}

Bounded MatmulOracle::grad_addend_row(std::int64_t row) const {
  Bounded result(static_cast<std::size_t>(call_.columns));
  if (call_.beta == 0) return result;
  for (std::size_t n = 0; n < result.values.size(); ++n) {
    const std::size_t at = static_cast<std::size_t>(row * call_.columns) + n;
    result.values[n] = call_.beta * gradients_[at];
    result.bounds[n] = std::fabs(call_.beta) * gradient_bounds_[at] +
                       kUnit * std::fabs(result.values[n]) + kSmallest;
  }
  return result;
}

// d op(a)[m, k] = alpha times the sum over columns of dz[m, n] b[k, n].
Bounded MatmulOracle::grad_a_row(std::int64_t row) const {
  Bounded result(static_cast<std::size_t>(call_.k));
  double terms = 0;
  std::vector<double> magnitude(result.values.size());
  for (std::int64_t batch = 0; batch < batches_; ++batch) {
    if (batch_of(a_, batch) != row / call_.m) continue;
    terms += static_cast<double>(call_.columns);
    const std::size_t at =
        static_cast<std::size_t>((batch * call_.m + row % call_.m) * call_.columns);
    for (std::size_t k = 0; k < result.values.size(); ++k) {
      const double* b = b_.row(batch_of(b_, batch), static_cast<std::int64_t>(k));
      for (std::size_t n = 0; n < static_cast<std::size_t>(call_.columns); ++n) {
        const double product = gradients_[at + n] * b[n];
        result.values[k] += product;
        magnitude[k] += std::fabs(product);
        result.bounds[k] += gradient_bounds_[at + n] * std::fabs(b[n]);
      }
    }
  }
  for (std::size_t k = 0; k < result.values.size(); ++k) {
    result.values[k] *= call_.alpha;
    result.bounds[k] = std::fabs(call_.alpha) * (result.bounds[k] * (1 + sum_error(terms)) +
                                                 sum_error(terms) * magnitude[k]) +
                       kUnit * std::fabs(result.values[k]) + kSmallest;
  }
  return result;
}

// d op(b)[k, n] = alpha times the sum over rows of a[m, k] dz[m, n].
Bounded MatmulOracle::grad_b_row(std::int64_t row) const {
  Bounded result(static_cast<std::size_t>(call_.columns));
  double terms = 0;
  std::vector<double> magnitude(result.values.size());
  for (std::int64_t batch = 0; batch < batches_; ++batch) {
    if (batch_of(b_, batch) != row / call_.k) continue;
    terms += static_cast<double>(call_.m);
    for (std::int64_t m = 0; m < call_.m; ++m) {
      const double a = a_.row(batch_of(a_, batch), m)[row % call_.k];
      const std::size_t at = static_cast<std::size_t>((batch * call_.m + m) * call_.columns);
      for (std::size_t n = 0; n < result.values.size(); ++n) {
        const double product = a * gradients_[at + n];
        result.values[n] += product;
        magnitude[n] += std::fabs(product);
        result.bounds[n] += std::fabs(a) * gradient_bounds_[at + n];
      }
    }
  }
  for (std::size_t n = 0; n < result.values.size(); ++n) {
    result.values[n] *= call_.alpha;
    result.bounds[n] = std::fabs(call_.alpha) * (result.bounds[n] * (1 + sum_error(terms)) +
                                                 sum_error(terms) * magnitude[n]) +
                       kUnit * std::fabs(result.values[n]) + kSmallest;
  }
  return result;
}

Bounded MatmulOracle::grad_bias() const {
  Bounded result(bias_.values.size());
  std::vector<double> magnitude(result.values.size());
  for (std::int64_t row = 0; row < batches_ * call_.m; ++row) {
    const double* to =
        bias_.row(batch_of(bias_, row / call_.m), bias_.rows == 1 ? 0 : row % call_.m);
    const auto first = static_cast<std::size_t>(to - bias_.values.data());
    for (std::int64_t n = 0; n < call_.columns; ++n) {
      const auto at = static_cast<std::size_t>(row * call_.columns + n);
      const std::size_t place = first + (bias_.columns == 1 ? 0 : static_cast<std::size_t>(n));
      result.values[place] += gradients_[at];
      magnitude[place] += std::fabs(gradients_[at]);
      result.bounds[place] += gradient_bounds_[at];
    }
  }
  const double terms = static_cast<double>(batches_ * call_.m * call_.columns) /
                       std::max(static_cast<double>(result.values.size()), 1.0);
  for (std::size_t i = 0; i < result.values.size(); ++i)
    result.bounds[i] += sum_error(terms) * (magnitude[i] + result.bounds[i]) + kSmallest;
  return result;
}

// As quantise has it: NaN is in no range, an infinity makes the scale infinite, and a scale below
// the smallest normal float is 1, of 8-bit floats that float.
CodesRow codes_row(DType codes, Bounded floats) {
  constexpr double kLeast = 0x1p-126;
  const double largest_number = largest_code(codes);
  const bool whole = codes == DType::kI8;
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < floats.values.size(); ++i) {
    floats.values[i] = static_cast<float>(floats.values[i]);
    if (std::isnan(floats.values[i])) continue;
    largest = std::max(largest, std::fabs(floats.values[i]));
    if (std::isfinite(floats.bounds[i])) error = std::max(error, floats.bounds[i]);
  }
  CodesRow row{.codes = std::move(floats)};
  double& scale = row.scale.values[0];
  scale = static_cast<float>(largest / largest_number);
  if (scale < kLeast) scale = whole ? 1 : kLeast;
  const bool finite = std::isfinite(scale);
  const double relative = finite ? error / largest_number / scale + 4 * kUnit : 0;
  row.scale.bounds[0] = finite ? relative * scale : 0;
  for (std::size_t i = 0; i < row.codes.values.size(); ++i) {
    double &value = row.codes.values[i], &bound = row.codes.bounds[i];
    value = static_cast<float>(value / scale);
    if (whole && std::isnan(value)) value = 0;
    value = std::isnan(value) ? value : std::clamp(value, -largest_number, largest_number);
    bound = finite ? bound / scale + std::fabs(value) * (relative + 4 * kUnit) : 0;
  }
  return row;
}

}  // namespace tessera::operations::matmul
