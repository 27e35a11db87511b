// SPDX-License-Identifier: Apache-2.0
// Normalisation over the last axis: RMSNorm and LayerNorm, with a residual that joins before and
// the sum as an output of its own, and their gradients.
//
//   s          = input + residual                                    (input alone without one)
//   rms_norm     n = s / sqrt(mean(s^2) + epsilon)
//   layer_norm   n = (s - mean(s)) / sqrt(mean((s - mean(s))^2) + epsilon)
//   output     = n * weight + bias                                   (1 and 0 where left out)
//   sum        = s, rounded to the dtype of input
//
// With quantise, i8, e4m3fn or e5m2, a row of output is in 8 bits, with a scale:
//
//   scale      = max(max |n * weight + bias|, 2^-100) / largest
//   output     = (n * weight + bias) / scale, rounded to nearest even
//
// where largest is the type's largest number: 127, 448, 57344. 2^-100, and not the smallest normal
// float 2^-126, since devices may flush a scale of 2^-126 / 57344 to 0.
// NaN does not count as the largest magnitude; it is NaN in e4m3fn and e5m2 and 0 in i8.
//
// Means are over the last axis. What is normalised is the unrounded s.
//
// Gradients, with g = grad_output * weight and r = 1 / sqrt(... + epsilon):
//
//   grad_s        = r (g - n mean(g n))                rms_norm
//                   r (g - mean(g) - n mean(g n))      layer_norm
//   grad_input    = grad_s + grad_sum
//   grad_residual = grad_input, summed over the axes along which residual broadcasts
//   grad_weight   = sum over rows of grad_output * n
//   grad_bias     = sum over rows of grad_output
//
// Shapes: input [..., dim] with any leading axes, or none; weight and bias [dim]; residual
// [..., dim], whose leading axes broadcast to those of input from the right. Strides are any along
// the leading axes, the last axis is contiguous.
//
// Numerics: storage f32, f16 or bf16, weight and bias in that or in f32; the mean of layer_norm is
// taken off before squares are summed; everything in float, one rounding to nearest even at the
// end. Squares beyond the largest float (elements beyond 1.8e19) overflow as float does. Sums have
// one order: the same library, driver, device, configuration and inputs give the same bits. NaN and
// infinity stay in their row, but for grad_weight and grad_bias, which sum over rows.
//
// Errors: InvalidArgument for shapes, dtypes and options that contradict this, Unsupported where no
// variant of the device can.
//
// Source: Zhang and Sennrich, arXiv:1910.07467 (RMSNorm); Ba, Kiros and Hinton, arXiv:1607.06450.
#pragma once

#include <memory>
#include <optional>

#include "tessera/context.hpp"
#include "tessera/export.hpp"

namespace tessera {

// Tensors that are left out are not part of the call.
struct NormOptions {
  Tensor weight{};                  // [dim], the dtype of input or f32
  Tensor bias{};                    // [dim], the dtype of input or f32
  Tensor residual{};                // [..., dim], the dtype of input
  float epsilon = 1e-6F;            // finite, not negative
  std::optional<DType> quantise{};  // kI8, kE4M3FN or kE5M2; forward only
};

struct NormForward {
  Tensor output;  // in the shape and dtype of input
  Tensor sum;     // input + residual, likewise
  Tensor scale;   // of quantised outputs, [..., 1] f32; else empty
};

// Which gradients to compute beside that of input.
struct NormGradientOptions {
  Tensor grad_sum{};  // the gradient of NormForward::sum, where that was used
  bool weight = true, bias = true, residual = true;  // of those that the call has
};

// Empty where the call has no such operand or it was not wanted.
struct NormGradients {
  Tensor input, weight, bias, residual;
};

TESSERA_API Tensor rms_norm(const Executor& on, const Tensor& input,
                            const NormOptions& options = {});
TESSERA_API NormForward rms_norm_forward(const Executor& on, const Tensor& input,
                                         const NormOptions& options = {});
TESSERA_API NormGradients rms_norm_backward(const Executor& on, const Tensor& input,
                                            const Tensor& grad_output,
                                            const NormOptions& options = {},
                                            const NormGradientOptions& wanted = {});

TESSERA_API Tensor layer_norm(const Executor& on, const Tensor& input,
                              const NormOptions& options = {});
TESSERA_API NormForward layer_norm_forward(const Executor& on, const Tensor& input,
                                           const NormOptions& options = {});
TESSERA_API NormGradients layer_norm_backward(const Executor& on, const Tensor& input,
                                              const Tensor& grad_output,
                                              const NormOptions& options = {},
                                              const NormGradientOptions& wanted = {});

namespace vjp {

// Takes the gradient of the output to those of the operands. Keeps the operands alive; may be
// called any number of times.
class NormPullback {
 public:
  TESSERA_API NormGradients operator()(const Tensor& grad_output,
                                       const NormGradientOptions& wanted = {}) const;

 private:
  struct State;
  explicit NormPullback(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  friend struct NormMaker;
  std::shared_ptr<const State> state_;
};

struct NormResult {
  Tensor output, sum;
  NormPullback pullback;
};

// auto [output, sum, pullback] = vjp::rms_norm(context, x, {.weight = w, .residual = r});
TESSERA_API NormResult rms_norm(const Executor& on, const Tensor& input,
                                const NormOptions& options = {});
TESSERA_API NormResult layer_norm(const Executor& on, const Tensor& input,
                                  const NormOptions& options = {});

}  // namespace vjp
}  // namespace tessera
