// SPDX-License-Identifier: Apache-2.0
// What the typed functions of the three operations share: layers become one call each.
#pragma once

#include <string>
#include <vector>

#include "tessera/operations/rnn.hpp"

namespace tessera {
namespace operations::cells {

struct LayeredCall {
  std::string operation{};
  Tensor input{};
  std::vector<CellWeights> layers{};
  Tensor h0{}, c0{}, lengths{};
  Options options{};
};

// What the way back takes of a layer's forward call.
struct LayerTrace {
  Tensor input, reserve;
};

// `trace`: where it is given, gets that of each layer.
CellResult run_layers(const Executor& on, const LayeredCall& call, std::vector<LayerTrace>* trace);

}  // namespace operations::cells

namespace vjp {

struct CellMaker {
  static CellValue make(const Executor& on, operations::cells::LayeredCall call);
};

}  // namespace vjp
}  // namespace tessera
