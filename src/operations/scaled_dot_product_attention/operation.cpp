// SPDX-License-Identifier: Apache-2.0
// scaled_dot_product_attention: padded batches.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/attention_core/records.hpp"
#include "operations/attention_core/typed_call.hpp"
#include "operations/common/ways.hpp"
#include "tessera/operations/scaled_dot_product_attention.hpp"

namespace tessera {
namespace operations::attention {
namespace {

Operation scaled_dot_product() {
  Operation operation;
  operation.name = "scaled_dot_product_attention";
  operation.summary = "softmax attention of padded batches";
  operation.formula =
      "output[i] = sum_j softmax_j(softmax_scale * query[i] . key[j] + bias[i,j]) "
      "value[j] over the j that row i sees";
  operation.operands = rows(false);
  append(operation.operands,
         {output("output", "[batch, q_len, heads, value_dim]", "rows that see no key are 0"),
          log_sum_exp(Role::kOutput, true), mask(), bias(), lengths("q_lengths", "query rows"),
          lengths("kv_lengths", "keys")});
  operation.options = band_options();
  return operation;
}

}  // namespace

std::vector<Operation> scaled_dot_product_attention() {
  return list_of(forward_record(scaled_dot_product()));
}

}  // namespace operations::attention

using operations::attention::add;
using operations::attention::band_options;
using operations::attention::required;

Tensor scaled_dot_product_attention(const Executor& on, const Tensor& query, const Tensor& key,
                                    const Tensor& value,
                                    const ScaledDotProductAttentionOptions& options) try {
  Tensors tensors = required(query, key, value);
  add(tensors, "attention_mask", options.attention_mask);
  add(tensors, "bias", options.bias);
  add(tensors, "q_lengths", options.q_lengths);
  add(tensors, "kv_lengths", options.kv_lengths);
  return on.run("scaled_dot_product_attention", tensors, band_options(options)).at("output");
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
