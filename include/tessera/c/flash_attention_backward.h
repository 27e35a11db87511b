/* SPDX-License-Identifier: Apache-2.0 */
/* Generated from the records by tools/update_docs.py; tessera/tessera_operations.h has how to call it. */
#ifndef TESSERA_C_FLASH_ATTENTION_BACKWARD_H
#define TESSERA_C_FLASH_ATTENTION_BACKWARD_H

#include "tessera/c/values.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gradients of flash_attention, recomputed from log_sum_exp. ds[i,j] = p[i,j] (keep[i,j] do[i] .
   v[j] - do[i] . o[i]); du = ds slope of the cap; dq = scale du k; dk = scale du^T q; dv = (keep
   p)^T do; dbias = du; dsink = -sum p do . o */
typedef struct tessera_flash_attention_backward_call {
  /* [batch, q_len, heads, head_dim]: any strides but along head_dim, which is contiguous and 1
     to 512; [q_len, heads, head_dim] with cum_seqlens */
  const tessera_tensor* query;
  /* [batch, kv_len, kv_heads, head_dim]: heads is a multiple of kv_heads */
  const tessera_tensor* key;
  /* [batch, kv_len, kv_heads, value_dim]: value_dim may differ from head_dim; what is not finite
     at a key that weighs less than 2^-126 of the row's heaviest, or is dropped, reaches the
     output or does not */
  const tessera_tensor* value;
  /* [batch, q_len, heads, value_dim]: of the forward pass */
  const tessera_tensor* output;
  /* [batch, heads, q_len]: natural logarithm; -inf for rows that see no key */
  const tessera_tensor* log_sum_exp;
  /* [batch, q_len, heads, value_dim] */
  const tessera_tensor* output_gradient;
  /* optional, [batch, heads, q_len, kv_len]: 0 hides the key; batch, heads, q_len may be 1,
     heads also kv_heads; also [batch, q_len, kv_len] and [batch, kv_len] */
  const tessera_tensor* attention_mask;
  /* optional, [batch, heads, q_len, kv_len]: added to the logits, -inf hides the key; axes as
     attention_mask; the dtype of query or f32 */
  const tessera_tensor* bias;
  /* optional, [heads]: logits lose slope * |diagonal - key|; also [batch, heads] */
  const tessera_tensor* alibi_slopes;
  /* optional, [heads, sinks]: logits of keys with value 0: they join the denominator, once per
     row; also [kv_heads, sinks] and [sinks]; the dtype of query or f32 */
  const tessera_tensor* softmax_aux;
  /* optional, [sequences + 1]: where the query rows of packed sequences begin; with a batch
     axis, batch n has its first cum_seqlens[n + 1] - cum_seqlens[n] rows. Where offsets
     decrease: padded, none; packed, a row's sequence is looked up by halving the list all the
     same, and rows outside it see nothing */
  const tessera_tensor* cum_seqlens_q;
  /* optional, [sequences + 1]: the same of the keys */
  const tessera_tensor* cum_seqlens_k;
  /* optional, [batch]: how many of the query rows of each batch there are */
  const tessera_tensor* q_lengths;
  /* optional, [batch]: how many of the keys of each batch there are */
  const tessera_tensor* kv_lengths;
  /* optional, [batch, q_len]: rows see keys of their own segment only; negative is padding */
  const tessera_tensor* q_segment_ids;
  /* optional, [batch, kv_len]: needed beside q_segment_ids */
  const tessera_tensor* kv_segment_ids;
  /* optional, [batch, q_len]: any int32; causal masks, windows, chunks, slopes compare positions */
  const tessera_tensor* q_positions;
  /* optional, [batch, kv_len]: needed beside q_positions */
  const tessera_tensor* kv_positions;
  /* output, [batch, q_len, heads, head_dim] */
  tessera_tensor** query_gradient;
  /* output, [batch, kv_len, kv_heads, head_dim] */
  tessera_tensor** key_gradient;
  /* output, [batch, kv_len, kv_heads, value_dim] */
  tessera_tensor** value_gradient;
  /* optional, output, [batch, heads, q_len, kv_len]: in the shape and dtype of bias */
  tessera_tensor** bias_gradient;
  /* optional, output, [heads, sinks]: in the shape and dtype of softmax_aux */
  tessera_tensor** softmax_aux_gradient;
  /* float, default none: of the logits; default head_dim^-1/2 */
  tessera_value softmax_scale;
  /* bool, default false: row i sees key j only if j <= i + shift */
  tessera_value causal;
  /* one or two ints, default none: left,right: row i sees i + shift - left <= j <= i + shift +
     right; one number means both */
  tessera_value sliding_window;
  /* top_left or bottom_right, default top_left: shift of causal masks and windows: 0, or keys -
     rows of the sequence */
  tessera_value causal_alignment;
  /* int, default none: causal inside chunks: i + shift and j lie in the same chunk of so many */
  tessera_value chunk_size;
  /* float, default none: > 0: logits become cap * tanh(logit / cap) */
  tessera_value logits_soft_cap;
  /* float, default 0: at least 0, below 1: weights are dropped, the others divided by 1 -
     dropout_prob */
  tessera_value dropout_prob;
  /* seed, default 0: of Philox4x32-10, up to 2^64 - 1; src/operations/attention_core/dropout.hpp
     has it bit for bit */
  tessera_value dropout_seed;
  /* bool, default true: false: output = sum_j exp(score - largest score) value[j] */
  tessera_value normalize_output;
  /* before_cap or after_cap, default before_cap: after_cap: the gradients of attention */
  tessera_value bias_order;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_flash_attention_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_flash_attention_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_flash_attention_backward_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
      {"output", call->output, 0},
      {"log_sum_exp", call->log_sum_exp, 0},
      {"output_gradient", call->output_gradient, 0},
      {"attention_mask", call->attention_mask, 0},
      {"bias", call->bias, 0},
      {"alibi_slopes", call->alibi_slopes, 0},
      {"softmax_aux", call->softmax_aux, 0},
      {"cum_seqlens_q", call->cum_seqlens_q, 0},
      {"cum_seqlens_k", call->cum_seqlens_k, 0},
      {"q_lengths", call->q_lengths, 0},
      {"kv_lengths", call->kv_lengths, 0},
      {"q_segment_ids", call->q_segment_ids, 0},
      {"kv_segment_ids", call->kv_segment_ids, 0},
      {"q_positions", call->q_positions, 0},
      {"kv_positions", call->kv_positions, 0},
  };
  const tessera_output outputs[] = {
      {"query_gradient", call->query_gradient, 0},
      {"key_gradient", call->key_gradient, 0},
      {"value_gradient", call->value_gradient, 0},
      {"bias_gradient", call->bias_gradient, 0},
      {"softmax_aux_gradient", call->softmax_aux_gradient, 0},
  };
  const tessera_option options[] = {
      {"softmax_scale", call->softmax_scale},
      {"causal", call->causal},
      {"sliding_window", call->sliding_window},
      {"causal_alignment", call->causal_alignment},
      {"chunk_size", call->chunk_size},
      {"logits_soft_cap", call->logits_soft_cap},
      {"dropout_prob", call->dropout_prob},
      {"dropout_seed", call->dropout_seed},
      {"normalize_output", call->normalize_output},
      {"bias_order", call->bias_order},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "flash_attention_backward",
      operands, 18,
      options, 11,
      outputs, 5,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
