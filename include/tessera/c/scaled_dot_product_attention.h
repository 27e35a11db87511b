/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_SCALED_DOT_PRODUCT_ATTENTION_H
#define TESSERA_C_SCALED_DOT_PRODUCT_ATTENTION_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* softmax attention of padded batches. output[i] = sum_j softmax_j(softmax_scale * query[i] .
   key[j] + bias[i,j]) value[j] over the j that row i sees */
typedef struct tessera_scaled_dot_product_attention_call {
  /* [batch, q_len, heads, head_dim]: any strides but along head_dim, which is contiguous and 1
     to 512 */
  const tessera_tensor* query;
  /* [batch, kv_len, kv_heads, head_dim]: heads is a multiple of kv_heads */
  const tessera_tensor* key;
  /* [batch, kv_len, kv_heads, value_dim]: value_dim may differ from head_dim; what is not finite
     at a key that weighs less than 2^-126 of the row's heaviest, or is dropped, reaches the
     output or does not */
  const tessera_tensor* value;
  /* optional, [batch, heads, q_len, kv_len]: 0 hides the key; batch, heads, q_len may be 1,
     heads also kv_heads; also [batch, q_len, kv_len] and [batch, kv_len] */
  const tessera_tensor* attention_mask;
  /* optional, [batch, heads, q_len, kv_len]: added to the logits, -inf hides the key; axes as
     attention_mask; the dtype of query or f32 */
  const tessera_tensor* bias;
  /* optional, [batch]: how many of the query rows of each batch there are */
  const tessera_tensor* q_lengths;
  /* optional, [batch]: how many of the keys of each batch there are */
  const tessera_tensor* kv_lengths;
  /* output, [batch, q_len, heads, value_dim]: rows that see no key are 0 */
  tessera_tensor** output;
  /* optional, output, [batch, heads, q_len]: natural logarithm; -inf for rows that see no key */
  tessera_tensor** log_sum_exp;
  /* float, default none: of the logits; default head_dim^-1/2 */
  tessera_value softmax_scale;
  /* bool, default false: row i sees key j only if j <= i + shift */
  tessera_value causal;
  /* one or two ints, default none: left,right: row i sees i + shift - left <= j <= i + shift +
     right; one number means both */
  tessera_value sliding_window;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_scaled_dot_product_attention_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_scaled_dot_product_attention(const tessera_context* context,
    const tessera_stream* stream, const tessera_scaled_dot_product_attention_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
      {"attention_mask", call->attention_mask, 0},
      {"bias", call->bias, 0},
      {"q_lengths", call->q_lengths, 0},
      {"kv_lengths", call->kv_lengths, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"log_sum_exp", call->log_sum_exp, 0},
  };
  const tessera_option options[] = {
      {"softmax_scale", call->softmax_scale},
      {"causal", call->causal},
      {"sliding_window", call->sliding_window},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "scaled_dot_product_attention",
      operands, 7,
      options, 4,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
