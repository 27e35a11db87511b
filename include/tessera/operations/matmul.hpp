// SPDX-License-Identifier: Apache-2.0
// Matrix products with everything that may follow them, and their gradients.
//
//   z      = alpha op(a) op(b) + bias + beta c
//   output = act(z) * gate + residual                       (1 and 0 where left out)
//
// op() transposes the last two axes where transpose_a or transpose_b says so. Activations: none,
// relu, gelu (by the error function), gelu_tanh, silu; swiglu and geglu take the columns of z in
// pairs, of which the even one is activated and multiplies the odd one: output[j] = act(z[2 j])
// z[2 j + 1], with silu and gelu.
//
// Gradients, with dy = grad_output and t = dy * gate * act'(z), and of pairs
//
//   t[2 j]     = dy[j] gate[j] act'(z[2 j]) z[2 j + 1]
//   t[2 j + 1] = dy[j] gate[j] act(z[2 j])
//
//
//   grad_a    = alpha t op(b)^T, grad_b = alpha op(a)^T t, each turned as its operand is, and
//               summed over the batches along which it repeats
//   grad_bias = t, summed over what bias repeats along
//   grad_c    = beta t, 0 where beta is 0
//   grad_gate = dy * act(z), and of pairs dy[j] act(z[2 j]) z[2 j + 1]
//   the gradient of residual is grad_output
//
// Shapes: op(a) [..., m, k], op(b) [..., k, n]; leading axes broadcast to one another from the
// right. bias broadcasts to z: [n], [m, 1], [..., m, n]. c is [..., m, n] as z is; gate, residual
// and output [..., m, n], or [..., m, n / 2] where columns are paired. Strides are any that are not
// negative: transposes, batches and repeated rows are views. K of 0 makes the product 0; with beta
// of 0, c is not read.
//
// Factors of 8 bits, forward only: a and b are both i8, or each of e4m3fn and e5m2; the other
// operands are f32, f16 or bf16. scale_a and scale_b say what their elements are meant as:
//
//   op(a) op(b)[i, j] = sum over blocks t of scale_a[i, t] scale_b[t, j] sum over k in t of
//                       op(a)[i, k] op(b)[k, j]
//
// A scale has the axes of its operand as it is stored, each with one element; or along the terms
// one for each 128 of them (1 x 128, with one for each row of op(a) or column of op(b)), and along
// the other axis one for each row or column, or for each 128 (128 x 128). Its leading axes
// broadcast to those of its operand, and so do those that it lacks: [1] scales all of it. Blocks at
// the end count as they are. Sums are scaled first by scale_a, then by scale_b: where a scale is 0,
// NaN or infinite, float arithmetic says what becomes of them; of no terms the product is 0 all the
// same. Sums of i8 are exact, in 32 bits, for k below 2^17; output_dtype kI32 gives them as they
// are, with nothing else in the call.
//
// Numerics: floats are f32, f16 or bf16, every operand of its own; output has the dtype of a where
// output_dtype does not say another, of 8-bit floats and scaled i8 f32, of i8 alone i32; gradients
// have that of their operand. Products and sums in float, one rounding to nearest even at the end;
// backward, variants on matrix units round t to 16 bits (Precision::kHigh), others keep it in
// float. Where a CPU multiplies pairs of bf16, subnormal numbers count for 0 (Precision::kHigh).
// Where Hopper multiplies 8-bit floats, its matrix unit adds their products in about 14 bits; with
// scales of blocks of terms 128 of them, whose sum is multiplied by both scales' product
// (Precision::kDefault).
// Sums have one order: the same library, driver, device, configuration and inputs give the same
// bits. NaN and infinity stay in their rows and columns. On NVIDIA, factors of 8 bits are slow but
// on Hopper, contiguous along the terms, floats with scales of blocks of terms only where b has one
// for 128 columns: the variant `tile` takes the others there, without matrix units.
//
// Errors: InvalidArgument for shapes, dtypes and options that contradict this. Unsupported where no
// variant of the device can: more than three leading axes that do not lie one behind the other,
// more than two along which a gradient is added up, or an operand that reaches element 2^31.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "tessera/context.hpp"
#include "tessera/export.hpp"

