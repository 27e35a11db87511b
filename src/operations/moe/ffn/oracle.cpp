// SPDX-License-Identifier: Apache-2.0
#include "operations/moe/ffn/oracle.hpp"

#include <cmath>

#include "operations/common/numerics.hpp"
#include "operations/matmul_core/activation.hpp"
#include "operations/matmul_core/core/args.h"

namespace tessera::operations::moe {
namespace {

// A sum whose factors are off by their bounds.
class Sum {
 public:
  void add(const Bounded& a, const Bounded& b) {
    const double product = a.value * b.value;
    value_ += product;
    magnitude_ += std::fabs(product);
    carried_ += a.bound * (std::fabs(b.value) + b.bound) + std::fabs(a.value) * b.bound;
    ++terms_;
  }
  double value() const { return value_; }
  double bound() const {
    return carried_ + sum_error(terms_) * (magnitude_ + carried_) + smallest_number(DType::kF32);
  }

 private:
  double value_ = 0, magnitude_ = 0, carried_ = 0, terms_ = 0;
};

}  // namespace

FfnOracle::FfnOracle(const Problem& problem, std::span<const HostTensor> tensors)
    : problem_(problem), call_(problem.as<FfnProblem>()) {
  const FfnSlots& at = call_.slots;
  input_ = tensors[at.input].read();
  gate_up_ = tensors[at.gate_up].read();
  down_ = tensors[at.down].read();
  if (!at.backward()) {
    const auto bias = problem.has(at.bias) ? tensors[at.bias].read() : std::vector<double>{};
    routing_ = route(call_.route, scores_of(call_.route, tensors[at.logits]), bias);
    return;
  }
  routing_.ids = tensors[at.ids].read();
  routing_.slots = tensors[at.slots].read();
  routing_.offsets = tensors[at.offsets].read();
  for (const double weight : tensors[at.weights].read()) routing_.weights.push_back({weight, 0});
  gradient_ = tensors[at.output].read();
}

bool FfnOracle::is_kept(std::int64_t choice) const {
  const auto i = static_cast<std::size_t>(choice);
  const double expert = routing_.ids[i], slot = routing_.slots[i];
  if (expert < 0 || expert >= static_cast<double>(call_.experts) || slot < 0) return false;
  const double start = routing_.offsets[static_cast<std::size_t>(expert)];
  return start >= 0 && start + slot < static_cast<double>(call_.rows);
}

Bounded FfnOracle::stored(double value, double bound) const {
  return {value, bound + storage_unit(problem_.dtype) * (std::fabs(value) + bound) +
                     smallest_number(problem_.dtype)};
}

FfnOracle::Row FfnOracle::input_row(std::int64_t choice) const {
  const std::int64_t token = choice / call_.top_k;
  Row row;
  for (std::int64_t i = 0; i < call_.hidden; ++i)
    row.push_back({input_[static_cast<std::size_t>(token * call_.hidden + i)], 0});
  return row;
}

FfnOracle::Row FfnOracle::product(const Row& row, std::int64_t choice, bool down,
                                  bool turned) const {
  const std::vector<double>& matrices = down ? down_ : gate_up_;
  const std::int64_t in = down ? call_.inner : call_.hidden;
  const std::int64_t out = down ? call_.hidden : ffn_columns(call_);
  const auto expert = static_cast<std::int64_t>(routing_.ids[static_cast<std::size_t>(choice)]);
  Row result;
  for (std::int64_t column = 0; column < (turned ? in : out); ++column) {
    Sum sum;
    for (std::size_t term = 0; term < row.size(); ++term) {
      const std::int64_t i = turned ? column : static_cast<std::int64_t>(term);
      const std::int64_t o = turned ? static_cast<std::int64_t>(term) : column;
      const std::int64_t at = expert * in * out + (call_.transposed ? o * in + i : i * out + o);
      sum.add(row[term], {matrices[static_cast<std::size_t>(at)], 0});
    }
    result.push_back(stored(sum.value(), sum.bound()));
  }
  return result;
}

Bounded FfnOracle::activation(const Bounded& x) const {
  const double value = matmul::activated(call_.activation, x.value).value;
  return {value, matmul::kSteepestActivation * x.bound +
                     matmul::activation_error(call_.activation, x.value, value)};
}

Bounded FfnOracle::slope(const Bounded& x) const {
  const double slope = matmul::activated(call_.activation, x.value).slope;
  if (call_.activation == MATMUL_NONE) return {slope, 0};
  // Nobody can tell on which side of the corner the sum is.
  if (call_.activation == MATMUL_RELU) return {slope, std::fabs(x.value) <= x.bound ? 1.0 : 0.0};
  return {slope,
          matmul::kActivationBend * x.bound + matmul::slope_error(call_.activation, x.value)};
}

FfnOracle::Inside FfnOracle::inside(std::int64_t choice) const {
  Inside result{.gate_up = product(input_row(choice), choice, false, false), .gated = {}};
  const auto inner = static_cast<std::size_t>(call_.inner);
  for (std::size_t i = 0; i < inner; ++i) {
    const Bounded& gate = result.gate_up[i];
    const Bounded up = call_.gated ? result.gate_up[inner + i] : Bounded{1, 0};
    const Bounded act = activation(gate);
    result.gated.push_back(stored(
        act.value * up.value, act.bound * (std::fabs(up.value) + up.bound) +
                                  std::fabs(act.value) * up.bound + smallest_number(DType::kF32)));
  }
  return result;
}

FfnOracle::Row FfnOracle::outputs(std::int64_t choice, const Inside& from) const {
  return product(from.gated, choice, true, false);
}

std::vector<Bounded> FfnOracle::output(std::int64_t token) const {
  std::vector<Sum> sums(static_cast<std::size_t>(call_.hidden));
  for (std::int64_t r = 0; r < call_.top_k; ++r) {
    const std::int64_t choice = token * call_.top_k + r;
    if (!is_kept(choice)) continue;
    const Row row = outputs(choice, inside(choice));
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i].add(routing_.weights[static_cast<std::size_t>(choice)], row[i]);
  }
  std::vector<Bounded> result;
  for (const Sum& sum : sums) result.push_back(stored(sum.value(), sum.bound()));
  return result;
}

