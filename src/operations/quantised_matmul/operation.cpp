// SPDX-License-Identifier: Apache-2.0
// The record of quantised_matmul, and the typed function.
#include <string>
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/grouped_core/problem.hpp"
#include "operations/quantised_core/problem.hpp"
#include "tessera/operations/quantised_matmul.hpp"

namespace tessera {
namespace operations::quantised {

namespace {

Operation forward() {
  const std::vector<DType> floats{DType::kF32, DType::kF16, DType::kBF16};
  const std::vector<DType> inputs{DType::kF32, DType::kF16, DType::kBF16, DType::kI8};
  const std::vector<DType> codes{DType::kI8, DType::kU8, DType::kI4, DType::kU4};
  Operation operation;
  operation.name = "quantised_matmul";
  operation.summary = "product with weights of 8 or 4 bits, with a scale for each group of terms";
  operation.formula =
      "output[..., n] = sum over groups g of scale[n, g] sum over k in g of input[..., k] "
      "(weight[n, k] - zero_point[n, g])";
  operation.operands = {
      {.name = "input", .shape = "[..., k]", .dtypes = inputs, .doc = "f32, f16, bf16, or i8"},
      {.name = "weight",
       .shape = "[n, k]",
       .dtypes = codes,
       .doc = "u8 [n, bytes] in layouts of blocks"},
      {.name = "scale",
       .optional = true,
       .shape = "[n, groups]",
       .dtypes = floats,
       .doc = "of plain layouts, which need it"},
      {.name = "zero_point",
       .optional = true,
       .shape = "[n, groups]",
       .dtypes = codes,
       .doc = "in the dtype of weight; 0 where it is left out"},
      {.name = "group_sizes",
       .optional = true,
       .shape = "[num_groups]",
       .dtypes = {DType::kI32},
       .doc = "rows of input of each group, one group behind the other; weight is [matrices, n, k] "
              "then, scale and zero_point [matrices, n, groups]"},
      {.name = "input_scale",
       .optional = true,
       .shape = "[..., 1]",
       .dtypes = {DType::kF32},
       .doc = "of input in i8, which needs it: what a code times this means"},
      {.name = "output", .role = Role::kOutput, .shape = "[..., n]", .dtypes = floats, .doc = ""}};
  operation.options = {layout_option("of weight"),
                       {.name = "group_size",
                        .type = "int",
                        .doc = "terms that share a scale; k / groups where it is not set"},
                       {.name = "output_dtype",
                        .type = "one of f32, f16, bf16",
                        .doc = "of output; that of input where it is not set, f32 of i8"},
                       {.name = "group_offset",
                        .type = "int",
                        .doc = "the first group that has a matrix; of group_sizes"}};
  operation.errors = matmul::sizes_errors();
  operation.validate = validate_quantised_matmul;
  operation.reference = reference_quantised_matmul;
  operation.raises = raised_by_groups;
  add_ways(operation,
           list_of(weights_way(false), cpu_way(), hopper_way(), stream_way(), mma_way(),
                   cooperative_stream_way(), lanes_way(), cooperative_way(), rows_way()));
  operation.workload = quantised_matmul_workload();
  return operation;
}

// Of the same weights, in the same slots.
Operation backward(const Operation& forward) {
  Operation operation;
  operation.name = "quantised_matmul_backward";
  operation.summary = "gradient of the input of quantised_matmul";
  operation.formula =
      "grad_input[..., k] = sum over n of grad_output[..., n] scale[n, g] (weight[n, k] - "
      "zero_point[n, g])";
  const std::vector<DType> floats{DType::kF32, DType::kF16, DType::kBF16};
  operation.operands = {{.name = "grad_output", .shape = "[..., n]", .dtypes = floats, .doc = ""},
                        forward.operands[kWeight],
                        forward.operands[kScale],
                        forward.operands[kZero],
                        forward.operands[kSizes],
                        {.name = "grad_input",
                         .role = Role::kOutput,
                         .shape = "[..., k]",
                         .dtypes = floats,
                         .doc = "in the dtype of grad_output"}};
  operation.options = {forward.options[0], forward.options[1], forward.options[3]};
  operation.errors = forward.errors;
  operation.validate = validate_quantised_backward;
  operation.reference = reference_quantised_backward;
  operation.raises = raised_by_groups;
  add_ways(operation, list_of(weights_way(true)));
  operation.workload = quantised_backward_workload();
  return operation;
}

}  // namespace

std::vector<Operation> quantised_matmul() {
  Operation product = forward();
  Operation gradient = backward(product);
  return list_of(std::move(product), std::move(gradient));
}

}  // namespace operations::quantised

namespace {

Tensors weights_of(const Tensor& weight, const QuantisedMatmulOptions& options) {
  Tensors tensors{{"weight", weight}};
  if (options.scale) tensors.emplace("scale", options.scale);
  if (options.zero_point) tensors.emplace("zero_point", options.zero_point);
  if (options.group_sizes) tensors.emplace("group_sizes", options.group_sizes);
  return tensors;
}

Options named(const QuantisedMatmulOptions& options) {
  Options values{{"layout", operations::quantised::name_of(options.layout)}};
  if (options.group_size) values.emplace("group_size", *options.group_size);
  if (options.group_offset) values.emplace("group_offset", *options.group_offset);
  return values;
}

}  // namespace

Tensor quantised_matmul(const Executor& on, const Tensor& input, const Tensor& weight,
                        const QuantisedMatmulOptions& options) try {
  Tensors tensors = weights_of(weight, options);
  tensors.emplace("input", input);
  if (options.input_scale) tensors.emplace("input_scale", options.input_scale);
  Options values = named(options);
  if (options.output_dtype)
    values.emplace("output_dtype", std::string(to_string(*options.output_dtype)));
  return on.run("quantised_matmul", std::move(tensors), values).at("output");
} catch (...) {
  rethrow_as_error();
}

Tensor quantised_matmul_backward(const Executor& on, const Tensor& grad_output,
                                 const Tensor& weight, const QuantisedMatmulOptions& options) try {
  Tensors tensors = weights_of(weight, options);
  tensors.emplace("grad_output", grad_output);
  return on.run("quantised_matmul_backward", std::move(tensors), named(options)).at("grad_input");
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
