// SPDX-License-Identifier: Apache-2.0
#include "operations/flash_attention/problem.hpp"
#include "tessera/operations/flash_attention.hpp"

namespace tessera {
namespace operations {

std::vector<Operation> flash_attention() {
  const std::vector<DType> storage{DType::kF32, DType::kF16, DType::kBF16};
  Operation operation;
  operation.name = "flash_attention";
  operation.summary = "exact softmax attention in tiles (FlashAttention-2, arXiv:2307.08691)";
  operation.formula =
      "output[i] = sum_j softmax_j(cap(softmax_scale * query[i] . key[j])) value[j] over the j "
      "that row i sees";
  operation.operands = {
      {.name = "query",
       .shape = "[batch, q_len, heads, head_dim]",
       .dtypes = storage,
       .doc = "any strides but along head_dim, which is contiguous and 1 to 512"},
      {.name = "key",
       .shape = "[batch, kv_len, kv_heads, head_dim]",
       .dtypes = storage,
       .doc = "heads is a multiple of kv_heads"},
      {.name = "value",
       .shape = "[batch, kv_len, kv_heads, value_dim]",
       .dtypes = storage,
       .doc = "value_dim may differ from head_dim"},
      {.name = "output",
       .role = Role::kOutput,
       .shape = "[batch, q_len, heads, value_dim]",
       .dtypes = storage,
       .doc = "rows that see no key are 0"},
      {.name = "log_sum_exp",
       .role = Role::kOutput,
       .optional = true,
       .shape = "[batch, heads, q_len]",
       .dtypes = {DType::kF32},
       .doc = "natural logarithm; -inf for rows that see no key"},
  };
  operation.options = {
      {.name = "softmax_scale",
       .fallback = {},
       .type = "float",
       .doc = "of the logits; default head_dim^-1/2"},
      {.name = "causal",
       .fallback = false,
       .type = "bool",
       .doc = "row i sees key j only if j <= i + shift"},
      {.name = "causal_alignment",
       .fallback = std::string("top_left"),
       .type = "top_left or bottom_right",
       .doc = "shift of causal masks and windows: 0 or kv_len - q_len"},
      {.name = "sliding_window",
       .fallback = {},
       .type = "one or two ints",
       .doc = "left,right: row i sees i + shift - left <= j <= i + shift + right; one number means "
              "both"},
      {.name = "logits_soft_cap",
       .fallback = {},
       .type = "float",
       .doc = "> 0: logits become cap * tanh(logit / cap)"},
  };
  operation.validate = validate_flash_attention;
  operation.reference = reference_flash_attention;
  operation.variants = flash_attention_variants();
  operation.rules = flash_attention_rules();
  operation.workload = flash_attention_workload();
  return {std::move(operation)};
}

}  // namespace operations

namespace {

Options to_options(const FlashAttentionOptions& options) {
  Options result{{"causal", options.causal}};
  if (options.softmax_scale) result["softmax_scale"] = static_cast<double>(*options.softmax_scale);
  if (options.logits_soft_cap)
    result["logits_soft_cap"] = static_cast<double>(*options.logits_soft_cap);
  if (options.causal_alignment == CausalAlignment::kBottomRight) {
    result["causal_alignment"] = std::string("bottom_right");
  }
  if (options.sliding_window) {
    result["sliding_window"] =
        std::vector<std::int64_t>(options.sliding_window->begin(), options.sliding_window->end());
  }
  return result;
}

}  // namespace

Tensor flash_attention(const Executor& on, const Tensor& query, const Tensor& key,
                       const Tensor& value, const FlashAttentionOptions& options) {
  return on
      .run("flash_attention", {{"query", query}, {"key", key}, {"value", value}},
           to_options(options))
      .at("output");
}

FlashAttentionForward flash_attention_forward(const Executor& on, const Tensor& query,
                                              const Tensor& key, const Tensor& value,
                                              const FlashAttentionOptions& options) {
  Tensors outputs = on.run("flash_attention", {{"query", query}, {"key", key}, {"value", value}},
                           to_options(options), {"log_sum_exp"});
  return {.output = outputs.at("output"), .log_sum_exp = outputs.at("log_sum_exp")};
}

}  // namespace tessera
