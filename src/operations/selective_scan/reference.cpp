// SPDX-License-Identifier: Apache-2.0
// The definition of selective_scan and of its gradients in double precision, step by step, with
// what float may be off by (running error analysis: Higham, Accuracy and Stability of Numerical
// Algorithms, 3.3).
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/tensors/rounding.hpp"
#include "operations/common/numerics.hpp"
#include "operations/selective_scan/call.hpp"

namespace tessera::operations::state_space {
namespace {

Rough rough_sum(Rough a, Rough b) {
  const double size = std::fabs(a.value) + std::fabs(b.value) + a.error + b.error;
  return {a.value + b.value, a.error + b.error + 2 * kUnitF32 * size + lost_of(size)};
}

// One channel of one sequence.
class Channel {
 public:
  Channel(const Problem& problem, const std::vector<std::vector<double>>& values,
          const Sequence& at, std::int64_t sequence, std::int64_t channel)
      : problem_(problem),
        call_(problem.as<ScanCall>()),
        values_(values),
        at_(at),
        channel_(static_cast<std::size_t>(channel)),
        states_(static_cast<std::size_t>(call_.states)),
        first_state_((static_cast<std::size_t>(sequence * call_.layout.dim) + channel_) * states_) {
    state_.resize(states_);
    if (!values_[kScanInitial].empty()) {
      for (std::size_t n = 0; n < states_; ++n)
        state_[n].value = values_[kScanInitial][first_state_ + n];
    }
  }

  void forward(Outputs& outputs) {
    for (std::int64_t time = 0; time < at_.length(); ++time) {
      step(time);
      Rough y = result(time);
      if (has(kScanZ)) y = rough_product(y, rough_silu(exact(kScanZ, row(time))));
      outputs[kScanOutput].add(row(time), y.value, y.error);
    }
    if (!problem_.has(kScanFinal)) return;
    for (std::size_t n = 0; n < states_; ++n)
      outputs[kScanFinal].add(first_state_ + n, state_[n].value, state_[n].error);
  }

  void backward(Outputs& outputs) {
    std::vector<std::vector<Rough>> before;  // the states before each token, and behind the last
    for (std::int64_t time = 0; time < at_.length(); ++time) {
      before.push_back(state_);
      step(time);
    }
    before.push_back(state_);
    std::vector<Rough> slope(states_);
    if (!values_[kScanGradFinal].empty()) {
      for (std::size_t n = 0; n < states_; ++n)
        slope[n].value = values_[kScanGradFinal][first_state_ + n];
    }
    for (std::int64_t time = at_.length(); time-- > 0;) {
      const auto t = static_cast<std::size_t>(time);
      state_ = before[t + 1];
      back_step(time, before[t], slope, outputs);
    }
    if (problem_.has(kScanGradInitial)) {
      for (std::size_t n = 0; n < states_; ++n)
        outputs[kScanGradInitial].add(first_state_ + n, slope[n].value, slope[n].error);
    }
  }

 private:
  bool has(std::size_t slot) const { return !values_[slot].empty(); }
  Rough exact(std::size_t slot, std::size_t at) const { return {values_[slot][at], 0}; }
  std::size_t row(std::int64_t time) const {
    return static_cast<std::size_t>((at_.batch * call_.layout.tokens + at_.begin + time) *
                                    call_.layout.dim) +
           channel_;
  }
  std::size_t factor_row(std::int64_t time) const {
    const auto channels = static_cast<std::size_t>(call_.layout.dim / call_.groups);
    const auto token = static_cast<std::size_t>(at_.batch * call_.layout.tokens + at_.begin + time);
    return (token * static_cast<std::size_t>(call_.groups) + channel_ / channels) * states_;
  }
  Rough raw(std::int64_t time) const {
    const double delta = values_[kScanDelta][row(time)];
    const double bias = has(kScanBias) ? values_[kScanBias][channel_] : 0;
    return {delta + bias, has(kScanBias) ? kUnitF32 * (std::fabs(delta) + std::fabs(bias)) : 0};
  }
  Rough width(std::int64_t time) const {
    return call_.softplus ? rough_softplus(raw(time)) : raw(time);
  }
  Rough factor(Rough width, std::size_t n) const {
    return rough_exp(rough_product(width, exact(kScanA, channel_ * states_ + n)));
  }
  void step(std::int64_t time) {
    const Rough wide = width(time), input = rough_product(wide, exact(kScanU, row(time)));
    for (std::size_t n = 0; n < states_; ++n) {
      const Rough added = rough_product(input, exact(kScanB, factor_row(time) + n));
      state_[n] = rough_sum(rough_product(factor(wide, n), state_[n]), added);
    }
  }
  // A sum of products of states, with the error of a sum of so many.
  Rough dot(const std::vector<Rough>& a, std::size_t slot, std::size_t from) const {
    Rough sum;
    const double relative = sum_error(static_cast<double>(states_));
    for (std::size_t n = 0; n < states_; ++n) {
      const Rough term = rough_product(a[n], exact(slot, from + n));
      sum.value += term.value;
      sum.error += term.error + relative * std::fabs(term.value);
    }
    return sum;
  }
  // Before the gate.
  Rough result(std::int64_t time) const {
    const Rough y = dot(state_, kScanC, factor_row(time));
    if (!has(kScanD)) return y;
    return rough_sum(y, rough_product(exact(kScanD, channel_), exact(kScanU, row(time))));
  }

