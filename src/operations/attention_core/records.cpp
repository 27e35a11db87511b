// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/records.hpp"

#include <utility>

#include "operations/attention_core/problem.hpp"

namespace tessera::operations::attention {

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
      input("value", "[batch, kv_len, kv_heads, value_dim]",
            "value_dim may differ from head_dim; what is not finite at a key that weighs less than "
            "2^-126 of the row's heaviest, or is dropped, reaches the output or does not")};
}

Operand stored(std::string name, std::string shape, std::string doc) {
  Operand operand = input(std::move(name), std::move(shape),
                          std::move(doc) + "; codes of i8, i4, e4m3fn or e5m2 have scales");
  operand.dtypes.insert(operand.dtypes.end(),
                        {DType::kI8, DType::kI4, DType::kE4M3FN, DType::kE5M2});
  return operand;
}

Operand scale(std::string name, std::string of, std::string shape) {
  return optional_input(
      std::move(name), std::move(shape), {DType::kF32},
      "what a code of " + std::move(of) + " times this means, not negative; each axis may be 1");
}

std::vector<StorageTypes> stored_types(const std::string& query,
                                       const std::vector<std::string>& rows) {
  std::vector<StorageTypes> types;
  const auto add = [&](DType dtype, DType code, const std::string& name) {
    std::vector<std::pair<std::string, DType>> operands{{query, dtype}};
    for (const std::string& each : rows) operands.emplace_back(each, code);
    types.emplace_back(name, std::move(operands));
  };
  for (const DType dtype : kStorage) add(dtype, dtype, std::string(to_string(dtype)));
  // By turns: quick checks take the first combination of each.
  constexpr DType kCodes[] = {DType::kI8, DType::kE4M3FN, DType::kE5M2, DType::kI4};
  for (std::size_t turn = 0; turn < kStorage.size(); ++turn) {
    for (std::size_t n = 0; n < std::size(kCodes); ++n) {
      const DType dtype = kStorage[(turn + n) % kStorage.size()];
      add(dtype, kCodes[n],
          std::string(to_string(dtype)) + "_" + std::string(to_string(kCodes[n])));
    }
  }
  return types;
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
  return {
      {.name = "dropout_prob",
       .fallback = 0.0,
       .type = "float",
       .doc = "at least 0, below 1: weights are dropped, the others divided by 1 - "
              "dropout_prob"},
      {.name = "dropout_seed",
       .fallback = std::int64_t{0},
       .type = "seed",
       .doc = "of Philox4x32-10, up to 2^64 - 1; src/operations/attention_core/dropout.hpp has it "
              "bit for bit"}};
}

Operation forward_record(Operation described) {
  described.validate = validate_attention;
  described.reference = reference_attention;
  add_ways(described, forward_ways(attention_slots(described.operands)));
  described.workload = forward_workload(described);
  return described;
}

std::vector<Operand> tables(const std::string& sequences) {
  return {{.name = "context_lens",
           .shape = "[" + sequences + "]",
           .dtypes = {DType::kI32},
           .doc = "how many tokens each sequence has, those of its queries included"},
          {.name = "block_tables",
           .shape = "[" + sequences + ", max_blocks]",
           .dtypes = {DType::kI32},
           .doc = "which page holds tokens page_size n to page_size (n + 1) - 1; anything behind "
                  "the last token"}};
}

std::vector<ErrorKind> table_errors(bool packed) {
  std::vector<ErrorKind> errors{
      {.kind = "page_outside_pool",
       .operand = "block_tables",
       .sentence = "names no page of the pool; its tokens are hidden"},
      {.kind = "length_out_of_range",
       .operand = "context_lens",
       .sentence = "is negative or more than block_tables has room for; the nearest counts"}};
  if (!packed) return errors;
  append(errors,
         {{.kind = "start_out_of_order",
           .operand = "query_start_loc",
           .sentence = "is not between the one before and the number of rows; the nearest counts"},
          {.kind = "count_out_of_range",
           .operand = "num_seqs",
           .sentence = "is negative or more than block_tables has lines; the nearest counts"},
          {.kind = "more_rows_than_tokens",
           .operand = "context_lens",
           .sentence = "is less than the sequence's query rows; the first of them are 0"},
          {.kind = "distribution_out_of_order",
           .operand = "distribution",
           .sentence = "is less than the one before or more than there are sequences; of the last, "
                       "the nearest counts"},
          {.kind = "decodes_other_than_one_row",
           .operand = "query_start_loc",
           .sentence =
               "begins a sequence that decodes and has not one row; it is computed all the same"}});
  return errors;
}

OptionInfo token_window() {
  return {.name = "sliding_window",
          .fallback = {},
          .type = "int",
          .doc = "at least 1: a row sees the last so many tokens up to its own, that one included"};
}

OptionInfo splits() {
  return {.name = "num_splits",
          .fallback = std::int64_t{0},
          .type = "int",
          .doc = "work-groups that share the tokens of a row, up to 1024; 0 = chosen"};
}

Operation paged_record(Operation described) {
  described.validate = validate_paged_attention;
  described.reference = reference_attention;
  described.raises = raises_of_pages;
  add_ways(described, paged_ways(attention_slots(described.operands)));
  described.workload = paged_workload(described);
  return described;
}

Operation ragged_decode_record(Operation described) {
  described.validate = validate_ragged_decode;
  described.reference = reference_attention;
  described.raises = raises_of_spans;
  add_ways(described, paged_ways(attention_slots(described.operands)));
  described.workload = ragged_decode_workload(described);
  return described;
}

Operation backward_record(Operation described) {
  described.validate = validate_attention_backward;
  described.reference = reference_attention_backward;
  add_ways(described, backward_ways(attention_slots(described.operands)));
  described.workload = backward_workload(described);
  return described;
}

}  // namespace tessera::operations::attention
