// SPDX-License-Identifier: Apache-2.0
// The typed functions: option structs become named options and operands.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/attention_core/typed_call.hpp"
#include "tessera/operations/flash_attention.hpp"

namespace tessera {

using operations::attention::add;
using operations::attention::band_options;
using operations::attention::required;

namespace {

// Of forward and backward alike.
Options to_options(const FlashAttentionOptions& from) {
  Options options = band_options(from);
  if (from.logits_soft_cap) options["logits_soft_cap"] = static_cast<double>(*from.logits_soft_cap);
  if (from.causal_alignment == CausalAlignment::kBottomRight)
    options["causal_alignment"] = std::string("bottom_right");
  if (from.chunk_size) options["chunk_size"] = *from.chunk_size;
  if (from.dropout_prob != 0) {
    options["dropout_prob"] = static_cast<double>(from.dropout_prob);
    options["dropout_seed"] = from.dropout_seed;
  }
  if (!from.normalize_output) options["normalize_output"] = false;
  return options;
}

Options to_forward_options(const FlashAttentionOptions& from) {
  Options options = to_options(from);
  if (from.num_splits != 0) options["num_splits"] = static_cast<std::int64_t>(from.num_splits);
  return options;
}

Tensors to_tensors(const Tensor& query, const Tensor& key, const Tensor& value,
                   const FlashAttentionOptions& from) {
  Tensors tensors = required(query, key, value);
  add(tensors, "attention_mask", from.attention_mask);
  add(tensors, "bias", from.bias);
  add(tensors, "alibi_slopes", from.alibi_slopes);
  add(tensors, "softmax_aux", from.softmax_aux);
  add(tensors, "cum_seqlens_q", from.cum_seqlens_q);
  add(tensors, "cum_seqlens_k", from.cum_seqlens_k);
  add(tensors, "q_lengths", from.q_lengths);
  add(tensors, "kv_lengths", from.kv_lengths);
  add(tensors, "q_segment_ids", from.q_segment_ids);
  add(tensors, "kv_segment_ids", from.kv_segment_ids);
  add(tensors, "q_positions", from.q_positions);
  add(tensors, "kv_positions", from.kv_positions);
  return tensors;
}

}  // namespace

Tensor flash_attention(const Executor& on, const Tensor& query, const Tensor& key,
                       const Tensor& value, const FlashAttentionOptions& options) try {
  return on
      .run("flash_attention", to_tensors(query, key, value, options), to_forward_options(options))
      .at("output");
} catch (...) {
  rethrow_as_error();
}

FlashAttentionForward flash_attention_forward(const Executor& on, const Tensor& query,
                                              const Tensor& key, const Tensor& value,
                                              const FlashAttentionOptions& options) try {
  Tensors outputs = on.run("flash_attention", to_tensors(query, key, value, options),
                           to_forward_options(options), {"log_sum_exp"});
  return {.output = outputs.at("output"), .log_sum_exp = outputs.at("log_sum_exp")};
} catch (...) {
  rethrow_as_error();
}

FlashAttentionGradients flash_attention_backward(const Executor& on, const Tensor& query,
                                                 const Tensor& key, const Tensor& value,
                                                 const FlashAttentionForward& forward,
                                                 const Tensor& output_gradient,
                                                 const FlashAttentionOptions& options,
                                                 const FlashAttentionGradientOptions& wanted) try {
  Tensors tensors = to_tensors(query, key, value, options);
  tensors.emplace("output", forward.output);
  tensors.emplace("log_sum_exp", forward.log_sum_exp);
  tensors.emplace("output_gradient", output_gradient);
  std::vector<std::string> names;
  if (wanted.bias) names.emplace_back("bias_gradient");
  if (wanted.softmax_aux) names.emplace_back("softmax_aux_gradient");
  const Tensors outputs = on.run("flash_attention_backward", tensors, to_options(options), names);
  FlashAttentionGradients gradients{.query = outputs.at("query_gradient"),
                                    .key = outputs.at("key_gradient"),
                                    .value = outputs.at("value_gradient")};
  if (wanted.bias) gradients.bias = outputs.at("bias_gradient");
  if (wanted.softmax_aux) gradients.softmax_aux = outputs.at("softmax_aux_gradient");
  return gradients;
} catch (...) {
  rethrow_as_error();
}

namespace vjp {

struct FlashAttentionPullback::State {
  Executor on;
  Tensor query, key, value;
  FlashAttentionOptions options;
  FlashAttentionForward forward;
};

struct FlashAttentionMaker {
  static FlashAttentionResult make(FlashAttentionPullback::State state) {
    Tensor output = state.forward.output;
    return {.output = std::move(output),
            .pullback = FlashAttentionPullback(
                std::make_shared<const FlashAttentionPullback::State>(std::move(state)))};
  }
};

FlashAttentionGradients FlashAttentionPullback::operator()(
    const Tensor& output_gradient, const FlashAttentionGradientOptions& wanted) const try {
  return flash_attention_backward(state_->on, state_->query, state_->key, state_->value,
                                  state_->forward, output_gradient, state_->options, wanted);
} catch (...) {
  rethrow_as_error();
}

FlashAttentionResult flash_attention(const Executor& on, const Tensor& query, const Tensor& key,
                                     const Tensor& value,
                                     const FlashAttentionOptions& options) try {
  return FlashAttentionMaker::make(
      {.on = on,
       .query = query,
       .key = key,
       .value = value,
       .options = options,
       .forward = flash_attention_forward(on, query, key, value, options)});
} catch (...) {
  rethrow_as_error();
}

}  // namespace vjp
}  // namespace tessera
