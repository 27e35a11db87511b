// SPDX-License-Identifier: Apache-2.0
// The record of recurrent, and its typed function.
#include <utility>

#include "operations/recurrence_core/records.hpp"
#include "tessera/operations/recurrent.hpp"

namespace tessera {
namespace operations::recurrence {

std::vector<Operation> recurrent() {
  Operation forward = new_record("recurrent", recurrent_slots(false));
  forward.summary = "linear attention with a state and four log decays";
  forward.formula =
      "H_t[k,v] = exp(g_t + g_gamma_h + gk_t[k] + gv_t[v]) H_(t-1)[k,v] + key_t[k] value_t[v]; "
      "output_t[v] = softmax_scale sum_k query_t[k] H_t[k,v]";
  return {std::move(forward)};
}

}  // namespace operations::recurrence

RecurrentResult recurrent(const Executor& on, const Tensor& query, const Tensor& key,
                          const Tensor& value, const RecurrentOptions& options) {
  Tensors tensors{{"query", query}, {"key", key}, {"value", value}};
  const auto add = [&](const char* name, const Tensor& tensor) {
    if (tensor) tensors.emplace(name, tensor);
  };
  add("g", options.g);
  add("g_gamma", options.g_gamma);
  add("gk", options.gk);
  add("gv", options.gv);
  add("initial_state", options.initial_state);
  add("cu_seqlens", options.cu_seqlens);
  Options named{{"reverse", options.reverse}};
  if (options.softmax_scale) named["softmax_scale"] = static_cast<double>(*options.softmax_scale);
  Tensors results = on.run("recurrent", std::move(tensors), named, {"output", "final_state"});
  return {.output = std::move(results.at("output")),
          .final_state = std::move(results.at("final_state"))};
}

}  // namespace tessera
