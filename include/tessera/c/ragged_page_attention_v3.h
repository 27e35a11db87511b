/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_RAGGED_PAGE_ATTENTION_V3_H
#define TESSERA_C_RAGGED_PAGE_ATTENTION_V3_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* writes new keys and values into pages, and attends over them. kv_cache[block_tables[n, t /
   page_size], t % page_size, 2 g or 2 g + 1] = keys or values[row, g], t = kv_lens[n] - q_len[n]
   + row - query_start_loc[n]; then ragged_page_attention */
typedef struct tessera_ragged_page_attention_v3_call {
  /* [rows, heads, head_dim]: one sequence after the other */
  const tessera_tensor* queries;
  /* [rows, kv_heads, head_dim]: of the tokens of the queries */
  const tessera_tensor* keys;
  /* [rows, kv_heads, head_dim]: the same */
  const tessera_tensor* values;
  /* in-out, [pages, page_size, 2 kv_heads, head_dim]: changed in place; head 2 g is that of
     keys, 2 g + 1 that of values; also [pages, page_size, heads / n, n, dim] with more heads and
     features than there are; codes of i8, i4, e4m3fn or e5m2 have scales */
  const tessera_tensor* kv_cache;
  /* [sequences]: how many tokens each sequence has, the new ones included */
  const tessera_tensor* kv_lens;
  /* [sequences, max_blocks]: which page holds tokens page_size n to page_size (n + 1) - 1; also
     in one line */
  const tessera_tensor* block_tables;
  /* [sequences + 1]: where the rows of each sequence begin */
  const tessera_tensor* query_start_loc;
  /* [3]: ends of the sequences that decode, that are prefilled, and of all; what stands behind
     is not looked at */
  const tessera_tensor* distribution;
  /* optional, [heads, sinks]: logits of keys with value 0: they join the denominator, once per
     row; also [kv_heads, sinks] and [sinks]; the dtype of query or f32 */
  const tessera_tensor* softmax_aux;
  /* optional, in-out, [pages, page_size, 2 kv_heads]: what a code of kv_cache times this means,
     not negative; each axis may be 1; one for each token and head is made and written, others
     are read */
  const tessera_tensor* kv_scale;
  /* output, [rows, heads, head_dim]: rows without tokens or sequence are 0 */
  tessera_tensor** output;
  /* optional, output, [heads, rows]: natural logarithm; -inf for rows without tokens */
  tessera_tensor** log_sum_exp;
  /* float, default none: of the logits; default head_dim^-1/2 */
  tessera_value softmax_scale;
  /* float, default none: > 0: queries become queries / q_scale in the type of kv_cache, and
     logits q_scale times as large */
  tessera_value q_scale;
  /* float, default none: > 0: what the keys in kv_cache times it mean; of codes in place of
     kv_scale, and new keys are divided by it */
  tessera_value k_scale;
  /* float, default none: > 0: the same of values */
  tessera_value v_scale;
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
} tessera_ragged_page_attention_v3_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_ragged_page_attention_v3(const tessera_context* context,
    const tessera_stream* stream, const tessera_ragged_page_attention_v3_call* call) {
  const tessera_operand operands[] = {
      {"queries", call->queries, 0},
      {"keys", call->keys, 0},
      {"values", call->values, 0},
      {"kv_cache", call->kv_cache, 0},
      {"kv_lens", call->kv_lens, 0},
      {"block_tables", call->block_tables, 0},
      {"query_start_loc", call->query_start_loc, 0},
      {"distribution", call->distribution, 0},
      {"softmax_aux", call->softmax_aux, 0},
      {"kv_scale", call->kv_scale, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"log_sum_exp", call->log_sum_exp, 0},
  };
  const tessera_option options[] = {
      {"softmax_scale", call->softmax_scale},
      {"q_scale", call->q_scale},
      {"k_scale", call->k_scale},
      {"v_scale", call->v_scale},
      {"logits_soft_cap", call->logits_soft_cap},
      {"sliding_window", call->sliding_window},
      {"num_splits", call->num_splits},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "ragged_page_attention_v3",
      operands, 10,
      options, 8,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
