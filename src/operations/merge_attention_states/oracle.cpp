// SPDX-License-Identifier: Apache-2.0
#include "operations/merge_attention_states/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "operations/common/numerics.hpp"

namespace tessera::operations::attention_states {
namespace {

constexpr double kUnit = kUnitF32;
constexpr double kSmallest = 0x1p-126;
constexpr double kNothing = -std::numeric_limits<double>::infinity();

// What the call holds, with the other part as the last one.
class Parts {
 public:
  Parts(const Problem& problem, std::span<const HostTensor> tensors)
      : call_(problem.as<StatesProblem>()) {
    for (const std::size_t slot : {kOutputs, kSums, kOther, kOtherSum}) {
      if (problem.has(slot)) operands_[slot] = tensors[slot].read();
    }
  }
  std::int64_t count() const { return call_.parts + (call_.has_other ? 1 : 0); }
  std::size_t sum_place(std::int64_t part, std::int64_t row) const {
    return static_cast<std::size_t>(part % call_.parts * call_.rows() + sum_of_row(row));
  }
  double sum(std::int64_t part, std::int64_t row) const {
    return operands_[part < call_.parts ? kSums : kOtherSum][sum_place(part, row)];
  }
  std::size_t place(std::int64_t part, std::int64_t row) const {
    return static_cast<std::size_t>((part % call_.parts * call_.rows() + row) * call_.dim);
  }
  double output(std::int64_t part, std::int64_t row, std::int64_t i) const {
    return operands_[part < call_.parts ? kOutputs : kOther]
                    [place(part, row) + static_cast<std::size_t>(i)];
  }
  // Log-sum-exps of batches have heads outside of tokens.
  std::int64_t sum_of_row(std::int64_t row) const {
    if (!call_.batched) return row;
    const std::int64_t head = row % call_.heads, n = row / call_.heads;
    return (n / call_.seq * call_.heads + head) * call_.seq + n % call_.seq;
  }

