// SPDX-License-Identifier: Apache-2.0
#include "base/system/out_of_memory.hpp"
#include "operations/pooling_core/problem.hpp"
#include "tessera/error.hpp"
#include "tessera/operations/mean_pooling.hpp"

namespace tessera {
namespace operations::pooling {
namespace {

const std::vector<DType> kStorage{DType::kF32, DType::kF16, DType::kBF16};
constexpr const char* kFeatureDoc = "any strides but along the last axis, which is contiguous";

Operand cu_seqlens_operand() {
  return {.name = "cu_seqlens",
          .optional = true,
          .shape = "[n + 1]",
          .dtypes = {DType::kI32},
          .doc =
              "sequence s is rows cu_seqlens[s] to cu_seqlens[s + 1] - 1 of a packed operand; "
              "clamped into it"};
}

std::vector<Operand> sequence_operands(Operand from, Operand to) {
  from.dtypes = to.dtypes = kStorage;
  to.role = Role::kOutput;
  return {std::move(from),
          {.name = "lengths",
           .optional = true,
           .shape = "[batch]",
           .dtypes = {DType::kI32},
           .doc = "how many tokens count, the first ones; clamped to [0, seq]"},
          {.name = "mask",
           .optional = true,
           .shape = "[batch, seq]",
           .dtypes = {DType::kU8},
           .doc = "tokens with a mask that is not 0 count"},
          cu_seqlens_operand(),
          std::move(to)};
}

std::vector<Operand> chunk_operands(Operand from, Operand to) {
  from.dtypes = to.dtypes = kStorage;
  to.role = Role::kOutput;
  return {std::move(from), cu_seqlens_operand(), std::move(to)};
}

OptionInfo tokens_option() {
  return {.name = "tokens",
          .fallback = {},
          .type = "int",
          .doc = "rows of grad_input, in each batch entry or in all if packed"};
}

OptionInfo chunk_option() {
  return {.name = "chunk",
          .fallback = std::int64_t{32},
          .type = "int",
          .doc = "tokens of a chunk, at least 1"};
}

Operation new_operation(std::string name, bool chunked, bool backward) {
  Operation operation;
  operation.name = std::move(name);
  operation.reference = reference_mean_pooling;
  add_ways(operation, mean_pooling_ways(chunked, backward));
  operation.workload = mean_pooling_workload(chunked, backward);
  return operation;
}

Operation sequence_mean() {
  Operation operation = new_operation("sequence_mean", false, false);
  operation.summary =
      "mean over the tokens of a sequence: all, the first ones, those of a mask, or packed";
  operation.formula =
      "output[b] = sum over the tokens t of b that count of input[b,t] / how many count; 0 if none "
      "does";
  operation.operands =
      sequence_operands({.name = "input",
                         .shape = "[batch, seq, (heads,) dim] or packed [total, (heads,) dim]",
                         .doc = kFeatureDoc},
                        {.name = "output",
                         .shape = "[batch, (heads,) dim] or packed [n, (heads,) dim]",
                         .doc = "0 where no token counts"});
  operation.validate = validate_sequence_mean;
  return operation;
}

Operation sequence_mean_backward() {
  Operation operation = new_operation("sequence_mean_backward", false, true);
  operation.summary = "gradient of sequence_mean's input";
  operation.formula =
      "grad_input[b,t] = grad_output[b] / how many tokens of b count, if t does; else 0";
  operation.operands =
      sequence_operands({.name = "grad_output",
                         .shape = "[batch, (heads,) dim] or packed [n, (heads,) dim]",
                         .doc = kFeatureDoc},
                        {.name = "grad_input",
                         .shape = "[batch, seq, (heads,) dim] or packed [total, (heads,) dim]",
                         .doc = "0 for tokens that don't count"});
  operation.options = {tokens_option()};
  operation.validate = validate_sequence_mean_backward;
  return operation;
}

Operation chunk_mean() {
  Operation operation = new_operation("chunk_mean", true, false);
  operation.summary =
      "means over chunks of the tokens of a sequence, also packed (arXiv:2502.11089)";
  operation.formula =
      "output[b,c] = mean of input[b,t] over c chunk <= t < min((c + 1) chunk, seq)";
  operation.operands = chunk_operands(
      {.name = "input",
       .shape = "[batch, seq, (heads,) dim] or packed [total, (heads,) dim]",
       .doc = kFeatureDoc},
      {.name = "output",
       .shape = "[batch, ceil(seq / chunk), (heads,) dim] or packed [chunks, (heads,) dim]",
       .doc = "packed: chunks in the order of sequences; rows beyond them are 0"});
  operation.options = {chunk_option(),
                       {.name = "chunks",
                        .fallback = {},
                        .type = "int",
                        .doc = "rows of a packed output; more chunks than that are left out"}};
  operation.validate = validate_chunk_mean;
  return operation;
}

Operation chunk_mean_backward() {
  Operation operation = new_operation("chunk_mean_backward", true, true);
  operation.summary = "gradient of chunk_mean's input";
  operation.formula =
      "grad_input[b,t] = grad_output[b, chunk of t] / how many tokens that chunk has";
  operation.operands = chunk_operands(
      {.name = "grad_output",
       .shape = "[batch, ceil(tokens / chunk), (heads,) dim] or packed [chunks, (heads,) dim]",
       .doc = kFeatureDoc},
      {.name = "grad_input",
       .shape = "[batch, seq, (heads,) dim] or packed [total, (heads,) dim]",
       .doc = "0 for tokens of no chunk"});
  operation.options = {chunk_option(), tokens_option()};
  operation.validate = validate_chunk_mean_backward;
  return operation;
}

}  // namespace

std::vector<Operation> mean_pooling() {
  return list_of(sequence_mean(), sequence_mean_backward(), chunk_mean(), chunk_mean_backward());
}

}  // namespace operations::pooling

namespace {

Tensors with_indices(Tensors operands, const SequenceMeanOptions& options) {
  operands["lengths"] = options.lengths;
  operands["mask"] = options.mask;
  operands["cu_seqlens"] = options.cu_seqlens;
  return operands;
}

}  // namespace

Tensor sequence_mean(const Executor& on, const Tensor& input,
                     const SequenceMeanOptions& options) try {
  return on.run("sequence_mean", with_indices({{"input", input}}, options)).at("output");
} catch (...) {
  rethrow_as_error();
}

Tensor sequence_mean_backward(const Executor& on, const Tensor& grad_output, std::int64_t tokens,
                              const SequenceMeanOptions& options) try {
  return on
      .run("sequence_mean_backward", with_indices({{"grad_output", grad_output}}, options),
           {{"tokens", tokens}})
      .at("grad_input");
} catch (...) {
  rethrow_as_error();
}

Tensor chunk_mean(const Executor& on, const Tensor& input, const ChunkMeanOptions& options) try {
  Options named{{"chunk", options.chunk}};
  if (options.chunks) named["chunks"] = *options.chunks;
  return on
      .run("chunk_mean", {{"input", input}, {"cu_seqlens", options.cu_seqlens}}, std::move(named))
      .at("output");
} catch (...) {
  rethrow_as_error();
}

Tensor chunk_mean_backward(const Executor& on, const Tensor& grad_output, std::int64_t tokens,
                           const ChunkMeanOptions& options) try {
  return on
      .run("chunk_mean_backward",
           {{"grad_output", grad_output}, {"cu_seqlens", options.cu_seqlens}},
           {{"chunk", options.chunk}, {"tokens", tokens}})
      .at("grad_input");
} catch (...) {
  rethrow_as_error();
}

std::vector<std::int64_t> chunk_offsets(std::span<const std::int32_t> cu_seqlens,
                                        std::int64_t chunk) try {
  if (chunk < 1)
    throw InvalidArgument("chunk_offsets: chunk must be at least 1, not " + std::to_string(chunk));
  if (cu_seqlens.empty())
    throw InvalidArgument("chunk_offsets: cu_seqlens must have at least one element");
  if (cu_seqlens[0] < 0) throw InvalidArgument("chunk_offsets: cu_seqlens must not start below 0");
  std::vector<std::int64_t> offsets{0};
  for (std::size_t i = 1; i < cu_seqlens.size(); ++i) {
    const std::int64_t length = std::int64_t{cu_seqlens[i]} - cu_seqlens[i - 1];
    if (length < 0)
      throw InvalidArgument("chunk_offsets: cu_seqlens decreases at element " + std::to_string(i));
    offsets.push_back(offsets.back() + length / chunk + (length % chunk != 0 ? 1 : 0));
  }
  return offsets;
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
