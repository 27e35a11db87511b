// SPDX-License-Identifier: Apache-2.0
// Means over tokens: of whole sequences, and of chunks of them. Gradients of both.
//
//   sequence_mean   output[b,:] = mean of input[b,t,:] over the tokens t of b that count
//   chunk_mean      output[b,c,:] = mean of input[b,t,:] over c chunk <= t < (c + 1) chunk, t < seq
//   backward        grad_input[t,:] = grad_output[row of t,:] / number of tokens that count in it;
//                   0 where t counts nowhere
//
// A mean of no tokens is 0.
//
// Packed sequences: with cu_seqlens, i32 [n + 1], the input has no batch axis, and sequence s is
// its rows cu_seqlens[s] <= t < cu_seqlens[s + 1]. Sequences of length 0 are allowed; rows before
// the first and after the last sequence belong to none.
//
// What the index tensors hold is only known on the device, so it is not checked there but made
// harmless: a value of lengths counts as the nearest in [0, seq], cu_seqlens[s] as the nearest in
// [0, total], cu_seqlens[s + 1] as the nearest in [that, total]. Nothing outside the operands is
// ever read or written. Where cu_seqlens decreases, sequences overlap: the means are those of the
// overlapping ranges, and a token of several takes the gradient of one of them or of none.
//
// Numerics: storage f32, f16 or bf16; sums in float; one rounding to nearest even at the end. A
// token that does not count is not added, so NaN there does not show. The same library, driver,
// device, configuration and inputs give the same bits.
//
// Source: masked mean pooling as sentence encoders do it (Reimers and Gurevych, arXiv:1908.10084);
// means of key blocks for native sparse attention (arXiv:2502.11089).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tessera/context.hpp"
#include "tessera/export.hpp"

namespace tessera {

// At most one of the three; without any, all tokens count.
struct SequenceMeanOptions {
  Tensor lengths{};     // i32 [batch]: the first lengths[b] tokens count
  Tensor mask{};        // u8 [batch, seq]: tokens with a mask that is not 0 count
  Tensor cu_seqlens{};  // i32 [n + 1]: packed sequences
};

// input [batch, seq, dim] or [batch, seq, heads, dim]; packed [total, dim] or [total, heads, dim].
// Returns [batch, dim] or [batch, heads, dim]; packed [n, dim] or [n, heads, dim]; in the dtype of
// input. All axes of all tensors may have any strides but the last of input and output, which is
// contiguous. Sequences are shorter than 2^30 tokens. Throws InvalidArgument for shapes and values
// that contradict this, Unsupported where no variant of the device can.
TESSERA_API Tensor sequence_mean(const Executor& on, const Tensor& input,
                                 const SequenceMeanOptions& options = {});

// The gradient of sequence_mean's input, which had `tokens` rows in each batch entry, or in all if
// packed. grad_output is shaped like sequence_mean's output, the result like its input.
TESSERA_API Tensor sequence_mean_backward(const Executor& on, const Tensor& grad_output,
                                          std::int64_t tokens,
                                          const SequenceMeanOptions& options = {});

struct ChunkMeanOptions {
  std::int64_t chunk = 32;  // tokens, at least 1; the last chunk of a sequence may be shorter
  Tensor cu_seqlens{};      // i32 [n + 1]: packed sequences, each of which starts a chunk
  // Rows of a packed output; see chunk_offsets(). Not for an input with a batch axis, whose shape
  // says it.
  std::optional<std::int64_t> chunks{};
};

// input [batch, seq, dim] or [batch, seq, heads, dim]; packed [total, dim] or [total, heads, dim].
// Returns [batch, ceil(seq / chunk), dim] or [batch, ceil(seq / chunk), heads, dim]; packed
// [chunks, dim] or [chunks, heads, dim], where all chunks of the first sequence come first, then
// those of the second. How many there are depends on what cu_seqlens holds, so the caller says it:
// rows of the output beyond them are 0, and chunks beyond the output's rows are left out. Strides,
// limits and errors as for sequence_mean.
TESSERA_API Tensor chunk_mean(const Executor& on, const Tensor& input,
                              const ChunkMeanOptions& options = {});

// The gradient of chunk_mean's input, which had `tokens` rows in each batch entry, or in all if
// packed. grad_output is shaped like chunk_mean's output; `chunks` need not be said again.
TESSERA_API Tensor chunk_mean_backward(const Executor& on, const Tensor& grad_output,
                                       std::int64_t tokens, const ChunkMeanOptions& options = {});

// Where the chunks of each sequence start in a packed output, for cu_seqlens in host memory: n + 1
// numbers, the last one how many chunks there are. {0, 3, 4, 8, 10} in chunks of 2: {0, 2, 3, 5,
// 6}. A sequence of length 0 has no chunk. Throws InvalidArgument when cu_seqlens is empty, starts
// below 0 or decreases, and when chunk is below 1.
TESSERA_API std::vector<std::int64_t> chunk_offsets(std::span<const std::int32_t> cu_seqlens,
                                                    std::int64_t chunk);

}  // namespace tessera
