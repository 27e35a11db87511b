// SPDX-License-Identifier: Apache-2.0
// The record of lightning_attention, and its typed function.
#include <utility>

#include "operations/recurrence_core/records.hpp"
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
  return {std::move(forward)};
}

}  // namespace operations::recurrence

RecurrentResult lightning_attention(const Executor& on, const Tensor& query, const Tensor& key,
                                    const Tensor& value, const LightningAttentionOptions& options) {
  Tensors tensors{{"query", query}, {"key", key}, {"value", value}};
  if (options.initial_state) tensors.emplace("initial_state", options.initial_state);
  if (options.cu_seqlens) tensors.emplace("cu_seqlens", options.cu_seqlens);
  Options named{{"reverse", options.reverse},
                {"layer_idx", options.layer_idx},
                {"num_layers", options.num_layers}};
  if (options.softmax_scale) named["softmax_scale"] = static_cast<double>(*options.softmax_scale);
  Tensors results =
      on.run("lightning_attention", std::move(tensors), named, {"output", "final_state"});
  return {.output = std::move(results.at("output")),
          .final_state = std::move(results.at("final_state"))};
}

}  // namespace tessera
