// SPDX-License-Identifier: Apache-2.0
// What the typed functions of recurrences share: option structs become named operands and options,
// outputs become structs.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "tessera/operations/recurrent.hpp"

namespace tessera::operations::recurrence {

Options named_options(bool reverse, const std::optional<float>& softmax_scale);

// Adds what all operations have; a tensor that is left out is no operand.
void add_operand(Tensors& tensors, const char* name, const Tensor& tensor);
Tensors rows(const Tensor& query, const Tensor& key, const Tensor& value,
             const Tensor& initial_state, const Tensor& cu_seqlens);

RecurrentResult run_forward(const Executor& on, const std::string& name, Tensors tensors,
                            const Options& options);

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
// Of recurrent, gla and lightning_attention.
RecurrentGradients run_backward(const Executor& on, const std::string& name, Tensors tensors,
                                const Tensor& grad_output, const Options& options,
                                const RecurrentGradientOptions& wanted);

}  // namespace tessera::operations::recurrence
