// SPDX-License-Identifier: Apache-2.0
#include "operations/cells_core/typed_call.hpp"

#include <map>
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "tessera/error.hpp"

namespace tessera {
namespace operations::cells {
namespace {

void put(Tensors& tensors, const char* name, const Tensor& tensor) {
  if (tensor) tensors.emplace(name, tensor);
}

std::int64_t directions_of(const LayeredCall& call) {
  const Tensor& weight = call.layers.front().weight_hh;
  return weight && !weight.shape().empty() ? weight.dim(0) : 1;
}

// States of a layer, of those of all.
Tensor part_of(const LayeredCall& call, const Tensor& states, std::size_t layer) {
  if (!states) return {};
  const std::int64_t directions = directions_of(call);
  const auto first = static_cast<std::int64_t>(layer) * directions;
  return states.slice(0, first, first + directions);
}

Tensors operands(const LayeredCall& call, std::size_t layer, const Tensor& input) {
  const CellWeights& weights = call.layers[layer];
  Tensors tensors;
  put(tensors, "input", input);
  put(tensors, "weight_ih", weights.weight_ih);
  put(tensors, "weight_hh", weights.weight_hh);
  put(tensors, "weight_hr", weights.weight_hr);
  put(tensors, "bias_ih", weights.bias_ih);
  put(tensors, "bias_hh", weights.bias_hh);
  put(tensors, "h0", part_of(call, call.h0, layer));
  put(tensors, "c0", part_of(call, call.c0, layer));
  put(tensors, "lengths", call.lengths);
  return tensors;
}

// Room for the states of all layers, or their gradients: `weight` multiplies them.
Tensor states_of(const Executor& on, const LayeredCall& call, const Tensor& weight) {
  if (!weight || weight.shape().size() != 3 || !call.input || call.input.shape().size() != 3)
    return {};  // the call says what is wrong
  const auto layers = static_cast<std::int64_t>(call.layers.size());
  return on.context().empty(call.input.dtype(),
                            {layers * weight.dim(0), call.input.dim(0), weight.dim(2)});
}

Tensor outputs_of(const Executor& on, const LayeredCall& call) {
  return states_of(on, call, call.layers.front().weight_hh);
}

Tensor cells_of(const Executor& on, const LayeredCall& call) {
  const CellWeights& weights = call.layers.front();
  return states_of(on, call, weights.weight_hr ? weights.weight_hr : weights.weight_hh);
}

void check_states(const LayeredCall& call, const Tensor& states, const char* name) {
  if (!states) return;
  const std::int64_t wanted = static_cast<std::int64_t>(call.layers.size()) * directions_of(call);
  if (states.shape().size() == 3 && states.dim(0) == wanted) return;
  throw InvalidArgument(call.operation + ": " + name + " " + states.spec().to_string() +
                        " must have " + std::to_string(wanted) +
                        " states, one for each layer and direction");
}

}  // namespace

CellResult run_layers(const Executor& on, const LayeredCall& call, std::vector<LayerTrace>* trace) {
  if (call.layers.empty())
    throw InvalidArgument(call.operation + ": there must be at least one layer");
  check_states(call, call.h0, "h0");
  check_states(call, call.c0, "c0");
  CellResult result{.output = call.input, .h_n = outputs_of(on, call), .c_n = {}};
  if (call.operation == "lstm") result.c_n = cells_of(on, call);
  for (std::size_t layer = 0; layer < call.layers.size(); ++layer) {
    Tensors tensors = operands(call, layer, result.output);
    put(tensors, "h_n", part_of(call, result.h_n, layer));
    put(tensors, "c_n", part_of(call, result.c_n, layer));
    std::vector<std::string> wanted;
    if (trace != nullptr) wanted.emplace_back("reserve");
    Tensors results = on.run(call.operation, std::move(tensors), call.options, wanted);
    if (trace != nullptr) trace->push_back({result.output, results.at("reserve")});
    result.output = results.at("output");
  }
  return result;
}

}  // namespace operations::cells

namespace vjp {

struct CellPullback::State {
  Executor on;
  operations::cells::LayeredCall call;
  std::vector<operations::cells::LayerTrace> trace;
};

CellValue CellMaker::make(const Executor& on, operations::cells::LayeredCall call) {
  std::vector<operations::cells::LayerTrace> trace;
  CellResult result = operations::cells::run_layers(on, call, &trace);
  auto state = std::make_shared<CellPullback::State>(
      CellPullback::State{on, std::move(call), std::move(trace)});
  return {.result = std::move(result), .pullback = CellPullback(std::move(state))};
}

CellGradients CellPullback::operator()(const Tensor& grad_output, const Tensor& grad_h_n,
                                       const Tensor& grad_c_n) const try {
  namespace cells = operations::cells;
  const cells::LayeredCall& call = state_->call;
  cells::check_states(call, grad_h_n, "grad_h_n");
  cells::check_states(call, grad_c_n, "grad_c_n");
  CellGradients gradients;
  gradients.layers.resize(call.layers.size());
  if (call.h0) gradients.h0 = cells::outputs_of(state_->on, call);
  if (call.c0) gradients.c0 = cells::cells_of(state_->on, call);
  gradients.input = grad_output;
  for (std::size_t layer = call.layers.size(); layer-- > 0;) {
    Tensors tensors = cells::operands(call, layer, state_->trace[layer].input);
    cells::put(tensors, "reserve", state_->trace[layer].reserve);
    CellWeights& weights = gradients.layers[layer];
    const std::map<std::string, Tensor*> to{
        {"grad_input", &gradients.input},       {"grad_weight_ih", &weights.weight_ih},
        {"grad_weight_hh", &weights.weight_hh}, {"grad_weight_hr", &weights.weight_hr},
        {"grad_bias_ih", &weights.bias_ih},     {"grad_bias_hh", &weights.bias_hh}};
    std::vector<std::string> wanted;
    for (const auto& [name, tensor] : to) {
      if (tensors.contains(name.substr(5))) wanted.push_back(name);
    }
    cells::put(tensors, "grad_output", gradients.input);
    cells::put(tensors, "grad_h_n", cells::part_of(call, grad_h_n, layer));
    cells::put(tensors, "grad_c_n", cells::part_of(call, grad_c_n, layer));
    cells::put(tensors, "grad_h0", cells::part_of(call, gradients.h0, layer));
    cells::put(tensors, "grad_c0", cells::part_of(call, gradients.c0, layer));
    const Tensors results =
        state_->on.run(call.operation + "_backward", std::move(tensors), call.options, wanted);
    for (const std::string& name : wanted) *to.at(name) = results.at(name);
  }
  return gradients;
} catch (...) {
  rethrow_as_error();
}

}  // namespace vjp
}  // namespace tessera
