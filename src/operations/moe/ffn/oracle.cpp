// SPDX-License-Identifier: Apache-2.0
#include "operations/moe/ffn/oracle.hpp"

#include <cmath>

#include "operations/common/numerics.hpp"

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

// exp in GLSL is off by 3 + 2 |x| units; a quotient and two products follow.
double gate_error(double x) { return kUnitF32 * (24 + 4 * std::fabs(x)); }

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
  const std::int64_t out = down ? call_.hidden : 2 * call_.inner;
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

FfnOracle::Inside FfnOracle::inside(std::int64_t choice) const {
  Inside result{.gate_up = product(input_row(choice), choice, false, false), .gated = {}};
  const auto inner = static_cast<std::size_t>(call_.inner);
  for (std::size_t i = 0; i < inner; ++i) {
    const Bounded &gate = result.gate_up[i], &up = result.gate_up[inner + i];
    const double silu = gate.value / (1 + std::exp(-gate.value));
    // The slope of silu is at most 1.1.
    const double silu_bound = 1.1 * gate.bound + gate_error(gate.value) * std::fabs(silu);
    result.gated.push_back(stored(silu * up.value, silu_bound * (std::fabs(up.value) + up.bound) +
                                                       std::fabs(silu) * up.bound +
                                                       smallest_number(DType::kF32)));
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
  result.gate_up.resize(2 * inner);
  for (std::size_t i = 0; i < inner; ++i) {
    const Bounded &gate = from.gate_up[i], &up = from.gate_up[inner + i], &d = gated[i];
    const double sigmoid = 1 / (1 + std::exp(-gate.value));
    const double silu = gate.value * sigmoid, slope = sigmoid + silu * (1 - sigmoid);
    const double error = gate_error(gate.value);
    // The slope of silu's slope is at most 0.5, and its parts are at most 1 + |gate|.
    const Bounded slopes{slope, 0.5 * gate.bound + error * (1 + std::fabs(gate.value))};
    const Bounded silus{silu, 1.1 * gate.bound + error * std::fabs(silu)};
    const Bounded both{d.value * up.value,
                       d.bound * (std::fabs(up.value) + up.bound) + std::fabs(d.value) * up.bound};
    Sum of_gate, of_up;
    of_gate.add(both, slopes);
    of_up.add(d, silus);
    result.gate_up[i] = stored(of_gate.value(), of_gate.bound());
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
