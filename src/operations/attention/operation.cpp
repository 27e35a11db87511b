// SPDX-License-Identifier: Apache-2.0
// attention: output and weights.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/attention_core/records.hpp"
#include "operations/attention_core/typed_call.hpp"
#include "operations/common/ways.hpp"
#include "tessera/operations/attention.hpp"

namespace tessera {
namespace operations::attention {
namespace {

Operation with_weights() {
  Operation operation;
  operation.name = "attention";
  operation.summary = "softmax attention that also returns its weights";
  operation.formula =
      "weights[i,j] = keep[i,j] softmax_j(cap(softmax_scale * query[i] . key[j]) + "
      "bias[i,j]); output = weights value";
  operation.operands = rows(false);
  append(operation.operands,
         {output("output", "[batch, q_len, heads, value_dim]", "rows that see no key are 0"),
          output("weights", "[batch, heads, q_len, kv_len]", "dropout included"),
          log_sum_exp(Role::kOutput, false), mask(), bias(), sinks()});
  operation.options = band_options();
  operation.options.push_back(soft_cap());
  append(operation.options, dropout());
  operation.options.push_back({.name = "bias_order",
                               .fallback = std::string("after_cap"),
                               .type = "after_cap or before_cap",
                               .doc = "whether the bias joins the logits after or before the cap"});
  return operation;
}

}  // namespace

std::vector<Operation> attention() { return list_of(forward_record(with_weights())); }

}  // namespace operations::attention

using operations::attention::add;
using operations::attention::band_options;
using operations::attention::required;

AttentionResult attention(const Executor& on, const Tensor& query, const Tensor& key,
                          const Tensor& value, const AttentionOptions& options) try {
  Tensors tensors = required(query, key, value);
  add(tensors, "attention_mask", options.attention_mask);
  add(tensors, "bias", options.bias);
  add(tensors, "softmax_aux", options.softmax_aux);
  Options named = band_options(options);
  if (options.logits_soft_cap)
    named["logits_soft_cap"] = static_cast<double>(*options.logits_soft_cap);
  if (options.dropout_prob != 0) {
    named["dropout_prob"] = static_cast<double>(options.dropout_prob);
    named["dropout_seed"] = options.dropout_seed;
  }
  Tensors outputs = on.run("attention", tensors, std::move(named));
  return {.output = outputs.at("output"),
          .weights = outputs.at("weights"),
          .log_sum_exp = outputs.at("log_sum_exp")};
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
