// SPDX-License-Identifier: Apache-2.0
// Layers of weights: linear, and a perceptron of two layers.
//
//   linear     output = act(input weight^T + bias) * gate + residual
//   fused_mlp  output = act(input w1 + b1) w2 + b2
//
// Shapes: linear takes input [..., in_features], weight [out_features, in_features], bias
// [out_features] or whatever broadcasts to the output, gate and residual as the output, [...,
// out_features]. swiglu and geglu take weights whose rows are interleaved, the even ones activated,
// and give out_features / 2 columns. fused_mlp takes w1 [in, hidden], w2 [hidden, out], b1
// [hidden], b2 [out]; with a paired activation w1 has 2 hidden columns and b1 2 hidden elements,
// interleaved.
//
// Activations, gradients, dtypes, numerics and errors are those of matmul (matmul.hpp), which both
// are thin forms of. The hidden layer of fused_mlp is rounded to the dtype of input.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tessera/operations/matmul.hpp"

namespace tessera {

// Tensors that are left out are not part of the call.
struct LinearOptions {
  MatmulActivation activation = MatmulActivation::kNone;
  Tensor bias{}, gate{}, residual{};
  std::optional<DType> output_dtype{};   // f32, f16 or bf16, of i8 i32; that of input
  Tensor scale_input{}, scale_weight{};  // f32, of factors of 8 bits; forward only
};

struct LinearGradientOptions {
  bool input = true, weight = true, bias = true, gate = true;
};

// Empty where the call has no such operand or it was not wanted.
struct LinearGradients {
  Tensor input, weight, bias, gate;
};

TESSERA_API Tensor linear(const Executor& on, const Tensor& input, const Tensor& weight,
                          const LinearOptions& options = {});
// As matmul_to_codes has it.
TESSERA_API MatmulCodes linear_to_codes(const Executor& on, const Tensor& input,
                                        const Tensor& weight, DType codes,
                                        const LinearOptions& options = {});
TESSERA_API LinearGradients linear_backward(const Executor& on, const Tensor& input,
                                            const Tensor& weight, const Tensor& grad_output,
                                            const LinearOptions& options = {},
                                            const LinearGradientOptions& wanted = {});

// Weights of linear as a processor multiplies them, made once and kept, by a file too: panels of
// neighbouring out_features, [panels, in_features, width] f32, the last one filled up with zeros. A
// call then packs nothing: that is most of its time where rows are few. Twice the memory of weights
// of 16 bits, whose products are those of floats.
struct PackedWeights {
  Tensor panels{};
  std::int64_t out_features = 0;
};

// Of weight [out_features, in_features], in f32, f16 or bf16. Unsupported on devices other than
// processors through OpenCL, which take weights as they are.
TESSERA_API PackedWeights pack_weights(const Executor& on, const Tensor& weight);
// InvalidArgument where panels have the width of another device, or options have scales.
TESSERA_API Tensor linear(const Executor& on, const Tensor& input, const PackedWeights& weight,
                          const LinearOptions& options = {});

// Weights of fused_mlp, or their gradients; biases may be left out.
struct MlpWeights {
  Tensor w1{}, b1{}, w2{}, b2{};
};

struct MlpGradients {
  Tensor input;
  MlpWeights weights;
};

TESSERA_API Tensor fused_mlp(const Executor& on, const Tensor& input, const MlpWeights& weights,
                             MatmulActivation activation = MatmulActivation::kGeluTanh);

namespace vjp {

// Take the gradient of the output to those of the operands. Keep the operands alive; may be called
// any number of times.
class LinearPullback {
 public:
  TESSERA_API LinearGradients operator()(const Tensor& grad_output,
                                         const LinearGradientOptions& wanted = {}) const;

 private:
  struct State;
  explicit LinearPullback(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  friend struct LinearMaker;
  std::shared_ptr<const State> state_;
};

class MlpPullback {
 public:
  TESSERA_API MlpGradients operator()(const Tensor& grad_output) const;

 private:
  struct State;
  explicit MlpPullback(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  friend struct MlpMaker;
  std::shared_ptr<const State> state_;
};

struct LinearResult {
  Tensor output;
  LinearPullback pullback;
};
struct MlpResult {
  Tensor output;
  MlpPullback pullback;
};

// auto [output, pullback] = vjp::linear(context, x, w, {.bias = bias});
TESSERA_API LinearResult linear(const Executor& on, const Tensor& input, const Tensor& weight,
                                const LinearOptions& options = {});
TESSERA_API MlpResult fused_mlp(const Executor& on, const Tensor& input, const MlpWeights& weights,
                                MatmulActivation activation = MatmulActivation::kGeluTanh);

}  // namespace vjp
}  // namespace tessera
