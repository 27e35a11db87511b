// SPDX-License-Identifier: Apache-2.0
// Cumulative sums over the tokens of a sequence, such as those of log decays.
//
//   output_t = scale sum of input_s over begin <= s <= t          (reverse: over t <= s < end)
//
// [begin, end) is the whole sequence or, with chunk, the chunk of so many tokens that t is in,
// where the last one of a sequence may be shorter.
//
// Shapes: input and output [batch, seq, heads] or [batch, seq, heads, dim]; with head_first [batch,
// heads, seq] or [batch, heads, seq, dim]. Any strides. Packed sequences: with cu_seqlens, i32
// [sequences + 1], batch is 1, and sums and chunks begin anew with each sequence; boundaries and
// tokens of no sequence are treated as recurrent (recurrent.hpp) treats them.
//
// Numerics: input in f32, f16 or bf16, output in that or in output_dtype; sums in float, token
// after token, one rounding to nearest even of each output. Infinities and NaN reach the outputs
// whose sums they belong to. The same inputs give the same bits.
//
// Gradient: the sums of the output's gradient in the other direction, with the same chunk and
// scale.
//
// Errors: InvalidArgument for shapes, dtypes and options that contradict this, Unsupported where no
// variant of the device can.
#pragma once

#include <cstdint>
#include <optional>

#include "tessera/context.hpp"
#include "tessera/export.hpp"

namespace tessera {

struct CumsumOptions {
  std::optional<std::int64_t> chunk{};  // tokens, at least 1; not set = whole sequences
  bool reverse = false;
  bool head_first = false;
  float scale = 1;
  std::optional<DType> output_dtype{};  // default that of input
  Tensor cu_seqlens{};
};

TESSERA_API Tensor cumsum(const Executor& on, const Tensor& input,
                          const CumsumOptions& options = {});

}  // namespace tessera
