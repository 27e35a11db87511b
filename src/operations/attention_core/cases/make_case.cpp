// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "operations/attention_core/cases/workload.hpp"
#include "operations/common/cases.hpp"

namespace tessera::operations::attention {
namespace {

// The same shape as a view of [batch, heads, rows, dim], with `gap` unused elements after each row.
TensorSpec by_heads(DType dtype, std::int64_t batch, std::int64_t rows, std::int64_t heads,
                    std::int64_t dim, std::int64_t gap, std::int64_t offset = 3) {
  return strided_view(dtype, {batch, rows, heads, dim}, {0, 2, 1}, gap, offset);
}

}  // namespace

Case make_case(const AttentionSlots& slots, DType dtype, const AttentionCaseShape& shape) {
  const AttentionSizes& s = shape.sizes;
  const std::int64_t value_dim = s.value_dim == 0 ? s.head_dim : s.value_dim;
  const auto has = [&](std::uint32_t feature) { return (shape.features & feature) != 0; };
  Case result{.name = shape.name, .why = shape.why, .options = shape.options, .data = shape.data};
  const auto set = [&](std::size_t slot, DType type, Shape dims) {
    if (slot == kNoOperand) return;
    result.operands.resize(std::max(result.operands.size(), slot + 1));
    result.operands[slot] = TensorSpec::contiguous(type, std::move(dims));
  };
  const auto rows = [&](std::size_t slot, std::int64_t length, std::int64_t heads,
                        std::int64_t dim) {
    set(slot, dtype, has(kPacked) ? Shape{length, heads, dim} : Shape{s.batch, length, heads, dim});
  };
  const Shape lse = has(kPacked) ? Shape{s.heads, s.q_len} : Shape{s.batch, s.heads, s.q_len};
  rows(slots.query, s.q_len, s.heads, s.head_dim);
  rows(slots.key, s.kv_len, s.kv_heads, s.head_dim);
  rows(slots.value, s.kv_len, s.kv_heads, value_dim);
  if (slots.output_gradient != kNoOperand) {
    rows(slots.output, s.q_len, s.heads, value_dim);
    rows(slots.output_gradient, s.q_len, s.heads, value_dim);
    set(slots.log_sum_exp, DType::kF32, lse);
  } else if (has(kLogSumExp)) {
    set(slots.log_sum_exp, DType::kF32, lse);
  }
  const Shape whole{s.batch, s.heads, s.q_len, s.kv_len};
  if (has(kMask)) set(slots.mask, DType::kU8, whole);
  if (has(kSharedMask)) set(slots.mask, DType::kU8, {1, 1, s.q_len, s.kv_len});
  if (has(kKeyMask)) set(slots.mask, DType::kU8, {s.batch, s.kv_len});
  const Shape shared{1, s.kv_heads, 1, s.kv_len};
  if (has(kBias)) set(slots.bias, dtype, whole);
  if (has(kSharedBias)) set(slots.bias, DType::kF32, shared);
  if (has(kBiasGradient) && has(kBias)) set(slots.bias_gradient, dtype, whole);
  if (has(kBiasGradient) && has(kSharedBias)) set(slots.bias_gradient, DType::kF32, shared);
  if (has(kAlibi)) set(slots.alibi_slopes, DType::kF32, {s.heads});
  if (has(kSinks)) set(slots.sinks, DType::kF32, {2});
  if (has(kHeadSinks)) set(slots.sinks, dtype, {s.heads, 3});
  if (has(kSinksGradient) && has(kSinks)) set(slots.sinks_gradient, DType::kF32, {2});
  if (has(kSinksGradient) && has(kHeadSinks)) set(slots.sinks_gradient, dtype, {s.heads, 3});
  if (has(kPacked) || has(kPadded)) {
    const std::int64_t sequences = has(kPacked) ? s.sequences : s.batch;
    set(slots.cum_seqlens_q, DType::kI32, {sequences + 1});
    set(slots.cum_seqlens_k, DType::kI32, {sequences + 1});
  }
  if (has(kQLengths)) set(slots.q_lengths, DType::kI32, {s.batch});
  if (has(kKvLengths)) set(slots.kv_lengths, DType::kI32, {s.batch});
  if (has(kSegments)) {
    set(slots.q_segments, DType::kI32, {s.batch, s.q_len});
    set(slots.kv_segments, DType::kI32, {s.batch, s.kv_len});
  }
  if (has(kPositions)) {
    set(slots.q_positions, DType::kI32, {s.batch, s.q_len});
    set(slots.kv_positions, DType::kI32, {s.batch, s.kv_len});
  }
  return result;
}

Case strided_case(const AttentionSlots& slots, DType dtype) {
  Case result = make_case(slots, dtype,
                          {.name = "strided",
                           .why = "[batch, heads, seq, dim] views with gaps and odd offsets",
                           .sizes = {.batch = 2,
                                     .q_len = 37,
                                     .kv_len = 53,
                                     .heads = 6,
                                     .kv_heads = 3,
                                     .head_dim = 40,
                                     .value_dim = 24},
                           .options = {{"causal", true}},
                           .features = kLogSumExp});
  const auto set = [&](std::size_t slot, const TensorSpec& spec) {
    if (slot == kNoOperand) return;
    result.operands.resize(std::max(result.operands.size(), slot + 1));
    result.operands[slot] = spec;
  };
  set(slots.query, by_heads(dtype, 2, 37, 6, 40, 5));
  set(slots.key, by_heads(dtype, 2, 53, 3, 40, 1));
  set(slots.value, by_heads(dtype, 2, 53, 3, 24, 0));
  set(slots.output, by_heads(dtype, 2, 37, 6, 24, 7));
  set(slots.output_gradient, by_heads(dtype, 2, 37, 6, 24, 2));
  set(slots.query_gradient, by_heads(dtype, 2, 37, 6, 40, 3));
  set(slots.key_gradient, by_heads(dtype, 2, 53, 3, 40, 4));
  set(slots.value_gradient, by_heads(dtype, 2, 53, 3, 24, 1));
  return result;
}

Case odd_output_case(const AttentionSlots& slots, DType dtype) {
  Case result =
      make_case(slots, dtype,
                {.name = "odd_output",
                 .why = "zeros of rows that see nothing, at odd places in memory",
                 .sizes = {.batch = 3, .q_len = 3, .kv_len = 40, .heads = 2, .kv_heads = 1},
                 .features = kLogSumExp | kKvLengths});
  TensorSpec output = TensorSpec::contiguous(dtype, {3, 3, 2, 64});
  output.offset = 3;
  result.operands.resize(std::max(result.operands.size(), slots.output + 1));
  result.operands[slots.output] = output;
  return result;
}

Case aligned_strided_case(const AttentionSlots& slots, DType dtype) {
  Case result = make_case(
      slots, dtype,
      {.name = "strided_aligned",
       .why = "[batch, heads, seq, dim] views with gaps, all multiples of 8",
       .sizes =
           {.batch = 2, .q_len = 139, .kv_len = 201, .heads = 4, .kv_heads = 2, .head_dim = 64},
       .options = {{"causal", true}},
       .features = kLogSumExp});
  const auto set = [&](std::size_t slot, std::int64_t rows, std::int64_t heads, std::int64_t gap) {
    result.operands.resize(std::max(result.operands.size(), slot + 1));
    result.operands[slot] = by_heads(dtype, 2, rows, heads, 64, gap, 16);
  };
  set(slots.query, 139, 4, 8);
  set(slots.key, 201, 2, 16);
  set(slots.value, 201, 2, 0);
  set(slots.output, 139, 4, 24);
  return result;
}

}  // namespace tessera::operations::attention
