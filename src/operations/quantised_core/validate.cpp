// SPDX-License-Identifier: Apache-2.0
#include "operations/common/validate.hpp"

#include <algorithm>
#include <string>

#include "base/tensors/checked.hpp"
#include "kernel/option_access.hpp"
#include "operations/quantised_core/problem.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::quantised {
namespace {

std::int64_t parts_of(std::int64_t extent, std::int64_t part) {
  return extent / part + (extent % part == 0 ? 0 : 1);
}

void read_blocks(const Problem& problem, QuantisedProblem& call) {
  const TensorSpec& weight = problem.spec(kWeight);
  require(problem, weight.dtype == DType::kU8,
          operand_text(problem, kWeight) + " must be u8: bytes of blocks");
  require(problem, call.k % QUANT_CHUNK == 0,
          "blocks have 32 weights, and input has " + std::to_string(call.k) + " terms");
  require_shape(problem, kWeight,
                {weight.shape[0], saturating_mul(call.k / QUANT_CHUNK, block_bytes(call.layout))});
  require(problem, !problem.has(kScale) && !problem.has(kZero),
          "blocks have scales of their own, and the call has scale or zero_point");
  call.group = QUANT_CHUNK;
}

void read_codes(const Problem& problem, QuantisedProblem& call) {
  const TensorSpec& weight = problem.spec(kWeight);
  require_shape(problem, kWeight, {weight.shape[0], call.k});
  require(problem, problem.has(kScale), "weight in layout 'plain' needs scale");
  const Shape& scale = problem.spec(kScale).shape;
  require(problem, scale.size() == 2 && scale[0] == call.n && scale[1] > 0,
          operand_text(problem, kScale) + " must be [n, groups]");
  const std::int64_t groups = scale[1];
  // One that is longer than a row is the row.
  call.group = std::min(integer_option(problem, "group_size", 1).value_or(parts_of(call.k, groups)),
                        std::max<std::int64_t>(call.k, 1));
  require(problem, groups == 1 || call.group % QUANT_CHUNK == 0,
          "groups have a multiple of 32 terms, not " + std::to_string(call.group));
  const std::int64_t fit = call.k == 0 ? 1 : parts_of(call.k, call.group);
  require(problem, groups == fit,
          operand_text(problem, kScale) + " must have a column for each of the " +
              std::to_string(fit) + " groups of " + std::to_string(call.group) + " terms");
  if (!problem.has(kZero)) return;
  require_shape(problem, kZero, scale);
  require(problem, problem.spec(kZero).dtype == weight.dtype,
          operand_text(problem, kZero) + " must have the dtype of weight, " +
              std::string(to_string(weight.dtype)));
}

void read_weights(const Problem& problem, QuantisedProblem& call) {
  call.n = problem.spec(kWeight).shape[0];
  call.layout = layout_of(problem);
  if (call.layout == Layout::kPlain) {
    read_codes(problem, call);
  } else {
    read_blocks(problem, call);
  }
}

std::int64_t rows_before_last(const Shape& shape) {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows = saturating_mul(rows, shape[i]);
  return rows;
}

std::string key_of(const Problem& problem, const QuantisedProblem& call) {
  return "input=" + std::string(to_string(problem.spec(kInput).dtype)) +
         ";weight=" + std::string(to_string(problem.spec(kWeight).dtype)) +
         ";layout=" + std::to_string(static_cast<int>(call.layout)) +
         ";out=" + std::string(to_string(call.output)) + ";m=" + bucket(call.m) +
         ";n=" + bucket(call.n) + ";k=" + bucket(call.k) + ";group=" + bucket(call.group) +
         ";zero=" + (problem.has(kZero) ? "1" : "0");
}

}  // namespace

std::int64_t block_bytes(Layout layout) { return layout == Layout::kQ8_0 ? 34 : 18; }

Layout layout_of(const Problem& problem) {
  constexpr Layout kLayouts[] = {Layout::kPlain, Layout::kQ8_0, Layout::kQ4_0};
  return kLayouts[kernel::choice_option(problem, "layout", {"plain", "q8_0", "q4_0"})];
}

std::string name_of(WeightLayout layout) {
  switch (layout) {
    case WeightLayout::kPlain:
      return "plain";
    case WeightLayout::kQ8_0:
      return "q8_0";
    case WeightLayout::kQ4_0:
      return "q4_0";
  }
  throw InvalidArgument("layout has no value of WeightLayout");
}

OptionInfo layout_option(const std::string& of) {
  return {.name = "layout",
          .fallback = std::string("plain"),
          .type = "one of plain, q8_0, q4_0",
          .doc = of + "; the others are GGUF's blocks of 32 weights"};
}

void validate_quantised_matmul(Problem& problem) {
  const TensorSpec &input = problem.spec(kInput), &weight = problem.spec(kWeight);
  QuantisedProblem call;
  problem.dtype = input.dtype;
  require(problem, !input.shape.empty(),
          operand_text(problem, kInput) + " must be [..., in_features]");
  require(problem, weight.shape.size() == 2,
          operand_text(problem, kWeight) + " must be [out_features, in_features]");
  call.k = input.shape.back();
  call.m = rows_before_last(input.shape);
  read_weights(problem, call);
  require(problem, problem.has(kInputScale) == (input.dtype == DType::kI8),
          "input of i8 has an input_scale, and no other: input is " +
              std::string(to_string(input.dtype)));
  if (problem.has(kInputScale)) {
    Shape scales = input.shape;
    scales.back() = 1;
    require_shape(problem, kInputScale, scales);
  }
  call.output = problem.has(kInputScale) ? DType::kF32 : input.dtype;
  if (!std::holds_alternative<std::monostate>(problem.option("output_dtype"))) {
    constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
    call.output = kTypes[kernel::choice_option(problem, "output_dtype", {"f32", "f16", "bf16"})];
  }
  Shape output = input.shape;
  output.back() = call.n;
  problem.infer_output(kOutput, call.output, output);
  problem.key = key_of(problem, call);
  problem.set_details(std::move(call));
}

void validate_quantised_backward(Problem& problem) {
  const TensorSpec &gradient = problem.spec(kGradOutput), &weight = problem.spec(kWeight);
  QuantisedProblem call;
  problem.dtype = gradient.dtype;
  require(problem, !gradient.shape.empty(),
          operand_text(problem, kGradOutput) + " must be [..., out_features]");
  require(problem, weight.shape.size() == 2,
          operand_text(problem, kWeight) + " must be [out_features, in_features]");
  call.m = rows_before_last(gradient.shape);
  const Layout layout = layout_of(problem);
  call.k = weight.shape[1];
  if (layout != Layout::kPlain) call.k = call.k / block_bytes(layout) * QUANT_CHUNK;
  read_weights(problem, call);
  Shape expected = gradient.shape;
  expected.back() = call.n;
  require_shape(problem, kGradOutput, expected);
  call.output = gradient.dtype;
  expected.back() = call.k;
  problem.infer_output(kGradInput, call.output, expected);
  problem.key = key_of(problem, call);
  problem.set_details(std::move(call));
}

}  // namespace tessera::operations::quantised
