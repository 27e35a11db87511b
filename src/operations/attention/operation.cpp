// SPDX-License-Identifier: Apache-2.0
// The records of the attention family. Operands and options that operations share are described
// once.
#include <algorithm>
#include <utility>

#include "operations/attention/problem.hpp"

namespace tessera::operations {
namespace {

const std::vector<DType> kStorage{DType::kF32, DType::kF16, DType::kBF16};

Operand input(std::string name, std::string shape, std::string doc) {
  return {.name = std::move(name),
          .shape = std::move(shape),
          .dtypes = kStorage,
          .doc = std::move(doc)};
}

Operand optional_input(std::string name, std::string shape, std::vector<DType> dtypes,
                       std::string doc) {
  return {.name = std::move(name),
          .optional = true,
          .shape = std::move(shape),
          .dtypes = std::move(dtypes),
          .doc = std::move(doc)};
}

Operand output(std::string name, std::string shape, std::string doc) {
  return {.name = std::move(name),
          .role = Role::kOutput,
          .shape = std::move(shape),
          .dtypes = kStorage,
          .doc = std::move(doc)};
}

Operand log_sum_exp(Role role, bool optional) {
  return {.name = "log_sum_exp",
          .role = role,
          .optional = optional,
          .shape = "[batch, heads, q_len]",
          .dtypes = {DType::kF32},
          .doc = "natural logarithm; -inf for rows that see no key"};
}

std::vector<Operand> rows(bool packable) {
  const std::string packed = packable ? "; [q_len, heads, head_dim] with cum_seqlens" : "";
  return {
      input("query", "[batch, q_len, heads, head_dim]",
            "any strides but along head_dim, which is contiguous and 1 to 512" + packed),
      input("key", "[batch, kv_len, kv_heads, head_dim]", "heads is a multiple of kv_heads"),
      input("value", "[batch, kv_len, kv_heads, value_dim]", "value_dim may differ from head_dim")};
}

Operand mask() {
  return optional_input("attention_mask", "[batch, heads, q_len, kv_len]", {DType::kU8},
                        "0 hides the key; batch, heads, q_len may be 1, heads also kv_heads; also "
                        "[batch, q_len, kv_len] and [batch, kv_len]");
}
Operand bias() {
  return optional_input("bias", "[batch, heads, q_len, kv_len]", kStorage,
                        "added to the logits, -inf hides the key; axes as attention_mask; the "
                        "dtype of query or f32");
}
Operand sinks() {
  return optional_input("softmax_aux", "[heads, sinks]", kStorage,
                        "logits of keys with value 0: they join the denominator, once per row; "
                        "also [kv_heads, sinks] and [sinks]; the dtype of query or f32");
}
Operand lengths(std::string name, std::string of) {
  return optional_input(std::move(name), "[batch]", {DType::kI32},
                        "how many of the " + std::move(of) + " of each batch there are");
}

// The operands of flash_attention's policies, forward and backward.
std::vector<Operand> policies() {
  return {
      mask(),
      bias(),
      optional_input("alibi_slopes", "[heads]", {DType::kF32},
                     "logits lose slope * |diagonal - key|; also [batch, heads]"),
      sinks(),
      optional_input("cum_seqlens_q", "[sequences + 1]", {DType::kI32},
                     "where the query rows of packed sequences begin; with a batch axis, "
                     "sequence n is the first cum_seqlens[n + 1] - cum_seqlens[n] rows of batch "
                     "n. Offsets that decrease: an empty sequence; packed, the sequence of a "
                     "row is looked up by halving the list as if it ascended, and a row "
                     "outside the one found sees nothing"),
      optional_input("cum_seqlens_k", "[sequences + 1]", {DType::kI32}, "the same of the keys"),
      lengths("q_lengths", "query rows"),
      lengths("kv_lengths", "keys"),
      optional_input("q_segment_ids", "[batch, q_len]", {DType::kI32},
                     "rows see keys of their own segment only; negative is padding"),
      optional_input("kv_segment_ids", "[batch, kv_len]", {DType::kI32},
                     "needed beside q_segment_ids"),
      optional_input("q_positions", "[batch, q_len]", {DType::kI32},
                     "any int32; causal masks, windows, chunks and slopes compare positions"),
      optional_input("kv_positions", "[batch, kv_len]", {DType::kI32},
                     "needed beside q_positions")};
}

std::vector<OptionInfo> band_options() {
  return {{.name = "softmax_scale",
           .fallback = {},
           .type = "float",
           .doc = "of the logits; default head_dim^-1/2"},
          {.name = "causal",
           .fallback = false,
           .type = "bool",
           .doc = "row i sees key j only if j <= i + shift"},
          {.name = "sliding_window",
           .fallback = {},
           .type = "one or two ints",
           .doc = "left,right: row i sees i + shift - left <= j <= i + shift + right; one number "
                  "means both"}};
}

OptionInfo soft_cap() {
  return {.name = "logits_soft_cap",
          .fallback = {},
          .type = "float",
          .doc = "> 0: logits become cap * tanh(logit / cap)"};
}

std::vector<OptionInfo> dropout() {
  return {{.name = "dropout_prob",
           .fallback = 0.0,
           .type = "float",
           .doc = "at least 0, below 1: weights are dropped, the others divided by 1 - "
                  "dropout_prob"},
          {.name = "dropout_seed",
           .fallback = std::int64_t{0},
           .type = "int",
           .doc = "of Philox4x32-10; src/operations/attention/dropout.hpp has it bit for bit"}};
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

template <class T>
void append(std::vector<T>& all, std::vector<T> more) {
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
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

Operation with_weights() {
  Operation operation;
  operation.name = "attention";
  operation.summary = "softmax attention that also returns its weights";
  operation.formula =
      "weights[i,j] = keep[i,j] softmax_j(cap(softmax_scale * query[i] . key[j]) + "
      "bias[i,j]); output = weights value";
  operation.operands = rows(false);
  append(operation.operands,
         {output("output", "[batch, q_len, heads, value_dim]", "rows that see no key are 0"),
          output("weights", "[batch, heads, q_len, kv_len]", "dropout included"),
          log_sum_exp(Role::kOutput, false), mask(), bias(), sinks()});
  operation.options = band_options();
  operation.options.push_back(soft_cap());
  append(operation.options, dropout());
  operation.options.push_back({.name = "bias_order",
                               .fallback = std::string("after_cap"),
                               .type = "after_cap or before_cap",
                               .doc = "whether the bias joins the logits after or before the cap"});
  return operation;
}

Operation scaled_dot_product() {
  Operation operation;
  operation.name = "scaled_dot_product_attention";
  operation.summary = "softmax attention of padded batches";
  operation.formula =
      "output[i] = sum_j softmax_j(softmax_scale * query[i] . key[j] + bias[i,j]) "
      "value[j] over the j that row i sees";
  operation.operands = rows(false);
  append(operation.operands,
         {output("output", "[batch, q_len, heads, value_dim]", "rows that see no key are 0"),
          log_sum_exp(Role::kOutput, true), mask(), bias(), lengths("q_lengths", "query rows"),
          lengths("kv_lengths", "keys")});
  operation.options = band_options();
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

std::vector<Operation> attention() {
  std::vector<Operation> operations{flash(), with_weights(), scaled_dot_product()};
  for (Operation& operation : operations) {
    operation.validate = validate_attention;
    operation.reference = reference_attention;
    operation.variants = attention_variants(attention_slots(operation.operands));
    operation.rules = attention_rules();
    operation.workload = forward_workload(operation);
  }
  Operation backward = flash_backward();
  backward.validate = validate_attention_backward;
  backward.reference = reference_attention_backward;
  backward.variants = attention_backward_variants(attention_slots(backward.operands));
  backward.rules = attention_backward_rules();
  backward.workload = backward_workload(backward);
  operations.push_back(std::move(backward));
  return operations;
}

}  // namespace tessera::operations