FfnOracle::Gradient FfnOracle::gradient(std::int64_t choice, const Inside& from) const {
  const std::int64_t token = choice / call_.top_k;
  const double weight = routing_.weights[static_cast<std::size_t>(choice)].value;
  Gradient result;
  for (std::int64_t i = 0; i < call_.hidden; ++i) {
    const double value = weight * gradient_[static_cast<std::size_t>(token * call_.hidden + i)];
    result.output.push_back(stored(value, kUnitF32 * std::fabs(value)));
  }
  const Row gated = product(result.output, choice, true, true);
  const std::size_t inner = gated.size();
  result.gate_up.resize(static_cast<std::size_t>(ffn_columns(call_)));
  for (std::size_t i = 0; i < inner; ++i) {
    const Bounded &gate = from.gate_up[i], &d = gated[i];
    const Bounded up = call_.gated ? from.gate_up[inner + i] : Bounded{1, 0};
    const Bounded both{d.value * up.value,
                       d.bound * (std::fabs(up.value) + up.bound) + std::fabs(d.value) * up.bound};
    Sum of_gate, of_up;
    of_gate.add(both, slope(gate));
    result.gate_up[i] = stored(of_gate.value(), of_gate.bound());
    if (!call_.gated) continue;
    of_up.add(d, activation(gate));
    result.gate_up[inner + i] = stored(of_up.value(), of_up.bound());
  }
  return result;
}

std::vector<Bounded> FfnOracle::grad_input(std::int64_t token) const {
  std::vector<Sum> sums(static_cast<std::size_t>(call_.hidden));
  for (std::int64_t r = 0; r < call_.top_k; ++r) {
    const std::int64_t choice = token * call_.top_k + r;
    if (!is_kept(choice)) continue;
    const Row row = product(gradient(choice, inside(choice)).gate_up, choice, false, true);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add({1, 0}, row[i]);
  }
  std::vector<Bounded> result;
  for (const Sum& sum : sums) result.push_back(stored(sum.value(), sum.bound()));
  return result;
}

std::vector<Bounded> FfnOracle::grad_weights(std::int64_t token) const {
  std::vector<Bounded> result;
  for (std::int64_t r = 0; r < call_.top_k; ++r) {
    const std::int64_t choice = token * call_.top_k + r;
    Sum sum;
    if (is_kept(choice)) {
      const Row row = outputs(choice, inside(choice));
      for (std::size_t i = 0; i < row.size(); ++i)
        sum.add({gradient_[static_cast<std::size_t>(token) * row.size() + i], 0}, row[i]);
    }
    result.push_back({sum.value(), sum.bound()});
  }
  return result;
}

namespace {

// Adds a row of terms times a row of results to a matrix of sums.
void add_outer(std::vector<Sum>& to, std::size_t first, const std::vector<Bounded>& in,
               const std::vector<Bounded>& out, bool transposed) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    for (std::size_t o = 0; o < out.size(); ++o)
      to[first + (transposed ? o * in.size() + i : i * out.size() + o)].add(in[i], out[o]);
  }
}

std::vector<Bounded> finished(const std::vector<Sum>& sums) {
  std::vector<Bounded> result;
  for (const Sum& sum : sums) result.push_back({sum.value(), sum.bound()});
  return result;
}

}  // namespace

std::vector<Bounded> FfnOracle::grad_gate_up() const {
  std::vector<Sum> sums(gate_up_.size());
  for (std::int64_t choice = 0; choice < call_.tokens * call_.top_k; ++choice) {
    if (!is_kept(choice)) continue;
    const auto expert = static_cast<std::size_t>(routing_.ids[static_cast<std::size_t>(choice)]);
    add_outer(sums, expert * sums.size() / static_cast<std::size_t>(call_.experts),
              input_row(choice), gradient(choice, inside(choice)).gate_up, call_.transposed);
  }
  return finished(sums);
}

std::vector<Bounded> FfnOracle::grad_down() const {
  std::vector<Sum> sums(down_.size());
  for (std::int64_t choice = 0; choice < call_.tokens * call_.top_k; ++choice) {
    if (!is_kept(choice)) continue;
    const auto expert = static_cast<std::size_t>(routing_.ids[static_cast<std::size_t>(choice)]);
    const Inside from = inside(choice);
    add_outer(sums, expert * sums.size() / static_cast<std::size_t>(call_.experts), from.gated,
              gradient(choice, from).output, call_.transposed);
  }
  return finished(sums);
}

}  // namespace tessera::operations::moe