namespace tessera {

enum class MatmulActivation : std::uint8_t {
  kNone,
  kRelu,
  kGelu,
  kGeluTanh,
  kSilu,
  kSwiglu,
  kGeglu
};

// Tensors that are left out are not part of the call.
struct MatmulOptions {
  bool transpose_a = false, transpose_b = false;
  float alpha = 1, beta = 1;  // finite
  MatmulActivation activation = MatmulActivation::kNone;
  Tensor bias{}, c{}, gate{}, residual{};
  std::optional<DType> output_dtype{};  // f32, f16 or bf16, of i8 i32; that of a
  Tensor scale_a{}, scale_b{};          // f32, of factors of 8 bits; forward only
};

// Which gradients to compute, of those that the call has.
struct MatmulGradientOptions {
  bool a = true, b = true, bias = true, c = true, gate = true;
};

// Empty where the call has no such operand or it was not wanted.
struct MatmulGradients {
  Tensor a, b, bias, c, gate;
};

TESSERA_API Tensor matmul(const Executor& on, const Tensor& a, const Tensor& b,
                          const MatmulOptions& options = {});
// The output as i8, e4m3fn or e5m2, and a scale for each of its rows, [..., m, 1] f32, which the
// codes times are meant: what quantise() of the output in f32 gives (quantise.hpp), NaN and
// infinity included. As a factor of the next product, with its scale_a. output_dtype is not set;
// codes have no gradient. Unsupported where rows of codes are not contiguous.
struct MatmulCodes {
  Tensor output, scale;
};
TESSERA_API MatmulCodes matmul_to_codes(const Executor& on, const Tensor& a, const Tensor& b,
                                        DType codes, const MatmulOptions& options = {});
TESSERA_API MatmulGradients matmul_backward(const Executor& on, const Tensor& a, const Tensor& b,
                                            const Tensor& grad_output,
                                            const MatmulOptions& options = {},
                                            const MatmulGradientOptions& wanted = {});

// What maps to one batched product, without a copy of an operand: "bhqd,bhkd->bhqk".
//
//   output[labels of the output] = sum over the labels that it lacks of a[...] b[...]
//
// Each label, a letter, is an axis. Those of both operands and the output are batches, those of
// both operands alone are summed; without "->" the output has the labels that occur once, in the
// order of the alphabet, as numpy has it. Spaces do not count. A label twice in an operand takes
// its diagonal. Operands and results are those of matmul.
//
// Errors: InvalidArgument, with a sentence, for what is no product of two operands: a label that
// one operand alone has and the output lacks, one of the output that none has or that it has twice,
// an ellipsis, extents that differ, summed axes that do not lie one behind the other in both
// operands.
TESSERA_API Tensor einsum(const Executor& on, std::string_view equation, const Tensor& a,
                          const Tensor& b, std::optional<DType> output_dtype = std::nullopt);

namespace vjp {

// Takes the gradient of the output to those of the operands. Keeps the operands alive; may be
// called any number of times.
class MatmulPullback {
 public:
  TESSERA_API MatmulGradients operator()(const Tensor& grad_output,
                                         const MatmulGradientOptions& wanted = {}) const;

 private:
  struct State;
  explicit MatmulPullback(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  friend struct MatmulMaker;
  std::shared_ptr<const State> state_;
};

struct MatmulResult {
  Tensor output;
  MatmulPullback pullback;
};

// auto [output, pullback] = vjp::matmul(context, a, b, {.bias = bias});
TESSERA_API MatmulResult matmul(const Executor& on, const Tensor& a, const Tensor& b,
                                const MatmulOptions& options = {});

// The gradients of both operands, in their shapes and dtypes and contiguous: where an operand
// repeats in memory, by strides of 0, each of its elements has its own. An operand whose diagonal
// was taken has none: Unsupported.
class EinsumPullback {
 public:
  TESSERA_API std::pair<Tensor, Tensor> operator()(const Tensor& grad_output) const;

 private:
  struct State;
  explicit EinsumPullback(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  friend struct EinsumMaker;
  std::shared_ptr<const State> state_;
};

struct EinsumResult {
  Tensor output;
  EinsumPullback pullback;
};

TESSERA_API EinsumResult einsum(const Executor& on, std::string_view equation, const Tensor& a,
                                const Tensor& b, std::optional<DType> output_dtype = std::nullopt);

}  // namespace vjp
}  // namespace tessera
