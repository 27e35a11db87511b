/* SPDX-License-Identifier: Apache-2.0 */
/* A typed function for each operation. Generated from the records by tools/update_docs.py.

   A struct that is all zeros is a call without operands and with the defaults of all options: set what
   the call has. Operands that are not optional must be set. An output is a place for a handle: null
   leaves it out, a null handle becomes a new tensor, any other is the tensor to write to. Options take
   tessera_bool(), tessera_int(), tessera_float(), tessera_text() and tessera_ints(). What they mean,
   shapes and errors are in tessera/operations/ and in `tessera run --list`. */
#ifndef TESSERA_TESSERA_OPERATIONS_H
#define TESSERA_TESSERA_OPERATIONS_H

#include "tessera/tessera.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline tessera_value tessera_bool(int32_t value) {
  tessera_value made = {TESSERA_BOOL, 0, {0}};
  made.as.integer = value != 0;
  return made;
}
static inline tessera_value tessera_int(int64_t value) {
  tessera_value made = {TESSERA_INT, 0, {0}};
  made.as.integer = value;
  return made;
}
static inline tessera_value tessera_float(double value) {
  tessera_value made = {TESSERA_FLOAT, 0, {0}};
  made.as.number = value;
  return made;
}
static inline tessera_value tessera_text(const char* value) {
  tessera_value made = {TESSERA_TEXT, 0, {0}};
  made.as.text = value;
  return made;
}
/* The numbers must live until the call has returned. */
static inline tessera_value tessera_ints(const int64_t* values, uint32_t count) {
  tessera_value made = {TESSERA_INTS, 0, {0}};
  made.count = count;
  made.as.integers = values;
  return made;
}

/* exact softmax attention in tiles (FlashAttention-2, arXiv:2307.08691). output[i] = sum_j
   keep[i,j] softmax_j(cap(softmax_scale * query[i] . key[j] + bias[i,j])) value[j] over the j
   that row i sees */
