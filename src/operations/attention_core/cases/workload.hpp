// SPDX-License-Identifier: Apache-2.0
// Made-up calls of the attention operations, for tests, benchmarks and the tuner alike.
#pragma once

#include <string>
#include <vector>

#include "operations/attention_core/problem.hpp"

namespace tessera::operations::attention {

struct AttentionSizes {
  std::int64_t batch = 1, q_len = 1, kv_len = 1, heads = 1, kv_heads = 1, head_dim = 64,
               value_dim = 0;  // 0 = head_dim
  std::int64_t sequences = 4;  // of packed calls
};

// Which optional operands a call has, and in which of their shapes.
enum AttentionFeature : std::uint32_t {
  kMask = 1 << 0,        // [batch, heads, q_len, kv_len]
  kSharedMask = 1 << 1,  // [1, 1, q_len, kv_len]
  kKeyMask = 1 << 2,     // [batch, kv_len]
  kBias = 1 << 3,        // [batch, heads, q_len, kv_len], storage type
  kSharedBias = 1 << 4,  // [1, kv_heads, 1, kv_len], float
  kAlibi = 1 << 5,       // [heads]
  kSinks = 1 << 6,       // [2], float
  kHeadSinks = 1 << 7,   // [heads, 3], storage type
  kPacked = 1 << 8,      // cum_seqlens of operands without a batch axis
  kPadded = 1 << 9,      // cum_seqlens of operands with one
  kQLengths = 1 << 10,
  kKvLengths = 1 << 11,
  kSegments = 1 << 12,
  kPositions = 1 << 13,
  kLogSumExp = 1 << 14,  // the output is wanted
  kBiasGradient = 1 << 15,
  kSinksGradient = 1 << 16,
};

struct AttentionCaseShape {
  std::string name, why;
  AttentionSizes sizes{};
  Options options{};
  std::uint32_t features = 0;
  std::string data =
      "normal";  // of the rows; +masking biases and sinks, +unordered offsets, +far positions
};

// Of keys and values, which are codes in some combinations of types; and about how large codes are
// that stand for 1.
DType stored_dtype(const StorageTypes& types);
double typical_code(DType code);
// What shares a scale, as in quantise_cache.
enum class ScaleOf : std::uint8_t { kTokenHead, kPage, kHead, kTensor };

Case make_case(const AttentionSlots& slots, DType dtype, const AttentionCaseShape& shape);

// Of every operation; of what flash_attention has, forward and backward; and of what only forward
// passes have.
std::vector<AttentionCaseShape> forward_cases();
std::vector<AttentionCaseShape> policy_cases();
std::vector<AttentionCaseShape> forward_only_cases();
Case strided_case(const AttentionSlots& slots, DType dtype);
Case odd_output_case(const AttentionSlots& slots, DType dtype);       // needs kv_lengths
Case aligned_strided_case(const AttentionSlots& slots, DType dtype);  // forward

// Writes the inputs; those of the backward pass that the forward pass would have made too.
void fill_attention(const Problem& problem, const Case& shape, std::span<HostTensor> tensors);

// Data "hidden_nan" and "some_nan": NaN and infinities in all that no visible pair needs, and in a
// few elements that some need. The masks, lengths and so on are written before.
void spoil_inputs(const Problem& problem, const Case& shape, std::span<HostTensor> tensors);
void spoil_forward_results(const Problem& problem, const Case& shape,
                           std::span<HostTensor> tensors);

double forward_flops(const Problem& problem);

std::vector<Expectation> expect_attention(const Problem& problem, std::span<HostTensor> tensors,
                                          const Arithmetic& arithmetic, double max_flops);
std::vector<Expectation> expect_attention_backward(const Problem& problem,
                                                   std::span<HostTensor> tensors,
                                                   const Arithmetic& arithmetic, double max_flops);

// All of [0, count), or a sorted sample of it where all would take more than `max_flops`.
std::vector<std::int64_t> affordable_rows(std::int64_t count, double flops_per_row,
                                          double max_flops);

}  // namespace tessera::operations::attention
