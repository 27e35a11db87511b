// SPDX-License-Identifier: Apache-2.0
#include "operations/common/gradients.hpp"

namespace tessera::operations {

Operand gradient_operand(const Operand& of) {
  Operand gradient = of;
  gradient.name = "grad_" + of.name;
  gradient.role = Role::kOutput;
  gradient.optional = true;
  gradient.doc = "in the shape and dtype of " + of.name;
  return gradient;
}

void add_operand(Tensors& tensors, const char* name, const Tensor& tensor) {
  if (tensor) tensors.emplace(name, tensor);
}

void run_gradients(const Executor& on, const std::string& name, Tensors tensors,
                   const Tensor& grad_output, const Tensor& grad_final_state,
                   const Options& options, std::span<const WantedGradient> all) {
  std::vector<std::string> outputs;
  for (const WantedGradient& gradient : all) {
    if (gradient.wants && tensors.contains(gradient.operand))
      outputs.push_back(std::string("grad_") + gradient.operand);
  }
  if (outputs.empty()) return;
  tensors.emplace("grad_output", grad_output);
  add_operand(tensors, "grad_final_state", grad_final_state);
  const Tensors results = on.run(name, std::move(tensors), options, outputs);
  for (const WantedGradient& gradient : all) {
    const auto found = results.find(std::string("grad_") + gradient.operand);
    if (found != results.end()) *gradient.to = found->second;
  }
}

}  // namespace tessera::operations
