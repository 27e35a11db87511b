// SPDX-License-Identifier: Apache-2.0
// The records of gla, and its typed functions.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/recurrence_core/records.hpp"
#include "operations/recurrence_core/typed_call.hpp"
#include "tessera/operations/gla.hpp"

namespace tessera {
namespace operations::recurrence {

std::vector<Operation> gla() {
  Operation forward = new_record("gla", gla_slots(false));
  forward.summary = "gated linear attention (arXiv:2312.06635)";
  forward.formula =
      "H_t[k,v] = exp(g_t[k] + g_gamma_h) H_(t-1)[k,v] + key_t[k] value_t[v]; "
      "output_t[v] = softmax_scale sum_k query_t[k] H_t[k,v]";
  Operation backward = new_record("gla_backward", gla_slots(true));
  backward.summary = "gradients of gla";
  backward.formula = kGradientFormula;
  return list_of(std::move(forward), std::move(backward));
}

}  // namespace operations::recurrence

namespace {

Tensors operands(const Tensor& query, const Tensor& key, const Tensor& value,
                 const GlaOptions& options) {
  Tensors tensors = operations::recurrence::rows(query, key, value, options.initial_state,
                                                 options.state, options.cu_seqlens);
  operations::add_operand(tensors, "g", options.g);
  operations::add_operand(tensors, "g_gamma", options.g_gamma);
  return tensors;
}

Options named(const GlaOptions& options) {
  return operations::recurrence::named_options(options.reverse, options.softmax_scale);
}

}  // namespace

RecurrentResult gla(const Executor& on, const Tensor& query, const Tensor& key, const Tensor& value,
                    const GlaOptions& options) try {
  return operations::recurrence::run_forward(on, "gla", operands(query, key, value, options),
                                             named(options));
} catch (...) {
  rethrow_as_error();
}

RecurrentGradients gla_backward(const Executor& on, const Tensor& query, const Tensor& key,
                                const Tensor& value, const Tensor& grad_output,
                                const GlaOptions& options,
                                const RecurrentGradientOptions& wanted) try {
  return operations::recurrence::run_backward(on, "gla_backward",
                                              operands(query, key, value, options), grad_output,
                                              named(options), wanted);
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
