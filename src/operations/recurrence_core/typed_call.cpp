// SPDX-License-Identifier: Apache-2.0
#include "operations/recurrence_core/typed_call.hpp"

#include <utility>
#include <vector>

namespace tessera::operations::recurrence {

Options named_options(bool reverse, const std::optional<float>& softmax_scale) {
  Options named{{"reverse", reverse}};
  if (softmax_scale) named["softmax_scale"] = static_cast<double>(*softmax_scale);
  return named;
}

void add_operand(Tensors& tensors, const char* name, const Tensor& tensor) {
  if (tensor) tensors.emplace(name, tensor);
}

Tensors rows(const Tensor& query, const Tensor& key, const Tensor& value,
             const Tensor& initial_state, const Tensor& cu_seqlens) {
  Tensors tensors{{"query", query}, {"key", key}, {"value", value}};
  add_operand(tensors, "initial_state", initial_state);
  add_operand(tensors, "cu_seqlens", cu_seqlens);
  return tensors;
}

RecurrentResult run_forward(const Executor& on, const std::string& name, Tensors tensors,
                            const Options& options) {
  Tensors results = on.run(name, std::move(tensors), options, {"output", "final_state"});
  return {.output = std::move(results.at("output")),
          .final_state = std::move(results.at("final_state"))};
}

void run_gradients(const Executor& on, const std::string& name, Tensors tensors,
                   const Tensor& grad_output, const Tensor& grad_final_state,
                   const Options& options, std::span<const WantedGradient> all) {
  std::vector<std::string> outputs;
  for (const WantedGradient& gradient : all) {
    if (gradient.wants && tensors.count(gradient.operand) != 0)
      outputs.push_back(std::string("grad_") + gradient.operand);
  }
  tensors.emplace("grad_output", grad_output);
  add_operand(tensors, "grad_final_state", grad_final_state);
  if (outputs.empty()) return;
  const Tensors results = on.run(name, std::move(tensors), options, outputs);
  for (const WantedGradient& gradient : all) {
    const auto found = results.find(std::string("grad_") + gradient.operand);
    if (found != results.end()) *gradient.to = found->second;
  }
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
