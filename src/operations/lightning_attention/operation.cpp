// SPDX-License-Identifier: Apache-2.0
// The records of lightning_attention, and its typed functions.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/recurrence_core/records.hpp"
#include "operations/recurrence_core/typed_call.hpp"
#include "tessera/operations/lightning_attention.hpp"

namespace tessera {
namespace operations::recurrence {

std::vector<Operation> lightning_attention() {
  Operation forward = new_record("lightning_attention", lightning_slots(false));
  forward.summary =
      "linear attention with a fixed decay for each head and layer (arXiv:2401.04658)";
  forward.formula =
      "H_t = exp(-(8 / heads) (1 - layer_idx / num_layers) h) H_(t-1) + key_t value_t^T; "
      "output_t = softmax_scale H_t^T query_t";
  forward.options.push_back(
      {.name = "layer_idx", .type = "int", .doc = "from 0; must be below num_layers"});
  forward.options.push_back({.name = "num_layers", .type = "int", .doc = "at least 1"});
  Operation backward = new_record("lightning_attention_backward", lightning_slots(true));
  backward.summary = "gradients of lightning_attention";
  backward.formula = kGradientFormula;
  backward.options.insert(backward.options.end(), forward.options.end() - 2, forward.options.end());
  return list_of(std::move(forward), std::move(backward));
}

}  // namespace operations::recurrence

namespace {

Tensors operands(const Tensor& query, const Tensor& key, const Tensor& value,
                 const LightningAttentionOptions& options) {
  Tensors tensors = operations::recurrence::rows(query, key, value, options.initial_state,
                                                 options.state, options.cu_seqlens);
  return tensors;
}

Options named(const LightningAttentionOptions& options) {
  Options all = operations::recurrence::named_options(options.reverse, options.softmax_scale);
  all["layer_idx"] = options.layer_idx;
  all["num_layers"] = options.num_layers;
  return all;
}

}  // namespace

RecurrentResult lightning_attention(const Executor& on, const Tensor& query, const Tensor& key,
                                    const Tensor& value,
                                    const LightningAttentionOptions& options) try {
  return operations::recurrence::run_forward(on, "lightning_attention",
                                             operands(query, key, value, options), named(options));
} catch (...) {
  rethrow_as_error();
}

RecurrentGradients lightning_attention_backward(const Executor& on, const Tensor& query,
                                                const Tensor& key, const Tensor& value,
                                                const Tensor& grad_output,
                                                const LightningAttentionOptions& options,
                                                const RecurrentGradientOptions& wanted) try {
  return operations::recurrence::run_backward(on, "lightning_attention_backward",
                                              operands(query, key, value, options), grad_output,
                                              named(options), wanted);
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
