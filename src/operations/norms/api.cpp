// SPDX-License-Identifier: Apache-2.0
// The typed functions: option structs become named options and operands.
#include <string>
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "tessera/operations/norms.hpp"

namespace tessera {
namespace {

Tensors operands(const Tensor& input, const NormOptions& options) {
  Tensors tensors;
  const auto add = [&](const char* name, const Tensor& tensor) {
    if (tensor) tensors.emplace(name, tensor);
  };
  add("input", input);
  add("weight", options.weight);
  add("bias", options.bias);
  add("residual", options.residual);
  return tensors;
}

Options named(const NormOptions& options) {
  return {{"epsilon", static_cast<double>(options.epsilon)}};
}

// A forward call, whose output may be quantised.
Tensors run_forward(const Executor& on, const std::string& name, const Tensor& input,
                    const NormOptions& options, const std::vector<std::string>& wanted) {
  Options all = named(options);
  if (options.quantise) all.emplace("quantise", std::string(to_string(*options.quantise)));
  return on.run(name, operands(input, options), std::move(all), wanted);
}

NormForward forward(const Executor& on, const std::string& name, const Tensor& input,
                    const NormOptions& options) {
  Tensors results = run_forward(on, name, input, options, {"output", "sum"});
  return {.output = std::move(results.at("output")),
          .sum = std::move(results.at("sum")),
          .scale = options.quantise ? std::move(results.at("scale")) : Tensor{}};
}

Tensor output_of(const Executor& on, const std::string& name, const Tensor& input,
                 const NormOptions& options) {
  if (options.quantise)
    throw InvalidArgument(name + ": a quantised output needs its scale: " + name +
                          "_forward() gives both");
  return run_forward(on, name, input, options, {}).at("output");
}

// A residual in the shape of input has the gradient of input: one tensor for both.
NormGradients backward(const Executor& on, const std::string& name, const Tensor& input,
                       const Tensor& grad_output, const NormOptions& options,
                       const NormGradientOptions& wanted) {
  Tensors tensors = operands(input, options);
  tensors.emplace("grad_output", grad_output);
  if (wanted.grad_sum) tensors.emplace("grad_sum", wanted.grad_sum);
  if (options.quantise) throw InvalidArgument(name + ": codes have no gradient");
  std::vector<std::string> outputs{"grad_input"};
  const bool shared = options.residual && options.residual.shape() == input.shape();
  if (wanted.weight && options.weight) outputs.emplace_back("grad_weight");
  if (wanted.bias && options.bias) outputs.emplace_back("grad_bias");
  if (wanted.residual && options.residual && !shared) outputs.emplace_back("grad_residual");
  Tensors results = on.run(name, std::move(tensors), named(options), outputs);
  const auto take = [&](const char* output) {
    const auto found = results.find(output);
    return found == results.end() ? Tensor{} : found->second;
  };
  NormGradients gradients{.input = take("grad_input"),
                          .weight = take("grad_weight"),
                          .bias = take("grad_bias"),
                          .residual = take("grad_residual")};
  if (wanted.residual && shared) gradients.residual = gradients.input;
  return gradients;
}

}  // namespace

Tensor rms_norm(const Executor& on, const Tensor& input, const NormOptions& options) try {
  return output_of(on, "rms_norm", input, options);
} catch (...) {
  rethrow_as_error();
}

NormForward rms_norm_forward(const Executor& on, const Tensor& input,
                             const NormOptions& options) try {
  return forward(on, "rms_norm", input, options);
} catch (...) {
  rethrow_as_error();
}

NormGradients rms_norm_backward(const Executor& on, const Tensor& input, const Tensor& grad_output,
                                const NormOptions& options, const NormGradientOptions& wanted) try {
  return backward(on, "rms_norm_backward", input, grad_output, options, wanted);
} catch (...) {
  rethrow_as_error();
}

Tensor layer_norm(const Executor& on, const Tensor& input, const NormOptions& options) try {
  return output_of(on, "layer_norm", input, options);
} catch (...) {
  rethrow_as_error();
}

NormForward layer_norm_forward(const Executor& on, const Tensor& input,
                               const NormOptions& options) try {
  return forward(on, "layer_norm", input, options);
} catch (...) {
  rethrow_as_error();
}

NormGradients layer_norm_backward(const Executor& on, const Tensor& input,
                                  const Tensor& grad_output, const NormOptions& options,
                                  const NormGradientOptions& wanted) try {
  return backward(on, "layer_norm_backward", input, grad_output, options, wanted);
} catch (...) {
  rethrow_as_error();
}

// ---- pullbacks ----------------------------------------------------------------------------------

namespace vjp {

struct NormPullback::State {
  Executor on;
  std::string operation;
  Tensor input;
  NormOptions options;
};

struct NormMaker {
  static NormResult make(const Executor& on, const std::string& name, const Tensor& input,
                         const NormOptions& options) {
    if (options.quantise) throw InvalidArgument("vjp::" + name + ": codes have no gradient");
    NormForward result = forward(on, name, input, options);
    auto state = std::make_shared<NormPullback::State>(
        NormPullback::State{on, name + "_backward", input, options});
    return {.output = std::move(result.output),
            .sum = std::move(result.sum),
            .pullback = NormPullback(std::move(state))};
  }
};

NormGradients NormPullback::operator()(const Tensor& grad_output,
                                       const NormGradientOptions& wanted) const try {
  return backward(state_->on, state_->operation, state_->input, grad_output, state_->options,
                  wanted);
} catch (...) {
  rethrow_as_error();
}

NormResult rms_norm(const Executor& on, const Tensor& input, const NormOptions& options) try {
  return NormMaker::make(on, "rms_norm", input, options);
} catch (...) {
  rethrow_as_error();
}

NormResult layer_norm(const Executor& on, const Tensor& input, const NormOptions& options) try {
  return NormMaker::make(on, "layer_norm", input, options);
} catch (...) {
  rethrow_as_error();
}

}  // namespace vjp
}  // namespace tessera
