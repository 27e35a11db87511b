// SPDX-License-Identifier: Apache-2.0
// What the typed functions of recurrences share: option structs become named operands and options,
// outputs become structs.
#pragma once

#include <optional>
#include <string>

#include "operations/common/gradients.hpp"
#include "tessera/operations/recurrent.hpp"

namespace tessera::operations::recurrence {

Options named_options(bool reverse, const std::optional<float>& softmax_scale);

// What all operations have.
Tensors rows(const Tensor& query, const Tensor& key, const Tensor& value,
             const Tensor& initial_state, const Tensor& state, const Tensor& cu_seqlens);

RecurrentResult run_forward(const Executor& on, const std::string& name, Tensors tensors,
                            const Options& options);

// Of recurrent, gla and lightning_attention.
RecurrentGradients run_backward(const Executor& on, const std::string& name, Tensors tensors,
                                const Tensor& grad_output, const Options& options,
                                const RecurrentGradientOptions& wanted);

}  // namespace tessera::operations::recurrence
