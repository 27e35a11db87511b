// SPDX-License-Identifier: Apache-2.0
// A causal convolution of a few taps along the tokens of a sequence, for each channel by itself:
// what Mamba, gated linear attention and their like have in front of their recurrence.
//
//   z_t      = bias + sum over 0 <= j < width of weight[:, j] input_(t - width + 1 + j)
//   output_t = z_t, or with silu z_t / (1 + exp(-z_t))
//
// Inputs before a sequence's first token are initial_state, oldest first, or 0; final_state holds
// the last width - 1 inputs, oldest first, those of initial_state among them where the sequence is
// shorter. So two calls through the state are one call, and decoding is a call of one token.
//
// Shapes: input and output [batch, seq, dim]; weight [dim, width], width 2 to 8; bias [dim]; states
// [sequences, width - 1, dim]. Any strides: a tensor [batch, dim, seq], as Dao's causal-conv1d
// takes it, is such a view. input is f32, f16 or bf16, states and output are of its dtype, weight
// and bias of that or f32.
//
// Packed sequences: with cu_seqlens, i32 [sequences + 1], batch is 1, and sequence s is tokens
// cu_seqlens[s] <= t < cu_seqlens[s + 1]; boundaries and tokens of no sequence are treated as
// recurrent (recurrent.hpp) treats them: outputs of such tokens are 0, nothing of them is used, and
// synchronize() and downloads throw DataError for a boundary that is outside or decreases.
//
// Gradients, where slope_t is grad_output_t, with silu times silu'(z_t):
//
//   grad_input_t    = sum_j weight[:, j] slope_(t + width - 1 - j), of outputs of its sequence, and
//                     what grad_final_state has of it
//   grad_weight_j   = sum_t slope_t input_(t - width + 1 + j)
//   grad_bias       = sum_t slope_t
//
// grad_initial_state is the first of these, of the inputs before a sequence.
//
// Numerics: sums in float, tap after tap, one rounding to nearest even of each output; those of
// gradients of weights chunk after chunk, so that the same library, driver, device, configuration
// and inputs give the same bits.
//
// Errors: InvalidArgument for shapes, dtypes and options that contradict this, Unsupported where no
// variant of the device can.
//
// Source: Gu and Dao, arXiv:2312.00752, 3.4; Dao, causal-conv1d (names).
#pragma once

#include "tessera/context.hpp"
#include "tessera/export.hpp"

namespace tessera {

// Tensors that are left out are not part of the call.
struct CausalConv1dOptions {
  Tensor bias{}, initial_state{}, cu_seqlens{};
  bool silu = false;
  bool final_state = false;  // is wanted
};

struct CausalConv1dResult {
  Tensor output;       // [batch, seq, dim]
  Tensor final_state;  // [sequences, width - 1, dim]; empty where it was not wanted
};

// Which gradients to compute, of the operands that the call has.
struct CausalConv1dGradientOptions {
  Tensor grad_final_state{};  // where final_state was used
  bool input = true, weight = true, bias = true, initial_state = true;
};

// Empty where the call has no such operand or it was not wanted.
struct CausalConv1dGradients {
  Tensor input, weight, bias, initial_state;
};

TESSERA_API CausalConv1dResult causal_conv1d(const Executor& on, const Tensor& input,
                                             const Tensor& weight,
                                             const CausalConv1dOptions& options = {});
TESSERA_API CausalConv1dGradients causal_conv1d_backward(
    const Executor& on, const Tensor& input, const Tensor& weight, const Tensor& grad_output,
    const CausalConv1dOptions& options = {}, const CausalConv1dGradientOptions& wanted = {});

}  // namespace tessera
