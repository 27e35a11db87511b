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

/* softmax attention that also returns its weights. weights[i,j] = keep[i,j]
   softmax_j(cap(softmax_scale * query[i] . key[j]) + bias[i,j]); output = weights value */
typedef struct tessera_attention_call {
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

/* softmax attention of one query per sequence over a cache in pages. output[n,h] = sum_t
   softmax_t(cap(attn_scale * query[n,h] . key[t])) value[t] over the t < context_lens[n]; key[t]
   = key_cache[block_tables[n, t / page_size], g, t % page_size] */
typedef struct tessera_page_attention_call {
  /* [sequences, heads, head_dim]: head_dim is contiguous and 1 to 512 */
  const tessera_tensor* query;
  /* [pages, kv_heads, page_size, head_dim]: any strides but along head_dim; codes of i8, i4,
     e4m3fn or e5m2 have scales */
  const tessera_tensor* key_cache;
  /* [pages, kv_heads, page_size, value_dim]: value_dim may differ from head_dim; codes of i8,
     i4, e4m3fn or e5m2 have scales */
  const tessera_tensor* value_cache;
  /* [sequences]: how many tokens each sequence has, those of its queries included */
  const tessera_tensor* context_lens;
  /* [sequences, max_blocks]: which page holds tokens page_size n to page_size (n + 1) - 1;
     anything behind the last token */
  const tessera_tensor* block_tables;
  /* optional, [heads, sinks]: logits of keys with value 0: they join the denominator, once per
     row; also [kv_heads, sinks] and [sinks]; the dtype of query or f32 */
  const tessera_tensor* softmax_aux;
  /* optional, [pages, kv_heads, page_size]: what a code of key_cache times this means, not
     negative; each axis may be 1 */
  const tessera_tensor* key_scale;
  /* optional, [pages, kv_heads, page_size]: what a code of value_cache times this means, not
     negative; each axis may be 1 */
  const tessera_tensor* value_scale;
  /* output, [sequences, heads, value_dim]: sequences without tokens are 0 */
  tessera_tensor** output;
  /* optional, output, [sequences, heads]: natural logarithm; -inf for sequences without tokens */
  tessera_tensor** log_sum_exp;
  /* float, default none: of the logits; default head_dim^-1/2 */
  tessera_value attn_scale;
  /* float, default none: > 0: logits become cap * tanh(logit / cap) */
  tessera_value attn_logits_soft_cap;
  /* int, default none: at least 1: a row sees the last so many tokens up to its own, that one
     included */
  tessera_value sliding_window;
  /* int, default 0: work-groups that share the tokens of a row, up to 1024; 0 = chosen */
  tessera_value num_splits;
  /* int, default none: of the longest sequence, by which splits are chosen; results do not
     depend on it */
  tessera_value max_context_len;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_page_attention_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_page_attention(const tessera_context* context,
    const tessera_stream* stream, const tessera_page_attention_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key_cache", call->key_cache, 0},
      {"value_cache", call->value_cache, 0},
      {"context_lens", call->context_lens, 0},
      {"block_tables", call->block_tables, 0},
      {"softmax_aux", call->softmax_aux, 0},
      {"key_scale", call->key_scale, 0},
      {"value_scale", call->value_scale, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"log_sum_exp", call->log_sum_exp, 0},
  };
  const tessera_option options[] = {
      {"attn_scale", call->attn_scale},
      {"attn_logits_soft_cap", call->attn_logits_soft_cap},
      {"sliding_window", call->sliding_window},
      {"num_splits", call->num_splits},
      {"max_context_len", call->max_context_len},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "page_attention",
      operands, 8,
      options, 6,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

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
      operands, 10,
      options, 5,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

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
  /* optional, [..., rows, columns]: of a in 8 bits: one, of each row that is no term, or of 128
     x 128, 1 x 128 */
  const tessera_tensor* scale_a;
  /* optional, [..., rows, columns]: of b in 8 bits: one, of each row that is no term, or of 128
     x 128, 1 x 128 */
  const tessera_tensor* scale_b;
  /* output, [..., m, n]: n / 2 columns where they are paired */
  tessera_tensor** output;
  /* optional, output, [..., m, 1]: of each row of a quantised output, which times this is meant */
  tessera_tensor** scale;
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
  /* one of f32, f16, bf16, i32, default none: of output; where it is not set that of a, of 8-bit
     floats and scaled i8 f32, of i8 alone i32 */
  tessera_value output_dtype;
  /* one of none, i8, e4m3fn, e5m2, default none: output in that type, divided by the scale of
     its row */
  tessera_value quantise;
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
      {"scale_a", call->scale_a, 0},
      {"scale_b", call->scale_b, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"scale", call->scale, 0},
  };
  const tessera_option options[] = {
      {"activation", call->activation},
      {"transpose_a", call->transpose_a},
      {"transpose_b", call->transpose_b},
      {"alpha", call->alpha},
      {"beta", call->beta},
      {"output_dtype", call->output_dtype},
      {"quantise", call->quantise},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "matmul",
      operands, 8,
      options, 8,
      outputs, 2,
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
  /* optional, [..., rows, columns]: of input in 8 bits: one, of each row that is no term, or of
     128 x 128, 1 x 128 */
  const tessera_tensor* scale_input;
  /* optional, [..., rows, columns]: of weight in 8 bits: one, of each row that is no term, or of
     128 x 128, 1 x 128 */
  const tessera_tensor* scale_weight;
  /* output, [..., out_features]: half as many columns where they are paired */
  tessera_tensor** output;
  /* optional, output, [..., 1]: of each row of a quantised output, which times this is meant */
  tessera_tensor** scale;
  /* one of none, relu, gelu, gelu_tanh, silu, swiglu, geglu, default none: swiglu and geglu take
     columns in pairs: act(even) odd */
  tessera_value activation;
  /* one of f32, f16, bf16, i32, default none: of output; where it is not set that of input, of
     8-bit floats and scaled i8 f32, of i8 alone i32 */
  tessera_value output_dtype;
  /* one of none, i8, e4m3fn, e5m2, default none: output in that type, divided by the scale of
     its row */
  tessera_value quantise;
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
      {"scale_input", call->scale_input, 0},
      {"scale_weight", call->scale_weight, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"scale", call->scale, 0},
  };
  const tessera_option options[] = {
      {"activation", call->activation},
      {"output_dtype", call->output_dtype},
      {"quantise", call->quantise},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "linear",
      operands, 7,
      options, 4,
      outputs, 2,
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

/* a perceptron of two layers. output = act(input w1 + b1) w2 + b2; the hidden layer has input's
   dtype */
typedef struct tessera_fused_mlp_call {
  /* [..., in] */
  const tessera_tensor* input;
  /* [in, hidden]: 2 hidden columns where they are paired */
  const tessera_tensor* w1;
  /* optional, [hidden]: 2 hidden elements where they are paired */
  const tessera_tensor* b1;
  /* [hidden, out] */
  const tessera_tensor* w2;
  /* optional, [out] */
  const tessera_tensor* b2;
  /* output, [..., out]: in the dtype of input */
  tessera_tensor** output;
  /* one of none, relu, gelu, gelu_tanh, silu, swiglu, geglu, default gelu_tanh: swiglu and geglu
     take columns in pairs: act(even) odd */
  tessera_value activation;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_fused_mlp_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_fused_mlp(const tessera_context* context,
    const tessera_stream* stream, const tessera_fused_mlp_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"w1", call->w1, 0},
      {"b1", call->b1, 0},
      {"w2", call->w2, 0},
      {"b2", call->b2, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"activation", call->activation},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "fused_mlp",
      operands, 5,
      options, 2,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* rows in groups, each multiplied by the matrix of its group. output[i] = lhs[i] rhs[g -
   group_offset] for the rows i of group g; existing_out[i] or 0 where rhs has no such matrix,
   and behind the last group */
typedef struct tessera_grouped_matmul_call {
  /* [m, k]: rows, sorted by group */
  const tessera_tensor* lhs;
  /* [groups, k, n]: [groups, n, k] with transpose_rhs */
  const tessera_tensor* rhs;
  /* [num_groups]: rows of each group, one group behind the other */
  const tessera_tensor* group_sizes;
  /* optional, [m, n]: what rows of no group keep, in the dtype of output */
  const tessera_tensor* existing_out;
  /* optional, [m, k]: of lhs in 8 bits: one, of each row, or for each 128 rows or terms */
  const tessera_tensor* scale_lhs;
  /* optional, [groups, k, n]: of rhs in 8 bits: one, of each matrix or column, or for each 128
     columns or terms */
  const tessera_tensor* scale_rhs;
  /* output, [m, n] */
  tessera_tensor** output;
  /* int, default 0: the first group that has a matrix here */
  tessera_value group_offset;
  /* bool, default false: rhs is [groups, n, k] */
  tessera_value transpose_rhs;
  /* one of f32, f16, bf16, i32, default none: of output; where it is not set that of
     existing_out, or of lhs, of 8-bit floats and scaled i8 f32, of i8 alone i32 */
  tessera_value output_dtype;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_grouped_matmul_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_grouped_matmul(const tessera_context* context,
    const tessera_stream* stream, const tessera_grouped_matmul_call* call) {
  const tessera_operand operands[] = {
      {"lhs", call->lhs, 0},
      {"rhs", call->rhs, 0},
      {"group_sizes", call->group_sizes, 0},
      {"existing_out", call->existing_out, 0},
      {"scale_lhs", call->scale_lhs, 0},
      {"scale_rhs", call->scale_rhs, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"group_offset", call->group_offset},
      {"transpose_rhs", call->transpose_rhs},
      {"output_dtype", call->output_dtype},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "grouped_matmul",
      operands, 6,
      options, 4,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of grouped_matmul. grad_lhs[i] = grad_output[i] rhs[g - group_offset]^T; grad_rhs[g
   - group_offset] = lhs_g^T grad_output_g, 0 of empty groups; grad_existing_out = grad_output in
   rows of no group, else 0 */
typedef struct tessera_grouped_matmul_backward_call {
  /* [m, k] */
  const tessera_tensor* lhs;
  /* [groups, k, n]: [groups, n, k] with transpose_rhs */
  const tessera_tensor* rhs;
  /* [num_groups]: rows of each group, one group behind the other */
  const tessera_tensor* group_sizes;
  /* [m, n]: of any dtype */
  const tessera_tensor* grad_output;
  /* optional, output, [m, k]: in the dtype of lhs */
  tessera_tensor** grad_lhs;
  /* optional, output, [groups, k, n]: in the shape and dtype of rhs */
  tessera_tensor** grad_rhs;
  /* optional, output, [m, n]: in the dtype of grad_output */
  tessera_tensor** grad_existing_out;
  /* int, default 0: the first group that has a matrix here */
  tessera_value group_offset;
  /* bool, default false: rhs is [groups, n, k] */
  tessera_value transpose_rhs;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_grouped_matmul_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_grouped_matmul_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_grouped_matmul_backward_call* call) {
  const tessera_operand operands[] = {
      {"lhs", call->lhs, 0},
      {"rhs", call->rhs, 0},
      {"group_sizes", call->group_sizes, 0},
      {"grad_output", call->grad_output, 0},
  };
  const tessera_output outputs[] = {
      {"grad_lhs", call->grad_lhs, 0},
      {"grad_rhs", call->grad_rhs, 0},
      {"grad_existing_out", call->grad_existing_out, 0},
  };
  const tessera_option options[] = {
      {"group_offset", call->group_offset},
      {"transpose_rhs", call->transpose_rhs},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "grouped_matmul_backward",
      operands, 4,
      options, 3,
      outputs, 3,
      0, stream};
  return tessera_run(context, &generic);
}

/* columns of lhs and rows of rhs in groups, a product for each group. output[g - group_offset] =
   sum over the rows i of group g of lhs[:, i] rhs[i, :], plus existing_out */
typedef struct tessera_transposed_grouped_matmul_call {
  /* [k, m]: columns, sorted by group */
  const tessera_tensor* lhs;
  /* [m, n]: rows, sorted by group */
  const tessera_tensor* rhs;
  /* [num_groups]: rows of each group, one group behind the other */
  const tessera_tensor* group_sizes;
  /* optional, [groups, k, n]: added, in the dtype of output */
  const tessera_tensor* existing_out;
  /* optional, [k, m]: of lhs in 8 bits: one, of each row, or for each 128 rows */
  const tessera_tensor* scale_lhs;
  /* optional, [m, n]: of rhs in 8 bits: one, of each column, or for each 128 columns */
  const tessera_tensor* scale_rhs;
  /* output, [groups, k, n] */
  tessera_tensor** output;
  /* int, default 0: the first group that has a matrix here */
  tessera_value group_offset;
  /* one of f32, f16, bf16, i32, default none: of output; where it is not set that of
     existing_out, or of lhs, of 8-bit floats and scaled i8 f32, of i8 alone i32 */
  tessera_value output_dtype;
  /* int, default none: matrices of output; all from group_offset on where it is not set */
  tessera_value groups;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_transposed_grouped_matmul_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_transposed_grouped_matmul(const tessera_context* context,
    const tessera_stream* stream, const tessera_transposed_grouped_matmul_call* call) {
  const tessera_operand operands[] = {
      {"lhs", call->lhs, 0},
      {"rhs", call->rhs, 0},
      {"group_sizes", call->group_sizes, 0},
      {"existing_out", call->existing_out, 0},
      {"scale_lhs", call->scale_lhs, 0},
      {"scale_rhs", call->scale_rhs, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"group_offset", call->group_offset},
      {"output_dtype", call->output_dtype},
      {"groups", call->groups},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "transposed_grouped_matmul",
      operands, 6,
      options, 4,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of transposed_grouped_matmul. grad_lhs[:, i] = grad_output[g - group_offset] rhs[i];
   grad_rhs[i] = lhs[:, i]^T grad_output[g - group_offset]; 0 in rows of no group; that of
   existing_out is grad_output */
typedef struct tessera_transposed_grouped_matmul_backward_call {
  /* [k, m] */
  const tessera_tensor* lhs;
  /* [m, n] */
  const tessera_tensor* rhs;
  /* [num_groups]: rows of each group, one group behind the other */
  const tessera_tensor* group_sizes;
  /* [groups, k, n]: of any dtype */
  const tessera_tensor* grad_output;
  /* optional, output, [k, m]: in the dtype of lhs */
  tessera_tensor** grad_lhs;
  /* optional, output, [m, n]: in the dtype of rhs */
  tessera_tensor** grad_rhs;
  /* int, default 0: the first group that has a matrix here */
  tessera_value group_offset;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_transposed_grouped_matmul_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_transposed_grouped_matmul_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_transposed_grouped_matmul_backward_call* call) {
  const tessera_operand operands[] = {
      {"lhs", call->lhs, 0},
      {"rhs", call->rhs, 0},
      {"group_sizes", call->group_sizes, 0},
      {"grad_output", call->grad_output, 0},
  };
  const tessera_output outputs[] = {
      {"grad_lhs", call->grad_lhs, 0},
      {"grad_rhs", call->grad_rhs, 0},
  };
  const tessera_option options[] = {
      {"group_offset", call->group_offset},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "transposed_grouped_matmul_backward",
      operands, 4,
      options, 2,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

/* product with a matrix of which some blocks, or values, are stored. output = dense S, or S
   dense with side left, where S is the sum of the blocks in their places */
typedef struct tessera_block_sparse_matmul_call {
  /* [m, k]: [k, n] beside one on the left */
  const tessera_tensor* dense;
  /* [blocks, rows, columns]: or [values]: blocks of one element */
  const tessera_tensor* values;
  /* [blocks, 2]: row and column of each, counted in blocks */
  const tessera_tensor* indices;
  /* optional, [rows, columns]: of blocks; where it is 0 they count nothing */
  const tessera_tensor* block_mask;
  /* output, [m, n] */
  tessera_tensor** output;
  /* one of right, left, default right: of the sparse matrix in the product */
  tessera_value side;
  /* int, default none: columns of the sparse matrix, rows of one on the left; as block_mask says */
  tessera_value size;
  /* one of f32, f16, bf16, default none: of output; that of dense where it is not set */
  tessera_value output_dtype;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_block_sparse_matmul_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_block_sparse_matmul(const tessera_context* context,
    const tessera_stream* stream, const tessera_block_sparse_matmul_call* call) {
  const tessera_operand operands[] = {
      {"dense", call->dense, 0},
      {"values", call->values, 0},
      {"indices", call->indices, 0},
      {"block_mask", call->block_mask, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"side", call->side},
      {"size", call->size},
      {"output_dtype", call->output_dtype},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "block_sparse_matmul",
      operands, 4,
      options, 4,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of block_sparse_matmul. grad_dense = grad_output S^T; grad_values = dense^T
   grad_output in the places of the blocks, 0 of those that count nothing */
typedef struct tessera_block_sparse_matmul_backward_call {
  /* [m, k]: [k, n] beside one on the left */
  const tessera_tensor* dense;
  /* [blocks, rows, columns]: or [values]: blocks of one element */
  const tessera_tensor* values;
  /* [blocks, 2]: row and column of each, counted in blocks */
  const tessera_tensor* indices;
  /* optional, [rows, columns]: of blocks; where it is 0 they count nothing */
  const tessera_tensor* block_mask;
  /* [m, n] */
  const tessera_tensor* grad_output;
  /* optional, output, [m, k]: in the shape and dtype of dense */
  tessera_tensor** grad_dense;
  /* optional, output, [blocks, rows, columns]: in the shape and dtype of values */
  tessera_tensor** grad_values;
  /* one of right, left, default right: of the sparse matrix in the product */
  tessera_value side;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_block_sparse_matmul_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_block_sparse_matmul_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_block_sparse_matmul_backward_call* call) {
  const tessera_operand operands[] = {
      {"dense", call->dense, 0},
      {"values", call->values, 0},
      {"indices", call->indices, 0},
      {"block_mask", call->block_mask, 0},
      {"grad_output", call->grad_output, 0},
  };
  const tessera_output outputs[] = {
      {"grad_dense", call->grad_dense, 0},
      {"grad_values", call->grad_values, 0},
  };
  const tessera_option options[] = {
      {"side", call->side},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "block_sparse_matmul_backward",
      operands, 5,
      options, 2,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

/* writes the keys and values of new tokens into their pages. key_cache[slot / page_size, h, slot
   % page_size] = keys[t, h], where slot is slot_mapping[t], or that of position kv_lens[n] -
   query_start_loc[n + 1] + t of sequence n */
typedef struct tessera_append_to_cache_call {
  /* [tokens, heads, dim]: of the new tokens */
  const tessera_tensor* keys;
  /* optional, [tokens, heads, value_dim]: in the dtype of keys */
  const tessera_tensor* values;
  /* optional, [tokens]: page page_size + slot of each token; -1 skips it */
  const tessera_tensor* slot_mapping;
  /* optional, [max_seqs, pages_per_seq]: the pages of each sequence; read where new tokens lie */
  const tessera_tensor* block_tables;
  /* optional, [max_seqs]: lengths of the sequences with their new tokens */
  const tessera_tensor* kv_lens;
  /* optional, [max_seqs + 1]: sequence n has tokens query_start_loc[n] to query_start_loc[n + 1]
     - 1 */
  const tessera_tensor* query_start_loc;
  /* optional, [1]: how many sequences there are; all without it */
  const tessera_tensor* num_seqs;
  /* in-out, [pages, heads, page_size, dim]: other slots keep their bits; any strides but along
     the last axis */
  const tessera_tensor* key_cache;
  /* optional, in-out, [pages, heads, page_size, value_dim]: in the dtype of key_cache */
  const tessera_tensor* value_cache;
  /* optional, in-out, [pages, heads, page_size]: of codes; one for each token and head is made
     and written, others are read */
  const tessera_tensor* key_scale;
  /* optional, in-out, [pages, heads, page_size]: of codes; one for each token and head is made
     and written, others are read */
  const tessera_tensor* value_scale;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_append_to_cache_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_append_to_cache(const tessera_context* context,
    const tessera_stream* stream, const tessera_append_to_cache_call* call) {
  const tessera_operand operands[] = {
      {"keys", call->keys, 0},
      {"values", call->values, 0},
      {"slot_mapping", call->slot_mapping, 0},
      {"block_tables", call->block_tables, 0},
      {"kv_lens", call->kv_lens, 0},
      {"query_start_loc", call->query_start_loc, 0},
      {"num_seqs", call->num_seqs, 0},
      {"key_cache", call->key_cache, 0},
      {"value_cache", call->value_cache, 0},
      {"key_scale", call->key_scale, 0},
      {"value_scale", call->value_scale, 0},
  };
  const tessera_option options[] = {
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "append_to_cache",
      operands, 11,
      options, 1,
      0, 0,
      0, stream};
  return tessera_run(context, &generic);
}

/* the gradients of new keys and values, and of the caches before them. grad_keys[t, h] =
   grad_key_cache[slot / page_size, h, slot % page_size], which becomes 0; 0 for tokens that
   append_to_cache did not write */
typedef struct tessera_append_to_cache_backward_call {
  /* optional, [tokens]: page page_size + slot of each token; -1 skips it */
  const tessera_tensor* slot_mapping;
  /* optional, [max_seqs, pages_per_seq]: the pages of each sequence; read where new tokens lie */
  const tessera_tensor* block_tables;
  /* optional, [max_seqs]: lengths of the sequences with their new tokens */
  const tessera_tensor* kv_lens;
  /* optional, [max_seqs + 1]: sequence n has tokens query_start_loc[n] to query_start_loc[n + 1]
     - 1 */
  const tessera_tensor* query_start_loc;
  /* optional, [1]: how many sequences there are; all without it */
  const tessera_tensor* num_seqs;
  /* in-out, [pages, heads, page_size, dim]: of the cache after the call; becomes that of the
     cache before it */
  const tessera_tensor* grad_key_cache;
  /* optional, in-out, [pages, heads, page_size, value_dim]: in the dtype of grad_key_cache */
  const tessera_tensor* grad_value_cache;
  /* output, [tokens, heads, dim]: in the dtype of grad_key_cache */
  tessera_tensor** grad_keys;
  /* optional, output, [tokens, heads, value_dim]: there where grad_value_cache is */
  tessera_tensor** grad_values;
  /* int, default none: how many there are; not set: as many as slot_mapping has */
  tessera_value tokens;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_append_to_cache_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_append_to_cache_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_append_to_cache_backward_call* call) {
  const tessera_operand operands[] = {
      {"slot_mapping", call->slot_mapping, 0},
      {"block_tables", call->block_tables, 0},
      {"kv_lens", call->kv_lens, 0},
      {"query_start_loc", call->query_start_loc, 0},
      {"num_seqs", call->num_seqs, 0},
      {"grad_key_cache", call->grad_key_cache, 0},
      {"grad_value_cache", call->grad_value_cache, 0},
  };
  const tessera_output outputs[] = {
      {"grad_keys", call->grad_keys, 0},
      {"grad_values", call->grad_values, 0},
  };
  const tessera_option options[] = {
      {"tokens", call->tokens},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "append_to_cache_backward",
      operands, 7,
      options, 2,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

/* copies pages within a pool or from another one. pool[target_pages[i]] =
   source[source_pages[i]], all reads before any write; source is pool where it is left out */
typedef struct tessera_copy_pages_call {
  /* [pairs]: -1 skips the pair */
  const tessera_tensor* source_pages;
  /* [pairs]: -1 skips the pair; of equal ones the last wins */
  const tessera_tensor* target_pages;
  /* optional, [source_pages, ...]: another pool, of pages as those of pool */
  const tessera_tensor* source;
  /* in-out, [pages, ..., dim]: two to four axes; other pages keep their bits */
  const tessera_tensor* pool;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_copy_pages_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_copy_pages(const tessera_context* context,
    const tessera_stream* stream, const tessera_copy_pages_call* call) {
  const tessera_operand operands[] = {
      {"source_pages", call->source_pages, 0},
      {"target_pages", call->target_pages, 0},
      {"source", call->source, 0},
      {"pool", call->pool, 0},
  };
  const tessera_option options[] = {
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "copy_pages",
      operands, 4,
      options, 1,
      0, 0,
      0, stream};
  return tessera_run(context, &generic);
}

/* a pool of pages in codes of 8 or 4 bits with scales. scale = largest magnitude / largest code,
   1 for zeros; codes = round(input / scale) */
typedef struct tessera_quantise_cache_call {
  /* [pages, heads, page_size, dim]: any strides but along the last axis, which is contiguous */
  const tessera_tensor* input;
  /* output, [pages, heads, page_size, dim]: in the dtype that the option says */
  tessera_tensor** codes;
  /* output, [pages or 1, heads or 1, page_size or 1]: what a code times this means; broadcasts
     to [pages, heads, page_size] */
  tessera_tensor** scale;
  /* one of i8, i4, e4m3fn, e5m2, default i8: of codes; integers are symmetric, up to 127 and 7 */
  tessera_value dtype;
  /* one of token_head, page, head, tensor, default token_head: what shares a scale */
  tessera_value scale_of;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_quantise_cache_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_quantise_cache(const tessera_context* context,
    const tessera_stream* stream, const tessera_quantise_cache_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
  };
  const tessera_output outputs[] = {
      {"codes", call->codes, 0},
      {"scale", call->scale, 0},
  };
  const tessera_option options[] = {
      {"dtype", call->dtype},
      {"scale_of", call->scale_of},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "quantise_cache",
      operands, 1,
      options, 3,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

/* the floats that a pool of codes means. output = codes * scale */
typedef struct tessera_dequantise_cache_call {
  /* [pages, heads, page_size, dim]: any strides but along the last axis, which is contiguous */
  const tessera_tensor* codes;
  /* [pages or 1, heads or 1, page_size or 1]: what a code times this means; broadcasts to
     [pages, heads, page_size] */
  const tessera_tensor* scale;
  /* output, [pages, heads, page_size, dim]: in the dtype that the option says */
  tessera_tensor** output;
  /* one of f32, f16, bf16, default f32: of output */
  tessera_value dtype;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_dequantise_cache_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_dequantise_cache(const tessera_context* context,
    const tessera_stream* stream, const tessera_dequantise_cache_call* call) {
  const tessera_operand operands[] = {
      {"codes", call->codes, 0},
      {"scale", call->scale, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"dtype", call->dtype},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "dequantise_cache",
      operands, 2,
      options, 2,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* linear attention with a state and four log decays. H_t[k,v] = exp(g_t + g_gamma_h + gk_t[k] +
   gv_t[v]) H_(t-1)[k,v] + key_t[k] value_t[v]; output_t[v] = softmax_scale sum_k query_t[k]
   H_t[k,v] */
typedef struct tessera_recurrent_call {
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* query;
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* key;
  /* [batch, seq, heads, value_dim] */
  const tessera_tensor* value;
  /* optional, [batch, seq, heads] or [batch, seq, heads, key_dim]: a log decay, in the dtype of
     query or in f32 */
  const tessera_tensor* g;
  /* optional, [heads]: a log decay of each step, in the dtype of query or in f32 */
  const tessera_tensor* g_gamma;
  /* optional, [batch, seq, heads, key_dim]: a log decay, in the dtype of query or in f32 */
  const tessera_tensor* gk;
  /* optional, [batch, seq, heads, value_dim]: a log decay, in the dtype of query or in f32 */
  const tessera_tensor* gv;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, seq, heads, value_dim]: 0 for tokens of no sequence */
  tessera_tensor** output;
  /* optional, output, [sequences, heads, key_dim, value_dim]: the state after the last token */
  tessera_tensor** final_state;
  /* bool, default false: time runs from the last token of each sequence to its first */
  tessera_value reverse;
  /* float, default none: key_dim^-1/2 where it is not set */
  tessera_value softmax_scale;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_recurrent_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_recurrent(const tessera_context* context,
    const tessera_stream* stream, const tessera_recurrent_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
      {"g", call->g, 0},
      {"g_gamma", call->g_gamma, 0},
      {"gk", call->gk, 0},
      {"gv", call->gv, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"final_state", call->final_state, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"softmax_scale", call->softmax_scale},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "recurrent",
      operands, 9,
      options, 3,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of recurrent. D_t = softmax_scale query_t grad_output_t^T + A_(t+1) D_(t+1), where
   A_t is the factor of H_(t-1) and grad_final_state joins after the last token; grad_query_t =
   softmax_scale H_t grad_output_t; grad_key_t = D_t value_t; grad_value_t = D_t^T key_t;
   grad_initial_state = A_0 D_0; of decays: sums of D_t A_t H_(t-1) */
typedef struct tessera_recurrent_backward_call {
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* query;
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* key;
  /* [batch, seq, heads, value_dim] */
  const tessera_tensor* value;
  /* optional, [batch, seq, heads] or [batch, seq, heads, key_dim]: a log decay, in the dtype of
     query or in f32 */
  const tessera_tensor* g;
  /* optional, [heads]: a log decay of each step, in the dtype of query or in f32 */
  const tessera_tensor* g_gamma;
  /* optional, [batch, seq, heads, key_dim]: a log decay, in the dtype of query or in f32 */
  const tessera_tensor* gk;
  /* optional, [batch, seq, heads, value_dim]: a log decay, in the dtype of query or in f32 */
  const tessera_tensor* gv;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* [batch, seq, heads, value_dim]: in the dtype of query */
  const tessera_tensor* grad_output;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* grad_final_state;
  /* optional, output, [batch, seq, heads, key_dim]: in the shape and dtype of query */
  tessera_tensor** grad_query;
  /* optional, output, [batch, seq, heads, key_dim]: in the shape and dtype of key */
  tessera_tensor** grad_key;
  /* optional, output, [batch, seq, heads, value_dim]: in the shape and dtype of value */
  tessera_tensor** grad_value;
  /* optional, output, [batch, seq, heads] or [batch, seq, heads, key_dim]: in the shape and
     dtype of g */
  tessera_tensor** grad_g;
  /* optional, output, [heads]: in the shape and dtype of g_gamma */
  tessera_tensor** grad_g_gamma;
  /* optional, output, [batch, seq, heads, key_dim]: in the shape and dtype of gk */
  tessera_tensor** grad_gk;
  /* optional, output, [batch, seq, heads, value_dim]: in the shape and dtype of gv */
  tessera_tensor** grad_gv;
  /* optional, output, [sequences, heads, key_dim, value_dim]: in the shape and dtype of
     initial_state */
  tessera_tensor** grad_initial_state;
  /* bool, default false: time runs from the last token of each sequence to its first */
  tessera_value reverse;
  /* float, default none: key_dim^-1/2 where it is not set */
  tessera_value softmax_scale;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_recurrent_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_recurrent_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_recurrent_backward_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
      {"g", call->g, 0},
      {"g_gamma", call->g_gamma, 0},
      {"gk", call->gk, 0},
      {"gv", call->gv, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_final_state", call->grad_final_state, 0},
  };
  const tessera_output outputs[] = {
      {"grad_query", call->grad_query, 0},
      {"grad_key", call->grad_key, 0},
      {"grad_value", call->grad_value, 0},
      {"grad_g", call->grad_g, 0},
      {"grad_g_gamma", call->grad_g_gamma, 0},
      {"grad_gk", call->grad_gk, 0},
      {"grad_gv", call->grad_gv, 0},
      {"grad_initial_state", call->grad_initial_state, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"softmax_scale", call->softmax_scale},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "recurrent_backward",
      operands, 11,
      options, 3,
      outputs, 8,
      0, stream};
  return tessera_run(context, &generic);
}

/* gated linear attention (arXiv:2312.06635). H_t[k,v] = exp(g_t[k] + g_gamma_h) H_(t-1)[k,v] +
   key_t[k] value_t[v]; output_t[v] = softmax_scale sum_k query_t[k] H_t[k,v] */
typedef struct tessera_gla_call {
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* query;
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* key;
  /* [batch, seq, heads, value_dim] */
  const tessera_tensor* value;
  /* optional, [batch, seq, heads] or [batch, seq, heads, key_dim]: a log decay, in the dtype of
     query or in f32 */
  const tessera_tensor* g;
  /* optional, [heads]: a log decay of each step, in the dtype of query or in f32 */
  const tessera_tensor* g_gamma;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, seq, heads, value_dim]: 0 for tokens of no sequence */
  tessera_tensor** output;
  /* optional, output, [sequences, heads, key_dim, value_dim]: the state after the last token */
  tessera_tensor** final_state;
  /* bool, default false: time runs from the last token of each sequence to its first */
  tessera_value reverse;
  /* float, default none: key_dim^-1/2 where it is not set */
  tessera_value softmax_scale;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_gla_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_gla(const tessera_context* context,
    const tessera_stream* stream, const tessera_gla_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
      {"g", call->g, 0},
      {"g_gamma", call->g_gamma, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"final_state", call->final_state, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"softmax_scale", call->softmax_scale},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "gla",
      operands, 7,
      options, 3,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of gla. D_t = softmax_scale query_t grad_output_t^T + A_(t+1) D_(t+1), where A_t is
   the factor of H_(t-1) and grad_final_state joins after the last token; grad_query_t =
   softmax_scale H_t grad_output_t; grad_key_t = D_t value_t; grad_value_t = D_t^T key_t;
   grad_initial_state = A_0 D_0; of decays: sums of D_t A_t H_(t-1) */
typedef struct tessera_gla_backward_call {
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* query;
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* key;
  /* [batch, seq, heads, value_dim] */
  const tessera_tensor* value;
  /* optional, [batch, seq, heads] or [batch, seq, heads, key_dim]: a log decay, in the dtype of
     query or in f32 */
  const tessera_tensor* g;
  /* optional, [heads]: a log decay of each step, in the dtype of query or in f32 */
  const tessera_tensor* g_gamma;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* [batch, seq, heads, value_dim]: in the dtype of query */
  const tessera_tensor* grad_output;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* grad_final_state;
  /* optional, output, [batch, seq, heads, key_dim]: in the shape and dtype of query */
  tessera_tensor** grad_query;
  /* optional, output, [batch, seq, heads, key_dim]: in the shape and dtype of key */
  tessera_tensor** grad_key;
  /* optional, output, [batch, seq, heads, value_dim]: in the shape and dtype of value */
  tessera_tensor** grad_value;
  /* optional, output, [batch, seq, heads] or [batch, seq, heads, key_dim]: in the shape and
     dtype of g */
  tessera_tensor** grad_g;
  /* optional, output, [heads]: in the shape and dtype of g_gamma */
  tessera_tensor** grad_g_gamma;
  /* optional, output, [sequences, heads, key_dim, value_dim]: in the shape and dtype of
     initial_state */
  tessera_tensor** grad_initial_state;
  /* bool, default false: time runs from the last token of each sequence to its first */
  tessera_value reverse;
  /* float, default none: key_dim^-1/2 where it is not set */
  tessera_value softmax_scale;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_gla_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_gla_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_gla_backward_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
      {"g", call->g, 0},
      {"g_gamma", call->g_gamma, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_final_state", call->grad_final_state, 0},
  };
  const tessera_output outputs[] = {
      {"grad_query", call->grad_query, 0},
      {"grad_key", call->grad_key, 0},
      {"grad_value", call->grad_value, 0},
      {"grad_g", call->grad_g, 0},
      {"grad_g_gamma", call->grad_g_gamma, 0},
      {"grad_initial_state", call->grad_initial_state, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"softmax_scale", call->softmax_scale},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "gla_backward",
      operands, 9,
      options, 3,
      outputs, 6,
      0, stream};
  return tessera_run(context, &generic);
}

/* linear attention with a fixed decay for each head and layer (arXiv:2401.04658). H_t = exp(-(8
   / heads) (1 - layer_idx / num_layers) h) H_(t-1) + key_t value_t^T; output_t = softmax_scale
   H_t^T query_t */
typedef struct tessera_lightning_attention_call {
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* query;
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* key;
  /* [batch, seq, heads, value_dim] */
  const tessera_tensor* value;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, seq, heads, value_dim]: 0 for tokens of no sequence */
  tessera_tensor** output;
  /* optional, output, [sequences, heads, key_dim, value_dim]: the state after the last token */
  tessera_tensor** final_state;
  /* bool, default false: time runs from the last token of each sequence to its first */
  tessera_value reverse;
  /* float, default none: key_dim^-1/2 where it is not set */
  tessera_value softmax_scale;
  /* int, default none: from 0; must be below num_layers */
  tessera_value layer_idx;
  /* int, default none: at least 1 */
  tessera_value num_layers;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_lightning_attention_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_lightning_attention(const tessera_context* context,
    const tessera_stream* stream, const tessera_lightning_attention_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"final_state", call->final_state, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"softmax_scale", call->softmax_scale},
      {"layer_idx", call->layer_idx},
      {"num_layers", call->num_layers},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "lightning_attention",
      operands, 5,
      options, 5,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of lightning_attention. D_t = softmax_scale query_t grad_output_t^T + A_(t+1)
   D_(t+1), where A_t is the factor of H_(t-1) and grad_final_state joins after the last token;
   grad_query_t = softmax_scale H_t grad_output_t; grad_key_t = D_t value_t; grad_value_t = D_t^T
   key_t; grad_initial_state = A_0 D_0; of decays: sums of D_t A_t H_(t-1) */
typedef struct tessera_lightning_attention_backward_call {
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* query;
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* key;
  /* [batch, seq, heads, value_dim] */
  const tessera_tensor* value;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* [batch, seq, heads, value_dim]: in the dtype of query */
  const tessera_tensor* grad_output;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* grad_final_state;
  /* optional, output, [batch, seq, heads, key_dim]: in the shape and dtype of query */
  tessera_tensor** grad_query;
  /* optional, output, [batch, seq, heads, key_dim]: in the shape and dtype of key */
  tessera_tensor** grad_key;
  /* optional, output, [batch, seq, heads, value_dim]: in the shape and dtype of value */
  tessera_tensor** grad_value;
  /* optional, output, [sequences, heads, key_dim, value_dim]: in the shape and dtype of
     initial_state */
  tessera_tensor** grad_initial_state;
  /* bool, default false: time runs from the last token of each sequence to its first */
  tessera_value reverse;
  /* float, default none: key_dim^-1/2 where it is not set */
  tessera_value softmax_scale;
  /* int, default none: from 0; must be below num_layers */
  tessera_value layer_idx;
  /* int, default none: at least 1 */
  tessera_value num_layers;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_lightning_attention_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_lightning_attention_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_lightning_attention_backward_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_final_state", call->grad_final_state, 0},
  };
  const tessera_output outputs[] = {
      {"grad_query", call->grad_query, 0},
      {"grad_key", call->grad_key, 0},
      {"grad_value", call->grad_value, 0},
      {"grad_initial_state", call->grad_initial_state, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"softmax_scale", call->softmax_scale},
      {"layer_idx", call->layer_idx},
      {"num_layers", call->num_layers},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "lightning_attention_backward",
      operands, 7,
      options, 5,
      outputs, 4,
      0, stream};
  return tessera_run(context, &generic);
}

/* linear attention whose keys replace what they hold (arXiv:2406.06484). H_t = H_(t-1) + beta_t
   key_t (value_t - H_(t-1)^T key_t)^T; output_t = softmax_scale H_t^T query_t */
typedef struct tessera_delta_rule_call {
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* query;
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* key;
  /* [batch, seq, heads, value_dim] */
  const tessera_tensor* value;
  /* [batch, seq, heads]: how much of what a key holds its token replaces, in the dtype of query
     or in f32 */
  const tessera_tensor* beta;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, seq, heads, value_dim]: 0 for tokens of no sequence */
  tessera_tensor** output;
  /* optional, output, [sequences, heads, key_dim, value_dim]: the state after the last token */
  tessera_tensor** final_state;
  /* bool, default false: time runs from the last token of each sequence to its first */
  tessera_value reverse;
  /* float, default none: key_dim^-1/2 where it is not set */
  tessera_value softmax_scale;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_delta_rule_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_delta_rule(const tessera_context* context,
    const tessera_stream* stream, const tessera_delta_rule_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
      {"beta", call->beta, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"final_state", call->final_state, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"softmax_scale", call->softmax_scale},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "delta_rule",
      operands, 6,
      options, 3,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of delta_rule. with P_t = exp(g_t) H_(t-1) and u_t = value_t - P_t^T key_t: D_t =
   softmax_scale query_t grad_output_t^T + exp(g_(t+1)) E_(t+1), where grad_final_state joins
   after the last token; c_t = D_t^T key_t; E_t = D_t - beta_t key_t c_t^T; grad_query_t =
   softmax_scale H_t grad_output_t; grad_key_t = beta_t (D_t u_t - P_t c_t); grad_value_t =
   beta_t c_t; grad_beta_t = u_t^T c_t; grad_g_t: sums of E_t P_t; grad_initial_state = exp(g_0)
   E_0 */
typedef struct tessera_delta_rule_backward_call {
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* query;
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* key;
  /* [batch, seq, heads, value_dim] */
  const tessera_tensor* value;
  /* [batch, seq, heads]: how much of what a key holds its token replaces, in the dtype of query
     or in f32 */
  const tessera_tensor* beta;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* [batch, seq, heads, value_dim]: in the dtype of query */
  const tessera_tensor* grad_output;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* grad_final_state;
  /* optional, output, [batch, seq, heads, key_dim]: in the shape and dtype of query */
  tessera_tensor** grad_query;
  /* optional, output, [batch, seq, heads, key_dim]: in the shape and dtype of key */
  tessera_tensor** grad_key;
  /* optional, output, [batch, seq, heads, value_dim]: in the shape and dtype of value */
  tessera_tensor** grad_value;
  /* optional, output, [batch, seq, heads]: in the shape and dtype of beta */
  tessera_tensor** grad_beta;
  /* optional, output, [sequences, heads, key_dim, value_dim]: in the shape and dtype of
     initial_state */
  tessera_tensor** grad_initial_state;
  /* bool, default false: time runs from the last token of each sequence to its first */
  tessera_value reverse;
  /* float, default none: key_dim^-1/2 where it is not set */
  tessera_value softmax_scale;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_delta_rule_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_delta_rule_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_delta_rule_backward_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
      {"beta", call->beta, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_final_state", call->grad_final_state, 0},
  };
  const tessera_output outputs[] = {
      {"grad_query", call->grad_query, 0},
      {"grad_key", call->grad_key, 0},
      {"grad_value", call->grad_value, 0},
      {"grad_beta", call->grad_beta, 0},
      {"grad_initial_state", call->grad_initial_state, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"softmax_scale", call->softmax_scale},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "delta_rule_backward",
      operands, 8,
      options, 3,
      outputs, 5,
      0, stream};
  return tessera_run(context, &generic);
}

/* a delta rule whose state decays (arXiv:2412.06464). P_t = exp(g_t) H_(t-1); H_t = P_t + beta_t
   key_t (value_t - P_t^T key_t)^T; output_t = softmax_scale H_t^T query_t */
typedef struct tessera_gated_delta_rule_call {
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* query;
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* key;
  /* [batch, seq, heads, value_dim] */
  const tessera_tensor* value;
  /* [batch, seq, heads]: how much of what a key holds its token replaces, in the dtype of query
     or in f32 */
  const tessera_tensor* beta;
  /* optional, [batch, seq, heads] or [batch, seq, heads, key_dim]: a log decay, in the dtype of
     query or in f32 */
  const tessera_tensor* g;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, seq, heads, value_dim]: 0 for tokens of no sequence */
  tessera_tensor** output;
  /* optional, output, [sequences, heads, key_dim, value_dim]: the state after the last token */
  tessera_tensor** final_state;
  /* bool, default false: time runs from the last token of each sequence to its first */
  tessera_value reverse;
  /* float, default none: key_dim^-1/2 where it is not set */
  tessera_value softmax_scale;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_gated_delta_rule_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_gated_delta_rule(const tessera_context* context,
    const tessera_stream* stream, const tessera_gated_delta_rule_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
      {"beta", call->beta, 0},
      {"g", call->g, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"final_state", call->final_state, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"softmax_scale", call->softmax_scale},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "gated_delta_rule",
      operands, 7,
      options, 3,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of gated_delta_rule. with P_t = exp(g_t) H_(t-1) and u_t = value_t - P_t^T key_t:
   D_t = softmax_scale query_t grad_output_t^T + exp(g_(t+1)) E_(t+1), where grad_final_state
   joins after the last token; c_t = D_t^T key_t; E_t = D_t - beta_t key_t c_t^T; grad_query_t =
   softmax_scale H_t grad_output_t; grad_key_t = beta_t (D_t u_t - P_t c_t); grad_value_t =
   beta_t c_t; grad_beta_t = u_t^T c_t; grad_g_t: sums of E_t P_t; grad_initial_state = exp(g_0)
   E_0 */
typedef struct tessera_gated_delta_rule_backward_call {
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* query;
  /* [batch, seq, heads, key_dim] */
  const tessera_tensor* key;
  /* [batch, seq, heads, value_dim] */
  const tessera_tensor* value;
  /* [batch, seq, heads]: how much of what a key holds its token replaces, in the dtype of query
     or in f32 */
  const tessera_tensor* beta;
  /* optional, [batch, seq, heads] or [batch, seq, heads, key_dim]: a log decay, in the dtype of
     query or in f32 */
  const tessera_tensor* g;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* [batch, seq, heads, value_dim]: in the dtype of query */
  const tessera_tensor* grad_output;
  /* optional, [sequences, heads, key_dim, value_dim]: 0 where it is left out */
  const tessera_tensor* grad_final_state;
  /* optional, output, [batch, seq, heads, key_dim]: in the shape and dtype of query */
  tessera_tensor** grad_query;
  /* optional, output, [batch, seq, heads, key_dim]: in the shape and dtype of key */
  tessera_tensor** grad_key;
  /* optional, output, [batch, seq, heads, value_dim]: in the shape and dtype of value */
  tessera_tensor** grad_value;
  /* optional, output, [batch, seq, heads]: in the shape and dtype of beta */
  tessera_tensor** grad_beta;
  /* optional, output, [batch, seq, heads] or [batch, seq, heads, key_dim]: in the shape and
     dtype of g */
  tessera_tensor** grad_g;
  /* optional, output, [sequences, heads, key_dim, value_dim]: in the shape and dtype of
     initial_state */
  tessera_tensor** grad_initial_state;
  /* bool, default false: time runs from the last token of each sequence to its first */
  tessera_value reverse;
  /* float, default none: key_dim^-1/2 where it is not set */
  tessera_value softmax_scale;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_gated_delta_rule_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_gated_delta_rule_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_gated_delta_rule_backward_call* call) {
  const tessera_operand operands[] = {
      {"query", call->query, 0},
      {"key", call->key, 0},
      {"value", call->value, 0},
      {"beta", call->beta, 0},
      {"g", call->g, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_final_state", call->grad_final_state, 0},
  };
  const tessera_output outputs[] = {
      {"grad_query", call->grad_query, 0},
      {"grad_key", call->grad_key, 0},
      {"grad_value", call->grad_value, 0},
      {"grad_beta", call->grad_beta, 0},
      {"grad_g", call->grad_g, 0},
      {"grad_initial_state", call->grad_initial_state, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"softmax_scale", call->softmax_scale},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "gated_delta_rule_backward",
      operands, 9,
      options, 3,
      outputs, 6,
      0, stream};
  return tessera_run(context, &generic);
}

/* cumulative sums over tokens, of whole sequences or of chunks of them. output_t = scale sum of
   input_s over begin <= s <= t; reverse: over t <= s < end; [begin, end) is t's sequence or
   chunk */
typedef struct tessera_cumsum_call {
  /* [batch, seq, heads(, dim)], with head_first [batch, heads, seq(, dim)]: any strides */
  const tessera_tensor* input;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, seq, heads(, dim)], with head_first [batch, heads, seq(, dim)]: 0 for tokens
     of no sequence */
  tessera_tensor** output;
  /* int, default none: tokens, at least 1; not set: whole sequences */
  tessera_value chunk;
  /* bool, default false: sums begin at the last token */
  tessera_value reverse;
  /* bool, default false: heads before tokens */
  tessera_value head_first;
  /* float, default 1: multiplies the sums */
  tessera_value scale;
  /* one of f32, f16, bf16, default none: of output; that of input where it is not set */
  tessera_value output_dtype;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_cumsum_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_cumsum(const tessera_context* context,
    const tessera_stream* stream, const tessera_cumsum_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"chunk", call->chunk},
      {"reverse", call->reverse},
      {"head_first", call->head_first},
      {"scale", call->scale},
      {"output_dtype", call->output_dtype},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "cumsum",
      operands, 2,
      options, 6,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* product with weights of 8 or 4 bits, with a scale for each group of terms. output[..., n] =
   sum over groups g of scale[n, g] sum over k in g of input[..., k] (weight[n, k] -
   zero_point[n, g]) */
typedef struct tessera_quantised_matmul_call {
  /* [..., k]: f32, f16, bf16, or i8 */
  const tessera_tensor* input;
  /* [n, k]: u8 [n, bytes] in layouts of blocks */
  const tessera_tensor* weight;
  /* optional, [n, groups]: of plain layouts, which need it */
  const tessera_tensor* scale;
  /* optional, [n, groups]: in the dtype of weight; 0 where it is left out */
  const tessera_tensor* zero_point;
  /* optional, [num_groups]: rows of input of each group, one group behind the other; weight is
     [matrices, n, k] then, scale and zero_point [matrices, n, groups] */
  const tessera_tensor* group_sizes;
  /* optional, [..., 1]: of input in i8, which needs it: what a code times this means */
  const tessera_tensor* input_scale;
  /* output, [..., n] */
  tessera_tensor** output;
  /* one of plain, q8_0, q4_0, default plain: of weight; the others are GGUF's blocks of 32
     weights */
  tessera_value layout;
  /* int, default none: terms that share a scale; k / groups where it is not set */
  tessera_value group_size;
  /* one of f32, f16, bf16, default none: of output; that of input where it is not set, f32 of i8 */
  tessera_value output_dtype;
  /* int, default none: the first group that has a matrix; of group_sizes */
  tessera_value group_offset;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_quantised_matmul_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_quantised_matmul(const tessera_context* context,
    const tessera_stream* stream, const tessera_quantised_matmul_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight", call->weight, 0},
      {"scale", call->scale, 0},
      {"zero_point", call->zero_point, 0},
      {"group_sizes", call->group_sizes, 0},
      {"input_scale", call->input_scale, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"layout", call->layout},
      {"group_size", call->group_size},
      {"output_dtype", call->output_dtype},
      {"group_offset", call->group_offset},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "quantised_matmul",
      operands, 6,
      options, 5,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradient of the input of quantised_matmul. grad_input[..., k] = sum over n of grad_output[...,
   n] scale[n, g] (weight[n, k] - zero_point[n, g]) */
typedef struct tessera_quantised_matmul_backward_call {
  /* [..., n] */
  const tessera_tensor* grad_output;
  /* [n, k]: u8 [n, bytes] in layouts of blocks */
  const tessera_tensor* weight;
  /* optional, [n, groups]: of plain layouts, which need it */
  const tessera_tensor* scale;
  /* optional, [n, groups]: in the dtype of weight; 0 where it is left out */
  const tessera_tensor* zero_point;
  /* optional, [num_groups]: rows of input of each group, one group behind the other; weight is
     [matrices, n, k] then, scale and zero_point [matrices, n, groups] */
  const tessera_tensor* group_sizes;
  /* output, [..., k]: in the dtype of grad_output */
  tessera_tensor** grad_input;
  /* one of plain, q8_0, q4_0, default plain: of weight; the others are GGUF's blocks of 32
     weights */
  tessera_value layout;
  /* int, default none: terms that share a scale; k / groups where it is not set */
  tessera_value group_size;
  /* int, default none: the first group that has a matrix; of group_sizes */
  tessera_value group_offset;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_quantised_matmul_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_quantised_matmul_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_quantised_matmul_backward_call* call) {
  const tessera_operand operands[] = {
      {"grad_output", call->grad_output, 0},
      {"weight", call->weight, 0},
      {"scale", call->scale, 0},
      {"zero_point", call->zero_point, 0},
      {"group_sizes", call->group_sizes, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
  };
  const tessera_option options[] = {
      {"layout", call->layout},
      {"group_size", call->group_size},
      {"group_offset", call->group_offset},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "quantised_matmul_backward",
      operands, 5,
      options, 4,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* floats as codes of 8 or 4 bits, with a scale for each block. scale = largest magnitude /
   largest code; codes = round(input / scale); of u8 and u4 scale = (max - min) / largest code,
   zero_point = round(-min / scale), codes = round(input / scale) + zero_point */
typedef struct tessera_quantise_call {
  /* [..., rows, columns] */
  const tessera_tensor* input;
  /* output, [..., rows, columns]: in the dtype that the option says; u8 [..., rows, bytes] in
     layouts of blocks */
  tessera_tensor** codes;
  /* output, [..., rows / group_rows, columns / group_size] */
  tessera_tensor** scale;
  /* optional, output, [..., rows / group_rows, columns / group_size]: of u8 and u4 */
  tessera_tensor** zero_point;
  /* int, default none: columns that share a scale */
  tessera_value group_size;
  /* int, default none: rows that share a scale */
  tessera_value group_rows;
  /* bool, default false: of i8: scale is what floats are multiplied by, 127 / (largest + 1e-6) */
  tessera_value dynamic;
  /* one of plain, q8_0, q4_0, default plain: of codes; the others are GGUF's blocks of 32
     weights */
  tessera_value layout;
  /* one of i8, u8, i4, u4, e4m3fn, e5m2, default i8: of codes */
  tessera_value dtype;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_quantise_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_quantise(const tessera_context* context,
    const tessera_stream* stream, const tessera_quantise_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
  };
  const tessera_output outputs[] = {
      {"codes", call->codes, 0},
      {"scale", call->scale, 0},
      {"zero_point", call->zero_point, 0},
  };
  const tessera_option options[] = {
      {"group_size", call->group_size},
      {"group_rows", call->group_rows},
      {"dynamic", call->dynamic},
      {"layout", call->layout},
      {"dtype", call->dtype},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "quantise",
      operands, 1,
      options, 6,
      outputs, 3,
      0, stream};
  return tessera_run(context, &generic);
}

/* the floats that codes stand for. output = (codes - zero_point) scale, or codes / scale of
   dynamic ones */
typedef struct tessera_dequantise_call {
  /* [..., rows, columns] */
  const tessera_tensor* codes;
  /* optional, [..., rows / group_rows, columns / group_size]: of plain layouts, which need it */
  const tessera_tensor* scale;
  /* optional, [..., rows / group_rows, columns / group_size]: in the dtype of codes; 0 where it
     is left out */
  const tessera_tensor* zero_point;
  /* output, [..., rows, columns]: in the dtype that the option says */
  tessera_tensor** output;
  /* int, default none: columns that share a scale */
  tessera_value group_size;
  /* int, default none: rows that share a scale */
  tessera_value group_rows;
  /* bool, default false: of i8: scale is what floats are multiplied by, 127 / (largest + 1e-6) */
  tessera_value dynamic;
  /* one of plain, q8_0, q4_0, default plain: of codes; the others are GGUF's blocks of 32
     weights */
  tessera_value layout;
  /* one of f32, f16, bf16, default f32: of output */
  tessera_value dtype;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_dequantise_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_dequantise(const tessera_context* context,
    const tessera_stream* stream, const tessera_dequantise_call* call) {
  const tessera_operand operands[] = {
      {"codes", call->codes, 0},
      {"scale", call->scale, 0},
      {"zero_point", call->zero_point, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"group_size", call->group_size},
      {"group_rows", call->group_rows},
      {"dynamic", call->dynamic},
      {"layout", call->layout},
      {"dtype", call->dtype},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "dequantise",
      operands, 3,
      options, 6,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* a layer of long short-term memory, in one direction or both. z = weight_ih x_t + bias_ih +
   weight_hh h_(t-1) + bias_hh in blocks i, f, g, o; c_t = sigmoid(f) c_(t-1) + sigmoid(i)
   tanh(g); h_t = sigmoid(o) tanh(c_t) */
typedef struct tessera_lstm_call {
  /* [batch, seq, features] */
  const tessera_tensor* input;
  /* [directions, gates * hidden, features]: one direction or two; blocks of hidden rows, one for
     each gate */
  const tessera_tensor* weight_ih;
  /* [directions, gates * hidden, proj]: likewise */
  const tessera_tensor* weight_hh;
  /* optional, [directions, proj, hidden]: projection of h; proj is hidden where it is left out */
  const tessera_tensor* weight_hr;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_ih;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_hh;
  /* optional, [directions, batch, proj]: 0 where it is left out */
  const tessera_tensor* h0;
  /* optional, [directions, batch, hidden]: 0 where it is left out */
  const tessera_tensor* c0;
  /* optional, [batch]: tokens of each batch entry; seq where it is left out */
  const tessera_tensor* lengths;
  /* output, [batch, seq, directions * proj]: h of each token, 0 behind lengths */
  tessera_tensor** output;
  /* optional, output, [directions, batch, proj]: h after the last token */
  tessera_tensor** h_n;
  /* optional, output, [directions, batch, hidden]: c after the last token */
  tessera_tensor** c_n;
  /* bool, default false: the first direction runs from the last token to the first, and the
     second the other way */
  tessera_value reverse;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_lstm_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_lstm(const tessera_context* context,
    const tessera_stream* stream, const tessera_lstm_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight_ih", call->weight_ih, 0},
      {"weight_hh", call->weight_hh, 0},
      {"weight_hr", call->weight_hr, 0},
      {"bias_ih", call->bias_ih, 0},
      {"bias_hh", call->bias_hh, 0},
      {"h0", call->h0, 0},
      {"c0", call->c0, 0},
      {"lengths", call->lengths, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"h_n", call->h_n, 0},
      {"c_n", call->c_n, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "lstm",
      operands, 9,
      options, 2,
      outputs, 3,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of lstm. back through time: grad_h_t = grad_output_t + what the step after t gives
   h_t, grad_h_n behind the last; d_t the gradient of the gates' sums; grad_input = d weight_ih;
   grad_weight_ih = d^T input; grad_weight_hh = d^T h_(t-1) */
typedef struct tessera_lstm_backward_call {
  /* [batch, seq, features] */
  const tessera_tensor* input;
  /* [directions, gates * hidden, features]: one direction or two; blocks of hidden rows, one for
     each gate */
  const tessera_tensor* weight_ih;
  /* [directions, gates * hidden, proj]: likewise */
  const tessera_tensor* weight_hh;
  /* optional, [directions, proj, hidden]: projection of h; proj is hidden where it is left out */
  const tessera_tensor* weight_hr;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_ih;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_hh;
  /* optional, [directions, batch, proj]: 0 where it is left out */
  const tessera_tensor* h0;
  /* optional, [directions, batch, hidden]: 0 where it is left out */
  const tessera_tensor* c0;
  /* optional, [batch]: tokens of each batch entry; seq where it is left out */
  const tessera_tensor* lengths;
  /* [batch, seq, directions * proj] */
  const tessera_tensor* grad_output;
  /* optional, [directions, batch, proj]: 0 where it is left out */
  const tessera_tensor* grad_h_n;
  /* optional, [directions, batch, hidden]: 0 where it is left out */
  const tessera_tensor* grad_c_n;
  /* optional, output, [batch, seq, features]: in the shape and dtype of input */
  tessera_tensor** grad_input;
  /* optional, output, [directions, gates * hidden, features]: in the shape and dtype of
     weight_ih */
  tessera_tensor** grad_weight_ih;
  /* optional, output, [directions, gates * hidden, proj]: in the shape and dtype of weight_hh */
  tessera_tensor** grad_weight_hh;
  /* optional, output, [directions, proj, hidden]: in the shape and dtype of weight_hr */
  tessera_tensor** grad_weight_hr;
  /* optional, output, [directions, gates * hidden]: in the shape and dtype of bias_ih */
  tessera_tensor** grad_bias_ih;
  /* optional, output, [directions, gates * hidden]: in the shape and dtype of bias_hh */
  tessera_tensor** grad_bias_hh;
  /* optional, output, [directions, batch, proj]: in the shape and dtype of h0 */
  tessera_tensor** grad_h0;
  /* optional, output, [directions, batch, hidden]: in the shape and dtype of c0 */
  tessera_tensor** grad_c0;
  /* bool, default false: the first direction runs from the last token to the first, and the
     second the other way */
  tessera_value reverse;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_lstm_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_lstm_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_lstm_backward_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight_ih", call->weight_ih, 0},
      {"weight_hh", call->weight_hh, 0},
      {"weight_hr", call->weight_hr, 0},
      {"bias_ih", call->bias_ih, 0},
      {"bias_hh", call->bias_hh, 0},
      {"h0", call->h0, 0},
      {"c0", call->c0, 0},
      {"lengths", call->lengths, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_h_n", call->grad_h_n, 0},
      {"grad_c_n", call->grad_c_n, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
      {"grad_weight_ih", call->grad_weight_ih, 0},
      {"grad_weight_hh", call->grad_weight_hh, 0},
      {"grad_weight_hr", call->grad_weight_hr, 0},
      {"grad_bias_ih", call->grad_bias_ih, 0},
      {"grad_bias_hh", call->grad_bias_hh, 0},
      {"grad_h0", call->grad_h0, 0},
      {"grad_c0", call->grad_c0, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "lstm_backward",
      operands, 12,
      options, 2,
      outputs, 8,
      0, stream};
  return tessera_run(context, &generic);
}

/* a layer of gated recurrent units, in one direction or both. a = weight_ih x_t + bias_ih, b =
   weight_hh h_(t-1) + bias_hh in blocks r, z, n; r = sigmoid(a_r + b_r), z = sigmoid(a_z + b_z),
   n = tanh(a_n + r b_n); h_t = (1 - z) n + z h_(t-1) */
typedef struct tessera_gru_call {
  /* [batch, seq, features] */
  const tessera_tensor* input;
  /* [directions, gates * hidden, features]: one direction or two; blocks of hidden rows, one for
     each gate */
  const tessera_tensor* weight_ih;
  /* [directions, gates * hidden, hidden]: likewise */
  const tessera_tensor* weight_hh;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_ih;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_hh;
  /* optional, [directions, batch, hidden]: 0 where it is left out */
  const tessera_tensor* h0;
  /* optional, [batch]: tokens of each batch entry; seq where it is left out */
  const tessera_tensor* lengths;
  /* output, [batch, seq, directions * hidden]: h of each token, 0 behind lengths */
  tessera_tensor** output;
  /* optional, output, [directions, batch, hidden]: h after the last token */
  tessera_tensor** h_n;
  /* bool, default false: the first direction runs from the last token to the first, and the
     second the other way */
  tessera_value reverse;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_gru_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_gru(const tessera_context* context,
    const tessera_stream* stream, const tessera_gru_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight_ih", call->weight_ih, 0},
      {"weight_hh", call->weight_hh, 0},
      {"bias_ih", call->bias_ih, 0},
      {"bias_hh", call->bias_hh, 0},
      {"h0", call->h0, 0},
      {"lengths", call->lengths, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"h_n", call->h_n, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "gru",
      operands, 7,
      options, 2,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of gru. back through time: grad_h_t = grad_output_t + what the step after t gives
   h_t, grad_h_n behind the last; d_t the gradient of the gates' sums; grad_input = d weight_ih;
   grad_weight_ih = d^T input; grad_weight_hh = d^T h_(t-1) */
typedef struct tessera_gru_backward_call {
  /* [batch, seq, features] */
  const tessera_tensor* input;
  /* [directions, gates * hidden, features]: one direction or two; blocks of hidden rows, one for
     each gate */
  const tessera_tensor* weight_ih;
  /* [directions, gates * hidden, hidden]: likewise */
  const tessera_tensor* weight_hh;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_ih;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_hh;
  /* optional, [directions, batch, hidden]: 0 where it is left out */
  const tessera_tensor* h0;
  /* optional, [batch]: tokens of each batch entry; seq where it is left out */
  const tessera_tensor* lengths;
  /* [batch, seq, directions * hidden] */
  const tessera_tensor* grad_output;
  /* optional, [directions, batch, hidden]: 0 where it is left out */
  const tessera_tensor* grad_h_n;
  /* optional, output, [batch, seq, features]: in the shape and dtype of input */
  tessera_tensor** grad_input;
  /* optional, output, [directions, gates * hidden, features]: in the shape and dtype of
     weight_ih */
  tessera_tensor** grad_weight_ih;
  /* optional, output, [directions, gates * hidden, hidden]: in the shape and dtype of weight_hh */
  tessera_tensor** grad_weight_hh;
  /* optional, output, [directions, gates * hidden]: in the shape and dtype of bias_ih */
  tessera_tensor** grad_bias_ih;
  /* optional, output, [directions, gates * hidden]: in the shape and dtype of bias_hh */
  tessera_tensor** grad_bias_hh;
  /* optional, output, [directions, batch, hidden]: in the shape and dtype of h0 */
  tessera_tensor** grad_h0;
  /* bool, default false: the first direction runs from the last token to the first, and the
     second the other way */
  tessera_value reverse;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_gru_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_gru_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_gru_backward_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight_ih", call->weight_ih, 0},
      {"weight_hh", call->weight_hh, 0},
      {"bias_ih", call->bias_ih, 0},
      {"bias_hh", call->bias_hh, 0},
      {"h0", call->h0, 0},
      {"lengths", call->lengths, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_h_n", call->grad_h_n, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
      {"grad_weight_ih", call->grad_weight_ih, 0},
      {"grad_weight_hh", call->grad_weight_hh, 0},
      {"grad_bias_ih", call->grad_bias_ih, 0},
      {"grad_bias_hh", call->grad_bias_hh, 0},
      {"grad_h0", call->grad_h0, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "gru_backward",
      operands, 9,
      options, 2,
      outputs, 6,
      0, stream};
  return tessera_run(context, &generic);
}

/* a layer of plain recurrent cells, in one direction or both. h_t = activation(weight_ih x_t +
   bias_ih + weight_hh h_(t-1) + bias_hh) */
typedef struct tessera_rnn_call {
  /* [batch, seq, features] */
  const tessera_tensor* input;
  /* [directions, gates * hidden, features]: one direction or two; blocks of hidden rows, one for
     each gate */
  const tessera_tensor* weight_ih;
  /* [directions, gates * hidden, hidden]: likewise */
  const tessera_tensor* weight_hh;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_ih;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_hh;
  /* optional, [directions, batch, hidden]: 0 where it is left out */
  const tessera_tensor* h0;
  /* optional, [batch]: tokens of each batch entry; seq where it is left out */
  const tessera_tensor* lengths;
  /* output, [batch, seq, directions * hidden]: h of each token, 0 behind lengths */
  tessera_tensor** output;
  /* optional, output, [directions, batch, hidden]: h after the last token */
  tessera_tensor** h_n;
  /* bool, default false: the first direction runs from the last token to the first, and the
     second the other way */
  tessera_value reverse;
  /* one of tanh, relu, default tanh: of the sum */
  tessera_value activation;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_rnn_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_rnn(const tessera_context* context,
    const tessera_stream* stream, const tessera_rnn_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight_ih", call->weight_ih, 0},
      {"weight_hh", call->weight_hh, 0},
      {"bias_ih", call->bias_ih, 0},
      {"bias_hh", call->bias_hh, 0},
      {"h0", call->h0, 0},
      {"lengths", call->lengths, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"h_n", call->h_n, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"activation", call->activation},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "rnn",
      operands, 7,
      options, 3,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of rnn. back through time: grad_h_t = grad_output_t + what the step after t gives
   h_t, grad_h_n behind the last; d_t the gradient of the gates' sums; grad_input = d weight_ih;
   grad_weight_ih = d^T input; grad_weight_hh = d^T h_(t-1) */
typedef struct tessera_rnn_backward_call {
  /* [batch, seq, features] */
  const tessera_tensor* input;
  /* [directions, gates * hidden, features]: one direction or two; blocks of hidden rows, one for
     each gate */
  const tessera_tensor* weight_ih;
  /* [directions, gates * hidden, hidden]: likewise */
  const tessera_tensor* weight_hh;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_ih;
  /* optional, [directions, gates * hidden] */
  const tessera_tensor* bias_hh;
  /* optional, [directions, batch, hidden]: 0 where it is left out */
  const tessera_tensor* h0;
  /* optional, [batch]: tokens of each batch entry; seq where it is left out */
  const tessera_tensor* lengths;
  /* [batch, seq, directions * hidden] */
  const tessera_tensor* grad_output;
  /* optional, [directions, batch, hidden]: 0 where it is left out */
  const tessera_tensor* grad_h_n;
  /* optional, output, [batch, seq, features]: in the shape and dtype of input */
  tessera_tensor** grad_input;
  /* optional, output, [directions, gates * hidden, features]: in the shape and dtype of
     weight_ih */
  tessera_tensor** grad_weight_ih;
  /* optional, output, [directions, gates * hidden, hidden]: in the shape and dtype of weight_hh */
  tessera_tensor** grad_weight_hh;
  /* optional, output, [directions, gates * hidden]: in the shape and dtype of bias_ih */
  tessera_tensor** grad_bias_ih;
  /* optional, output, [directions, gates * hidden]: in the shape and dtype of bias_hh */
  tessera_tensor** grad_bias_hh;
  /* optional, output, [directions, batch, hidden]: in the shape and dtype of h0 */
  tessera_tensor** grad_h0;
  /* bool, default false: the first direction runs from the last token to the first, and the
     second the other way */
  tessera_value reverse;
  /* one of tanh, relu, default tanh: of the sum */
  tessera_value activation;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_rnn_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_rnn_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_rnn_backward_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight_ih", call->weight_ih, 0},
      {"weight_hh", call->weight_hh, 0},
      {"bias_ih", call->bias_ih, 0},
      {"bias_hh", call->bias_hh, 0},
      {"h0", call->h0, 0},
      {"lengths", call->lengths, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_h_n", call->grad_h_n, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
      {"grad_weight_ih", call->grad_weight_ih, 0},
      {"grad_weight_hh", call->grad_weight_hh, 0},
      {"grad_bias_ih", call->grad_bias_ih, 0},
      {"grad_bias_hh", call->grad_bias_hh, 0},
      {"grad_h0", call->grad_h0, 0},
  };
  const tessera_option options[] = {
      {"reverse", call->reverse},
      {"activation", call->activation},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "rnn_backward",
      operands, 9,
      options, 3,
      outputs, 6,
      0, stream};
  return tessera_run(context, &generic);
}

/* causal convolution of 2 to 8 taps along tokens, for each channel by itself. output_t =
   activation(bias + sum_j weight[:, j] input_(t - width + 1 + j)); inputs before the first are
   initial_state */
typedef struct tessera_causal_conv1d_call {
  /* [batch, seq, dim] */
  const tessera_tensor* input;
  /* [dim, width]: in the dtype of input or in f32 */
  const tessera_tensor* weight;
  /* optional, [dim]: in the dtype of input or in f32 */
  const tessera_tensor* bias;
  /* optional, [sequences, width - 1, dim]: the inputs before the first, oldest first; 0 where it
     is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, seq, dim]: 0 for tokens of no sequence */
  tessera_tensor** output;
  /* optional, output, [sequences, width - 1, dim]: the last inputs, oldest first */
  tessera_tensor** final_state;
  /* one of none, silu, default none: silu(z) = z / (1 + exp(-z)) */
  tessera_value activation;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_causal_conv1d_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_causal_conv1d(const tessera_context* context,
    const tessera_stream* stream, const tessera_causal_conv1d_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight", call->weight, 0},
      {"bias", call->bias, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"final_state", call->final_state, 0},
  };
  const tessera_option options[] = {
      {"activation", call->activation},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "causal_conv1d",
      operands, 5,
      options, 2,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of causal_conv1d. slope_t = grad_output_t activation'(z_t); grad_input_t = sum_j
   weight[:, j] slope_(t + width - 1 - j), and grad_final_state where it is held there;
   grad_weight[:, j] = sum_t slope_t input_(t - width + 1 + j); grad_bias = sum_t slope_t */
typedef struct tessera_causal_conv1d_backward_call {
  /* [batch, seq, dim] */
  const tessera_tensor* input;
  /* [dim, width]: in the dtype of input or in f32 */
  const tessera_tensor* weight;
  /* optional, [dim]: in the dtype of input or in f32 */
  const tessera_tensor* bias;
  /* optional, [sequences, width - 1, dim]: the inputs before the first, oldest first; 0 where it
     is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* [batch, seq, dim] */
  const tessera_tensor* grad_output;
  /* optional, [sequences, width - 1, dim]: 0 where it is left out */
  const tessera_tensor* grad_final_state;
  /* optional, output, [batch, seq, dim]: in the shape and dtype of input */
  tessera_tensor** grad_input;
  /* optional, output, [dim, width]: in the shape and dtype of weight */
  tessera_tensor** grad_weight;
  /* optional, output, [dim]: in the shape and dtype of bias */
  tessera_tensor** grad_bias;
  /* optional, output, [sequences, width - 1, dim]: in the shape and dtype of initial_state */
  tessera_tensor** grad_initial_state;
  /* one of none, silu, default none: silu(z) = z / (1 + exp(-z)) */
  tessera_value activation;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_causal_conv1d_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_causal_conv1d_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_causal_conv1d_backward_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"weight", call->weight, 0},
      {"bias", call->bias, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_final_state", call->grad_final_state, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
      {"grad_weight", call->grad_weight, 0},
      {"grad_bias", call->grad_bias, 0},
      {"grad_initial_state", call->grad_initial_state, 0},
  };
  const tessera_option options[] = {
      {"activation", call->activation},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "causal_conv1d_backward",
      operands, 7,
      options, 2,
      outputs, 4,
      0, stream};
  return tessera_run(context, &generic);
}

/* state space model whose step, input and output depend on the token. h_t[n] = exp(step_t a[n])
   h_(t-1)[n] + step_t b_t[n] u_t; output_t = (sum_n c_t[n] h_t[n] + d u_t) silu(z_t); step_t =
   delta_t + delta_bias, or softplus of it */
typedef struct tessera_selective_scan_call {
  /* [batch, seq, dim] */
  const tessera_tensor* u;
  /* [batch, seq, dim]: steps */
  const tessera_tensor* delta;
  /* [dim, state]: in the dtype of u or in f32 */
  const tessera_tensor* a;
  /* [batch, seq, groups, state] */
  const tessera_tensor* b;
  /* [batch, seq, groups, state] */
  const tessera_tensor* c;
  /* optional, [dim]: in the dtype of u or in f32 */
  const tessera_tensor* d;
  /* optional, [batch, seq, dim]: gates */
  const tessera_tensor* z;
  /* optional, [dim]: in the dtype of u or in f32 */
  const tessera_tensor* delta_bias;
  /* optional, [sequences, dim, state]: 0 where it is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* output, [batch, seq, dim]: 0 for tokens of no sequence */
  tessera_tensor** output;
  /* optional, output, [sequences, dim, state]: the state after the last token */
  tessera_tensor** final_state;
  /* bool, default false: steps are log(1 + exp(delta + delta_bias)) */
  tessera_value delta_softplus;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_selective_scan_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_selective_scan(const tessera_context* context,
    const tessera_stream* stream, const tessera_selective_scan_call* call) {
  const tessera_operand operands[] = {
      {"u", call->u, 0},
      {"delta", call->delta, 0},
      {"a", call->a, 0},
      {"b", call->b, 0},
      {"c", call->c, 0},
      {"d", call->d, 0},
      {"z", call->z, 0},
      {"delta_bias", call->delta_bias, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"final_state", call->final_state, 0},
  };
  const tessera_option options[] = {
      {"delta_softplus", call->delta_softplus},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "selective_scan",
      operands, 10,
      options, 2,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of selective_scan. D_t = r_t c_t + exp(step_(t+1) a) D_(t+1), r_t = grad_output_t
   silu(z_t); X_t = D_t exp(step_t a) h_(t-1); grad_u_t = d r_t + step_t sum b_t D_t; grad_b_t =
   sum step_t u_t D_t; grad_c_t = sum r_t h_t; grad_a = sum step_t X_t; grad_delta_t = (u_t sum
   b_t D_t + sum a X_t) softplus' */
typedef struct tessera_selective_scan_backward_call {
  /* [batch, seq, dim] */
  const tessera_tensor* u;
  /* [batch, seq, dim]: steps */
  const tessera_tensor* delta;
  /* [dim, state]: in the dtype of u or in f32 */
  const tessera_tensor* a;
  /* [batch, seq, groups, state] */
  const tessera_tensor* b;
  /* [batch, seq, groups, state] */
  const tessera_tensor* c;
  /* optional, [dim]: in the dtype of u or in f32 */
  const tessera_tensor* d;
  /* optional, [batch, seq, dim]: gates */
  const tessera_tensor* z;
  /* optional, [dim]: in the dtype of u or in f32 */
  const tessera_tensor* delta_bias;
  /* optional, [sequences, dim, state]: 0 where it is left out */
  const tessera_tensor* initial_state;
  /* optional, [sequences + 1]: sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of
     batch entry 0 */
  const tessera_tensor* cu_seqlens;
  /* [batch, seq, dim] */
  const tessera_tensor* grad_output;
  /* optional, [sequences, dim, state]: 0 where it is left out */
  const tessera_tensor* grad_final_state;
  /* optional, output, [batch, seq, dim]: in the shape and dtype of u */
  tessera_tensor** grad_u;
  /* optional, output, [batch, seq, dim]: in the shape and dtype of delta */
  tessera_tensor** grad_delta;
  /* optional, output, [dim, state]: in the shape and dtype of a */
  tessera_tensor** grad_a;
  /* optional, output, [batch, seq, groups, state]: in the shape and dtype of b */
  tessera_tensor** grad_b;
  /* optional, output, [batch, seq, groups, state]: in the shape and dtype of c */
  tessera_tensor** grad_c;
  /* optional, output, [dim]: in the shape and dtype of d */
  tessera_tensor** grad_d;
  /* optional, output, [batch, seq, dim]: in the shape and dtype of z */
  tessera_tensor** grad_z;
  /* optional, output, [dim]: in the shape and dtype of delta_bias */
  tessera_tensor** grad_delta_bias;
  /* optional, output, [sequences, dim, state]: in the shape and dtype of initial_state */
  tessera_tensor** grad_initial_state;
  /* bool, default false: steps are log(1 + exp(delta + delta_bias)) */
  tessera_value delta_softplus;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_selective_scan_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_selective_scan_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_selective_scan_backward_call* call) {
  const tessera_operand operands[] = {
      {"u", call->u, 0},
      {"delta", call->delta, 0},
      {"a", call->a, 0},
      {"b", call->b, 0},
      {"c", call->c, 0},
      {"d", call->d, 0},
      {"z", call->z, 0},
      {"delta_bias", call->delta_bias, 0},
      {"initial_state", call->initial_state, 0},
      {"cu_seqlens", call->cu_seqlens, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_final_state", call->grad_final_state, 0},
  };
  const tessera_output outputs[] = {
      {"grad_u", call->grad_u, 0},
      {"grad_delta", call->grad_delta, 0},
      {"grad_a", call->grad_a, 0},
      {"grad_b", call->grad_b, 0},
      {"grad_c", call->grad_c, 0},
      {"grad_d", call->grad_d, 0},
      {"grad_z", call->grad_z, 0},
      {"grad_delta_bias", call->grad_delta_bias, 0},
      {"grad_initial_state", call->grad_initial_state, 0},
  };
  const tessera_option options[] = {
      {"delta_softplus", call->delta_softplus},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "selective_scan_backward",
      operands, 12,
      options, 2,
      outputs, 9,
      0, stream};
  return tessera_run(context, &generic);
}

/* attention over parts of the keys, put together by their log-sum-exps. log_sum_exp = log sum_p
   exp(log_sum_exps[p]); output = sum_p exp(log_sum_exps[p] - log_sum_exp) outputs[p]; 0 where no
   part saw a key */
typedef struct tessera_merge_attention_states_call {
  /* [parts, (batch,) seq, heads, dim]: attention over each part of the keys */
  const tessera_tensor* outputs;
  /* [parts, tokens, heads] or [parts, batch, heads, seq]: of each part's rows; -inf: it saw no
     key */
  const tessera_tensor* log_sum_exps;
  /* optional, [(batch,) seq, heads, dim]: one part more, which lies elsewhere */
  const tessera_tensor* other_output;
  /* optional, [tokens, heads] or [batch, heads, seq]: of that part */
  const tessera_tensor* other_log_sum_exp;
  /* output, [(batch,) seq, heads, dim]: in the dtype of outputs */
  tessera_tensor** output;
  /* optional, output, [tokens, heads] or [batch, heads, seq]: over all parts */
  tessera_tensor** log_sum_exp;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_merge_attention_states_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_merge_attention_states(const tessera_context* context,
    const tessera_stream* stream, const tessera_merge_attention_states_call* call) {
  const tessera_operand operands[] = {
      {"outputs", call->outputs, 0},
      {"log_sum_exps", call->log_sum_exps, 0},
      {"other_output", call->other_output, 0},
      {"other_log_sum_exp", call->other_log_sum_exp, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"log_sum_exp", call->log_sum_exp, 0},
  };
  const tessera_option options[] = {
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "merge_attention_states",
      operands, 4,
      options, 1,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of merge_attention_states. w[p] = exp(log_sum_exps[p] - log_sum_exp); d[p] =
   grad_output . outputs[p]; grad_outputs[p] = w[p] grad_output; grad_log_sum_exps[p] = w[p]
   (d[p] - sum_q w[q] d[q] + grad_log_sum_exp) */
typedef struct tessera_merge_attention_states_backward_call {
  /* [parts, (batch,) seq, heads, dim]: attention over each part of the keys */
  const tessera_tensor* outputs;
  /* [parts, tokens, heads] or [parts, batch, heads, seq]: of each part's rows; -inf: it saw no
     key */
  const tessera_tensor* log_sum_exps;
  /* optional, [(batch,) seq, heads, dim]: one part more, which lies elsewhere */
  const tessera_tensor* other_output;
  /* optional, [tokens, heads] or [batch, heads, seq]: of that part */
  const tessera_tensor* other_log_sum_exp;
  /* [(batch,) seq, heads, dim]: in the dtype of outputs */
  const tessera_tensor* grad_output;
  /* optional, [tokens, heads] or [batch, heads, seq]: 0 where it is left out */
  const tessera_tensor* grad_log_sum_exp;
  /* output, [parts, (batch,) seq, heads, dim] */
  tessera_tensor** grad_outputs;
  /* output, [parts, tokens, heads] or [parts, batch, heads, seq] */
  tessera_tensor** grad_log_sum_exps;
  /* optional, output, [(batch,) seq, heads, dim]: where there is another part */
  tessera_tensor** grad_other_output;
  /* optional, output, [tokens, heads] or [batch, heads, seq]: where there is another part */
  tessera_tensor** grad_other_log_sum_exp;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_merge_attention_states_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_merge_attention_states_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_merge_attention_states_backward_call* call) {
  const tessera_operand operands[] = {
      {"outputs", call->outputs, 0},
      {"log_sum_exps", call->log_sum_exps, 0},
      {"other_output", call->other_output, 0},
      {"other_log_sum_exp", call->other_log_sum_exp, 0},
      {"grad_output", call->grad_output, 0},
      {"grad_log_sum_exp", call->grad_log_sum_exp, 0},
  };
  const tessera_output outputs[] = {
      {"grad_outputs", call->grad_outputs, 0},
      {"grad_log_sum_exps", call->grad_log_sum_exps, 0},
      {"grad_other_output", call->grad_other_output, 0},
      {"grad_other_log_sum_exp", call->grad_other_log_sum_exp, 0},
  };
  const tessera_option options[] = {
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "merge_attention_states_backward",
      operands, 6,
      options, 1,
      outputs, 4,
      0, stream};
  return tessera_run(context, &generic);
}

/* chooses experts for tokens, and the places that the tokens have with them. weights[t, r] =
   scale score[t, e] / sum of the scores of t's kept choices, e = expert_ids[t, r] the r-th best */
typedef struct tessera_route_call {
  /* [tokens, experts]: any stride between rows */
  const tessera_tensor* logits;
  /* optional, [experts]: joins scores when experts are chosen, not their weights; -inf excludes
     an expert */
  const tessera_tensor* bias;
  /* output, [tokens, top_k]: best first; -1: no expert is left */
  tessera_tensor** expert_ids;
  /* output, [tokens, top_k]: place among the tokens of the expert, in order of tokens; -1:
     dropped */
  tessera_tensor** slots;
  /* output, [tokens, top_k]: 0 where a choice is dropped */
  tessera_tensor** weights;
  /* output, [experts]: tokens that have a place */
  tessera_tensor** counts;
  /* output, [experts + 1]: the row at which an expert's places begin: sums of counts, or
     multiples of capacity */
  tessera_tensor** offsets;
  /* optional, output, [1] */
  tessera_tensor** balance_loss;
  /* optional, output, [1] */
  tessera_tensor** z_loss;
  /* one of softmax, sigmoid, default softmax: of logits; a sigmoid is at least 1e-6 */
  tessera_value score;
  /* bool, default true: weights are scores over the sum of those of the token's kept choices */
  tessera_value renormalise;
  /* float, default 1: of weights */
  tessera_value scale;
  /* float, default 0: standard deviation of what is added to logits */
  tessera_value noise;
  /* int, default 0: of the noise */
  tessera_value seed;
  /* float, default 0.01: of the balance loss */
  tessera_value balance_coefficient;
  /* float, default 0.001: of the z loss */
  tessera_value z_coefficient;
  /* int, default 2: experts of a token */
  tessera_value top_k;
  /* int, default 1: of experts, by their best score, or the sum of their two best with a bias */
  tessera_value groups;
  /* int, default none: that are kept; all of them */
  tessera_value top_groups;
  /* int, default none: places of an expert; not set: dropless */
  tessera_value capacity;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_route_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_route(const tessera_context* context,
    const tessera_stream* stream, const tessera_route_call* call) {
  const tessera_operand operands[] = {
      {"logits", call->logits, 0},
      {"bias", call->bias, 0},
  };
  const tessera_output outputs[] = {
      {"expert_ids", call->expert_ids, 0},
      {"slots", call->slots, 0},
      {"weights", call->weights, 0},
      {"counts", call->counts, 0},
      {"offsets", call->offsets, 0},
      {"balance_loss", call->balance_loss, 0},
      {"z_loss", call->z_loss, 0},
  };
  const tessera_option options[] = {
      {"score", call->score},
      {"renormalise", call->renormalise},
      {"scale", call->scale},
      {"noise", call->noise},
      {"seed", call->seed},
      {"balance_coefficient", call->balance_coefficient},
      {"z_coefficient", call->z_coefficient},
      {"top_k", call->top_k},
      {"groups", call->groups},
      {"top_groups", call->top_groups},
      {"capacity", call->capacity},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "route",
      operands, 2,
      options, 12,
      outputs, 7,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradient of route's logits. through weights, balance loss and z loss; none through the choice
   of experts */
typedef struct tessera_route_backward_call {
  /* [tokens, experts]: of the forward call */
  const tessera_tensor* logits;
  /* [tokens, top_k]: that it gave */
  const tessera_tensor* expert_ids;
  /* [tokens, top_k]: that it gave */
  const tessera_tensor* slots;
  /* [tokens, top_k] */
  const tessera_tensor* grad_weights;
  /* optional, [1] */
  const tessera_tensor* grad_balance_loss;
  /* optional, [1] */
  const tessera_tensor* grad_z_loss;
  /* output, [tokens, experts] */
  tessera_tensor** grad_logits;
  /* one of softmax, sigmoid, default softmax: of logits; a sigmoid is at least 1e-6 */
  tessera_value score;
  /* bool, default true: weights are scores over the sum of those of the token's kept choices */
  tessera_value renormalise;
  /* float, default 1: of weights */
  tessera_value scale;
  /* float, default 0: standard deviation of what is added to logits */
  tessera_value noise;
  /* int, default 0: of the noise */
  tessera_value seed;
  /* float, default 0.01: of the balance loss */
  tessera_value balance_coefficient;
  /* float, default 0.001: of the z loss */
  tessera_value z_coefficient;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_route_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_route_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_route_backward_call* call) {
  const tessera_operand operands[] = {
      {"logits", call->logits, 0},
      {"expert_ids", call->expert_ids, 0},
      {"slots", call->slots, 0},
      {"grad_weights", call->grad_weights, 0},
      {"grad_balance_loss", call->grad_balance_loss, 0},
      {"grad_z_loss", call->grad_z_loss, 0},
  };
  const tessera_output outputs[] = {
      {"grad_logits", call->grad_logits, 0},
  };
  const tessera_option options[] = {
      {"score", call->score},
      {"renormalise", call->renormalise},
      {"scale", call->scale},
      {"noise", call->noise},
      {"seed", call->seed},
      {"balance_coefficient", call->balance_coefficient},
      {"z_coefficient", call->z_coefficient},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "route_backward",
      operands, 6,
      options, 8,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* the rows of tokens, sorted by the experts that they go to. output[offsets[expert_ids[t, r]] +
   slots[t, r]] = weights[t, r] input[t]; rows without a token are 0 */
typedef struct tessera_dispatch_call {
  /* [tokens, dim]: any stride between rows */
  const tessera_tensor* input;
  /* [tokens, top_k]: as route gives them */
  const tessera_tensor* expert_ids;
  /* [tokens, top_k]: -1: the choice is dropped */
  const tessera_tensor* slots;
  /* [experts + 1]: the row at which each expert's places begin */
  const tessera_tensor* offsets;
  /* optional, [tokens, top_k]: 1 where they are left out */
  const tessera_tensor* weights;
  /* output, [rows, dim]: 0 where no token has its place */
  tessera_tensor** output;
  /* int, default none: of output: experts capacity; tokens top_k where it is not set */
  tessera_value rows;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_dispatch_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_dispatch(const tessera_context* context,
    const tessera_stream* stream, const tessera_dispatch_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"expert_ids", call->expert_ids, 0},
      {"slots", call->slots, 0},
      {"offsets", call->offsets, 0},
      {"weights", call->weights, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"rows", call->rows},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "dispatch",
      operands, 5,
      options, 2,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* the sums of what experts made of tokens. output[t] = sum_r weights[t, r]
   rows[offsets[expert_ids[t, r]] + slots[t, r]] */
typedef struct tessera_combine_call {
  /* [rows, dim]: what the experts made */
  const tessera_tensor* rows;
  /* [tokens, top_k]: as route gives them */
  const tessera_tensor* expert_ids;
  /* [tokens, top_k]: -1: the choice is dropped */
  const tessera_tensor* slots;
  /* [experts + 1]: the row at which each expert's places begin */
  const tessera_tensor* offsets;
  /* optional, [tokens, top_k]: 1 where they are left out */
  const tessera_tensor* weights;
  /* output, [tokens, dim]: in the dtype of rows */
  tessera_tensor** output;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_combine_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_combine(const tessera_context* context,
    const tessera_stream* stream, const tessera_combine_call* call) {
  const tessera_operand operands[] = {
      {"rows", call->rows, 0},
      {"expert_ids", call->expert_ids, 0},
      {"slots", call->slots, 0},
      {"offsets", call->offsets, 0},
      {"weights", call->weights, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
  };
  const tessera_option options[] = {
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "combine",
      operands, 5,
      options, 1,
      outputs, 1,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of combine. grad_rows[p(t, r)] = weights[t, r] grad_output[t]; grad_weights[t, r] =
   grad_output[t] . rows[p(t, r)] */
typedef struct tessera_combine_backward_call {
  /* [rows, dim]: what the experts made */
  const tessera_tensor* rows;
  /* [tokens, top_k]: as route gives them */
  const tessera_tensor* expert_ids;
  /* [tokens, top_k]: -1: the choice is dropped */
  const tessera_tensor* slots;
  /* [experts + 1]: the row at which each expert's places begin */
  const tessera_tensor* offsets;
  /* optional, [tokens, top_k]: 1 where they are left out */
  const tessera_tensor* weights;
  /* [tokens, dim]: in the dtype of rows */
  const tessera_tensor* grad_output;
  /* output, [rows, dim]: 0 where no token has its place */
  tessera_tensor** grad_rows;
  /* optional, output, [tokens, top_k]: 0 of choices that are dropped */
  tessera_tensor** grad_weights;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_combine_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_combine_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_combine_backward_call* call) {
  const tessera_operand operands[] = {
      {"rows", call->rows, 0},
      {"expert_ids", call->expert_ids, 0},
      {"slots", call->slots, 0},
      {"offsets", call->offsets, 0},
      {"weights", call->weights, 0},
      {"grad_output", call->grad_output, 0},
  };
  const tessera_output outputs[] = {
      {"grad_rows", call->grad_rows, 0},
      {"grad_weights", call->grad_weights, 0},
  };
  const tessera_option options[] = {
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "combine_backward",
      operands, 6,
      options, 1,
      outputs, 2,
      0, stream};
  return tessera_run(context, &generic);
}

/* a mixture of experts, each a feed-forward network, gated or not: choice and all. output[t] =
   sum over the kept choices r of t of weights[t, r] (act(input[t] gate_e) * (input[t] up_e))
   down_e, e = expert_ids[t, r]; choices and weights as route's of logits */
typedef struct tessera_moe_ffn_call {
  /* [tokens, hidden] */
  const tessera_tensor* input;
  /* [tokens, experts]: of the router */
  const tessera_tensor* logits;
  /* [experts, hidden, 2 inner]: the gate's columns, then those of up, or without a gate up's
     alone; [experts, 2 inner, hidden] transposed */
  const tessera_tensor* gate_up;
  /* [experts, inner, hidden]: [experts, hidden, inner] transposed */
  const tessera_tensor* down;
  /* optional, [experts]: as route's */
  const tessera_tensor* bias;
  /* output, [tokens, hidden]: in the dtype of input */
  tessera_tensor** output;
  /* output, [tokens, top_k]: as route's */
  tessera_tensor** expert_ids;
  /* output, [tokens, top_k]: as route's */
  tessera_tensor** slots;
  /* output, [tokens, top_k]: as route's */
  tessera_tensor** weights;
  /* output, [experts]: as route's */
  tessera_tensor** counts;
  /* output, [experts + 1]: as route's */
  tessera_tensor** offsets;
  /* optional, output, [1] */
  tessera_tensor** balance_loss;
  /* optional, output, [1] */
  tessera_tensor** z_loss;
  /* one of softmax, sigmoid, default softmax: of logits; a sigmoid is at least 1e-6 */
  tessera_value score;
  /* bool, default true: weights are scores over the sum of those of the token's kept choices */
  tessera_value renormalise;
  /* float, default 1: of weights */
  tessera_value scale;
  /* float, default 0: standard deviation of what is added to logits */
  tessera_value noise;
  /* int, default 0: of the noise */
  tessera_value seed;
  /* float, default 0.01: of the balance loss */
  tessera_value balance_coefficient;
  /* float, default 0.001: of the z loss */
  tessera_value z_coefficient;
  /* int, default 2: experts of a token */
  tessera_value top_k;
  /* int, default 1: of experts, by their best score, or the sum of their two best with a bias */
  tessera_value groups;
  /* int, default none: that are kept; all of them */
  tessera_value top_groups;
  /* int, default none: places of an expert; not set: dropless */
  tessera_value capacity;
  /* bool, default false: matrices lie as [experts, out, in] */
  tessera_value transposed;
  /* one of silu, gelu, gelu_tanh, relu, identity, default silu: of the gate, or of up where
     there is none */
  tessera_value activation;
  /* bool, default true: false: experts are act(input up) down, and gate_up is [experts, hidden,
     inner] */
  tessera_value gated;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_moe_ffn_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_moe_ffn(const tessera_context* context,
    const tessera_stream* stream, const tessera_moe_ffn_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"logits", call->logits, 0},
      {"gate_up", call->gate_up, 0},
      {"down", call->down, 0},
      {"bias", call->bias, 0},
  };
  const tessera_output outputs[] = {
      {"output", call->output, 0},
      {"expert_ids", call->expert_ids, 0},
      {"slots", call->slots, 0},
      {"weights", call->weights, 0},
      {"counts", call->counts, 0},
      {"offsets", call->offsets, 0},
      {"balance_loss", call->balance_loss, 0},
      {"z_loss", call->z_loss, 0},
  };
  const tessera_option options[] = {
      {"score", call->score},
      {"renormalise", call->renormalise},
      {"scale", call->scale},
      {"noise", call->noise},
      {"seed", call->seed},
      {"balance_coefficient", call->balance_coefficient},
      {"z_coefficient", call->z_coefficient},
      {"top_k", call->top_k},
      {"groups", call->groups},
      {"top_groups", call->top_groups},
      {"capacity", call->capacity},
      {"transposed", call->transposed},
      {"activation", call->activation},
      {"gated", call->gated},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "moe_ffn",
      operands, 5,
      options, 15,
      outputs, 8,
      0, stream};
  return tessera_run(context, &generic);
}

/* gradients of moe_ffn; that of logits is route_backward of grad_weights. of sum over r of
   weights[t, r] (act(input[t] gate_e) * (input[t] up_e)) down_e, e = expert_ids[t, r] */
typedef struct tessera_moe_ffn_backward_call {
  /* [tokens, hidden] */
  const tessera_tensor* input;
  /* [experts, hidden, 2 inner]: the gate's columns, then those of up, or without a gate up's
     alone; [experts, 2 inner, hidden] transposed */
  const tessera_tensor* gate_up;
  /* [experts, inner, hidden]: [experts, hidden, inner] transposed */
  const tessera_tensor* down;
  /* [tokens, top_k]: that it gave */
  const tessera_tensor* expert_ids;
  /* [tokens, top_k]: that it gave */
  const tessera_tensor* slots;
  /* [tokens, top_k]: that it gave */
  const tessera_tensor* weights;
  /* [experts + 1]: that it gave */
  const tessera_tensor* offsets;
  /* [tokens, hidden]: in the dtype of input */
  const tessera_tensor* grad_output;
  /* optional, output, [tokens, hidden] */
  tessera_tensor** grad_input;
  /* optional, output, [tokens, top_k] */
  tessera_tensor** grad_weights;
  /* optional, output, [experts, hidden, 2 inner]: in the shape and dtype of gate_up */
  tessera_tensor** grad_gate_up;
  /* optional, output, [experts, inner, hidden]: in the shape and dtype of down */
  tessera_tensor** grad_down;
  /* int, default none: of all experts: experts capacity; not set: tokens top_k */
  tessera_value rows;
  /* bool, default false: matrices lie as [experts, out, in] */
  tessera_value transposed;
  /* one of silu, gelu, gelu_tanh, relu, identity, default silu: of the gate, or of up where
     there is none */
  tessera_value activation;
  /* bool, default true: false: experts are act(input up) down, and gate_up is [experts, hidden,
     inner] */
  tessera_value gated;
  /* one of default, high, highest, default none: how far arithmetic may depart from float, see
     tessera/precision.hpp */
  tessera_value precision;
} tessera_moe_ffn_backward_call;

/* `stream` null: the context's own. */
static inline tessera_status tessera_moe_ffn_backward(const tessera_context* context,
    const tessera_stream* stream, const tessera_moe_ffn_backward_call* call) {
  const tessera_operand operands[] = {
      {"input", call->input, 0},
      {"gate_up", call->gate_up, 0},
      {"down", call->down, 0},
      {"expert_ids", call->expert_ids, 0},
      {"slots", call->slots, 0},
      {"weights", call->weights, 0},
      {"offsets", call->offsets, 0},
      {"grad_output", call->grad_output, 0},
  };
  const tessera_output outputs[] = {
      {"grad_input", call->grad_input, 0},
      {"grad_weights", call->grad_weights, 0},
      {"grad_gate_up", call->grad_gate_up, 0},
      {"grad_down", call->grad_down, 0},
  };
  const tessera_option options[] = {
      {"rows", call->rows},
      {"transposed", call->transposed},
      {"activation", call->activation},
      {"gated", call->gated},
      {"precision", call->precision},
  };
  const tessera_call generic = {sizeof(tessera_call),
      "moe_ffn_backward",
      operands, 8,
      options, 5,
      outputs, 4,
      0, stream};
  return tessera_run(context, &generic);
}

#ifdef __cplusplus
}
#endif

#endif
