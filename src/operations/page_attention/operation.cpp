// SPDX-License-Identifier: Apache-2.0
// page_attention: one query per sequence, keys and values in pages.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/attention_core/records.hpp"
#include "operations/attention_core/typed_call.hpp"
#include "operations/common/ways.hpp"
#include "tessera/operations/page_attention.hpp"

namespace tessera {
namespace operations::attention {
namespace {

Operation described() {
  Operation operation;
  operation.name = "page_attention";
  operation.summary = "softmax attention of one query per sequence over a cache in pages";
  operation.formula =
      "output[n,h] = sum_t softmax_t(cap(attn_scale * query[n,h] . key[t])) value[t] over the t < "
      "context_lens[n]; key[t] = key_cache[block_tables[n, t / page_size], g, t % page_size]";
  const std::string cache = "[pages, kv_heads, page_size, ";
  operation.operands = {
      input("query", "[sequences, heads, head_dim]", "head_dim is contiguous and 1 to 512"),
      stored("key_cache", cache + "head_dim]", "any strides but along head_dim"),
      stored("value_cache", cache + "value_dim]", "value_dim may differ from head_dim")};
  append(operation.operands, tables("sequences"));
  append(operation.operands,
         {output("output", "[sequences, heads, value_dim]", "sequences without tokens are 0"),
          {.name = "log_sum_exp",
           .role = Role::kOutput,
           .optional = true,
           .shape = "[sequences, heads]",
           .dtypes = {DType::kF32},
           .doc = "natural logarithm; -inf for sequences without tokens"},
          sinks(),
          scale("key_scale", "key_cache", "[pages, kv_heads, page_size]"),
          scale("value_scale", "value_cache", "[pages, kv_heads, page_size]")});
  operation.types = stored_types("query", {"key_cache", "value_cache"});
  operation.options = {{.name = "attn_scale",
                        .fallback = {},
                        .type = "float",
                        .doc = "of the logits; default head_dim^-1/2"},
                       {.name = "attn_logits_soft_cap",
                        .fallback = {},
                        .type = "float",
                        .doc = "> 0: logits become cap * tanh(logit / cap)"},
                       token_window(),
                       splits(),
                       {.name = "max_context_len",
                        .fallback = {},
                        .type = "int",
                        .doc = "of the longest sequence, by which splits are chosen; results do "
                               "not depend on it"}};
  operation.errors = table_errors(false);
  return operation;
}

}  // namespace

std::vector<Operation> page_attention() { return list_of(paged_record(described())); }

}  // namespace operations::attention

using operations::attention::add;

namespace {

Tensors run_pages(const Executor& on, const Tensor& query, const Tensor& key_cache,
                  const Tensor& value_cache, const Tensor& context_lens, const Tensor& block_tables,
                  const PageAttentionOptions& options, const std::vector<std::string>& wanted) {
  Tensors tensors;
  add(tensors, "query", query);
  add(tensors, "key_cache", key_cache);
  add(tensors, "value_cache", value_cache);
  add(tensors, "context_lens", context_lens);
  add(tensors, "block_tables", block_tables);
  add(tensors, "softmax_aux", options.softmax_aux);
  add(tensors, "key_scale", options.key_scale);
  add(tensors, "value_scale", options.value_scale);
  Options named{{"num_splits", options.num_splits}};
  if (options.attn_scale) named["attn_scale"] = static_cast<double>(*options.attn_scale);
  if (options.attn_logits_soft_cap)
    named["attn_logits_soft_cap"] = static_cast<double>(*options.attn_logits_soft_cap);
  if (options.sliding_window) named["sliding_window"] = *options.sliding_window;
  if (options.max_context_len) named["max_context_len"] = *options.max_context_len;
  if (options.precision) named["precision"] = std::string(to_string(*options.precision));
  return on.run("page_attention", tensors, std::move(named), wanted);
}

}  // namespace

Tensor page_attention(const Executor& on, const Tensor& query, const Tensor& key_cache,
                      const Tensor& value_cache, const Tensor& context_lens,
                      const Tensor& block_tables, const PageAttentionOptions& options) try {
  return run_pages(on, query, key_cache, value_cache, context_lens, block_tables, options, {})
      .at("output");
} catch (...) {
  rethrow_as_error();
}

PageAttentionForward page_attention_forward(const Executor& on, const Tensor& query,
                                            const Tensor& key_cache, const Tensor& value_cache,
                                            const Tensor& context_lens, const Tensor& block_tables,
                                            const PageAttentionOptions& options) try {
  Tensors outputs = run_pages(on, query, key_cache, value_cache, context_lens, block_tables,
                              options, {"log_sum_exp"});
  return {.output = outputs.at("output"), .log_sum_exp = outputs.at("log_sum_exp")};
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
