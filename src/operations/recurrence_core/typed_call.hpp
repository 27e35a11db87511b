// SPDX-License-Identifier: Apache-2.0
// What the typed functions of the three operations share: option structs become named operands and
// options, outputs become structs.
#pragma once

#include <optional>
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
RecurrentGradients run_backward(const Executor& on, const std::string& name, Tensors tensors,
                                const Tensor& grad_output, const Options& options,
                                const RecurrentGradientOptions& wanted);

}  // namespace tessera::operations::recurrence
