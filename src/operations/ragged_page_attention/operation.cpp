// SPDX-License-Identifier: Apache-2.0
// ragged_page_attention: packed queries of many sequences, keys and values in pages.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/attention_core/records.hpp"
#include "operations/attention_core/typed_call.hpp"
#include "operations/common/ways.hpp"
#include "tessera/operations/ragged_page_attention.hpp"

namespace tessera {
namespace operations::attention {
namespace {

Operation described() {
  Operation operation;
  operation.name = "ragged_page_attention";
  operation.summary = "softmax attention of packed queries over a cache in pages";
  operation.formula =
      "output[i,h] = sum_t softmax_t(cap(softmax_scale * queries[i,h] . key[t])) value[t] over the "
      "t <= context_lens[n] - q_len[n] + i - query_start_loc[n]";
  operation.operands = {
      input("queries", "[rows, heads, head_dim]",
            "one sequence after the other; head_dim is contiguous and 1 to 512"),
      stored("kv_pages", "[pages, page_size, 2 kv_heads, head_dim]",
             "head 2 g is that of keys, 2 g + 1 that of values; any strides but along head_dim; of "
             "keys alone, [pages, page_size, kv_heads, head_dim], beside value_pages")};
  append(operation.operands, tables("sequences"));
  append(operation.operands,
         {{.name = "query_start_loc",
           .shape = "[sequences + 1]",
           .dtypes = {DType::kI32},
           .doc = "where the query rows of each sequence begin"},
          {.name = "num_seqs",
           .shape = "[1]",
           .dtypes = {DType::kI32},
           .doc = "how many sequences there are; what stands behind them is not looked at"},
          output("output", "[rows, heads, value_dim]", "rows without tokens or sequence are 0"),
          {.name = "log_sum_exp",
           .role = Role::kOutput,
           .optional = true,
           .shape = "[heads, rows]",
           .dtypes = {DType::kF32},
           .doc = "natural logarithm; -inf for rows without tokens"},
          sinks(),
          scale("kv_scale", "kv_pages", "[pages, page_size, 2 kv_heads]"),
          stored("value_pages", "[pages, page_size, kv_heads, value_dim]",
                 "values apart from keys; any strides but along value_dim"),
          scale("value_scale", "value_pages", "[pages, page_size, kv_heads]"),
          {.name = "distribution",
           .optional = true,
           .shape = "[3]",
           .dtypes = {DType::kI32},
           .doc = "ends of the sequences that decode, that are prefilled, and of all; checked"}});
  operation.operands[operation.slot("value_pages")].optional = true;
  operation.types = stored_types("queries", {"kv_pages", "value_pages"});
  operation.options = {{.name = "softmax_scale",
                        .fallback = {},
                        .type = "float",
                        .doc = "of the logits; default head_dim^-1/2"},
                       soft_cap(),
                       token_window(),
                       splits()};
  operation.errors = table_errors(true);
  return operation;
}

}  // namespace

std::vector<Operation> ragged_page_attention() { return list_of(paged_record(described())); }

}  // namespace operations::attention

using operations::attention::add;

namespace {

Tensors run_paged(const Executor& on, const Tensor& queries, const Tensor& kv_pages,
                  const Tensor& context_lens, const Tensor& block_tables,
                  const Tensor& query_start_loc, const Tensor& num_seqs,
                  const RaggedPageAttentionOptions& options,
                  const std::vector<std::string>& wanted) {
  Tensors tensors;
  add(tensors, "queries", queries);
  add(tensors, "kv_pages", kv_pages);
  add(tensors, "context_lens", context_lens);
  add(tensors, "block_tables", block_tables);
  add(tensors, "query_start_loc", query_start_loc);
  add(tensors, "num_seqs", num_seqs);
  add(tensors, "softmax_aux", options.softmax_aux);
  add(tensors, "kv_scale", options.kv_scale);
  add(tensors, "value_pages", options.value_pages);
  add(tensors, "value_scale", options.value_scale);
  add(tensors, "distribution", options.distribution);
  return on.run("ragged_page_attention", tensors, operations::attention::paged_options(options),
                wanted);
}

}  // namespace

Tensor ragged_page_attention(const Executor& on, const Tensor& queries, const Tensor& kv_pages,
                             const Tensor& context_lens, const Tensor& block_tables,
                             const Tensor& query_start_loc, const Tensor& num_seqs,
                             const RaggedPageAttentionOptions& options) try {
  return run_paged(on, queries, kv_pages, context_lens, block_tables, query_start_loc, num_seqs,
                   options, {})
      .at("output");
} catch (...) {
  rethrow_as_error();
}

RaggedPageAttentionForward ragged_page_attention_forward(
    const Executor& on, const Tensor& queries, const Tensor& kv_pages, const Tensor& context_lens,
    const Tensor& block_tables, const Tensor& query_start_loc, const Tensor& num_seqs,
    const RaggedPageAttentionOptions& options) try {
  Tensors outputs = run_paged(on, queries, kv_pages, context_lens, block_tables, query_start_loc,
                              num_seqs, options, {"log_sum_exp"});
  return {.output = outputs.at("output"), .log_sum_exp = outputs.at("log_sum_exp")};
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
