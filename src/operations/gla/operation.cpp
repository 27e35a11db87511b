// SPDX-License-Identifier: Apache-2.0
// The record of gla, and its typed function.
#include <utility>

#include "operations/recurrence_core/records.hpp"
#include "tessera/operations/gla.hpp"

namespace tessera {
namespace operations::recurrence {

std::vector<Operation> gla() {
  Operation forward = new_record("gla", gla_slots(false));
  forward.summary = "gated linear attention (arXiv:2312.06635)";
  forward.formula =
      "H_t[k,v] = exp(g_t[k] + g_gamma_h) H_(t-1)[k,v] + key_t[k] value_t[v]; "
      "output_t[v] = softmax_scale sum_k query_t[k] H_t[k,v]";
  return {std::move(forward)};
}

}  // namespace operations::recurrence

RecurrentResult gla(const Executor& on, const Tensor& query, const Tensor& key, const Tensor& value,
                    const GlaOptions& options) {
  Tensors tensors{{"query", query}, {"key", key}, {"value", value}};
  const auto add = [&](const char* name, const Tensor& tensor) {
    if (tensor) tensors.emplace(name, tensor);
  };
  add("g", options.g);
  add("g_gamma", options.g_gamma);
  add("initial_state", options.initial_state);
  add("cu_seqlens", options.cu_seqlens);
  Options named{{"reverse", options.reverse}};
  if (options.softmax_scale) named["softmax_scale"] = static_cast<double>(*options.softmax_scale);
  Tensors results = on.run("gla", std::move(tensors), named, {"output", "final_state"});
  return {.output = std::move(results.at("output")),
          .final_state = std::move(results.at("final_state"))};
}

}  // namespace tessera
