// SPDX-License-Identifier: Apache-2.0
// Layers of long short-term memory.
//
//   z = weight_ih x_t + bias_ih + weight_hh h_(t-1) + bias_hh, in blocks i, f, g, o of hidden rows
//   c_t = sigmoid(f) c_(t-1) + sigmoid(i) tanh(g)
//   h_t = sigmoid(o) tanh(c_t)
//
// Layers, directions, lengths, shapes, gradients, dtypes, numerics and errors are those of rnn.hpp.
//
// Source: Hochreiter and Schmidhuber, Long short-term memory, 1997; Gers et al., 2000 (the gate f).
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
