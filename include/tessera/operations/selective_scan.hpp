// SPDX-License-Identifier: Apache-2.0
// The selective scan of Mamba: a state for each channel whose decay, input and output depend on the
// token.
//
//   step_t   = delta_t + delta_bias, with delta_softplus log(1 + exp of that)
//   h_t[n]   = exp(step_t a[n]) h_(t-1)[n] + step_t b_t[n] u_t
//   y_t      = sum over n of c_t[n] h_t[n] + d u_t
//   output_t = y_t, or with z y_t z_t / (1 + exp(-z_t))
//
// for each channel, where b and c belong to groups of consecutive channels. h before a sequence's
// first token is initial_state, or 0; final_state is the state after its last token. So two calls
// through the state are one call, and decoding is a call of one token.
//
// Shapes: u, delta, z, output [batch, seq, dim]; a [dim, state]; b, c [batch, seq, groups, state],
// where groups divides dim; d, delta_bias [dim]; states [sequences, dim, state] in f32. Any
// strides: tensors [batch, dim, seq], as Mamba's selective_scan_fn takes them, are such views. u is
// f32, f16 or bf16; delta, b, c, z and output are of its dtype; a, d and delta_bias of that or f32.
// Kernels take up to 256 states.
//
// Packed sequences: with cu_seqlens, i32 [sequences + 1], batch is 1, and sequence s is tokens
// cu_seqlens[s] <= t < cu_seqlens[s + 1]; boundaries and tokens of no sequence are treated as
// recurrent (recurrent.hpp) treats them: outputs of such tokens are 0, nothing of them is used, and
// synchronize() and downloads throw DataError for a boundary that is outside or decreases.
//
// Gradients, with r_t = grad_output_t silu(z_t), or grad_output_t, and D the gradient of the state,
// from the last token back:
//
//   D_t              = r_t c_t + exp(step_(t+1) a) D_(t+1)
//   X_t              = D_t exp(step_t a) h_(t-1)             (element by element)
//   grad_u_t         = d r_t + step_t sum_n b_t D_t
//   grad_b_t, c_t    = step_t u_t D_t, r_t h_t, summed over the channels of the group
//   grad_a           = sum over t of step_t X_t
//   grad_d           = sum over t of r_t u_t
//   grad_delta_t     = (u_t sum_n b_t D_t + sum_n a X_t) times the slope of softplus
//   grad_delta_bias  = sum over t of grad_delta_t
//   grad_z_t         = grad_output_t y_t silu'(z_t)
//   grad_initial_state = exp(step_0 a) D_0
//
// D behind the last token is grad_final_state, or 0. Gradients have the shapes and dtypes of what
// they are of; those of tokens of no sequence are 0.
//
// Steps below 0 and rates a above 0 let the state grow, and are no error; infinity, which factors
// beyond float are, and NaN reach what comes after their token and, of gradients, before it.
//
// Numerics: states and sums in float, one rounding to nearest even of each output. Spans of tokens
// that are computed at once are put together by exp of a times the sum of their steps, in parts
// that are floats where the state is one. Sums have one order: the same library, driver, device,
// configuration and inputs give the same bits.
//
// Errors: InvalidArgument for shapes, dtypes and options that contradict this, Unsupported where no
// variant of the device can.
//
// Source: Gu and Dao, arXiv:2312.00752 (algorithm 2, and b by the step alone, as their code has
// it).
#pragma once

#include "tessera/context.hpp"
#include "tessera/export.hpp"

namespace tessera {

// Tensors that are left out are not part of the call.
struct SelectiveScanOptions {
  Tensor d{}, z{}, delta_bias{};
  Tensor initial_state{};
  Tensor cu_seqlens{};
  bool delta_softplus = false;
  bool final_state = false;  // is wanted
};

struct SelectiveScanResult {
  Tensor output;       // [batch, seq, dim]
  Tensor final_state;  // [sequences, dim, state] f32; empty where it was not wanted
};

// Which gradients to compute, of the operands that the call has.
struct SelectiveScanGradientOptions {
  Tensor grad_final_state{};  // where final_state was used; f32
  bool u = true, delta = true, a = true, b = true, c = true;
  bool d = true, z = true, delta_bias = true, initial_state = true;
};

// Empty where the call has no such operand or it was not wanted.
struct SelectiveScanGradients {
  Tensor u, delta, a, b, c, d, z, delta_bias, initial_state;
};

TESSERA_API SelectiveScanResult selective_scan(const Executor& on, const Tensor& u,
                                               const Tensor& delta, const Tensor& a,
                                               const Tensor& b, const Tensor& c,
                                               const SelectiveScanOptions& options = {});
TESSERA_API SelectiveScanGradients selective_scan_backward(
    const Executor& on, const Tensor& u, const Tensor& delta, const Tensor& a, const Tensor& b,
    const Tensor& c, const Tensor& grad_output, const SelectiveScanOptions& options = {},
    const SelectiveScanGradientOptions& wanted = {});

}  // namespace tessera
