// SPDX-License-Identifier: Apache-2.0
// Floats as codes of 8 or 4 bits, and back.
//
// Blocks of group_rows rows by group_size columns share a scale; at the ends of a matrix they are
// smaller. Where a size is not set, quantise takes one row and all of its columns, dequantise what
// the shape of scale says. group_size is a multiple of 32, or the whole row.
//
//   i8, i4         scale = largest |x| / 127 or 7, code = round(x / scale), at most 127 or 7 either
//                  way
//   e4m3fn, e5m2   scale = largest |x| / 448 or 57344, code = x / scale in that format, saturating
//   u8, u4         of the range from min to max, 0 among them: scale = (max - min) / 255 or 15,
//                  zero_point = round(-min / scale), code = round(x / scale) + zero_point, cut to
//                  [0, 255] or [0, 15]
//   i8, dynamic    scale = 127 / (largest |x| + 1e-6), 1 where all are below 2^-126;
//                  code = round(x scale)
//
//   q8_0, q4_0     GGUF's blocks of 32 columns, as quantised_matmul has them, in u8: scale a half
//   (layout)       of s = largest |x| / 127, codes x (1 / s), halves away from zero; or s = x / -8
//                  of the first x of the largest |x|, codes floor(x (1 / s) + 8.5), at most 15
//
//   dequantise     (code - zero_point) scale, or code / scale of dynamic ones
//
// input [..., rows, columns] or [columns]; codes the same; scale f32 and zero_point, in the dtype
// of codes, [..., rows / group_rows, columns / group_size], rounded up. quantised_matmul takes
// codes, scale and zero_point of weights as they are, with group_rows 1. Blocks hold their scales:
// codes are [..., rows, columns / 32 bytes of a block], quantise gives the scales beside them, f32
// [..., rows, columns / 32], and dequantise takes none.
//
// Numerics: scale is a float, rounded once; x / scale is rounded to a float as IEEE 754 has it, on
// every device, and then once to a code, to nearest even. A scale below the smallest normal float
// is 1, of 8-bit floats 2^-126, so zeros have one, too. NaN is in no range; its code is 0
// (zero_point, where there is one), or NaN of an 8-bit float. An infinity makes its block's scale
// infinite (0 if dynamic): what the other elements mean is lost. dequantise takes any scale: its
// output is the float product, NaN where that is. Blocks are ggml's to the bit; where s is below
// the smallest normal float all codes are those of 0, beyond the largest half the scale is
// infinite. Devices may take subnormal elements for 0. Output in f32, f16 or bf16, rounded to
// nearest even.
//
// Errors: InvalidArgument for shapes, dtypes and options that contradict this. Unsupported where
// rows are not contiguous, batches not at equal distances, and operands reach element 2^31.
//
// Sources: DeepSeek-V3, arXiv:2412.19437 (blocks of 1 x 128 and 128 x 128); ggml's
// quantize_row_q8_0_ref and quantize_row_q4_0_ref.
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/context.hpp"
#include "tessera/export.hpp"
#include "tessera/operations/quantised_matmul.hpp"

namespace tessera {

// What shares a scale.
struct CodesBlocks {
  std::optional<std::int64_t> group_size{}, group_rows{};
  bool dynamic = false;
  WeightLayout layout = WeightLayout::kPlain;
};

struct Quantised {
  Tensor codes, scale;
  Tensor zero_point;  // of u8 and u4 in plain layouts
};

TESSERA_API Quantised quantise(const Executor& on, const Tensor& input, DType codes,
                               const CodesBlocks& blocks = {});
TESSERA_API Tensor dequantise(const Executor& on, const Quantised& from, DType output = DType::kF32,
                              const CodesBlocks& blocks = {});

}  // namespace tessera
