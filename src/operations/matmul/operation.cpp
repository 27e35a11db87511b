// SPDX-License-Identifier: Apache-2.0
// The records of matmul and its gradients, and the typed functions.
#include <string>
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/matmul_core/records.hpp"
#include "tessera/operations/matmul.hpp"

namespace tessera {
namespace operations::matmul {
namespace {

Operation new_operation(const std::string& name, const MatmulSlots& slots) {
  Operation operation = new_record(name, slots);
  operation.operands = {
      operand("a", Role::kInput, false, "[..., m, k]", "[..., k, m] with transpose_a"),
      operand("b", Role::kInput, false, "[..., k, n]", "[..., n, k] with transpose_b"),
      operand("bias", Role::kInput, true, "[n]", "or whatever broadcasts to the product"),
      operand("c", Role::kInput, true, "[..., m, n]",
              "joins the sums beta times; not read if that is 0"),
      operand("gate", Role::kInput, true, "[..., m, n]",
              "multiplies what the activation gives; n / 2 columns where they are paired")};
  const auto add = [&](const char* option, OptionValue fallback, const char* type,
                       const char* doc) {
    operation.options.push_back(
        {.name = option, .fallback = std::move(fallback), .type = type, .doc = doc});
  };
  add("transpose_a", false, "bool", "a is [..., k, m]");
  add("transpose_b", false, "bool", "b is [..., n, k]");
  add("alpha", 1.0, "float", "factor of the product");
  add("beta", 1.0, "float", "factor of c");
  return operation;
}

Operation forward() {
  Operation operation = new_operation("matmul", matmul_slots());
  operation.summary = "matrix product with bias, addend, activation, gate and residual";
  operation.formula = "output = act(alpha op(a) op(b) + bias + beta c) * gate + residual";
  add_eight_bits(operation);
  operation.operands.push_back(operand("residual", Role::kInput, true, "[..., m, n]",
                                       "added last; n / 2 columns where they are paired"));
  operation.operands.push_back(scale_operand("scale_a", "a"));
  operation.operands.push_back(scale_operand("scale_b", "b"));
  operation.operands.push_back(
      output_operand("[..., m, n]", "n / 2 columns where they are paired"));
  operation.operands.push_back(codes_scale_operand("[..., m, 1]"));
  operation.options.push_back(output_option("a"));
  operation.options.push_back(quantise_option());
  return operation;
}

Operation backward() {
  Operation operation = new_operation("matmul_backward", matmul_backward_slots());
  operation.summary = "gradients of matmul";
  operation.formula =
      "t = grad_output * gate * act'(z); grad_a = alpha t op(b)^T; grad_b = alpha op(a)^T t; "
      "grad_bias = sum of t; grad_c = beta t (0 where beta is 0); grad_gate = grad_output * act(z) "
      "(of pairs act(even) "
      "odd)";
  const auto add = [&](std::string name, Role role, bool optional, std::string shape,
                       std::string doc) {
    operation.operands.push_back(
        operand(std::move(name), role, optional, std::move(shape), std::move(doc)));
  };
  add("grad_output", Role::kInput, false, "[..., m, n]", "in the shape of output, of any dtype");
  add("grad_a", Role::kOutput, true, "[..., m, k]", "in the shape and dtype of a");
  add("grad_b", Role::kOutput, true, "[..., k, n]", "in the shape and dtype of b");
  add("grad_bias", Role::kOutput, true, "[n]", "in the shape and dtype of bias");
  add("grad_c", Role::kOutput, true, "[..., m, n]", "in the dtype of c");
  add("grad_gate", Role::kOutput, true, "[..., m, n]", "in the dtype of gate");
  return operation;
}

}  // namespace

std::vector<Operation> matmul() { return list_of(forward(), backward()); }

}  // namespace operations::matmul

// ---- the typed functions ------------------------------------------------------------------------

namespace {

Tensors operands(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  Tensors tensors{{"a", a}, {"b", b}};
  const auto add = [&](const char* name, const Tensor& tensor) {
    if (tensor) tensors.emplace(name, tensor);
  };
  add("bias", options.bias);
  add("c", options.c);
  add("gate", options.gate);
  return tensors;
}

Options named(const MatmulOptions& options) {
  return {{"transpose_a", options.transpose_a},
          {"transpose_b", options.transpose_b},
          {"alpha", static_cast<double>(options.alpha)},
          {"beta", static_cast<double>(options.beta)},
          {"activation", operations::matmul::activation_names().at(
                             static_cast<std::size_t>(options.activation))}};
}

}  // namespace

namespace {

Tensors forward(const Executor& on, const Tensor& a, const Tensor& b, const MatmulOptions& options,
                Options values) {
  Tensors tensors = operands(a, b, options);
  if (options.residual) tensors.emplace("residual", options.residual);
  if (options.scale_a) tensors.emplace("scale_a", options.scale_a);
  if (options.scale_b) tensors.emplace("scale_b", options.scale_b);
  values.merge(named(options));
  if (options.output_dtype)
    values.emplace("output_dtype", std::string(to_string(*options.output_dtype)));
  return on.run("matmul", std::move(tensors), std::move(values));
}

}  // namespace

Tensor matmul(const Executor& on, const Tensor& a, const Tensor& b,
              const MatmulOptions& options) try {
  return forward(on, a, b, options, {}).at("output");
} catch (...) {
  rethrow_as_error();
}

MatmulCodes matmul_to_codes(const Executor& on, const Tensor& a, const Tensor& b, DType codes,
                            const MatmulOptions& options) try {
  Tensors results = forward(on, a, b, options, {{"quantise", std::string(to_string(codes))}});
  return {.output = std::move(results.at("output")), .scale = std::move(results.at("scale"))};
} catch (...) {
  rethrow_as_error();
}

MatmulGradients matmul_backward(const Executor& on, const Tensor& a, const Tensor& b,
                                const Tensor& grad_output, const MatmulOptions& options,
                                const MatmulGradientOptions& wanted) try {
  Tensors tensors = operands(a, b, options);
  tensors.emplace("grad_output", grad_output);
  std::vector<std::string> outputs;
  const auto want = [&](bool wants, const Tensor& of, const char* name) {
    if (wants && of) outputs.emplace_back(name);
  };
  want(wanted.a, a, "grad_a");
  want(wanted.b, b, "grad_b");
  want(wanted.bias, options.bias, "grad_bias");
  want(wanted.c, options.c, "grad_c");
  want(wanted.gate, options.gate, "grad_gate");
  Tensors results = on.run("matmul_backward", std::move(tensors), named(options), outputs);
  const auto take = [&](const char* name) {
    const auto found = results.find(name);
    return found == results.end() ? Tensor{} : found->second;
  };
  return {.a = take("grad_a"),
          .b = take("grad_b"),
          .bias = take("grad_bias"),
          .c = take("grad_c"),
          .gate = take("grad_gate")};
} catch (...) {
  rethrow_as_error();
}

namespace vjp {

struct MatmulPullback::State {
  Executor on;
  Tensor a, b;
  MatmulOptions options;
};

struct MatmulMaker {
  static MatmulResult make(const Executor& on, const Tensor& a, const Tensor& b,
                           const MatmulOptions& options) {
    auto state = std::make_shared<MatmulPullback::State>(MatmulPullback::State{on, a, b, options});
    return {.output = tessera::matmul(on, a, b, options),
            .pullback = MatmulPullback(std::move(state))};
  }
};

MatmulGradients MatmulPullback::operator()(const Tensor& grad_output,
                                           const MatmulGradientOptions& wanted) const try {
  return matmul_backward(state_->on, state_->a, state_->b, grad_output, state_->options, wanted);
} catch (...) {
  rethrow_as_error();
}

MatmulResult matmul(const Executor& on, const Tensor& a, const Tensor& b,
                    const MatmulOptions& options) try {
  return MatmulMaker::make(on, a, b, options);
} catch (...) {
  rethrow_as_error();
}

}  // namespace vjp
}  // namespace tessera
