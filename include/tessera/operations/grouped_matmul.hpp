// SPDX-License-Identifier: Apache-2.0
// Products of rows in groups, as mixtures of experts have them, and their gradients
// (operations of MegaBlocks, arXiv 2211.15841).
//
// group_sizes, i32 [num_groups] on the device, says how many rows each group has; the groups lie
// one behind the other. Group g is the rows [off_g, off_g + group_sizes[g]), off_g the sum of the
// sizes before. Of the groups, those from group_offset on have a matrix each.
//
//   grouped_matmul             output[i] = lhs[i] rhs[g - group_offset]     for the rows i of g
//   transposed_grouped_matmul  output[g - group_offset] = lhs[:, g] rhs[g, :] + existing_out
//
// grouped_matmul: lhs [m, k], rhs [groups, k, n] or, with transpose_rhs, [groups, n, k]; output
// [m, n]. Rows of groups without a matrix, and rows behind the last group, are those of
// existing_out, [m, n], or 0; all others are overwritten. Their elements of lhs and grad_output
// are not read, but that grad_existing_out is grad_output there.
//
//   grad_lhs[i]        = grad_output[i] rhs[g - group_offset]^T, 0 in rows of no matrix
//   grad_rhs[g]        = lhs_g^T grad_output_g, turned as rhs is; 0 of empty groups
//   grad_existing_out  = grad_output in rows of no matrix, else 0
//
// transposed_grouped_matmul: lhs [k, m], rhs [m, n], output [groups, k, n], where empty groups are
// existing_out or 0. grad_lhs[:, i] = grad_output[g] rhs[i], grad_rhs[i] = lhs[:, i]^T
// grad_output[g], 0 in rows of no matrix. The gradient of existing_out is grad_output itself: the
// backward call has no output for it.
//
// Factors of 8 bits, forward only: lhs and rhs are both i8, or each of e4m3fn and e5m2. scale_lhs
// and scale_rhs say what their elements are meant as, as scale_a and scale_b of matmul do
// (matmul.hpp): one for all, of each row or column that is no term, or for each 128 of them, and of
// the terms one or one for each 128; those of rhs for each matrix, or for all. Blocks of rows are
// counted from the first row, whatever the groups. The terms of transposed_grouped_matmul are rows
// of groups, which begin anywhere: their scales have one for all terms. Rows of no group are not
// scaled.
//
// The sizes are read by the device only: it makes a list of tiles, so that the cost is that of the
// rows whatever their groups. Strides are any that are not negative.
//
// Numerics: floats are f32, f16 or bf16, every operand of its own. The dtype of output is
// output_dtype, that of existing_out, or that of lhs, of 8-bit floats and scaled i8 f32, of i8
// alone i32; gradients have that of their operand, grad_existing_out that of grad_output. Products
// and sums in float, terms in order, one rounding to nearest even at the end: the same bits every
// time. Sums of i8 are exact, in 32 bits, for k (transposed: m) below 2^17; an output of i32 is the
// sums as they are, with no scales, and of transposed_grouped_matmul with no existing_out. The
// variant hopper multiplies f16 and bf16 by NVIDIA's wgmma, which adds up the terms of an
// instruction, 16 of them, in an order and with roundings of its own; nothing else is rounded.
//
// Errors: InvalidArgument for shapes, dtypes and options that contradict this. A negative size
// counts 0, and a group that goes beyond the last row is cut there; either is a DataError when the
// call is waited for. Unsupported where an operand reaches element 2^31.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tessera/context.hpp"
#include "tessera/export.hpp"

