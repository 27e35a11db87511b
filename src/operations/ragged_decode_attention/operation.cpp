// SPDX-License-Identifier: Apache-2.0
// ragged_decode_attention: one query per sequence, and the keys that it sees.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/attention_core/records.hpp"
#include "operations/attention_core/typed_call.hpp"
#include "operations/common/ways.hpp"
#include "tessera/operations/ragged_decode_attention.hpp"

namespace tessera {
namespace operations::attention {
namespace {

Operation described() {
  Operation operation;
  operation.name = "ragged_decode_attention";
  operation.summary = "softmax attention of one query per sequence over a part of a dense cache";
  operation.formula =
      "output[b,h] = sum_j softmax_j(cap(softmax_scale * query[b,h] . key[b,j,g])) value[b,j,g] "
      "over sequence_start[b] <= j < sequence_end[b]; position_bias[h,j] is added to the logits of "
      "the "
      "first j";
  operation.operands = {
      input("query", "[batch, heads, head_dim]",
            "also [batch, 1, heads, head_dim]; head_dim is contiguous and 1 to 512"),
      stored("key", "[batch, rows, kv_heads, head_dim]", "heads is a multiple of kv_heads"),
      stored("value", "[batch, rows, kv_heads, value_dim]", "value_dim may differ from head_dim"),
      {.name = "sequence_start",
       .shape = "[batch]",
       .dtypes = {DType::kI32},
       .doc = "the first key of each sequence"},
      {.name = "sequence_end",
       .shape = "[batch]",
       .dtypes = {DType::kI32},
       .doc = "behind its last one"},
      output("output", "[batch, heads, value_dim]", "sequences without keys are 0"),
      {.name = "log_sum_exp",
       .role = Role::kOutput,
       .optional = true,
       .shape = "[batch, heads]",
       .dtypes = {DType::kF32},
       .doc = "natural logarithm; -inf for sequences without keys; [batch, heads, 1] of queries "
              "with an axis of rows"},
      sinks(),
      scale("key_scale", "key", "[batch, rows, kv_heads]"),
      scale("value_scale", "value", "[batch, rows, kv_heads]"),
      optional_input("position_bias", "[heads, positions]", kStorage,
                     "added to the logits of key rows j < positions, after the cap; -inf hides the "
                     "key; also [kv_heads, positions] and [positions]; the dtype of query or f32")};
  operation.types = stored_types("query", {"key", "value"});
  operation.options = {
      {.name = "softmax_scale",
       .fallback = {},
       .type = "float",
       .doc = "of the logits; default head_dim^-1/2"},
      {.name = "sliding_window",
       .fallback = {},
       .type = "one or two ints",
       .doc = "left,right: keys from sequence_end - 1 - left on; right hides none"},
      soft_cap(),
      splits()};
  operation.errors = {
      {.kind = "start_out_of_range",
       .operand = "sequence_start",
       .sentence = "is negative or more than key has rows; the nearest counts"},
      {.kind = "end_out_of_range",
       .operand = "sequence_end",
       .sentence = "is less than sequence_start or more than key has rows; the nearest counts"}};
  return operation;
}

}  // namespace

std::vector<Operation> ragged_decode_attention() {
  return list_of(ragged_decode_record(described()));
}

}  // namespace operations::attention

using operations::attention::add;

namespace {

Tensors run_spans(const Executor& on, const Tensor& query, const Tensor& key, const Tensor& value,
                  const Tensor& sequence_start, const Tensor& sequence_end,
                  const RaggedDecodeAttentionOptions& options,
                  const std::vector<std::string>& wanted) {
  Tensors tensors = operations::attention::required(query, key, value);
  add(tensors, "sequence_start", sequence_start);
  add(tensors, "sequence_end", sequence_end);
  add(tensors, "softmax_aux", options.softmax_aux);
  add(tensors, "key_scale", options.key_scale);
  add(tensors, "value_scale", options.value_scale);
  add(tensors, "position_bias", options.position_bias);
  Options named{{"num_splits", options.num_splits}};
  if (options.softmax_scale) named["softmax_scale"] = static_cast<double>(*options.softmax_scale);
  if (options.logits_soft_cap)
    named["logits_soft_cap"] = static_cast<double>(*options.logits_soft_cap);
  if (options.sliding_window) {
    named["sliding_window"] =
        std::vector<std::int64_t>(options.sliding_window->begin(), options.sliding_window->end());
  }
  if (options.precision) named["precision"] = std::string(to_string(*options.precision));
  return on.run("ragged_decode_attention", tensors, std::move(named), wanted);
}

}  // namespace

Tensor ragged_decode_attention(const Executor& on, const Tensor& query, const Tensor& key,
                               const Tensor& value, const Tensor& sequence_start,
                               const Tensor& sequence_end,
                               const RaggedDecodeAttentionOptions& options) try {
  return run_spans(on, query, key, value, sequence_start, sequence_end, options, {}).at("output");
} catch (...) {
  rethrow_as_error();
}

RaggedDecodeAttentionForward ragged_decode_attention_forward(
    const Executor& on, const Tensor& query, const Tensor& key, const Tensor& value,
    const Tensor& sequence_start, const Tensor& sequence_end,
    const RaggedDecodeAttentionOptions& options) try {
  Tensors outputs =
      run_spans(on, query, key, value, sequence_start, sequence_end, options, {"log_sum_exp"});
  return {.output = outputs.at("output"), .log_sum_exp = outputs.at("log_sum_exp")};
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
