/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_RAGGED_DECODE_ATTENTION_H
#define TESSERA_C_RAGGED_DECODE_ATTENTION_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* softmax attention of one query per sequence over a part of a dense cache. output[b,h] = sum_j
   softmax_j(cap(softmax_scale * query[b,h] . key[b,j,g])) value[b,j,g] over sequence_start[b] <=
   j < sequence_end[b]; position_bias[h,j] is added to the logits of the first j */
typedef struct tessera_ragged_decode_attention_call {
  /* [batch, heads, head_dim]: also [batch, 1, heads, head_dim]; head_dim is contiguous and 1 to
     512 */
  const tessera_tensor* query;
  /* [batch, rows, kv_heads, head_dim]: heads is a multiple of kv_heads; codes of i8, i4, e4m3fn
     or e5m2 have scales */
  const tessera_tensor* key;
  /* [batch, rows, kv_heads, value_dim]: value_dim may differ from head_dim; codes of i8, i4,
     e4m3fn or e5m2 have scales */
  const tessera_tensor* value;
  /* [batch]: the first key of each sequence */
  const tessera_tensor* sequence_start;
  /* [batch]: behind its last one */
  const tessera_tensor* sequence_end;
  /* optional, [heads, sinks]: logits of keys with value 0: they join the denominator, once per
     row; also [kv_heads, sinks] and [sinks]; the dtype of query or f32 */
  const tessera_tensor* softmax_aux;
  /* optional, [batch, rows, kv_heads]: what a code of key times this means, not negative; each
     axis may be 1 */
  const tessera_tensor* key_scale;
  /* optional, [batch, rows, kv_heads]: what a code of value times this means, not negative; each
     axis may be 1 */
  const tessera_tensor* value_scale;
  /* optional, [heads, positions]: added to the logits of key rows j < positions, after the cap;
     -inf hides the key; also [kv_heads, positions] and [positions]; the dtype of query or f32 */
  const tessera_tensor* position_bias;
  /* output, [batch, heads, value_dim]: sequences without keys are 0 */
  tessera_tensor** output;
  /* optional, output, [batch, heads]: natural logarithm; -inf for sequences without keys;
     [batch, heads, 1] of queries with an axis of rows */
  tessera_tensor** log_sum_exp;
  /* float, default none: of the logits; default head_dim^-1/2 */
  tessera_value softmax_scale;
  /* one or two ints, default none: left,right: keys from sequence_end - 1 - left on; right hides
     none */
  tessera_value sliding_window;
  /* float, default none: > 0: logits become cap * tanh(logit / cap) */
  tessera_value logits_soft_cap;
  /* int, default 0: work-groups that share the tokens of a row, up to 1024; 0 = chosen */
  tessera_value num_splits;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_ragged_decode_attention_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_ragged_decode_attention(const tessera_context* context,
    const tessera_stream* stream, const tessera_ragged_decode_attention_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
      {"sequence_start", call->sequence_start, 0},
      {"sequence_end", call->sequence_end, 0},
      {"softmax_aux", call->softmax_aux, 0},
      {"key_scale", call->key_scale, 0},
      {"value_scale", call->value_scale, 0},
      {"position_bias", call->position_bias, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"log_sum_exp", call->log_sum_exp, 0},
  };
  const tessera_option options[] = {
      {"softmax_scale", call->softmax_scale},
      {"sliding_window", call->sliding_window},
      {"logits_soft_cap", call->logits_soft_cap},
      {"num_splits", call->num_splits},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "ragged_decode_attention",
      operands, 9,
      options, 5,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
