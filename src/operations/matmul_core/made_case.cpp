// SPDX-License-Identifier: Apache-2.0
#include "operations/matmul_core/made_case.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace tessera::operations::matmul {
namespace {

Shape with(Shape leading, std::int64_t rows, std::int64_t columns) {
  leading.push_back(rows);
  leading.push_back(columns);
  return leading;
}

Shape broadcast(const Shape& a, const Shape& b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (std::size_t i = 0; i < result.size(); ++i) {
    const std::int64_t of_a = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t of_b = i < b.size() ? b[b.size() - 1 - i] : 1;
    result[result.size() - 1 - i] = of_a == 1 ? of_b : of_a;
  }
  return result;
}

// Rows with unused memory behind them, or columns that are contiguous where rows would be.
TensorSpec laid_out(DType dtype, const Shape& shape, Layout layout, std::int64_t gap) {
  TensorSpec spec = TensorSpec::contiguous(dtype, shape);
  if (layout == Layout::kContiguous || shape.size() < 2) return spec;
  const std::size_t rows = shape.size() - 2, columns = shape.size() - 1;
  const std::size_t inner = layout == Layout::kGaps ? columns : rows;
  const std::size_t outer = layout == Layout::kGaps ? rows : columns;
  spec.offset = gap;
  spec.strides[inner] = 1;
  spec.strides[outer] = shape[inner] + gap;
  std::int64_t step = shape[outer] * spec.strides[outer];
  for (std::size_t axis = rows; axis-- > 0;) {
    spec.strides[axis] = step;
    step *= shape[axis];
  }
  return spec;
}

bool is_paired(const MatmulCase& from) {
  return std::string(from.activation).find("glu") != std::string::npos;
}

}  // namespace

Case make_case(const MatmulSlots& slots, DType dtype, const MatmulCase& from) {
  Case result{.name = from.name, .why = from.why, .data = from.data};
  const auto has = [&](Has what) { return (from.has & what) != 0; };
  const DType b_type = *from.b_dtype != '\0' ? parse_dtype(from.b_dtype) : dtype;
  const DType beside = is_eight_bits(dtype) ? DType::kF32 : dtype;
  const bool codes = *from.quantise != '\0';
  const bool sums = dtype == DType::kI8 && from.scale_a.empty() && from.scale_b.empty() && !codes;
  const DType output = *from.output != '\0' ? parse_dtype(from.output)
                       : sums               ? DType::kI32
                                            : beside;
  const std::int64_t n = is_paired(from) ? from.n / 2 : from.n;
  const bool transpose_b = has(kTransposeB) || slots.linear;
  Shape a =
      has(kTransposeA) ? with(from.batch_a, from.k, from.m) : with(from.batch_a, from.m, from.k);
  Shape b = transpose_b ? with(from.batch_b, from.n, from.k) : with(from.batch_b, from.k, from.n);
  const Shape batch = broadcast(from.batch_a, from.batch_b);
  std::int64_t gap = 0;
  const auto set = [&](std::size_t slot, DType type, const Shape& shape) {
    if (slot == kNoOperand) return;
    gap += bits_of(type) == 32 ? 3 : 5;
    result.operands.resize(std::max(result.operands.size(), slot + 1));
    result.operands[slot] = laid_out(type, shape, from.layout, gap);
  };
  const Shape bias = from.bias.empty() ? Shape{from.n} : from.bias;
  set(slots.a, dtype, a);
  set(slots.b, b_type, b);
  if (has(kHasBias)) set(slots.bias, beside, bias);
  if (has(kHasAddend)) set(slots.addend, output, with(batch, from.m, from.n));
  if (has(kHasGate)) set(slots.gate, beside, with(batch, from.m, n));
  if (slots.backward()) {
    set(slots.grad_output, output, with(batch, from.m, n));
    set(slots.grad_a, dtype, a);
    set(slots.grad_b, b_type, b);
    if (has(kHasBias)) set(slots.grad_bias, beside, bias);
    if (has(kHasAddend)) set(slots.grad_addend, output, with(batch, from.m, from.n));
    if (has(kHasGate)) set(slots.grad_gate, beside, with(batch, from.m, n));
  } else {
    const auto set_scale = [&](std::size_t slot, Shape shape, bool turned) {
      if (shape.empty()) return;
      if (turned && shape.size() > 1) std::swap(shape[shape.size() - 2], shape.back());
      set(slot, DType::kF32, shape);
    };
    set_scale(slots.scale_a, from.scale_a, has(kTransposeA));
    set_scale(slots.scale_b, from.scale_b, transpose_b);
    if (has(kHasResidual)) set(slots.residual, beside, with(batch, from.m, n));
    if (from.layout != Layout::kContiguous)
      set(slots.output, codes ? parse_dtype(from.quantise) : output, with(batch, from.m, n));
    if (codes) result.options["quantise"] = std::string(from.quantise);
    if (*from.output != '\0') result.options["output_dtype"] = std::string(from.output);
  }
  if (has(kTransposeA)) result.options["transpose_a"] = true;
  if (has(kTransposeB) && !slots.linear) result.options["transpose_b"] = true;
  if (std::string(from.activation) != "none")
    result.options["activation"] = std::string(from.activation);
  if (from.alpha != 1) result.options["alpha"] = from.alpha;
  if (from.beta != 1) result.options["beta"] = from.beta;
  return result;
}

}  // namespace tessera::operations::matmul
