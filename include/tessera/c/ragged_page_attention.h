/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_RAGGED_PAGE_ATTENTION_H
#define TESSERA_C_RAGGED_PAGE_ATTENTION_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* softmax attention of packed queries over a cache in pages. output[i,h] = sum_t
   softmax_t(cap(softmax_scale * queries[i,h] . key[t])) value[t] over the t <= context_lens[n] -
   q_len[n] + i - query_start_loc[n] */
typedef struct tessera_ragged_page_attention_call {
  /* [rows, heads, head_dim]: one sequence after the other; head_dim is contiguous and 1 to 512 */
  const tessera_tensor* queries;
  /* [pages, page_size, 2 kv_heads, head_dim]: head 2 g is that of keys, 2 g + 1 that of values;
     any strides but along head_dim; of keys alone, [pages, page_size, kv_heads, head_dim],
     beside value_pages; codes of i8, i4, e4m3fn or e5m2 have scales */
  const tessera_tensor* kv_pages;
  /* [sequences]: how many tokens each sequence has, those of its queries included */
  const tessera_tensor* context_lens;
  /* [sequences, max_blocks]: which page holds tokens page_size n to page_size (n + 1) - 1;
     anything behind the last token */
  const tessera_tensor* block_tables;
  /* [sequences + 1]: where the query rows of each sequence begin */
  const tessera_tensor* query_start_loc;
  /* [1]: how many sequences there are; what stands behind them is not looked at */
  const tessera_tensor* num_seqs;
  /* optional, [heads, sinks]: logits of keys with value 0: they join the denominator, once per
     row; also [kv_heads, sinks] and [sinks]; the dtype of query or f32 */
  const tessera_tensor* softmax_aux;
  /* optional, [pages, page_size, 2 kv_heads]: what a code of kv_pages times this means, not
     negative; each axis may be 1 */
  const tessera_tensor* kv_scale;
  /* optional, [pages, page_size, kv_heads, value_dim]: values apart from keys; any strides but
     along value_dim; codes of i8, i4, e4m3fn or e5m2 have scales */
  const tessera_tensor* value_pages;
  /* optional, [pages, page_size, kv_heads]: what a code of value_pages times this means, not
     negative; each axis may be 1 */
  const tessera_tensor* value_scale;
  /* optional, [3]: ends of the sequences that decode, that are prefilled, and of all; checked */
  const tessera_tensor* distribution;
  /* output, [rows, heads, value_dim]: rows without tokens or sequence are 0 */
  tessera_tensor** output;
  /* optional, output, [heads, rows]: natural logarithm; -inf for rows without tokens */
  tessera_tensor** log_sum_exp;
  /* float, default none: of the logits; default head_dim^-1/2 */
  tessera_value softmax_scale;
  /* float, default none: > 0: logits become cap * tanh(logit / cap) */
  tessera_value logits_soft_cap;
  /* int, default none: at least 1: a row sees the last so many tokens up to its own, that one
     included */
  tessera_value sliding_window;
  /* int, default 0: work-groups that share the tokens of a row, up to 1024; 0 = chosen */
  tessera_value num_splits;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_ragged_page_attention_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_ragged_page_attention(const tessera_context* context,
    const tessera_stream* stream, const tessera_ragged_page_attention_call* call) {
  const tessera_operand operands[] = {
      {"queries", call->queries, 0},
      {"kv_pages", call->kv_pages, 0},
      {"context_lens", call->context_lens, 0},
      {"block_tables", call->block_tables, 0},
      {"query_start_loc", call->query_start_loc, 0},
      {"num_seqs", call->num_seqs, 0},
      {"softmax_aux", call->softmax_aux, 0},
      {"kv_scale", call->kv_scale, 0},
      {"value_pages", call->value_pages, 0},
      {"value_scale", call->value_scale, 0},
      {"distribution", call->distribution, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"log_sum_exp", call->log_sum_exp, 0},
  };
  const tessera_option options[] = {
      {"softmax_scale", call->softmax_scale},
      {"logits_soft_cap", call->logits_soft_cap},
      {"sliding_window", call->sliding_window},
      {"num_splits", call->num_splits},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "ragged_page_attention",
      operands, 11,
      options, 5,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
