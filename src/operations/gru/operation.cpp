// SPDX-License-Identifier: Apache-2.0
// The records of gru, and its typed functions.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/cells_core/records.hpp"
#include "operations/cells_core/typed_call.hpp"
#include "tessera/operations/gru.hpp"

namespace tessera {
namespace operations::cells {

std::vector<Operation> gru() {
  return new_records(
      "gru", Cell::kGru, "a layer of gated recurrent units, in one direction or both",
      "a = weight_ih x_t + bias_ih, b = weight_hh h_(t-1) + bias_hh in blocks r, z, n; "
      "r = sigmoid(a_r + b_r), z = sigmoid(a_z + b_z), n = tanh(a_n + r b_n); "
      "h_t = (1 - z) n + z h_(t-1)");
}

}  // namespace operations::cells

namespace {

operations::cells::LayeredCall call_of(const Tensor& input, const std::vector<CellWeights>& layers,
                                       const GruOptions& options) {
  return {.operation = "gru",
          .input = input,
          .layers = layers,
          .h0 = options.h0,
          .c0 = {},
          .lengths = options.lengths,
          .options = {{"reverse", options.reverse}}};
}

}  // namespace

CellResult gru(const Executor& on, const Tensor& input, const std::vector<CellWeights>& layers,
               const GruOptions& options) try {
  return operations::cells::run_layers(on, call_of(input, layers, options), nullptr);
} catch (...) {
  rethrow_as_error();
}

namespace vjp {

CellValue gru(const Executor& on, const Tensor& input, const std::vector<CellWeights>& layers,
              const GruOptions& options) try {
  return CellMaker::make(on, call_of(input, layers, options));
} catch (...) {
  rethrow_as_error();
}

}  // namespace vjp
}  // namespace tessera
