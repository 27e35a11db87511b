// SPDX-License-Identifier: Apache-2.0
// The records of recurrent, and its typed functions.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/recurrence_core/records.hpp"
#include "operations/recurrence_core/typed_call.hpp"
#include "tessera/operations/recurrent.hpp"

namespace tessera {
namespace operations::recurrence {

std::vector<Operation> recurrent() {
  Operation forward = new_record("recurrent", recurrent_slots(false));
  forward.summary = "linear attention with a state and four log decays";
  forward.formula =
      "H_t[k,v] = exp(g_t + g_gamma_h + gk_t[k] + gv_t[v]) H_(t-1)[k,v] + key_t[k] value_t[v]; "
      "output_t[v] = softmax_scale sum_k query_t[k] H_t[k,v]";
  Operation backward = new_record("recurrent_backward", recurrent_slots(true));
  backward.summary = "gradients of recurrent";
  backward.formula = kGradientFormula;
  return list_of(std::move(forward), std::move(backward));
}

}  // namespace operations::recurrence

namespace {

Tensors operands(const Tensor& query, const Tensor& key, const Tensor& value,
                 const RecurrentOptions& options) {
  Tensors tensors = operations::recurrence::rows(query, key, value, options.initial_state,
                                                 options.state, options.cu_seqlens);
  operations::add_operand(tensors, "g", options.g);
  operations::add_operand(tensors, "g_gamma", options.g_gamma);
  operations::add_operand(tensors, "gk", options.gk);
  operations::add_operand(tensors, "gv", options.gv);
  return tensors;
}

Options named(const RecurrentOptions& options) {
  return operations::recurrence::named_options(options.reverse, options.softmax_scale);
}

}  // namespace

RecurrentResult recurrent(const Executor& on, const Tensor& query, const Tensor& key,
                          const Tensor& value, const RecurrentOptions& options) try {
  return operations::recurrence::run_forward(on, "recurrent", operands(query, key, value, options),
                                             named(options));
} catch (...) {
  rethrow_as_error();
}

RecurrentGradients recurrent_backward(const Executor& on, const Tensor& query, const Tensor& key,
                                      const Tensor& value, const Tensor& grad_output,
                                      const RecurrentOptions& options,
                                      const RecurrentGradientOptions& wanted) try {
  return operations::recurrence::run_backward(on, "recurrent_backward",
                                              operands(query, key, value, options), grad_output,
                                              named(options), wanted);
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