namespace tessera {

// Tensors that are left out are not part of the call.
struct GroupedMatmulOptions {
  bool transpose_rhs = false;
  std::int64_t group_offset = 0;
  Tensor existing_out{};
  std::optional<DType> output_dtype{};  // f32, f16 or bf16, of i8 i32
  Tensor scale_lhs{}, scale_rhs{};      // f32, of factors of 8 bits; forward only
};

struct GroupedMatmulGradientOptions {
  bool lhs = true, rhs = true, existing_out = true;
};

// Empty where the call has no such operand or it was not wanted.
struct GroupedMatmulGradients {
  Tensor lhs, rhs, existing_out;
};

TESSERA_API Tensor grouped_matmul(const Executor& on, const Tensor& lhs, const Tensor& rhs,
                                  const Tensor& group_sizes,
                                  const GroupedMatmulOptions& options = {});
TESSERA_API GroupedMatmulGradients grouped_matmul_backward(
    const Executor& on, const Tensor& lhs, const Tensor& rhs, const Tensor& group_sizes,
    const Tensor& grad_output, const GroupedMatmulOptions& options = {},
    const GroupedMatmulGradientOptions& wanted = {});

struct TransposedGroupedMatmulOptions {
  std::int64_t group_offset = 0;
  std::optional<std::int64_t> groups{};  // matrices of output; all from group_offset on
  Tensor existing_out{};
  std::optional<DType> output_dtype{};  // f32, f16 or bf16, of i8 i32
  Tensor scale_lhs{}, scale_rhs{};      // f32, of factors of 8 bits; forward only
};

struct TransposedGroupedMatmulGradientOptions {
  bool lhs = true, rhs = true;
};

struct TransposedGroupedMatmulGradients {
  Tensor lhs, rhs;
};

TESSERA_API Tensor transposed_grouped_matmul(const Executor& on, const Tensor& lhs,
                                             const Tensor& rhs, const Tensor& group_sizes,
                                             const TransposedGroupedMatmulOptions& options = {});
TESSERA_API TransposedGroupedMatmulGradients transposed_grouped_matmul_backward(
    const Executor& on, const Tensor& lhs, const Tensor& rhs, const Tensor& group_sizes,
    const Tensor& grad_output, const TransposedGroupedMatmulOptions& options = {},
    const TransposedGroupedMatmulGradientOptions& wanted = {});

namespace vjp {

// Takes the gradient of the output to those of the operands. Keeps the operands alive; may be
// called any number of times.
class GroupedMatmulPullback {
 public:
  TESSERA_API GroupedMatmulGradients
  operator()(const Tensor& grad_output, const GroupedMatmulGradientOptions& wanted = {}) const;

 private:
  struct State;
  explicit GroupedMatmulPullback(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  friend struct GroupedMatmulMaker;
  std::shared_ptr<const State> state_;
};

struct GroupedMatmulResult {
  Tensor output;
  GroupedMatmulPullback pullback;
};

// auto [output, pullback] = vjp::grouped_matmul(context, lhs, rhs, group_sizes);
TESSERA_API GroupedMatmulResult grouped_matmul(const Executor& on, const Tensor& lhs,
                                               const Tensor& rhs, const Tensor& group_sizes,
                                               const GroupedMatmulOptions& options = {});

// The same of transposed_grouped_matmul.
class TransposedGroupedMatmulPullback {
 public:
  TESSERA_API TransposedGroupedMatmulGradients operator()(
      const Tensor& grad_output, const TransposedGroupedMatmulGradientOptions& wanted = {}) const;

 private:
  struct State;
  explicit TransposedGroupedMatmulPullback(std::shared_ptr<const State> state)
      : state_(std::move(state)) {}
  friend struct TransposedGroupedMatmulMaker;
  std::shared_ptr<const State> state_;
};

struct TransposedGroupedMatmulResult {
  Tensor output;
  TransposedGroupedMatmulPullback pullback;
};

TESSERA_API TransposedGroupedMatmulResult transposed_grouped_matmul(
    const Executor& on, const Tensor& lhs, const Tensor& rhs, const Tensor& group_sizes,
    const TransposedGroupedMatmulOptions& options = {});

}  // namespace vjp
}  // namespace tessera
