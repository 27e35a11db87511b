// SPDX-License-Identifier: Apache-2.0
// Layers of long short-term memory.
//
//   z = weight_ih x_t + bias_ih + weight_hh h_(t-1) + bias_hh, in blocks i, f, g, o of hidden rows
//   c_t = sigmoid(f) c_(t-1) + sigmoid(i) tanh(g)
//   h_t = sigmoid(o) tanh(c_t)
//
// With weight_hr [directions, proj, hidden], a projection, h_t is weight_hr times that instead:
// weight_hh is [directions, 4 hidden, proj], h0 and h_n have `proj` numbers where c0 and c_n
// have `hidden`, and output is [batch, seq, directions proj]. All layers have it or none.
//
// Layers, directions, lengths, shapes, gradients, dtypes, numerics and errors are those of rnn.hpp.
//
// Source: Hochreiter and Schmidhuber, Long short-term memory, 1997; Gers et al., 2000 (the gate f);
// Sak et al., Long short-term memory recurrent neural network architectures, 2014 (projections).
#pragma once

#include <vector>

#include "tessera/operations/rnn.hpp"

namespace tessera {

// Tensors that are left out are not part of the call.
struct LstmOptions {
  Tensor h0{}, c0{}, lengths{};
  bool reverse = false;
};

TESSERA_API CellResult lstm(const Executor& on, const Tensor& input,
                            const std::vector<CellWeights>& layers,
                            const LstmOptions& options = {});

namespace vjp {

TESSERA_API CellValue lstm(const Executor& on, const Tensor& input,
                           const std::vector<CellWeights>& layers, const LstmOptions& options = {});

}  // namespace vjp
}  // namespace tessera
