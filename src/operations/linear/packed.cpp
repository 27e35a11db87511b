// SPDX-License-Identifier: Apache-2.0
// Packed weights: panels are batches of products whose b lies as processors read it.
#include <algorithm>
#include <string>
#include <utility>

#include "base/system/out_of_memory.hpp"
#include "operations/common/launch.hpp"
#include "operations/matmul_core/problem.hpp"
#include "tessera/error.hpp"
#include "tessera/operations/linear.hpp"

namespace tessera {
namespace {

// Columns of a panel: two vectors, as operations/matmul_core/cpu has them.
std::int64_t panel_width(const DeviceProfile& profile, const char* function) {
  if (!operations::is_opencl_cpu(profile))
    throw Unsupported(std::string(function) + ": " + profile.name +
                      " takes weights as they are; processors through OpenCL pack them");
  return std::int64_t{2} * operations::vector_width(profile);
}

Tensor view(const Tensor& of, TensorSpec spec) { return {std::move(spec), of.buffer()}; }

// Columns [first, first + panels width) of the last axis as panels, [panels, 1..., rows, width], of
// `rank` axes; one panel that is not whole stays a matrix. A last axis of one element repeats.
Tensor columns_of(const Tensor& tensor, std::int64_t first, std::int64_t panels, std::int64_t width,
                  std::size_t rank) {
  TensorSpec spec = tensor.spec();
  if (spec.shape.back() == 1 && first + width > 1) return tensor;
  const std::int64_t step = spec.strides.back();
  spec.offset += first * step;
  spec.shape.back() = width;
  if (panels == 0) return view(tensor, std::move(spec));
  const std::size_t missing = rank - 1 - spec.shape.size();
  spec.shape.insert(spec.shape.begin(), missing, 1);
  spec.strides.insert(spec.strides.begin(), missing, 0);
  spec.shape.insert(spec.shape.begin(), panels);
  spec.strides.insert(spec.strides.begin(), width * step);
  return view(tensor, std::move(spec));
}

// Products of no terms, to which the weights are added, turned and as floats: [panels, in, width].
void copy_columns(const Executor& on, const Tensor& from, const Tensor& to) {
  const Shape& shape = to.shape();
  Tensors tensors{{"a", on.context().empty(DType::kF32, {shape[0], shape[1], 0})},
                  {"b", on.context().empty(DType::kF32, {shape[0], 0, shape[2]})},
                  {"output", to}};
  if (from) tensors.emplace("c", from);
  on.run("matmul", std::move(tensors));
}

void check(const PackedWeights& weight, std::int64_t width, const std::string& device) {
  const auto refuse = [](const std::string& why) { throw InvalidArgument("linear: " + why); };
  if (!weight.panels) refuse("the packed weights are an empty tensor");
  const TensorSpec& spec = weight.panels.spec();
  if (spec.dtype != DType::kF32 || spec.shape.size() != 3 || !spec.is_contiguous())
    refuse("panels of weights are a contiguous f32[panels, in_features, width], not " +
           spec.to_string());
  if (spec.shape[2] != width)
    refuse("the weights were packed in panels of " + std::to_string(spec.shape[2]) +
           " columns, for another device: " + device + " takes " + std::to_string(width));
  const std::int64_t columns = weight.out_features;
  if (columns < 0 || columns / width + (columns % width == 0 ? 0 : 1) != spec.shape[0])
    refuse(std::to_string(spec.shape[0]) + " panels do not hold " +
           std::to_string(weight.out_features) + " out_features");
}

// A call for whole panels, `panels` of them, or for the columns of the last one.
void multiply(const Executor& on, const Tensor& input, const PackedWeights& weight,
              const LinearOptions& options, const Tensor& output, std::int64_t first,
              std::int64_t panels, std::int64_t width, bool paired) {
  const std::size_t rank = input.shape().size() + 1;
  const TensorSpec& all = weight.panels.spec();
  TensorSpec b{.dtype = DType::kF32,
               .shape = {all.shape[1], width},
               .strides = {all.strides[1], 1},
               .offset = all.offset + first * all.shape[1]};
  if (panels != 0) {
    b.shape.insert(b.shape.begin(), rank - 2, 1);
    b.strides.insert(b.strides.begin(), rank - 2, 0);
    b.shape.front() = panels;
    b.strides.front() = all.strides[0];
  }
  const std::int64_t share = paired ? 2 : 1;
  const auto part = [&](const Tensor& tensor, std::int64_t of) {
    return columns_of(tensor, first / of, panels, width / of, rank);
  };
  Tensors tensors{
      {"a", input}, {"b", view(weight.panels, std::move(b))}, {"output", part(output, share)}};
  if (options.bias) tensors.emplace("bias", part(options.bias, 1));
  if (options.gate) tensors.emplace("gate", part(options.gate, share));
  if (options.residual) tensors.emplace("residual", part(options.residual, share));
  on.run("matmul", std::move(tensors),
         {{"activation",
           operations::matmul::activation_names().at(static_cast<std::size_t>(options.activation))},
          {"output_dtype", std::string(to_string(output.dtype()))}});
}

}  // namespace

PackedWeights pack_weights(const Executor& on, const Tensor& weight) try {
  const std::int64_t width = panel_width(on.context().device(), "pack_weights");
  if (!weight || weight.shape().size() != 2)
    throw InvalidArgument("pack_weights: the weights are not a matrix [out_features, in_features]");
  if (bits_of(weight.dtype()) == 8)
    throw InvalidArgument("pack_weights: the weights are f32, f16 or bf16, not " +
                          std::string(to_string(weight.dtype())));
  const std::int64_t out = weight.dim(0), in = weight.dim(1), whole = out / width;
  PackedWeights packed{
      .panels = on.context().empty(DType::kF32, {(out + width - 1) / width, in, width}),
      .out_features = out};
  const Tensor turned = weight.permute({1, 0});
  if (whole > 0)
    copy_columns(on, columns_of(turned, 0, whole, width, 3), packed.panels.slice(0, 0, whole));
  if (out % width == 0) return packed;
  const Tensor last = packed.panels.slice(0, whole, whole + 1);
  copy_columns(on, {}, last);
  copy_columns(on, columns_of(turned, whole * width, 1, out % width, 3),
               last.slice(2, 0, out % width));
  return packed;
} catch (...) {
  rethrow_as_error();
}

Tensor linear(const Executor& on, const Tensor& input, const PackedWeights& weight,
              const LinearOptions& options) try {
  const DeviceProfile& device = on.context().device();
  const std::int64_t width = panel_width(device, "linear");
  check(weight, width, device.name);
  if (options.scale_input || options.scale_weight)
    throw InvalidArgument("linear: packed weights are floats, which have no scales");
  if (!input || input.shape().empty())
    throw InvalidArgument("linear: input is an empty tensor or has no axes");
  const bool paired = options.activation == MatmulActivation::kSwiglu ||
                      options.activation == MatmulActivation::kGeglu;
  const std::int64_t columns = weight.out_features, whole = columns / width;
  if (paired && columns % 2 != 0)
    throw InvalidArgument("linear: the activation takes pairs of columns, and the weights have " +
                          std::to_string(columns));
  const std::size_t most_axes = std::max<std::size_t>(input.shape().size(), 2);
  const auto check_columns = [&](const Tensor& tensor, const char* name, std::int64_t wanted,
                                 bool repeats) {
    if (tensor && tensor.shape().size() > most_axes)
      throw InvalidArgument("linear: " + std::string(name) + " " + tensor.spec().to_string() +
                            " has more axes than the output");
    if (tensor && (tensor.shape().empty() ||
                   (tensor.shape().back() != wanted && !(repeats && tensor.shape().back() == 1))))
      throw InvalidArgument("linear: " + std::string(name) + " " + tensor.spec().to_string() +
                            " has not " + std::to_string(wanted) + " columns");
  };
  const std::int64_t own = paired ? columns / 2 : columns;
  check_columns(options.bias, "bias", columns, true);
  check_columns(options.gate, "gate", own, false);
  check_columns(options.residual, "residual", own, false);
  Shape shape = input.shape();
  shape.back() = own;
  const Tensor output =
      on.context().empty(options.output_dtype.value_or(input.dtype()), std::move(shape));
  // A vector is a row.
  const auto as_rows = [&](const Tensor& tensor) {
    if (!tensor || input.shape().size() > 1 || tensor.shape().size() > 1) return tensor;
    TensorSpec spec = tensor.spec();
    spec.shape.insert(spec.shape.begin(), 1);
    spec.strides.insert(spec.strides.begin(), 0);
    return view(tensor, std::move(spec));
  };
  LinearOptions rows = options;
  rows.gate = as_rows(options.gate);
  rows.residual = as_rows(options.residual);
  const auto call = [&](std::int64_t first, std::int64_t panels, std::int64_t of) {
    multiply(on, as_rows(input), weight, rows, as_rows(output), first, panels, of, paired);
  };
  if (whole > 0) call(0, whole, width);
  if (columns % width != 0) call(whole * width, 0, columns % width);
  return output;
} catch (...) {
  rethrow_as_error();
}

}  // namespace tessera
