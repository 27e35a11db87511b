// SPDX-License-Identifier: Apache-2.0
// flash_attention and its gradients.
#include <utility>

#include "operations/attention_core/records.hpp"
#include "operations/common/ways.hpp"

namespace tessera::operations::attention {
namespace {

// The operands of flash_attention's policies, forward and backward.
std::vector<Operand> policies() {
  return {mask(),
          bias(),
          optional_input("alibi_slopes", "[heads]", {DType::kF32},
                         "logits lose slope * |diagonal - key|; also [batch, heads]"),
          sinks(),
          optional_input("cum_seqlens_q", "[sequences + 1]", {DType::kI32},
                         "where the query rows of packed sequences begin; with a batch axis, "
                         "batch n has its first cum_seqlens[n + 1] - cum_seqlens[n] rows. Where "
                         "offsets decrease: padded, none; packed, a row's sequence is looked up "
                         "by halving the list all the same, and rows outside it see nothing"),
          optional_input("cum_seqlens_k", "[sequences + 1]", {DType::kI32}, "the same of the keys"),
          lengths("q_lengths", "query rows"),
          lengths("kv_lengths", "keys"),
          optional_input("q_segment_ids", "[batch, q_len]", {DType::kI32},
                         "rows see keys of their own segment only; negative is padding"),
          optional_input("kv_segment_ids", "[batch, kv_len]", {DType::kI32},
                         "needed beside q_segment_ids"),
          optional_input("q_positions", "[batch, q_len]", {DType::kI32},
                         "any int32; causal masks, windows, chunks, slopes compare positions"),
          optional_input("kv_positions", "[batch, kv_len]", {DType::kI32},
                         "needed beside q_positions")};
}

std::vector<OptionInfo> flash_options() {
  std::vector<OptionInfo> options = band_options();
  options.push_back(
      {.name = "causal_alignment",
       .fallback = std::string("top_left"),
       .type = "top_left or bottom_right",
       .doc = "shift of causal masks and windows: 0, or keys - rows of the sequence"});
  options.push_back({.name = "chunk_size",
                     .fallback = {},
                     .type = "int",
                     .doc = "causal inside chunks: i + shift and j lie in the same chunk of so "
                            "many"});
  options.push_back(soft_cap());
  for (OptionInfo& option : dropout()) options.push_back(std::move(option));
  options.push_back({.name = "normalize_output",
                     .fallback = true,
                     .type = "bool",
                     .doc = "false: output = sum_j exp(score - largest score) value[j]"});
  return options;
}

constexpr const char* kFormula =
    "output[i] = sum_j keep[i,j] softmax_j(cap(softmax_scale * query[i] . key[j] + bias[i,j])) "
    "value[j] over the j that row i sees";

Operation flash() {
  Operation operation;
  operation.name = "flash_attention";
  operation.summary = "exact softmax attention in tiles (FlashAttention-2, arXiv:2307.08691)";
  operation.formula = kFormula;
  operation.operands = rows(true);
  operation.operands.push_back(
      output("output", "[batch, q_len, heads, value_dim]", "rows that see no key are 0"));
  operation.operands.push_back(log_sum_exp(Role::kOutput, true));
  append(operation.operands, policies());
  operation.options = flash_options();
  operation.options.push_back(
      {.name = "num_splits",
       .fallback = std::int64_t{0},
       .type = "int",
       .doc = "work-groups that share the keys of a row; 0 = chosen; a pinned number gives the "
              "same bits in any batch"});
  return operation;
}

Operation flash_backward() {
  Operation operation;
  operation.name = "flash_attention_backward";
  operation.summary = "gradients of flash_attention, recomputed from log_sum_exp";
  operation.formula =
      "ds[i,j] = p[i,j] (keep[i,j] do[i] . v[j] - do[i] . o[i]); du = ds slope of the cap; dq = "
      "scale du k; dk = scale du^T q; dv = (keep p)^T do; dbias = du; dsink = -sum p do . o";
  operation.operands = rows(true);
  append(operation.operands,
         {input("output", "[batch, q_len, heads, value_dim]", "of the forward pass"),
          log_sum_exp(Role::kInput, false),
          input("output_gradient", "[batch, q_len, heads, value_dim]", ""),
          output("query_gradient", "[batch, q_len, heads, head_dim]", ""),
          output("key_gradient", "[batch, kv_len, kv_heads, head_dim]", ""),
          output("value_gradient", "[batch, kv_len, kv_heads, value_dim]", "")});
  const auto gradient = [](const char* of, const char* shape) {
    Operand operand = output(std::string(of) + "_gradient", shape,
                             std::string("in the shape and dtype of ") + of);
    operand.optional = true;
    return operand;
  };
  operation.operands.push_back(gradient("bias", "[batch, heads, q_len, kv_len]"));
  operation.operands.push_back(gradient("softmax_aux", "[heads, sinks]"));
  append(operation.operands, policies());
  operation.options = flash_options();
  operation.options.push_back({.name = "bias_order",
                               .fallback = std::string("before_cap"),
                               .type = "before_cap or after_cap",
                               .doc = "after_cap: the gradients of attention"});
  return operation;
}

}  // namespace

std::vector<Operation> flash_attention() {
  return list_of(forward_record(flash()), backward_record(flash_backward()));
}

}  // namespace tessera::operations::attention