 private:
  const StatesProblem& call_;
  std::array<std::vector<double>, kOtherSum + 1> operands_;
};

// The weights of a row's parts, and how far floats are from them, relative.
struct Weights {
  std::vector<double> weights{}, errors{};
  double largest = kNothing, sum = 0, sum_error = 0;
};

Weights weights_of(const Parts& parts, std::int64_t row) {
  Weights result;
  for (std::int64_t p = 0; p < parts.count(); ++p) {
    const double x = parts.sum(p, row);
    result.largest = x > result.largest ? x : result.largest;
  }
  for (std::int64_t p = 0; p < parts.count(); ++p) {
    const double x = parts.sum(p, row), away = x - result.largest;
    const bool is_largest = x == result.largest;
    const double weight = is_largest ? (x == kNothing ? 0.0 : 1.0) : std::exp(away);
    // The difference is rounded, and exp is off by up to 3 + 2 |x| units in GLSL.
    const double error = is_largest || weight == 0 ? 0 : kUnit * (8 + 6 * std::fabs(away));
    result.weights.push_back(weight);
    result.errors.push_back(error);
    result.sum += weight;
    result.sum_error += weight * (error + kUnit * static_cast<double>(parts.count()));
  }
  if (result.sum > 0) result.sum_error /= result.sum;
  for (double& weight : result.weights) weight = result.sum == 0 ? 0 : weight / result.sum;
  for (double& error : result.errors) error += result.sum_error + 4 * kUnit;
  return result;
}

void resize(Bounded& bounded, const Problem& problem, std::size_t slot) {
  if (!problem.has(slot)) return;
  const auto size = static_cast<std::size_t>(problem.spec(slot).elements());
  bounded.values.assign(size, 0);
  bounded.bounds.assign(size, 0);
}

void add_forward(const Parts& parts, const StatesProblem& call, std::int64_t row, States& states) {
  const Weights at = weights_of(parts, row);
  for (std::int64_t i = 0; i < call.dim; ++i) {
    double value = 0, bound = kSmallest;
    for (std::int64_t p = 0; p < parts.count(); ++p) {
      const double weight = at.weights[static_cast<std::size_t>(p)];
      if (weight == 0) continue;
      const double term = weight * parts.output(p, row, i);
      value += term;
      bound += std::fabs(term) * (at.errors[static_cast<std::size_t>(p)] +
                                  kUnit * static_cast<double>(parts.count() + 2));
      bound += kSmallest * std::fabs(parts.output(p, row, i));  // weights that a device flushes
    }
    const auto to = static_cast<std::size_t>(row * call.dim + i);
    states[kOutput].values[to] = value;
    states[kOutput].bounds[to] = bound;
  }
  if (states[kMerged].values.empty()) return;
  const auto to = static_cast<std::size_t>(parts.sum_of_row(row));
  const double log = at.sum == 0 ? 0 : std::log(at.sum);
  states[kMerged].values[to] = at.sum == 0 ? kNothing : at.largest + log;
  states[kMerged].bounds[to] = at.sum_error + 0x1p-21 + 8 * kUnit * std::fabs(log) +
                               2 * kUnit * std::fabs(states[kMerged].values[to]);
}

void add_backward(const Parts& parts, const StatesProblem& call, std::int64_t row,
                  std::span<const double> gradient, double merged, States& states) {
  const Weights at = weights_of(parts, row);
  const double terms = static_cast<double>(call.dim + 8);
  std::vector<double> products, magnitudes;
  double mean = 0, mean_error = 0;
  for (std::int64_t p = 0; p < parts.count(); ++p) {
    const auto part = static_cast<std::size_t>(p);
    double product = 0, magnitude = 0;
    for (std::int64_t i = 0; at.weights[part] != 0 && i < call.dim; ++i) {
      const double term = gradient[static_cast<std::size_t>(i)] * parts.output(p, row, i);
      product += term;
      magnitude += std::fabs(term);
    }
    products.push_back(product);
    magnitudes.push_back(magnitude * terms * kUnit);
    mean += at.weights[part] * product;
    mean_error += at.weights[part] * (magnitudes[part] + std::fabs(product) * at.errors[part] +
                                      std::fabs(product) * kUnit * terms);
  }
  for (std::int64_t p = 0; p < parts.count(); ++p) {
    const auto part = static_cast<std::size_t>(p);
    const bool is_other = p >= call.parts;
    const double weight = at.weights[part], error = at.errors[part];
    const double inside = products[part] - mean + merged;
    const double size = std::fabs(products[part]) + std::fabs(mean) + std::fabs(merged);
    Bounded& slopes = states[is_other ? kGradOtherSum : kGradSums];
    const std::size_t sum_at = parts.sum_place(p, row);
    slopes.values[sum_at] = weight == 0 ? 0 : weight * inside;
    slopes.bounds[sum_at] =
        kSmallest * (1 + size) +
        weight * (std::fabs(inside) * error + magnitudes[part] + mean_error + 4 * kUnit * size);
    Bounded& outputs = states[is_other ? kGradOther : kGradOutputs];
    for (std::int64_t i = 0; i < call.dim; ++i) {
      const std::size_t to = parts.place(p, row) + static_cast<std::size_t>(i);
      const double value = weight == 0 ? 0 : weight * gradient[static_cast<std::size_t>(i)];
      outputs.values[to] = value;
      outputs.bounds[to] = std::fabs(value) * (error + 2 * kUnit) +
                           kSmallest * (1 + std::fabs(gradient[static_cast<std::size_t>(i)]));
    }
  }
}

}  // namespace

States merged_states(const Problem& problem, std::span<const HostTensor> tensors) {
  const auto& call = problem.as<StatesProblem>();
  const Parts parts(problem, tensors);
  States states;
  if (!call.backward) {
    for (const std::size_t slot : {kOutput, kMerged}) resize(states[slot], problem, slot);
    for (std::int64_t row = 0; row < call.rows(); ++row) add_forward(parts, call, row, states);
    return states;
  }
  for (const std::size_t slot : {kGradOutputs, kGradSums, kGradOther, kGradOtherSum})
    resize(states[slot], problem, slot);
  const std::vector<double> gradient = tensors[kOutput].read();
  std::vector<double> merged;
  if (problem.has(kMerged)) merged = tensors[kMerged].read();
  for (std::int64_t row = 0; row < call.rows(); ++row) {
    const auto dim = static_cast<std::size_t>(call.dim);
    const auto of_row = std::span(gradient).subspan(static_cast<std::size_t>(row) * dim, dim);
    add_backward(parts, call, row, of_row,
                 merged.empty() ? 0 : merged[static_cast<std::size_t>(parts.sum_of_row(row))],
                 states);
  }
  return states;
}

void reference_states(const Problem& problem, std::span<HostTensor> tensors) {
  const bool backward = problem.as<StatesProblem>().backward;
  const States states = merged_states(problem, tensors);
  for (std::size_t slot = kOutput; slot < states.size(); ++slot) {
    const bool is_written = backward ? slot >= kGradOutputs : slot <= kMerged;
    if (is_written && problem.has(slot)) tensors[slot].write(states[slot].values);
  }
}

}  // namespace tessera::operations::attention_states
