// SPDX-License-Identifier: Apache-2.0
// Products with weights of 8 or 4 bits.
//
//   output[..., n] = sum over groups g of scale[n, g] sum over the terms k of g of
//                    input[..., k] (weight[n, k] - zero_point[n, g])
//
// input [..., k], weight [n, k], output [..., n]. A group is group_size terms one behind the other,
// a multiple of 32, the last one what is left; where group_size is not set, scale's columns share
// the terms. scale and zero_point are [n, groups]; [n, 1] is one for each row. Without zero_point
// it is 0.
//
// Layouts of weight:
//   plain   i8, u8, or i4 and u4, packed two to a byte, the even one in the low half
//   q8_0    u8 [n, k / 32 * 34]: GGUF's blocks of 32 weights, a half as scale and 32 signed bytes
//   q4_0    u8 [n, k / 32 * 18]: a half as scale and 16 bytes; the low halves are the first 16
//           weights, the high ones the others; 8 is their zero
// The blocks are read as a file has them, and have no scale or zero_point beside them.
//
// Activations in 8 bits: input is i8, and input_scale, f32 [..., 1], says what its codes mean: the
// output is times it. quantise(input, i8) makes both of floats, row by row ("w8a8", "w4a8").
//
// Rows in groups: group_sizes, i32 [num_groups] on the device, says as grouped_matmul's how many
// rows of input, [m, k] then, each group has. weight is [matrices, n, k], scale and zero_point have
// that axis before theirs, too, and groups from group_offset on have a matrix each; rows of no
// matrix are 0, and their gradients. It makes floats of all weights, matrices n k of them in
// scratch. Sizes that are negative or go beyond the rows are data errors, as grouped_matmul has
// them.
//
//   grad_input[..., k] = sum over n of grad_output[..., n] scale[n, g] (weight[n, k] -
//   zero_point[n, g])
//
// in the dtype of grad_output. It makes floats of the weights, n k of them in scratch.
//
// Numerics: input, scale and output are f32, f16 or bf16 of their own, zero_point has the dtype of
// weight; output has the dtype of input where output_dtype does not say another (f32 of i8). A code
// minus its zero is exact; products and sums in float, the sum of a group (or of 32, 64 or 128
// terms of it) times its scale; one rounding to nearest even at the end. A scale of 0 makes weights
// of 0; one that is NaN or infinite makes the outputs of its row of weight NaN. The same bits every
// time.
//
// Errors: InvalidArgument for shapes, dtypes and options that contradict this. Unsupported for rows
// that are not contiguous, or not at equal distances, and operands that reach element 2^31.
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/context.hpp"
#include "tessera/export.hpp"

namespace tessera {

enum class WeightLayout : std::uint8_t { kPlain, kQ8_0, kQ4_0 };

// Tensors that are left out are not part of the call.
struct QuantisedMatmulOptions {
  WeightLayout layout = WeightLayout::kPlain;
  Tensor scale{}, zero_point{};
  Tensor input_scale{};  // of input in i8
  Tensor group_sizes{};  // of rows in groups
  std::optional<std::int64_t> group_offset{};
  std::optional<std::int64_t> group_size{};
  std::optional<DType> output_dtype{};  // f32, f16 or bf16; that of input
};

TESSERA_API Tensor quantised_matmul(const Executor& on, const Tensor& input, const Tensor& weight,
                                    const QuantisedMatmulOptions& options);

// The gradient of input; options.input_scale and output_dtype are those of the forward call alone.
TESSERA_API Tensor quantised_matmul_backward(const Executor& on, const Tensor& grad_output,
                                             const Tensor& weight,
                                             const QuantisedMatmulOptions& options);

}  // namespace tessera
