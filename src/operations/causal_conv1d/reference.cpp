// SPDX-License-Identifier: Apache-2.0
// The definition of causal_conv1d and of its gradients in double precision.
#include <algorithm>
#include <cmath>
#include <utility>

#include "base/tensors/rounding.hpp"
#include "operations/causal_conv1d/expect.hpp"
#include "operations/common/numerics.hpp"

namespace tessera::operations::state_space {
namespace {

class Oracle {
 public:
  Oracle(const Problem& problem, std::span<HostTensor> tensors)
      : call_(problem.as<ConvCall>()),
        layout_(call_.layout),
        input_(read_of(problem, tensors, kConvInput)),
        weight_(read_of(problem, tensors, kConvWeight)),
        bias_(read_of(problem, tensors, kConvBias)),
        initial_(read_of(problem, tensors, kConvInitial)) {}

  // Of a sequence, time counts from its first token: those before it are in the state, or 0.
  double input(std::int64_t sequence, const Sequence& at, std::int64_t time,
               std::int64_t channel) const {
    if (time >= 0) return input_[row(at, time, channel)];
    return initial_.empty() ? 0 : initial_[state(sequence, call_.width - 1 + time, channel)];
  }
  double weight(std::int64_t channel, std::int64_t tap) const {
    return weight_[tap_of(channel, tap)];
  }
  // What stands before the activation.
  Rough sum(std::int64_t sequence, const Sequence& at, std::int64_t time,
            std::int64_t channel) const {
    double value = bias_.empty() ? 0 : bias_[static_cast<std::size_t>(channel)];
    double size = std::fabs(value);
    for (std::int64_t tap = 0; tap < call_.width; ++tap) {
      const double term =
          weight(channel, tap) * input(sequence, at, time - call_.width + 1 + tap, channel);
      value += term;
      size += std::fabs(term);
    }
    return {value, kUnitF32 * static_cast<double>(call_.width + 2) * size +
                       lost_of(static_cast<double>(call_.width) * size)};
  }

  std::size_t row(const Sequence& at, std::int64_t time, std::int64_t channel) const {
    return static_cast<std::size_t>(((at.batch * layout_.tokens + at.begin + time) * layout_.dim) +
                                    channel);
  }
  std::size_t state(std::int64_t sequence, std::int64_t r, std::int64_t channel) const {
    return static_cast<std::size_t>((sequence * (call_.width - 1) + r) * layout_.dim + channel);
  }
  std::size_t tap_of(std::int64_t channel, std::int64_t tap) const {
    return static_cast<std::size_t>(channel * call_.width + tap);
  }

 private:
  const ConvCall& call_;
  const Layout& layout_;
  std::vector<double> input_, weight_, bias_, initial_;
};

void forward(const Problem& problem, const Oracle& oracle, const Sequence& at,
             std::int64_t sequence, Outputs& outputs) {
  const auto& call = problem.as<ConvCall>();
  for (std::int64_t channel = 0; channel < call.layout.dim; ++channel) {
    for (std::int64_t time = 0; time < at.length(); ++time) {
      Rough y = oracle.sum(sequence, at, time, channel);
      if (call.silu) y = rough_silu(y);
      outputs[kConvOutput].add(oracle.row(at, time, channel), y.value, y.error);
    }
    if (!problem.has(kConvFinal)) continue;
    for (std::int64_t r = 0; r < call.width - 1; ++r)
      outputs[kConvFinal].add(oracle.state(sequence, r, channel),
                              oracle.input(sequence, at, at.length() - call.width + 1 + r, channel),
                              0);
  }
}

// The gradients of one sequence and channel, with those of what stands before the activation.
void backward(const Problem& problem, const Oracle& oracle, const Sequence& at,
              std::int64_t sequence, std::int64_t channel, const std::vector<double>& grad_output,
              const std::vector<double>& grad_final, Outputs& outputs) {
  const auto& call = problem.as<ConvCall>();
  const std::int64_t length = at.length(), behind = call.width - 1;
  std::vector<Rough> slopes(static_cast<std::size_t>(length));
  for (std::int64_t time = 0; time < length; ++time) {
    Rough& slope = slopes[static_cast<std::size_t>(time)];
    slope = {grad_output[oracle.row(at, time, channel)], 0};
    if (call.silu)
      slope = rough_product(slope, rough_silu_slope(oracle.sum(sequence, at, time, channel)));
  }
  const double sum = sum_error(static_cast<double>(call.layout.batch * call.layout.tokens));
  for (std::int64_t time = 0; time < length; ++time) {
    const Rough& slope = slopes[static_cast<std::size_t>(time)];
    const double size = std::fabs(slope.value);
    for (std::int64_t tap = 0; tap < call.width && problem.has(kConvGradWeight); ++tap) {
      const double x = oracle.input(sequence, at, time - behind + tap, channel);
      outputs[kConvGradWeight].add(
          oracle.tap_of(channel, tap), slope.value * x,
          std::fabs(x) * (slope.error + sum * size) + lost_of(std::fabs(x) * size));
    }
    if (problem.has(kConvGradBias))
      outputs[kConvGradBias].add(static_cast<std::size_t>(channel), slope.value,
                                 slope.error + sum * size);
  }
  for (std::int64_t time = -behind; time < length; ++time) {
    const std::size_t slot = time < 0 ? kConvGradInitial : kConvGradInput;
    if (!problem.has(slot)) continue;
    const std::size_t to =
        time < 0 ? oracle.state(sequence, behind + time, channel) : oracle.row(at, time, channel);
    const double terms = kUnitF32 * static_cast<double>(call.width + 2);
    for (std::int64_t later = std::max<std::int64_t>(time, 0);
         later <= std::min(time + behind, length - 1); ++later) {
      const Rough& slope = slopes[static_cast<std::size_t>(later)];
      const double weight = oracle.weight(channel, behind - (later - time));
      const double size = std::fabs(weight * slope.value);
      outputs[slot].add(to, weight * slope.value,
                        std::fabs(weight) * slope.error + terms * size + lost_of(size));
    }
    const std::int64_t r = time - (length - behind);
    if (r >= 0 && !grad_final.empty()) {
      const double value = grad_final[oracle.state(sequence, r, channel)];
      outputs[slot].add(to, value, terms * std::fabs(value));
    }
  }
}

}  // namespace

Outputs conv_outputs(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<ConvCall>();
  const Oracle oracle(problem, tensors);
  Outputs outputs = outputs_of(problem);
  const std::vector<Sequence> sequences = sequences_of(call.layout, tensors, kConvOffsets);
  std::vector<double> grad_output, grad_final;
  if (call.backward) {
    grad_output = read_of(problem, tensors, kConvGradOutput);
    grad_final = read_of(problem, tensors, kConvGradFinal);
  }
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const auto sequence = static_cast<std::int64_t>(i);
    if (!call.backward) {
      forward(problem, oracle, sequences[i], sequence, outputs);
      continue;
    }
    for (std::int64_t channel = 0; channel < call.layout.dim; ++channel)
      backward(problem, oracle, sequences[i], sequence, channel, grad_output, grad_final, outputs);
  }
  return outputs;
}

void reference_conv(const Problem& problem, std::span<HostTensor> tensors) {
  write_outputs(problem, conv_outputs(problem, tensors), tensors);
}

std::vector<Raised> raises_conv(const Problem& problem, std::span<HostTensor> tensors) {
  return raises_of(problem.as<ConvCall>().layout, tensors, kConvOffsets);
}

}  // namespace tessera::operations::state_space
