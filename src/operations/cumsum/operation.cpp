// SPDX-License-Identifier: Apache-2.0
// The record of cumsum, and its typed function.
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/cumsum/call.hpp"
#include "tessera/operations/cumsum.hpp"

namespace tessera {
namespace operations::recurrence {

std::vector<Operation> cumsum() {
  const std::vector<DType> floats{DType::kF32, DType::kF16, DType::kBF16};
  constexpr const char* kShape =
      "[batch, seq, heads(, dim)], with head_first [batch, heads, seq(, dim)]";
  Operation operation;
  operation.name = "cumsum";
  operation.summary = "cumulative sums over tokens, of whole sequences or of chunks of them";
  operation.formula =
      "output_t = scale sum of input_s over begin <= s <= t; reverse: over t <= s < end; [begin, "
      "end) is t's sequence or chunk";
  operation.operands = {
      {.name = "input", .shape = kShape, .dtypes = floats, .doc = "any strides"},
      {.name = "cu_seqlens",
       .optional = true,
       .shape = "[sequences + 1]",
       .dtypes = {DType::kI32},
       .doc = "sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of batch entry 0"},
      {.name = "output",
       .role = Role::kOutput,
       .shape = kShape,
       .dtypes = floats,
       .doc = "0 for tokens of no sequence"}};
  operation.options = {
      {.name = "chunk", .type = "int", .doc = "tokens, at least 1; not set: whole sequences"},
      {.name = "reverse", .fallback = false, .type = "bool", .doc = "sums begin at the last token"},
      {.name = "head_first", .fallback = false, .type = "bool", .doc = "heads before tokens"},
      {.name = "scale", .fallback = 1.0, .type = "float", .doc = "multiplies the sums"},
      {.name = "output_dtype",
       .type = "one of f32, f16, bf16",
       .doc = "of output; that of input where it is not set"}};
  operation.errors = {{.kind = "offset_outside_tokens",
                       .operand = "cu_seqlens",
                       .sentence = "lies outside of the tokens"},
                      {.kind = "offset_decreases",
                       .operand = "cu_seqlens",
                       .sentence = "is less than the one before it"}};
  operation.validate = validate_cumsum;
  operation.reference = reference_cumsum;
  operation.raises = raises_cumsum;
  add_ways(operation, list_of(cumsum_columns_way()));
  operation.workload = cumsum_workload();
  return list_of(std::move(operation));
}

}  // namespace operations::recurrence

Tensor cumsum(const Executor& on, const Tensor& input, const CumsumOptions& options) try {
  Tensors tensors{{"input", input}};
  if (options.cu_seqlens) tensors.emplace("cu_seqlens", options.cu_seqlens);
  Options named{{"reverse", options.reverse},
                {"head_first", options.head_first},
                {"scale", static_cast<double>(options.scale)}};
  if (options.chunk) named["chunk"] = *options.chunk;
  if (options.output_dtype) named["output_dtype"] = std::string(to_string(*options.output_dtype));
  return on.run("cumsum", std::move(tensors), named).at("output");
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
