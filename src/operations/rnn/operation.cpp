// SPDX-License-Identifier: Apache-2.0
// The records of rnn, and its typed functions.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/cells_core/records.hpp"
#include "operations/cells_core/typed_call.hpp"
#include "tessera/operations/rnn.hpp"

namespace tessera {
namespace operations::cells {

std::vector<Operation> rnn() {
  return new_records("rnn", Cell::kRnn,
                     "a layer of plain recurrent cells, in one direction or both",
                     "h_t = activation(weight_ih x_t + bias_ih + weight_hh h_(t-1) + bias_hh)");
}

}  // namespace operations::cells

namespace {

operations::cells::LayeredCall call_of(const Tensor& input, const std::vector<CellWeights>& layers,
                                       const RnnOptions& options) {
  return {.operation = "rnn",
          .input = input,
          .layers = layers,
          .h0 = options.h0,
          .c0 = {},
          .lengths = options.lengths,
          .options = {{"reverse", options.reverse},
                      {"activation",
                       std::string(options.activation == RnnActivation::kRelu ? "relu" : "tanh")}}};
}

}  // namespace

CellResult rnn(const Executor& on, const Tensor& input, const std::vector<CellWeights>& layers,
               const RnnOptions& options) try {
  return operations::cells::run_layers(on, call_of(input, layers, options), nullptr);
} catch (...) {
  rethrow_as_error();
}

namespace vjp {

CellValue rnn(const Executor& on, const Tensor& input, const std::vector<CellWeights>& layers,
              const RnnOptions& options) try {
  return CellMaker::make(on, call_of(input, layers, options));
} catch (...) {
  rethrow_as_error();
}

}  // namespace vjp
}  // namespace tessera
