// SPDX-License-Identifier: Apache-2.0
// Linear attention as a recurrence: a state of key_dim x value_dim for each head, with up to four
// decays.
//
//   H_t[k,v]    = exp(g_t + g_gamma_h + gk_t[k] + gv_t[v]) H_(t-1)[k,v] + key_t[k] value_t[v]
//   output_t[v] = softmax_scale sum_k query_t[k] H_t[k,v]
//
// The decays are logarithms, in natural units, added up before exp is taken of them; what is left
// out counts 0. The state decays before the token joins it, and the output sees its own token.
// H_(-1) is initial_state, or 0; final_state is the state after the last token. With reverse, time
// runs from the last token of each sequence to its first: initial_state enters at the last token.
// A call with `state`, which has neither of these, reads the state before the first token there and
// leaves that after the last one in its place: decoding without a second copy of the states. Its
// gradients are those of the call with that state as initial_state.
//
// Shapes: query, key, gk [batch, seq, heads, key_dim]; value, gv, output [batch, seq, heads,
// value_dim]; g [batch, seq, heads], a number for a token and head, or [batch, seq, heads,
// key_dim], one for each key dim; g_gamma [heads]; states [sequences, heads, key_dim, value_dim] in
// f32. query, key and value are f32, f16 or bf16, and decays are in their dtype or in f32. Strides
// are any but along the last axis of what has four axes, which is contiguous. Kernels take dims up
// to 512.
//
// Packed sequences: with cu_seqlens, i32 [sequences + 1], batch is 1, and sequence s is tokens
// cu_seqlens[s] <= t < cu_seqlens[s + 1]. One of length 0 passes its state on. Outputs of tokens
// that belong to no sequence are 0, and nothing of such tokens is used. What cu_seqlens holds is
// known on the device only: boundaries count as cut to [0, seq] and to not decrease, so that no two
// sequences overlap, and synchronize() and downloads throw DataError for one that is outside or
// decreases.
//
// Gradients, with A_t the factor of H_(t-1) and D the gradient of the state, from the last token
// back:
//
//   D_t                = softmax_scale query_t grad_output_t^T + A_(t+1) D_(t+1)
//   grad_query_t       = softmax_scale H_t grad_output_t
//   grad_key_t         = D_t value_t           grad_value_t = D_t^T key_t
//   X_t                = D_t A_t H_(t-1)       (element by element)
//   grad_g_t           = sum of X_t, or its sums over value dims where g has key dims
//   grad_gk_t, gv_t    = sums of X_t over value dims, over key dims
//   grad_g_gamma_h     = sum of X_t over all tokens
//   grad_initial_state = A_0 D_0
//
// D behind the last token is grad_final_state, or 0. They are sums of these products, not
// differences of larger ones, so that a decay of -80 has a gradient as small as it is. Gradients
// have the shapes and dtypes of what they are of; those of tokens of no sequence are 0.
//
// Decays above 0 let the state grow and leave an empty one empty, however large; minus infinity
// starts it anew; plus infinity and NaN reach what comes after their token and nothing before it.
//
// Numerics: states and sums in float, one rounding to nearest even at the end. Forward of f16 and
// bf16 the variants mma and cooperative also round factors of their products to that type, but for
// precision = Precision::kHighest: queries and keys (or values) times their factors, weights of
// values, and the state where a query meets it; the state that is carried on stays in float. So do
// gradients of bf16: there it is also the gradient of the state, and the state, wherever either
// meets a row or the other. Tokens beside decays above 0, or with what is not finite, are taken in
// float (by cooperative all of their sequence in the head), gradients from rounded states on.
// Products of decays are formed of factors, never as quotients, so that decays of -80 a step lose
// nothing but what is too small for a float. Sums have one order: the same library, driver, device,
// configuration and inputs give the same bits.
//
// Errors: InvalidArgument for shapes, dtypes and options that contradict this, Unsupported where no
// variant of the device can.
//
// Source: Katharopoulos et al., arXiv:2006.16236 (linear attention as a recurrence); Yang et al.,
// arXiv:2312.06635 (decays).
#pragma once

#include <optional>

#include "tessera/context.hpp"
#include "tessera/export.hpp"

namespace tessera {

// Tensors that are left out are not part of the call.
struct RecurrentOptions {
  Tensor g{}, g_gamma{}, gk{}, gv{};
  Tensor initial_state{};
  Tensor state{};  // changed in place, in place of initial_state and final_state
  Tensor cu_seqlens{};
  bool reverse = false;
  std::optional<float> softmax_scale{};  // default key_dim^-1/2
};

struct RecurrentResult {
  Tensor output;       // [batch, seq, heads, value_dim], the dtype of query
  Tensor final_state;  // [sequences, heads, key_dim, value_dim] f32; `state` where a call has it
};

// Which gradients to compute, of the operands that the call has.
struct RecurrentGradientOptions {
  Tensor grad_final_state{};  // where final_state was used; f32
  bool query = true, key = true, value = true;
  bool g = true, g_gamma = true, gk = true, gv = true;
  bool initial_state = true;
};

// Empty where the call has no such operand or it was not wanted.
struct RecurrentGradients {
  Tensor query, key, value, g, g_gamma, gk, gv, initial_state;
};

TESSERA_API RecurrentResult recurrent(const Executor& on, const Tensor& query, const Tensor& key,
                                      const Tensor& value, const RecurrentOptions& options = {});
TESSERA_API RecurrentGradients recurrent_backward(const Executor& on, const Tensor& query,
                                                  const Tensor& key, const Tensor& value,
                                                  const Tensor& grad_output,
                                                  const RecurrentOptions& options = {},
                                                  const RecurrentGradientOptions& wanted = {});

}  // namespace tessera
