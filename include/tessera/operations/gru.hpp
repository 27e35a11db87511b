// SPDX-License-Identifier: Apache-2.0
// Layers of gated recurrent units.
//
//   a = weight_ih x_t + bias_ih, b = weight_hh h_(t-1) + bias_hh, in blocks r, z, n of hidden rows
//   r = sigmoid(a_r + b_r)   z = sigmoid(a_z + b_z)   n = tanh(a_n + r b_n)
//   h_t = (1 - z) n + z h_(t-1)
//
// The reset gate comes behind the product, as in PyTorch and cuDNN. Layers, directions, lengths,
// shapes, gradients, dtypes, numerics and errors are those of rnn.hpp.
//
// Source: Cho et al., arXiv:1406.1078.
#pragma once

#include <vector>

#include "tessera/operations/rnn.hpp"

namespace tessera {

// Tensors that are left out are not part of the call.
struct GruOptions {
  Tensor h0{}, lengths{};
  bool reverse = false;
};

TESSERA_API CellResult gru(const Executor& on, const Tensor& input,
                           const std::vector<CellWeights>& layers, const GruOptions& options = {});

namespace vjp {

TESSERA_API CellValue gru(const Executor& on, const Tensor& input,
                          const std::vector<CellWeights>& layers, const GruOptions& options = {});

}  // namespace vjp
}  // namespace tessera
