// SPDX-License-Identifier: Apache-2.0
// Checks of the operands that say who sees whom and what a score is.
#include "operations/attention_core/core/policy_args.h"
#include "operations/attention_core/validate.hpp"

namespace tessera::operations::attention {
namespace {

bool is_one_of(std::int64_t size, std::initializer_list<std::int64_t> sizes) {
  return std::ranges::find(sizes, size) != sizes.end();
}

// [batch | 1, heads | kv_heads | 1, q_len | 1, kv_len]; without heads [batch, q_len, kv_len];
// without rows either [batch, kv_len].
void check_pairs(const Problem& problem, const AttentionProblem& call, std::size_t slot) {
  const Shape& shape = problem.spec(slot).shape;
  const std::size_t rank = shape.size();
  const auto size = [&](std::size_t axis) { return shape[axis]; };
  const bool key_axis = rank >= 2 && is_one_of(shape.back(), {1, call.kv_len});
  bool fits = key_axis && is_one_of(size(0), {1, call.batch});
  if (rank == 3) fits = fits && is_one_of(size(1), {1, call.q_len});
  if (rank == 4) {
    fits = fits && is_one_of(size(1), {1, call.kv_heads, call.heads}) &&
           is_one_of(size(2), {1, call.q_len});
  }
  require(problem, fits && rank >= 2 && rank <= 4,
          operand_text(problem, slot) + " must be [batch or 1, heads, kv_heads or 1, q_len or 1, " +
              "kv_len], [batch, q_len, kv_len] or [batch, kv_len]");
}

void check_per_row(const Problem& problem, const AttentionProblem& call, std::size_t slot,
                   std::int64_t rows, const char* what) {
  const Shape& shape = problem.spec(slot).shape;
  const bool fits = shape.size() == 1
                        ? call.packed && shape[0] == rows
                        : shape.size() == 2 && shape[0] == call.batch && shape[1] == rows;
  require(problem, fits,
          operand_text(problem, slot) + " must have one number for each " + what + ", [" +
              (call.packed ? "" : std::to_string(call.batch) + ", ") + std::to_string(rows) + "]");
}

void check_lengths(const Problem& problem, const AttentionProblem& call, std::size_t slot) {
  require(problem, problem.spec(slot).shape == Shape{call.batch},
          operand_text(problem, slot) + " must be [batch], [" + std::to_string(call.batch) + "]");
  require(problem, !call.packed,
          operand_text(problem, slot) +
              " belongs to batched operands; packed sequences have their "
              "lengths in cum_seqlens");
}

void check_both_or_neither(const Problem& problem, std::size_t a, std::size_t b) {
  if (problem.has(a) == problem.has(b)) return;
  const auto& operands = problem.operation->operands;
  require(problem, false,
          operands[problem.has(a) ? a : b].name + " needs " +
              operands[problem.has(a) ? b : a].name + " beside it");
}

void check_sequences(const Problem& problem, AttentionProblem& call) {
  const AttentionSlots& slots = call.slots;
  if (slots.cum_seqlens_q == kNoOperand) return;
  check_both_or_neither(problem, slots.cum_seqlens_q, slots.cum_seqlens_k);
  if (!problem.has(slots.cum_seqlens_q)) {
    require(problem, problem.spec(slots.query).shape.size() == 4,
            operand_text(problem, slots.query) +
                " has no batch axis, so cum_seqlens_q and cum_seqlens_k must say where its "
                "sequences begin");
    return;
  }
  for (const std::size_t slot : {slots.cum_seqlens_q, slots.cum_seqlens_k}) {
    const Shape& shape = problem.spec(slot).shape;
    require(problem, shape.size() == 1 && shape[0] >= 2,
            operand_text(problem, slot) + " must be [sequences + 1]");
    call.sequences = shape[0] - 1;
  }
  require(problem,
          problem.spec(slots.cum_seqlens_q).shape == problem.spec(slots.cum_seqlens_k).shape,
          "cum_seqlens_q and cum_seqlens_k must have the same number of sequences");
  call.packed =
      problem.spec(slots.query).shape.size() == 3 || (call.batch == 1 && call.sequences != 1);
  require(problem, call.packed || call.sequences == call.batch,
          operand_text(problem, slots.cum_seqlens_q) + " must have batch + 1 = " +
              std::to_string(call.batch + 1) + " entries where operands have a batch axis");
}

}  // namespace

void check_policies(const Problem& problem, AttentionProblem& call) {
  const AttentionSlots& slots = call.slots;
  check_sequences(problem, call);
  std::uint32_t features = 0;
  const auto storage_or_float = [&](std::size_t slot, std::uint32_t wide) {
    const DType dtype = problem.spec(slot).dtype;
    require(problem, dtype == problem.dtype || dtype == DType::kF32,
            operand_text(problem, slot) + " must have the dtype of query, " +
                std::string(to_string(problem.dtype)) + ", or f32");
    if (dtype == DType::kF32) features |= wide;
  };
  if (problem.has(slots.mask)) {
    check_pairs(problem, call, slots.mask);
    features |= POLICY_MASK;
  }
  if (problem.has(slots.bias)) {
    check_pairs(problem, call, slots.bias);
    storage_or_float(slots.bias, POLICY_WIDE_BIAS);
    features |= POLICY_BIAS | (call.bias_after_cap ? POLICY_BIAS_AFTER_CAP : 0);
  }
  const auto check_lines = [&](std::size_t slot, const std::string& line) {
    const Shape& shape = problem.spec(slot).shape;
    require(problem,
            shape.size() == 1 ||
                (shape.size() == 2 && is_one_of(shape[0], {1, call.kv_heads, call.heads})),
            operand_text(problem, slot) + " must be [" + line + "] or [heads or kv_heads, " + line +
                "]");
  };
  if (problem.has(slots.position_bias)) {
    check_lines(slots.position_bias, "positions");
    storage_or_float(slots.position_bias, 0);
    if (problem.spec(slots.position_bias).shape.back() > 0)
      features |= POLICY_BIAS | POLICY_WIDE_BIAS | POLICY_BIAS_AFTER_CAP;
  }
  if (problem.has(slots.alibi_slopes)) {
    const Shape& shape = problem.spec(slots.alibi_slopes).shape;
    require(problem, shape == Shape{call.heads} || shape == Shape{call.batch, call.heads},
            operand_text(problem, slots.alibi_slopes) + " must be [heads] or [batch, heads]");
    features |= POLICY_ALIBI;
  }
  if (problem.has(slots.sinks)) {
    check_lines(slots.sinks, "sinks");
    storage_or_float(slots.sinks, POLICY_WIDE_SINKS);
    if (problem.spec(slots.sinks).shape.back() > 0) features |= POLICY_SINKS;
  }
  for (const std::size_t slot : {slots.q_lengths, slots.kv_lengths}) {
    if (problem.has(slot)) check_lengths(problem, call, slot);
  }
  check_both_or_neither(problem, slots.q_segments, slots.kv_segments);
  if (problem.has(slots.q_segments)) {
    check_per_row(problem, call, slots.q_segments, call.q_len, "query row");
    check_per_row(problem, call, slots.kv_segments, call.kv_len, "key row");
    features |= POLICY_SEGMENTS;
  }
  check_both_or_neither(problem, slots.q_positions, slots.kv_positions);
  if (problem.has(slots.q_positions)) {
    check_per_row(problem, call, slots.q_positions, call.q_len, "query row");
    check_per_row(problem, call, slots.kv_positions, call.kv_len, "key row");
    require(problem, !call.bottom_right,
            "causal_alignment bottom_right does not go with positions, which align the rows");
    features |= POLICY_POSITIONS;
  }
  if (call.dropout > 0) features |= POLICY_DROPOUT;
  if (!call.normalize) features |= POLICY_UNNORMALIZED;
  call.features = features;
  const bool lengths = problem.has(slots.q_lengths) || problem.has(slots.kv_lengths);
  call.policies = features != 0 || lengths || call.sequences > 0 || call.chunk > 0 ||
                  slots.weights != kNoOperand;
}

}  // namespace tessera::operations::attention