  void back_step(std::int64_t time, const std::vector<Rough>& before, std::vector<Rough>& slope,
                 Outputs& outputs) const {
    const double over_tokens =
        sum_error(static_cast<double>(call_.layout.batch * call_.layout.tokens));
    const double over_channels = sum_error(static_cast<double>(call_.layout.dim / call_.groups));
    const auto add = [&](std::size_t slot, std::size_t at, Rough term, double relative) {
      if (problem_.has(slot))
        outputs[slot].add(at, term.value, term.error + relative * std::fabs(term.value));
    };
    const Rough wide = width(time), u = exact(kScanU, row(time));
    const Rough given = exact(kScanGradOutput, row(time));
    Rough gradient = given;
    if (has(kScanZ)) {
      const Rough z = exact(kScanZ, row(time));
      gradient = rough_product(given, rough_silu(z));
      add(kScanGradZ, row(time),
          rough_product(rough_product(given, result(time)), rough_silu_slope(z)), 0);
    }
    std::vector<Rough> decayed(states_);
    const std::size_t factors = factor_row(time);
    for (std::size_t n = 0; n < states_; ++n) {
      slope[n] = rough_sum(slope[n], rough_product(gradient, exact(kScanC, factors + n)));
      add(kScanGradC, factors + n, rough_product(gradient, state_[n]), over_channels);
      add(kScanGradB, factors + n, rough_product(rough_product(wide, u), slope[n]), over_channels);
    }
    const Rough along = dot(slope, kScanB, factors);
    for (std::size_t n = 0; n < states_; ++n) {
      slope[n] = rough_product(slope[n], factor(wide, n));
      decayed[n] = rough_product(slope[n], before[n]);
      add(kScanGradA, channel_ * states_ + n, rough_product(wide, decayed[n]), over_tokens);
    }
    Rough change = rough_sum(rough_product(u, along), dot(decayed, kScanA, channel_ * states_));
    if (call_.softplus) change = rough_product(change, rough_sigmoid(raw(time)));
    add(kScanGradDelta, row(time), change, 0);
    add(kScanGradBias, channel_, change, over_tokens);
    Rough du = rough_product(wide, along);
    if (has(kScanD)) {
      du = rough_sum(du, rough_product(gradient, exact(kScanD, channel_)));
      add(kScanGradD, channel_, rough_product(gradient, u), over_tokens);
    }
    add(kScanGradU, row(time), du, 0);
  }

  const Problem& problem_;
  const ScanCall& call_;
  const std::vector<std::vector<double>>& values_;
  const Sequence at_;
  const std::size_t channel_, states_, first_state_;
  std::vector<Rough> state_;
};

}  // namespace

Outputs scan_outputs(const Problem& problem, std::span<HostTensor> tensors, std::int64_t stride) {
  const auto& call = problem.as<ScanCall>();
  std::vector<std::vector<double>> values(problem.operands.size());
  for (std::size_t slot = 0; slot < values.size(); ++slot) {
    const bool is_input = problem.operation->operands[slot].role == Role::kInput;
    if (is_input) values[slot] = read_of(problem, tensors, slot);
  }
  Outputs outputs = outputs_of(problem);
  const std::vector<Sequence> sequences = sequences_of(call.layout, tensors, kScanOffsets);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    for (std::int64_t channel = 0; channel < call.layout.dim; channel += stride) {
      Channel one(problem, values, sequences[i], static_cast<std::int64_t>(i), channel);
      if (call.backward) {
        one.backward(outputs);
      } else {
        one.forward(outputs);
      }
    }
  }
  return outputs;
}

void reference_scan(const Problem& problem, std::span<HostTensor> tensors) {
  write_outputs(problem, scan_outputs(problem, tensors, 1), tensors);
}

std::vector<Raised> raises_scan(const Problem& problem, std::span<HostTensor> tensors) {
  return raises_of(problem.as<ScanCall>().layout, tensors, kScanOffsets);
}

}  // namespace tessera::operations::state_space
