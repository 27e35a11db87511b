// SPDX-License-Identifier: Apache-2.0
// What records and typed functions of operations with gradients share.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tessera/context.hpp"
#include "tessera/record.hpp"

namespace tessera::operations {

// The optional output grad_NAME, in the shape and dtype of operand NAME.
Operand gradient_operand(const Operand& of);

// A tensor that is left out is no operand.
void add_operand(Tensors& tensors, const char* name, const Tensor& tensor);

// Of operations with `output` and an optional `final_state`.
template <class Result>
Result run_with_state(const Executor& on, const std::string& name, Tensors tensors,
                      const Options& options, bool final_state) {
  std::vector<std::string> outputs{"output"};
  if (final_state) outputs.emplace_back("final_state");
  Tensors results = on.run(name, std::move(tensors), options, outputs);
  Result result;
  result.output = std::move(results.at("output"));
  if (final_state) result.final_state = std::move(results.at("final_state"));
  return result;
}

// A gradient that an operation has, whether it is wanted, and where it goes.
struct WantedGradient {
  const char* operand;
  bool wants;
  Tensor* to;
};
// Runs nothing where the call has none of the operands whose gradients are wanted.
void run_gradients(const Executor& on, const std::string& name, Tensors tensors,
                   const Tensor& grad_output, const Tensor& grad_final_state,
                   const Options& options, std::span<const WantedGradient> all);

}  // namespace tessera::operations
