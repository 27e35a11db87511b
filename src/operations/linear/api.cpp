// SPDX-License-Identifier: Apache-2.0
// The typed functions of linear and fused_mlp.
#include <string>
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/matmul_core/problem.hpp"
#include "tessera/error.hpp"
#include "tessera/operations/linear.hpp"

namespace tessera {
namespace {

Tensors operands(const Tensor& input, const Tensor& weight, const LinearOptions& options) {
  Tensors tensors{{"input", input}, {"weight", weight}};
  if (options.bias) tensors.emplace("bias", options.bias);
  if (options.gate) tensors.emplace("gate", options.gate);
  return tensors;
}

Options named(const LinearOptions& options) {
  return {{"activation", operations::matmul::activation_names().at(
                             static_cast<std::size_t>(options.activation))}};
}

MatmulOptions hidden_options(const MlpWeights& weights, MatmulActivation activation) {
  return {.activation = activation, .bias = weights.b1};
}

}  // namespace

namespace {

Tensors forward(const Executor& on, const Tensor& input, const Tensor& weight,
                const LinearOptions& options, Options values) {
  Tensors tensors = operands(input, weight, options);
  if (options.residual) tensors.emplace("residual", options.residual);
  if (options.scale_input) tensors.emplace("scale_input", options.scale_input);
  if (options.scale_weight) tensors.emplace("scale_weight", options.scale_weight);
  values.merge(named(options));
  if (options.output_dtype)
    values.emplace("output_dtype", std::string(to_string(*options.output_dtype)));
  return on.run("linear", std::move(tensors), std::move(values));
}

}  // namespace

Tensor linear(const Executor& on, const Tensor& input, const Tensor& weight,
              const LinearOptions& options) try {
  return forward(on, input, weight, options, {}).at("output");
} catch (...) {
  rethrow_as_error();
}

MatmulCodes linear_to_codes(const Executor& on, const Tensor& input, const Tensor& weight,
                            DType codes, const LinearOptions& options) try {
  Tensors results =
      forward(on, input, weight, options, {{"quantise", std::string(to_string(codes))}});
  return {.output = std::move(results.at("output")), .scale = std::move(results.at("scale"))};
} catch (...) {
  rethrow_as_error();
}

LinearGradients linear_backward(const Executor& on, const Tensor& input, const Tensor& weight,
                                const Tensor& grad_output, const LinearOptions& options,
                                const LinearGradientOptions& wanted) try {
  Tensors tensors = operands(input, weight, options);
  tensors.emplace("grad_output", grad_output);
  std::vector<std::string> outputs;
  if (wanted.input) outputs.emplace_back("grad_input");
  if (wanted.weight) outputs.emplace_back("grad_weight");
  if (wanted.bias && options.bias) outputs.emplace_back("grad_bias");
  if (wanted.gate && options.gate) outputs.emplace_back("grad_gate");
  Tensors results = on.run("linear_backward", std::move(tensors), named(options), outputs);
  const auto take = [&](const char* name) {
    const auto found = results.find(name);
    return found == results.end() ? Tensor{} : found->second;
  };
  return {.input = take("grad_input"),
          .weight = take("grad_weight"),
          .bias = take("grad_bias"),
          .gate = take("grad_gate")};
} catch (...) {
  rethrow_as_error();
}

Tensor fused_mlp(const Executor& on, const Tensor& input, const MlpWeights& weights,
                 MatmulActivation activation) try {
  Tensors tensors{{"input", input}, {"w1", weights.w1}, {"w2", weights.w2}};
  if (weights.b1) tensors.emplace("b1", weights.b1);
  if (weights.b2) tensors.emplace("b2", weights.b2);
  return on
      .run("fused_mlp", std::move(tensors),
           {{"activation",
             operations::matmul::activation_names().at(static_cast<std::size_t>(activation))}})
      .at("output");
} catch (...) {
  rethrow_as_error();
}

namespace vjp {

struct LinearPullback::State {
  Executor on;
  Tensor input, weight;
  LinearOptions options;
};

struct LinearMaker {
  static LinearResult make(const Executor& on, const Tensor& input, const Tensor& weight,
                           const LinearOptions& options) {
    auto state =
        std::make_shared<LinearPullback::State>(LinearPullback::State{on, input, weight, options});
    return {.output = tessera::linear(on, input, weight, options),
            .pullback = LinearPullback(std::move(state))};
  }
};

LinearGradients LinearPullback::operator()(const Tensor& grad_output,
                                           const LinearGradientOptions& wanted) const try {
  return linear_backward(state_->on, state_->input, state_->weight, grad_output, state_->options,
                         wanted);
} catch (...) {
  rethrow_as_error();
}

LinearResult linear(const Executor& on, const Tensor& input, const Tensor& weight,
                    const LinearOptions& options) try {
  return LinearMaker::make(on, input, weight, options);
} catch (...) {
  rethrow_as_error();
}

struct MlpPullback::State {
  MatmulPullback first, second;
};

struct MlpMaker {
  static MlpResult make(const Executor& on, const Tensor& input, const MlpWeights& weights,
                        MatmulActivation activation) {
    MatmulResult first = vjp::matmul(on, input, weights.w1, hidden_options(weights, activation));
    MatmulResult second = vjp::matmul(on, first.output, weights.w2, {.bias = weights.b2});
    auto state = std::make_shared<MlpPullback::State>(
        MlpPullback::State{std::move(first.pullback), std::move(second.pullback)});
    return {.output = std::move(second.output), .pullback = MlpPullback(std::move(state))};
  }
};

MlpGradients MlpPullback::operator()(const Tensor& grad_output) const try {
  MatmulGradients second = state_->second(grad_output);
  MatmulGradients first = state_->first(second.a);
  return {.input = std::move(first.a),
          .weights = {.w1 = std::move(first.b),
                      .b1 = std::move(first.bias),
                      .w2 = std::move(second.b),
                      .b2 = std::move(second.bias)}};
} catch (...) {
  rethrow_as_error();
}

MlpResult fused_mlp(const Executor& on, const Tensor& input, const MlpWeights& weights,
                    MatmulActivation activation) try {
  return MlpMaker::make(on, input, weights, activation);
} catch (...) {
  rethrow_as_error();
}

}  // namespace vjp
}  // namespace tessera
