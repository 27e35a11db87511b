// SPDX-License-Identifier: Apache-2.0
#include "operations/state_space_core/bounded.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/tensors/rounding.hpp"
#include "operations/common/numerics.hpp"

namespace tessera::operations::state_space {
namespace {

bool is_wanted(const Problem& problem, std::size_t slot) {
  return problem.has(slot) && problem.operation->operands[slot].role == Role::kOutput;
}

double sigmoid(double x) {
  const double e = std::exp(-std::fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

}  // namespace

double lost_of(double size) { return std::min(size, 0x1p-126); }

Rough rough_exp(Rough x) {
  const double value = std::exp(x.value);
  const double relative =
      std::expm1(std::min(x.error, 1.0)) + kUnitF32 * (8 + 2 * std::min(std::fabs(x.value), 256.0));
  return {value, value * relative + (value < 0x1p-125 ? 0x1p-125 : 0)};
}

Rough rough_sigmoid(Rough x) {
  const double s = sigmoid(x.value);
  // exp's error moves the smaller of s and 1 - s by as much, relative.
  const double relative = x.error + kUnitF32 * (12 + 2 * std::min(std::fabs(x.value), 256.0));
  return {s, relative * std::min(s, 1 - s) + 4 * kUnitF32 * s + 0x1p-125};
}

Rough rough_silu(Rough x) {
  Rough s = rough_sigmoid({x.value, 0});
  const double slope = 1.1;  // the largest of silu
  return {x.value * s.value, slope * x.error + std::fabs(x.value) * (s.error + kUnitF32 * s.value) +
                                 lost_of(std::fabs(x.value) * s.value)};
}

Rough rough_silu_slope(Rough x) {
  const Rough s = rough_sigmoid({x.value, 0});
  const double size = std::fabs(x.value), rest = sigmoid(-x.value);
  // The second derivative of silu is at most 1/2. 1 - s is off by units of 1, not of itself.
  const double errors = s.error * (1 + size) + 4 * kUnitF32 * (1 + size) * s.value;
  return {s.value * (1 + x.value * rest), 0.5 * x.error + errors};
}

Rough rough_softplus(Rough x) {
  const double rest = std::log1p(std::exp(-std::fabs(x.value)));
  const double relative = kUnitF32 * (16 + 2 * std::min(std::fabs(x.value), 256.0));
  const double value = std::max(x.value, 0.0) + rest;
  // softplus' slope is a sigmoid.
  return {value, x.error * std::min(1.0, 3 * sigmoid(x.value)) + rest * relative +
                     2 * kUnitF32 * value + 0x1p-125};
}

Rough rough_product(Rough a, Rough b) {
  const double size = std::fabs(a.value * b.value);
  const double error = a.error * (std::fabs(b.value) + b.error) + std::fabs(a.value) * b.error;
  return {a.value * b.value, error + kUnitF32 * (size + error) + lost_of(size + error)};
}

Outputs outputs_of(const Problem& problem) {
  Outputs outputs(problem.operands.size());
  for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
    if (is_wanted(problem, slot))
      outputs[slot] = Bounded(static_cast<std::size_t>(problem.spec(slot).elements()));
  }
  return outputs;
}

void write_outputs(const Problem& problem, Outputs outputs, std::span<HostTensor> tensors) {
  for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
    if (is_wanted(problem, slot)) tensors[slot].write(outputs[slot].values);
  }
}

std::vector<Expectation> expectations_of(const Problem& problem, Outputs outputs) {
  std::vector<Expectation> expected;
  for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
    if (!is_wanted(problem, slot)) continue;
    const DType dtype = problem.spec(slot).dtype;
    Expectation one{.slot = slot,
                    .values = std::move(outputs[slot].values),
                    .bounds = std::move(outputs[slot].bounds)};
    for (std::size_t i = 0; i < one.values.size(); ++i)
      one.bounds[i] +=
          storage_unit(dtype) * (std::fabs(one.values[i]) + one.bounds[i]) + smallest_number(dtype);
    expected.push_back(std::move(one));
  }
  return expected;
}

std::vector<double> read_of(const Problem& problem, std::span<HostTensor> tensors,
                            std::size_t slot) {
  return problem.has(slot) ? tensors[slot].read() : std::vector<double>{};
}

}  // namespace tessera::operations::state_space
