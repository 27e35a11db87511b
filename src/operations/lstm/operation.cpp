// SPDX-License-Identifier: Apache-2.0
// The records of lstm, and its typed functions.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/cells_core/records.hpp"
#include "operations/cells_core/typed_call.hpp"
#include "tessera/operations/lstm.hpp"

namespace tessera {
namespace operations::cells {

std::vector<Operation> lstm() {
  return new_records(
      "lstm", Cell::kLstm, "a layer of long short-term memory, in one direction or both",
      "z = weight_ih x_t + bias_ih + weight_hh h_(t-1) + bias_hh in blocks i, f, g, o; "
      "c_t = sigmoid(f) c_(t-1) + sigmoid(i) tanh(g); h_t = sigmoid(o) tanh(c_t)");
}

}  // namespace operations::cells

namespace {

operations::cells::LayeredCall call_of(const Tensor& input, const std::vector<CellWeights>& layers,
                                       const LstmOptions& options) {
  return {.operation = "lstm",
          .input = input,
          .layers = layers,
          .h0 = options.h0,
          .c0 = options.c0,

          .lengths = options.lengths,
          .options = {{"reverse", options.reverse}}};
}

}  // namespace

CellResult lstm(const Executor& on, const Tensor& input, const std::vector<CellWeights>& layers,
                const LstmOptions& options) try {
  return operations::cells::run_layers(on, call_of(input, layers, options), nullptr);
} catch (...) {
  rethrow_as_error();
}

namespace vjp {

CellValue lstm(const Executor& on, const Tensor& input, const std::vector<CellWeights>& layers,
               const LstmOptions& options) try {
  return CellMaker::make(on, call_of(input, layers, options));
} catch (...) {
  rethrow_as_error();
}

}  // namespace vjp
}  // namespace tessera
