// SPDX-License-Identifier: Apache-2.0
#include "operations/recurrence_core/typed_call.hpp"

#include <utility>

namespace tessera::operations::recurrence {

Options named_options(bool reverse, const std::optional<float>& softmax_scale) {
  Options named{{"reverse", reverse}};
  if (softmax_scale) named["softmax_scale"] = static_cast<double>(*softmax_scale);
  return named;
}

Tensors rows(const Tensor& query, const Tensor& key, const Tensor& value,
             const Tensor& initial_state, const Tensor& state, const Tensor& cu_seqlens) {
  Tensors tensors{{"query", query}, {"key", key}, {"value", value}};
  add_operand(tensors, "initial_state", initial_state);
  add_operand(tensors, "state", state);
  add_operand(tensors, "cu_seqlens", cu_seqlens);
  return tensors;
}

RecurrentResult run_forward(const Executor& on, const std::string& name, Tensors tensors,
                            const Options& options) {
  const auto state = tensors.find("state");
  const bool in_place = state != tensors.end();
  const Tensor changed = in_place ? state->second : Tensor{};
  RecurrentResult result =
      run_with_state<RecurrentResult>(on, name, std::move(tensors), options, !in_place);
  if (in_place) result.final_state = changed;
  return result;
}

RecurrentGradients run_backward(const Executor& on, const std::string& name, Tensors tensors,
                                const Tensor& grad_output, const Options& options,
                                const RecurrentGradientOptions& wanted) {
  RecurrentGradients gradients;
  const WantedGradient all[] = {{"query", wanted.query, &gradients.query},
                                {"key", wanted.key, &gradients.key},
                                {"value", wanted.value, &gradients.value},
                                {"g", wanted.g, &gradients.g},
                                {"g_gamma", wanted.g_gamma, &gradients.g_gamma},
                                {"gk", wanted.gk, &gradients.gk},
                                {"gv", wanted.gv, &gradients.gv},
                                {"initial_state", wanted.initial_state, &gradients.initial_state}};
  run_gradients(on, name, std::move(tensors), grad_output, wanted.grad_final_state, options, all);
  return gradients;
}

}  // namespace tessera::operations::recurrence