typedef struct tessera_flash_attention_call {
  /* [batch, q_len, heads, head_dim]: any strides but along head_dim, which is contiguous and 1
     to 512; [q_len, heads, head_dim] with cum_seqlens */
  const tessera_tensor* query;
  /* [batch, kv_len, kv_heads, head_dim]: heads is a multiple of kv_heads */
  const tessera_tensor* key;
  /* [batch, kv_len, kv_heads, value_dim]: value_dim may differ from head_dim */
  const tessera_tensor* value;
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
  /* int, default 0: work-groups that share the keys of a row; 0 = chosen; a pinned number gives
     the same bits in any batch */
  tessera_value num_splits;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_flash_attention_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_flash_attention(const tessera_context* context,
    const tessera_stream* stream, const tessera_flash_attention_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
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
      {"output", call->output, 0},
      {"log_sum_exp", call->log_sum_exp, 0},
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
      {"num_splits", call->num_splits},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "flash_attention",
      operands, 15,
      options, 11,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of flash_attention, recomputed from log_sum_exp. ds[i,j] = p[i,j] (keep[i,j] do[i] .
   v[j] - do[i] . o[i]); du = ds slope of the cap; dq = scale du k; dk = scale du^T q; dv = (keep
   p)^T do; dbias = du; dsink = -sum p do . o */
typedef struct tessera_flash_attention_backward_call {
  /* [batch, q_len, heads, head_dim]: any strides but along head_dim, which is contiguous and 1
     to 512; [q_len, heads, head_dim] with cum_seqlens */
  const tessera_tensor* query;
  /* [batch, kv_len, kv_heads, head_dim]: heads is a multiple of kv_heads */
  const tessera_tensor* key;
  /* [batch, kv_len, kv_heads, value_dim]: value_dim may differ from head_dim */
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

/* softmax attention that also returns its weights. weights[i,j] = keep[i,j]
   softmax_j(cap(softmax_scale * query[i] . key[j]) + bias[i,j]); output = weights value */
typedef struct tessera_attention_call {
  /* [batch, q_len, heads, head_dim]: any strides but along head_dim, which is contiguous and 1
     to 512 */
  const tessera_tensor* query;
  /* [batch, kv_len, kv_heads, head_dim]: heads is a multiple of kv_heads */
  const tessera_tensor* key;
  /* [batch, kv_len, kv_heads, value_dim]: value_dim may differ from head_dim */
  const tessera_tensor* value;
  /* optional, [batch, heads, q_len, kv_len]: 0 hides the key; batch, heads, q_len may be 1,
     heads also kv_heads; also [batch, q_len, kv_len] and [batch, kv_len] */
  const tessera_tensor* attention_mask;
  /* optional, [batch, heads, q_len, kv_len]: added to the logits, -inf hides the key; axes as
     attention_mask; the dtype of query or f32 */
  const tessera_tensor* bias;
  /* optional, [heads, sinks]: logits of keys with value 0: they join the denominator, once per
     row; also [kv_heads, sinks] and [sinks]; the dtype of query or f32 */
  const tessera_tensor* softmax_aux;
  /* output, [batch, q_len, heads, value_dim]: rows that see no key are 0 */
  tessera_tensor** output;
  /* output, [batch, heads, q_len, kv_len]: dropout included */
  tessera_tensor** weights;
  /* output, [batch, heads, q_len]: natural logarithm; -inf for rows that see no key */
  tessera_tensor** log_sum_exp;
  /* float, default none: of the logits; default head_dim^-1/2 */
  tessera_value softmax_scale;
  /* bool, default false: row i sees key j only if j <= i + shift */
  tessera_value causal;
  /* one or two ints, default none: left,right: row i sees i + shift - left <= j <= i + shift +
     right; one number means both */
  tessera_value sliding_window;
  /* float, default none: > 0: logits become cap * tanh(logit / cap) */
  tessera_value logits_soft_cap;
  /* float, default 0: at least 0, below 1: weights are dropped, the others divided by 1 -
     dropout_prob */
  tessera_value dropout_prob;
  /* seed, default 0: of Philox4x32-10, up to 2^64 - 1; src/operations/attention_core/dropout.hpp
     has it bit for bit */
  tessera_value dropout_seed;
  /* after_cap or before_cap, default after_cap: whether the bias joins the logits after or
     before the cap */
  tessera_value bias_order;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_attention_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_attention(const tessera_context* context,
    const tessera_stream* stream, const tessera_attention_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
      {"attention_mask", call->attention_mask, 0},
      {"bias", call->bias, 0},
      {"softmax_aux", call->softmax_aux, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"weights", call->weights, 0},
      {"log_sum_exp", call->log_sum_exp, 0},
  };
  const tessera_option options[] = {
      {"softmax_scale", call->softmax_scale},
      {"causal", call->causal},
      {"sliding_window", call->sliding_window},
      {"logits_soft_cap", call->logits_soft_cap},
      {"dropout_prob", call->dropout_prob},
      {"dropout_seed", call->dropout_seed},
      {"bias_order", call->bias_order},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "attention",
      operands, 6,
      options, 8,
      outputs, 3,
      0, stream};
  return tessera_run(context, &generic);
}

/* softmax attention of padded batches. output[i] = sum_j softmax_j(softmax_scale * query[i] .
   key[j] + bias[i,j]) value[j] over the j that row i sees */
typedef struct tessera_scaled_dot_product_attention_call {
  /* [batch, q_len, heads, head_dim]: any strides but along head_dim, which is contiguous and 1
     to 512 */
  const tessera_tensor* query;
  /* [batch, kv_len, kv_heads, head_dim]: heads is a multiple of kv_heads */
  const tessera_tensor* key;
  /* [batch, kv_len, kv_heads, value_dim]: value_dim may differ from head_dim */
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

/* mean over the tokens of a sequence: all, the first ones, those of a mask, or packed. output[b]
   = sum over the tokens t of b that count of input[b,t] / how many count; 0 if none does */
typedef struct tessera_sequence_mean_call {
  /* [batch, seq, (heads,) dim] or packed [total, (heads,) dim]: any strides but along the last
     axis, which is contiguous */
  const tessera_tensor* input;
  /* optional, [batch]: how many tokens count, the first ones; clamped to [0, seq] */
  const tessera_tensor* lengths;
  /* optional, [batch, seq]: tokens with a mask that is not 0 count */
  const tessera_tensor* mask;
  /* optional, [n + 1]: sequence s is rows cu_seqlens[s] to cu_seqlens[s + 1] - 1 of a packed
     operand; clamped into it */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, (heads,) dim] or packed [n, (heads,) dim]: 0 where no token counts */
  tessera_tensor** output;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_sequence_mean_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_sequence_mean(const tessera_context* context,
    const tessera_stream* stream, const tessera_sequence_mean_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"lengths", call->lengths, 0},
      {"mask", call->mask, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "sequence_mean",
      operands, 4,
      options, 1,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradient of sequence_mean's input. grad_input[b,t] = grad_output[b] / how many tokens of b
   count, if t does; else 0 */
typedef struct tessera_sequence_mean_backward_call {
  /* [batch, (heads,) dim] or packed [n, (heads,) dim]: any strides but along the last axis,
     which is contiguous */
  const tessera_tensor* grad_output;
  /* optional, [batch]: how many tokens count, the first ones; clamped to [0, seq] */
  const tessera_tensor* lengths;
  /* optional, [batch, seq]: tokens with a mask that is not 0 count */
  const tessera_tensor* mask;
  /* optional, [n + 1]: sequence s is rows cu_seqlens[s] to cu_seqlens[s + 1] - 1 of a packed
     operand; clamped into it */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, seq, (heads,) dim] or packed [total, (heads,) dim]: 0 for tokens that don't
     count */
  tessera_tensor** grad_input;
  /* int, default none: rows of grad_input, in each batch entry or in all if packed */
  tessera_value tokens;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_sequence_mean_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_sequence_mean_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_sequence_mean_backward_call* call) {
  const tessera_operand operands[] = {
      {"grad_output", call->grad_output, 0},
      {"lengths", call->lengths, 0},
      {"mask", call->mask, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
  };
  const tessera_option options[] = {
      {"tokens", call->tokens},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "sequence_mean_backward",
      operands, 4,
      options, 2,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* means over chunks of the tokens of a sequence, also packed (arXiv:2502.11089). output[b,c] =
   mean of input[b,t] over c chunk <= t < min((c + 1) chunk, seq) */
typedef struct tessera_chunk_mean_call {
  /* [batch, seq, (heads,) dim] or packed [total, (heads,) dim]: any strides but along the last
     axis, which is contiguous */
  const tessera_tensor* input;
  /* optional, [n + 1]: sequence s is rows cu_seqlens[s] to cu_seqlens[s + 1] - 1 of a packed
     operand; clamped into it */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, ceil(seq / chunk), (heads,) dim] or packed [chunks, (heads,) dim]: packed:
     chunks in the order of sequences; rows beyond them are 0 */
  tessera_tensor** output;
  /* int, default 32: tokens of a chunk, at least 1 */
  tessera_value chunk;
  /* int, default none: rows of a packed output; more chunks than that are left out */
  tessera_value chunks;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_chunk_mean_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_chunk_mean(const tessera_context* context,
    const tessera_stream* stream, const tessera_chunk_mean_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"chunk", call->chunk},
      {"chunks", call->chunks},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "chunk_mean",
      operands, 2,
      options, 3,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradient of chunk_mean's input. grad_input[b,t] = grad_output[b, chunk of t] / how many tokens
   that chunk has */
typedef struct tessera_chunk_mean_backward_call {
  /* [batch, ceil(tokens / chunk), (heads,) dim] or packed [chunks, (heads,) dim]: any strides
     but along the last axis, which is contiguous */
  const tessera_tensor* grad_output;
  /* optional, [n + 1]: sequence s is rows cu_seqlens[s] to cu_seqlens[s + 1] - 1 of a packed
     operand; clamped into it */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, seq, (heads,) dim] or packed [total, (heads,) dim]: 0 for tokens of no chunk */
  tessera_tensor** grad_input;
  /* int, default 32: tokens of a chunk, at least 1 */
  tessera_value chunk;
  /* int, default none: rows of grad_input, in each batch entry or in all if packed */
  tessera_value tokens;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_chunk_mean_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_chunk_mean_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_chunk_mean_backward_call* call) {
  const tessera_operand operands[] = {
      {"grad_output", call->grad_output, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
  };
  const tessera_option options[] = {
      {"chunk", call->chunk},
      {"tokens", call->tokens},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "chunk_mean_backward",
      operands, 2,
      options, 3,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* RMSNorm over the last axis, of the sum with a residual. s = input + residual; output = s /
   sqrt(mean(s^2) + epsilon) * weight + bias */
typedef struct tessera_rms_norm_call {
  /* [..., dim]: any strides but along the last axis, which is contiguous */
  const tessera_tensor* input;
  /* optional, [dim]: the dtype of input, or f32; 1 without it */
  const tessera_tensor* weight;
  /* optional, [dim]: the dtype of input, or f32; 0 without it */
  const tessera_tensor* bias;
  /* optional, [..., dim]: joins input before it is normalised; its leading axes broadcast to
     input's */
  const tessera_tensor* residual;
  /* output, [..., dim]: in the shape and dtype of input, or quantised */
  tessera_tensor** output;
  /* optional, output, [..., dim]: input + residual, which output is not rounded from */
  tessera_tensor** sum;
  /* optional, output, [..., 1]: of each row of a quantised output, which times this is meant */
  tessera_tensor** scale;
  /* float, default 1e-06: joins the mean of squares; finite, not negative */
  tessera_value epsilon;
  /* one of none, i8, e4m3fn, e5m2, default none: output in that type, divided by the scale of
     its row */
  tessera_value quantise;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_rms_norm_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_rms_norm(const tessera_context* context,
    const tessera_stream* stream, const tessera_rms_norm_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight", call->weight, 0},
      {"bias", call->bias, 0},
      {"residual", call->residual, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"sum", call->sum, 0},
      {"scale", call->scale, 0},
  };
  const tessera_option options[] = {
      {"epsilon", call->epsilon},
      {"quantise", call->quantise},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "rms_norm",
      operands, 4,
      options, 3,
      outputs, 3,
      0, stream};
  return tessera_run(context, &generic);
}

/* LayerNorm over the last axis, of the sum with a residual. s = input + residual; output = (s -
   mean(s)) / sqrt(var(s) + epsilon) * weight + bias */
typedef struct tessera_layer_norm_call {
  /* [..., dim]: any strides but along the last axis, which is contiguous */
  const tessera_tensor* input;
  /* optional, [dim]: the dtype of input, or f32; 1 without it */
  const tessera_tensor* weight;
  /* optional, [dim]: the dtype of input, or f32; 0 without it */
  const tessera_tensor* bias;
  /* optional, [..., dim]: joins input before it is normalised; its leading axes broadcast to
     input's */
  const tessera_tensor* residual;
  /* output, [..., dim]: in the shape and dtype of input, or quantised */
  tessera_tensor** output;
  /* optional, output, [..., dim]: input + residual, which output is not rounded from */
  tessera_tensor** sum;
  /* optional, output, [..., 1]: of each row of a quantised output, which times this is meant */
  tessera_tensor** scale;
  /* float, default 1e-06: joins the mean of squares; finite, not negative */
  tessera_value epsilon;
  /* one of none, i8, e4m3fn, e5m2, default none: output in that type, divided by the scale of
     its row */
  tessera_value quantise;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_layer_norm_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_layer_norm(const tessera_context* context,
    const tessera_stream* stream, const tessera_layer_norm_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight", call->weight, 0},
      {"bias", call->bias, 0},
      {"residual", call->residual, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"sum", call->sum, 0},
      {"scale", call->scale, 0},
  };
  const tessera_option options[] = {
      {"epsilon", call->epsilon},
      {"quantise", call->quantise},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "layer_norm",
      operands, 4,
      options, 3,
      outputs, 3,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of rms_norm. g = grad_output weight; grad_input = (g - n mean(g n)) / sqrt(mean(s^2)
   + epsilon) + grad_sum; grad_weight = sum of grad_output n; grad_bias = sum of grad_output */
typedef struct tessera_rms_norm_backward_call {
  /* [..., dim]: any strides but along the last axis, which is contiguous */
  const tessera_tensor* input;
  /* optional, [dim]: the dtype of input, or f32; 1 without it */
  const tessera_tensor* weight;
  /* optional, [dim]: of the forward call; only its dtype counts */
  const tessera_tensor* bias;
  /* optional, [..., dim]: joins input before it is normalised; its leading axes broadcast to
     input's */
  const tessera_tensor* residual;
  /* [..., dim]: in the shape and dtype of input */
  const tessera_tensor* grad_output;
  /* optional, [..., dim]: joins grad_input */
  const tessera_tensor* grad_sum;
  /* output, [..., dim] */
  tessera_tensor** grad_input;
  /* optional, output, [dim]: in the dtype of weight */
  tessera_tensor** grad_weight;
  /* optional, output, [dim]: in the dtype of bias */
  tessera_tensor** grad_bias;
  /* optional, output, [..., dim]: in the shape of residual: grad_input, summed where residual
     broadcasts */
  tessera_tensor** grad_residual;
  /* float, default 1e-06: joins the mean of squares; finite, not negative */
  tessera_value epsilon;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_rms_norm_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_rms_norm_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_rms_norm_backward_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight", call->weight, 0},
      {"bias", call->bias, 0},
      {"residual", call->residual, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_sum", call->grad_sum, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
      {"grad_weight", call->grad_weight, 0},
      {"grad_bias", call->grad_bias, 0},
      {"grad_residual", call->grad_residual, 0},
  };
  const tessera_option options[] = {
      {"epsilon", call->epsilon},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "rms_norm_backward",
      operands, 6,
      options, 2,
      outputs, 4,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of layer_norm. g = grad_output weight; grad_input = (g - mean(g) - n mean(g n)) /
   sqrt(var(s) + epsilon) + grad_sum; grad_weight = sum of grad_output n; grad_bias = sum of
   grad_output */
typedef struct tessera_layer_norm_backward_call {
  /* [..., dim]: any strides but along the last axis, which is contiguous */
  const tessera_tensor* input;
  /* optional, [dim]: the dtype of input, or f32; 1 without it */
  const tessera_tensor* weight;
  /* optional, [dim]: of the forward call; only its dtype counts */
  const tessera_tensor* bias;
  /* optional, [..., dim]: joins input before it is normalised; its leading axes broadcast to
     input's */
  const tessera_tensor* residual;
  /* [..., dim]: in the shape and dtype of input */
  const tessera_tensor* grad_output;
  /* optional, [..., dim]: joins grad_input */
  const tessera_tensor* grad_sum;
  /* output, [..., dim] */
  tessera_tensor** grad_input;
  /* optional, output, [dim]: in the dtype of weight */
  tessera_tensor** grad_weight;
  /* optional, output, [dim]: in the dtype of bias */
  tessera_tensor** grad_bias;
  /* optional, output, [..., dim]: in the shape of residual: grad_input, summed where residual
     broadcasts */
  tessera_tensor** grad_residual;
  /* float, default 1e-06: joins the mean of squares; finite, not negative */
  tessera_value epsilon;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_layer_norm_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_layer_norm_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_layer_norm_backward_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight", call->weight, 0},
      {"bias", call->bias, 0},
      {"residual", call->residual, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_sum", call->grad_sum, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
      {"grad_weight", call->grad_weight, 0},
      {"grad_bias", call->grad_bias, 0},
      {"grad_residual", call->grad_residual, 0},
  };
  const tessera_option options[] = {
      {"epsilon", call->epsilon},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "layer_norm_backward",
      operands, 6,
      options, 2,
      outputs, 4,
      0, stream};
  return tessera_run(context, &generic);
}

/* matrix product with bias, addend, activation, gate and residual. output = act(alpha op(a)
   op(b) + bias + beta c) * gate + residual */
typedef struct tessera_matmul_call {
  /* [..., m, k]: [..., k, m] with transpose_a */
  const tessera_tensor* a;
  /* [..., k, n]: [..., n, k] with transpose_b */
  const tessera_tensor* b;
  /* optional, [n]: or whatever broadcasts to the product */
  const tessera_tensor* bias;
  /* optional, [..., m, n]: joins the sums beta times; not read if that is 0 */
  const tessera_tensor* c;
  /* optional, [..., m, n]: multiplies what the activation gives; n / 2 columns where they are
     paired */
  const tessera_tensor* gate;
  /* optional, [..., m, n]: added last; n / 2 columns where they are paired */
  const tessera_tensor* residual;
  /* output, [..., m, n]: n / 2 columns where they are paired */
  tessera_tensor** output;
  /* one of none, relu, gelu, gelu_tanh, silu, swiglu, geglu, default none: swiglu and geglu take
     columns in pairs: act(even) odd */
  tessera_value activation;
  /* bool, default false: a is [..., k, m] */
  tessera_value transpose_a;
  /* bool, default false: b is [..., n, k] */
  tessera_value transpose_b;
  /* float, default 1: factor of the product */
  tessera_value alpha;
  /* float, default 1: factor of c */
  tessera_value beta;
  /* one of f32, f16, bf16, default none: of output; that of a where it is not set */
  tessera_value output_dtype;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_matmul_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_matmul(const tessera_context* context,
    const tessera_stream* stream, const tessera_matmul_call* call) {
  const tessera_operand operands[] = {
      {"a", call->a, 0},
      {"b", call->b, 0},
      {"bias", call->bias, 0},
      {"c", call->c, 0},
      {"gate", call->gate, 0},
      {"residual", call->residual, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"activation", call->activation},
      {"transpose_a", call->transpose_a},
      {"transpose_b", call->transpose_b},
      {"alpha", call->alpha},
      {"beta", call->beta},
      {"output_dtype", call->output_dtype},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "matmul",
      operands, 6,
      options, 7,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of matmul. t = grad_output * gate * act'(z); grad_a = alpha t op(b)^T; grad_b =
   alpha op(a)^T t; grad_bias = sum of t; grad_c = beta t (0 where beta is 0); grad_gate =
   grad_output * act(z) (of pairs act(even) odd) */
typedef struct tessera_matmul_backward_call {
  /* [..., m, k]: [..., k, m] with transpose_a */
  const tessera_tensor* a;
  /* [..., k, n]: [..., n, k] with transpose_b */
  const tessera_tensor* b;
  /* optional, [n]: or whatever broadcasts to the product */
  const tessera_tensor* bias;
  /* optional, [..., m, n]: joins the sums beta times; not read if that is 0 */
  const tessera_tensor* c;
  /* optional, [..., m, n]: multiplies what the activation gives; n / 2 columns where they are
     paired */
  const tessera_tensor* gate;
  /* [..., m, n]: in the shape of output, of any dtype */
  const tessera_tensor* grad_output;
  /* optional, output, [..., m, k]: in the shape and dtype of a */
  tessera_tensor** grad_a;
  /* optional, output, [..., k, n]: in the shape and dtype of b */
  tessera_tensor** grad_b;
  /* optional, output, [n]: in the shape and dtype of bias */
  tessera_tensor** grad_bias;
  /* optional, output, [..., m, n]: in the dtype of c */
  tessera_tensor** grad_c;
  /* optional, output, [..., m, n]: in the dtype of gate */
  tessera_tensor** grad_gate;
  /* one of none, relu, gelu, gelu_tanh, silu, swiglu, geglu, default none: swiglu and geglu take
     columns in pairs: act(even) odd */
  tessera_value activation;
  /* bool, default false: a is [..., k, m] */
  tessera_value transpose_a;
  /* bool, default false: b is [..., n, k] */
  tessera_value transpose_b;
  /* float, default 1: factor of the product */
  tessera_value alpha;
  /* float, default 1: factor of c */
  tessera_value beta;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_matmul_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_matmul_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_matmul_backward_call* call) {
  const tessera_operand operands[] = {
      {"a", call->a, 0},
      {"b", call->b, 0},
      {"bias", call->bias, 0},
      {"c", call->c, 0},
      {"gate", call->gate, 0},
      {"grad_output", call->grad_output, 0},
  };
  const tessera_output outputs[] = {
      {"grad_a", call->grad_a, 0},
      {"grad_b", call->grad_b, 0},
      {"grad_bias", call->grad_bias, 0},
      {"grad_c", call->grad_c, 0},
      {"grad_gate", call->grad_gate, 0},
  };
  const tessera_option options[] = {
      {"activation", call->activation},
      {"transpose_a", call->transpose_a},
      {"transpose_b", call->transpose_b},
      {"alpha", call->alpha},
      {"beta", call->beta},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "matmul_backward",
      operands, 6,
      options, 6,
      outputs, 5,
      0, stream};
  return tessera_run(context, &generic);
}

/* a layer of weights with bias, activation, gate and residual. output = act(input weight^T +
   bias) * gate + residual */
typedef struct tessera_linear_call {
  /* [..., in_features] */
  const tessera_tensor* input;
  /* [out_features, in_features] */
  const tessera_tensor* weight;
  /* optional, [out_features]: or whatever broadcasts to the product */
  const tessera_tensor* bias;
  /* optional, [..., out_features]: multiplies what the activation gives; half as many columns
     where they are paired */
  const tessera_tensor* gate;
  /* optional, [..., out_features]: added last, in the shape of output */
  const tessera_tensor* residual;
  /* output, [..., out_features]: half as many columns where they are paired */
  tessera_tensor** output;
  /* one of none, relu, gelu, gelu_tanh, silu, swiglu, geglu, default none: swiglu and geglu take
     columns in pairs: act(even) odd */
  tessera_value activation;
  /* one of f32, f16, bf16, default none: of output; that of input where it is not set */
  tessera_value output_dtype;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_linear_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_linear(const tessera_context* context,
    const tessera_stream* stream, const tessera_linear_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight", call->weight, 0},
      {"bias", call->bias, 0},
      {"gate", call->gate, 0},
      {"residual", call->residual, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"activation", call->activation},
      {"output_dtype", call->output_dtype},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "linear",
      operands, 5,
      options, 3,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of linear. t = grad_output * gate * act'(z); grad_input = t weight; grad_weight =
   t^T input; grad_bias = sum of t; grad_gate = grad_output * act(z) (of pairs act(even) odd) */
typedef struct tessera_linear_backward_call {
  /* [..., in_features] */
  const tessera_tensor* input;
  /* [out_features, in_features] */
  const tessera_tensor* weight;
  /* optional, [out_features]: or whatever broadcasts to the product */
  const tessera_tensor* bias;
  /* optional, [..., out_features]: multiplies what the activation gives; half as many columns
     where they are paired */
  const tessera_tensor* gate;
  /* [..., out_features]: in the shape of output, of any dtype */
  const tessera_tensor* grad_output;
  /* optional, output, [..., in_features]: in the dtype of input */
  tessera_tensor** grad_input;
  /* optional, output, [out_features, in_features]: in the dtype of weight */
  tessera_tensor** grad_weight;
  /* optional, output, [out_features]: in the shape and dtype of bias */
  tessera_tensor** grad_bias;
  /* optional, output, [..., out_features]: in the dtype of gate */
  tessera_tensor** grad_gate;
  /* one of none, relu, gelu, gelu_tanh, silu, swiglu, geglu, default none: swiglu and geglu take
     columns in pairs: act(even) odd */
  tessera_value activation;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_linear_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_linear_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_linear_backward_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight", call->weight, 0},
      {"bias", call->bias, 0},
      {"gate", call->gate, 0},
      {"grad_output", call->grad_output, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
      {"grad_weight", call->grad_weight, 0},
      {"grad_bias", call->grad_bias, 0},
      {"grad_gate", call->grad_gate, 0},
  };
  const tessera_option options[] = {
      {"activation", call->activation},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "linear_backward",
      operands, 5,
      options, 2,
      outputs, 4,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
