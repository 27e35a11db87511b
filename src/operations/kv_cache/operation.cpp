// SPDX-License-Identifier: Apache-2.0
// The records of the operations on caches of keys and values.
#include <utility>

#include "operations/kv_cache/problem.hpp"

namespace tessera::operations::kv_cache {
namespace {

const std::vector<DType> kFloatDtypes{DType::kF32, DType::kF16, DType::kBF16};
const std::vector<DType> kCodeDtypes{DType::kI8, DType::kI4, DType::kE4M3FN, DType::kE5M2};
const std::vector<DType> kPoolDtypes{DType::kF32, DType::kF16,    DType::kBF16, DType::kI8,
                                     DType::kI4,  DType::kE4M3FN, DType::kE5M2};

Operand index(std::string name, bool optional, std::string shape, std::string doc) {
  return {.name = std::move(name),
          .role = Role::kInput,
          .optional = optional,
          .shape = std::move(shape),
          .dtypes = {DType::kI32},
          .doc = std::move(doc)};
}

Operand tensor(std::string name, Role role, std::string shape, const std::vector<DType>& dtypes,
               std::string doc) {
  return {.name = std::move(name),
          .role = role,
          .optional = false,
          .shape = std::move(shape),
          .dtypes = dtypes,
          .doc = std::move(doc)};
}

Operand optional(Operand operand) {
  operand.optional = true;
  return operand;
}

constexpr const char* kPoolAxes = "[pages, heads, page_size, dim]";
constexpr const char* kScaleDoc =
    "what a code times this means; broadcasts to [pages, heads, page_size]";

// Where tokens go.
void add_tables(std::vector<Operand>& operands) {
  operands.insert(
      operands.end(),
      {index("slot_mapping", true, "[tokens]", "page page_size + slot of each token; -1 skips it"),
       index("block_tables", true, "[max_seqs, pages_per_seq]",
             "the pages of each sequence; read where new tokens lie"),
       index("kv_lens", true, "[max_seqs]", "lengths of the sequences with their new tokens"),
       index("query_start_loc", true, "[max_seqs + 1]",
             "sequence n has tokens query_start_loc[n] to query_start_loc[n + 1] - 1"),
       index("num_seqs", true, "[1]", "how many sequences there are; all without it")});
}

// What tables may have wrong.
void add_errors_of_tables(Operation& operation) {
  operation.errors = {
      {.kind = "slot_outside_pool",
       .operand = "slot_mapping",
       .sentence = "names no slot of the pool"},
      {.kind = "too_many_sequences",
       .operand = "num_seqs",
       .sentence = "is no number of sequences that the tables have"},
      {.kind = "offsets_disordered",
       .operand = "query_start_loc",
       .sentence = "decreases or lies outside of the tokens"},
      {.kind = "length_impossible",
       .operand = "kv_lens",
       .sentence = "is less than the sequence's new tokens or more than its pages hold"},
      {.kind = "page_outside_pool",
       .operand = "block_tables",
       .sentence = "names a page outside the pool, and a new token belongs there"}};
  operation.raises = [](const Problem& problem, std::span<HostTensor> tensors) {
    return places_of(problem, tensors).raised;
  };
}

Operation append_to_cache() {
  Operation operation;
  operation.name = "append_to_cache";
  operation.summary = "writes the keys and values of new tokens into their pages";
  operation.formula =
      "key_cache[slot / page_size, h, slot % page_size] = keys[t, h], where slot is "
      "slot_mapping[t], or that of position kv_lens[n] - query_start_loc[n + 1] + t of sequence n";
  const char* own = "of codes; one for each token and head is made and written, others are read";
  operation.operands = {
      tensor("keys", Role::kInput, "[tokens, heads, dim]", kFloatDtypes, "of the new tokens"),
      optional(tensor("values", Role::kInput, "[tokens, heads, value_dim]", kFloatDtypes,
                      "in the dtype of keys"))};
  add_tables(operation.operands);
  operation.operands.insert(
      operation.operands.end(),
      {tensor("key_cache", Role::kInOut, kPoolAxes, kPoolDtypes,
              "other slots keep their bits; any strides but along the last axis"),
       optional(tensor("value_cache", Role::kInOut, "[pages, heads, page_size, value_dim]",
                       kPoolDtypes, "in the dtype of key_cache")),
       optional(tensor("key_scale", Role::kInOut, "[pages, heads, page_size]", {DType::kF32}, own)),
       optional(
           tensor("value_scale", Role::kInOut, "[pages, heads, page_size]", {DType::kF32}, own))});
  operation.options = {{.name = "read_scales",
                        .fallback = false,
                        .type = "bool",
                        .doc = "true: those of each token and head, too, are read and not made"}};
  operation.types = append_types();
  add_errors_of_tables(operation);
  operation.validate = validate_append;
  operation.reference = reference_append;
  operation.writes = written_by_append;
  add_ways(operation, list_of(append_way(), append_codes_cpu_way(), append_codes_way()));
  operation.workload = append_workload();
  return operation;
}

Operation append_to_cache_backward() {
  Operation operation;
  operation.name = "append_to_cache_backward";
  operation.summary = "the gradients of new keys and values, and of the caches before them";
  operation.formula =
      "grad_keys[t, h] = grad_key_cache[slot / page_size, h, slot % page_size], which becomes 0; 0 "
      "for tokens that append_to_cache did not write";
  operation.operands = {tensor("grad_keys", Role::kOutput, "[tokens, heads, dim]", kFloatDtypes,
                               "in the dtype of grad_key_cache"),
                        optional(tensor("grad_values", Role::kOutput, "[tokens, heads, value_dim]",
                                        kFloatDtypes, "there where grad_value_cache is"))};
  add_tables(operation.operands);
  operation.operands.insert(
      operation.operands.end(),
      {tensor("grad_key_cache", Role::kInOut, kPoolAxes, kFloatDtypes,
              "of the cache after the call; becomes that of the cache before it"),
       optional(tensor("grad_value_cache", Role::kInOut, "[pages, heads, page_size, value_dim]",
                       kFloatDtypes, "in the dtype of grad_key_cache"))});
  operation.options = {{.name = "tokens",
                        .type = "int",
                        .doc = "how many there are; not set: as many as slot_mapping has"}};
  operation.types = gradient_types();
  add_errors_of_tables(operation);
  operation.validate = validate_append_backward;
  operation.reference = reference_append_backward;
  operation.writes = written_by_append;
  add_ways(operation, list_of(append_backward_way()));
  operation.workload = append_backward_workload();
  return operation;
}

Operation copy_pages() {
  Operation operation;
  operation.name = "copy_pages";
  operation.summary = "copies pages within a pool or from another one";
  operation.formula =
      "pool[target_pages[i]] = source[source_pages[i]], all reads before any write; source is pool "
      "where it is left out";
  operation.operands = {
      index("source_pages", false, "[pairs]", "-1 skips the pair"),
      index("target_pages", false, "[pairs]", "-1 skips the pair; of equal ones the last wins"),
      optional(tensor("source", Role::kInput, "[source_pages, ...]", kPoolDtypes,
                      "another pool, of pages as those of pool")),
      tensor("pool", Role::kInOut, "[pages, ..., dim]", kPoolDtypes,
             "two to four axes; other pages keep their bits")};
  operation.types = pool_types();
  operation.errors = {{.kind = "source_outside_pool",
                       .operand = "source_pages",
                       .sentence = "names a page outside its pool"},
                      {.kind = "target_outside_pool",
                       .operand = "target_pages",
                       .sentence = "names a page outside the pool"}};
  operation.validate = validate_copy_pages;
  operation.reference = reference_copy_pages;
  operation.raises = [](const Problem& problem, std::span<HostTensor> tensors) {
    return pages_of(problem, tensors).raised;
  };
  operation.writes = written_by_copy;
  add_ways(operation, list_of(copy_pages_way()));
  operation.workload = copy_pages_workload();
  return operation;
}

Operation quantise_cache() {
  Operation operation;
  operation.name = "quantise_cache";
  operation.summary = "a pool of pages in codes of 8 or 4 bits with scales";
  operation.formula =
      "scale = largest magnitude / largest code, 1 for zeros; codes = round(input / scale)";
  operation.operands = {
      tensor("input", Role::kInput, kPoolAxes, kFloatDtypes,
             "any strides but along the last axis, which is contiguous"),
      tensor("codes", Role::kOutput, kPoolAxes, kCodeDtypes, "in the dtype that the option says"),
      tensor("scale", Role::kOutput, "[pages or 1, heads or 1, page_size or 1]", {DType::kF32},
             kScaleDoc)};
  operation.options = {{.name = "dtype",
                        .fallback = std::string("i8"),
                        .type = "one of i8, i4, e4m3fn, e5m2",
                        .doc = "of codes; integers are symmetric, up to 127 and 7"},
                       {.name = "scale_of",
                        .fallback = std::string("token_head"),
                        .type = "one of token_head, page, head, tensor",
                        .doc = "what shares a scale"}};
  operation.types = quantise_types();
  operation.validate = validate_quantise;
  operation.reference = reference_quantise;
  add_ways(operation, list_of(quantise_cpu_way(), quantise_way()));
  operation.workload = quantise_workload();
  return operation;
}

Operation dequantise_cache() {
  Operation operation;
  operation.name = "dequantise_cache";
  operation.summary = "the floats that a pool of codes means";
  operation.formula = "output = codes * scale";
  operation.operands = {tensor("codes", Role::kInput, kPoolAxes, kCodeDtypes,
                               "any strides but along the last axis, which is contiguous"),
                        tensor("scale", Role::kInput, "[pages or 1, heads or 1, page_size or 1]",
                               {DType::kF32}, kScaleDoc),
                        tensor("output", Role::kOutput, kPoolAxes, kFloatDtypes,
                               "in the dtype that the option says")};
  operation.options = {{.name = "dtype",
                        .fallback = std::string("f32"),
                        .type = "one of f32, f16, bf16",
                        .doc = "of output"}};
  operation.types = dequantise_types();
  operation.validate = validate_dequantise;
  operation.reference = reference_dequantise;
  add_ways(operation, list_of(dequantise_cpu_way(), dequantise_way()));
  operation.workload = dequantise_workload();
  return operation;
}

}  // namespace

std::vector<Operation> kv_cache() {
  return list_of(append_to_cache(), append_to_cache_backward(), copy_pages(), quantise_cache(),
                 dequantise_cache());
}

}  // namespace tessera::operations::kv_cache
