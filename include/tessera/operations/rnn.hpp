// SPDX-License-Identifier: Apache-2.0
// Layers of plain recurrent cells, and what they share with lstm (lstm.hpp) and gru (gru.hpp).
//
//   h_t = activation(weight_ih x_t + bias_ih + weight_hh h_(t-1) + bias_hh)
//
// activation is tanh or max(x, 0). h before the first token is h0, or 0; output_t is h_t, and h_n
// is h after the last token. With two directions the second runs from the last token to the first,
// with weights and states of its own, and output has its h behind that of the first. With reverse
// the first runs from the last token to the first, and the second the other way. Each further layer
// takes the output of the one before it.
//
// Shapes, with gates = 1 (lstm: 4, gru: 3): input [batch, seq, features]; of each layer weight_ih
// [directions, gates hidden, features], of further layers [directions, gates hidden, directions
// hidden], weight_hh [directions, gates hidden, hidden], bias_ih and bias_hh [directions, gates
// hidden], each of which may be left out; h0, c0, h_n and c_n [layers directions, batch, hidden],
// directions of a layer one behind the other; output [batch, seq, directions hidden]. directions is
// 1 or 2. Blocks of rows of weights are those of PyTorch, whose tensors of both directions are
// stacked.
//
// Lengths: with lengths, i32 [batch], batch entry b is its first lengths[b] tokens. Behind them
// states stay as they are, output and the gradient of input are 0, and nothing is used that lies
// there. A length outside of [0, seq] counts as cut to it, and synchronize() and downloads throw
// DataError.
//
// Gradients, back through time: of what lies behind the token, grad_h_n behind the last, and
// grad_output_t; they are sums of float products. The operations, for one layer, are rnn, lstm and
// gru and those with _backward. A forward one leaves what its gradients need in the output reserve,
// if that is wanted: floats [batch, seq, directions, numbers], which lie behind each other in
// blocks of hidden: of rnn h of the token; of gru the gates r, z and n and weight_hh h + bias_hh of
// n; of lstm the gates i, f, g and o and c before the token, with weight_hr what that multiplies;
// last h before the token (with weight_hr of proj numbers). With it a backward operation reads
// neither h0, c0 nor biases; without it, it computes the forward pass again. Pullbacks hold the
// reserve of each layer, of lstm 24 bytes a unit and token.
//
// Dtypes: f32, f16 or bf16, the same for all operands. Numerics: products, gates and states between
// tokens in float, one rounding to nearest even of each result. The variant mma, which matrix units
// compute, rounds h to the dtype as well where it is a factor of weight_hh; where gates mix it in
// it is a float. On the way back it rounds the gradients of the gates' sums where they are factors
// of weight_hh, to as many bits as the dtype has, times a power of 2 that keeps those of a batch
// entry and 16 units in its range, so that small ones lose nothing else; gradients of input,
// weights and biases take them as floats, and that of weight_hh takes h as it was a factor
// (Precision::kHigh). NaN and infinities stay in their batch
// entry, but for gradients of weights. The same library, driver, device, configuration and inputs
// give the same bits.
//
// Errors: InvalidArgument for shapes, dtypes and options that contradict this, Unsupported where no
// variant of the device can.
//
// Source: Elman, Finding structure in time, 1990.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "tessera/context.hpp"
#include "tessera/export.hpp"

namespace tessera {

// Of one layer, or their gradients. Biases may be left out, and weight_hr, which lstm has.
struct CellWeights {
  Tensor weight_ih{}, weight_hh{}, bias_ih{}, bias_hh{}, weight_hr{};
};

struct CellResult {
  Tensor output;    // [batch, seq, directions hidden]
  Tensor h_n, c_n;  // [layers directions, batch, hidden]; c_n of lstm only
};

enum class RnnActivation : std::uint8_t { kTanh, kRelu };

// Tensors that are left out are not part of the call.
struct RnnOptions {
  Tensor h0{}, lengths{};
  bool reverse = false;
  RnnActivation activation = RnnActivation::kTanh;
};

TESSERA_API CellResult rnn(const Executor& on, const Tensor& input,
                           const std::vector<CellWeights>& layers, const RnnOptions& options = {});

// Of the operands that the call has.
struct CellGradients {
  Tensor input;
  std::vector<CellWeights> layers;
  Tensor h0, c0;
};

namespace vjp {

// Takes the gradients of the outputs to those of the operands. Keep the operands alive; may be
// called any number of times.
class CellPullback {
 public:
  TESSERA_API CellGradients operator()(const Tensor& grad_output, const Tensor& grad_h_n = {},
                                       const Tensor& grad_c_n = {}) const;

 private:
  struct State;
  explicit CellPullback(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  friend struct CellMaker;
  std::shared_ptr<const State> state_;
};

struct CellValue {
  CellResult result;
  CellPullback pullback;
};

// auto [result, pullback] = vjp::rnn(context, x, layers);
TESSERA_API CellValue rnn(const Executor& on, const Tensor& input,
                          const std::vector<CellWeights>& layers, const RnnOptions& options = {});

}  // namespace vjp
}  // namespace tessera
