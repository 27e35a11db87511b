// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/validate.hpp"

#include <algorithm>
#include <cmath>

#include "abi/shared.h"
#include "kernel/option_access.hpp"
#include "operations/attention_core/core/policy_args.h"
#include "operations/attention_core/problem.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::attention {
namespace {

constexpr std::int64_t kMaxHeadDim = 512;

void require_equal(const Problem& problem, std::size_t a, std::size_t b, std::size_t axis,
                   const char* what) {
  const Shape &left = with_batch(problem.spec(a)).shape, &right = with_batch(problem.spec(b)).shape;
  require(problem, left[axis] == right[axis],
          operand_text(problem, a) + " and " + operand_text(problem, b) + " must have the same " +
              what);
}

// An option that not every operation of the family has.
bool has_option(const Problem& problem, std::string_view name) {
  return problem.options.contains(name);
}

void parse_band(const Problem& problem, AttentionProblem& call) {
  if (has_option(problem, "causal")) call.causal = kernel::bool_option(problem, "causal");
  if (has_option(problem, "causal_alignment")) {
    call.bottom_right =
        kernel::choice_option(problem, "causal_alignment", {"top_left", "bottom_right"}) == 1;
  }
  if (const auto window = kernel::integers_option(problem, "sliding_window")) {
    const bool valid = !window->empty() && window->size() <= 2 && std::ranges::min(*window) >= 0;
    if (!valid)
      kernel::bad_option(problem, "sliding_window", "one or two integers that are not negative");
    call.window_left = std::min(kMostDistance, window->front());
    call.window_right = std::min(kMostDistance, window->back());
  }
  if (has_option(problem, "chunk_size")) {
    const auto chunk = kernel::integers_option(problem, "chunk_size");
    if (chunk && (chunk->size() != 1 || chunk->front() <= 0 || chunk->front() >= kMaxLength))
      kernel::bad_option(problem, "chunk_size", "an integer from 1 to 2^30 - 1");
    if (chunk) {
      call.chunk = chunk->front();
      call.causal = true;
    }
  }
}

// The operands that forward and backward share.
AttentionProblem parse_attention(Problem& problem) {
  const AttentionSlots slots = attention_slots(problem.operation->operands);
  const bool may_be_packed = slots.cum_seqlens_q != kNoOperand;
  require_rows(problem, slots.query, may_be_packed);
  require_rows(problem, slots.key, may_be_packed);
  require_rows(problem, slots.value, may_be_packed);
  for (const std::size_t slot : {slots.key, slots.value}) {
    require(problem, problem.spec(slot).shape.size() == problem.spec(slots.query).shape.size(),
            operand_text(problem, slot) + " must have as many axes as " +
                operand_text(problem, slots.query));
  }
  require_equal(problem, slots.query, slots.key, 0, "batch");
  require_equal(problem, slots.key, slots.value, 0, "batch");
  require_equal(problem, slots.key, slots.value, 1, "number of rows");
  require_equal(problem, slots.key, slots.value, 2, "number of heads");
  require_equal(problem, slots.query, slots.key, 3, "head_dim");
  problem.dtype = problem.spec(slots.query).dtype;
  for (const std::size_t slot : {slots.key, slots.value}) {
    require(problem, problem.spec(slot).dtype == problem.dtype,
            problem.operation->operands[slot].name + " must have the dtype of query, " +
                std::string(to_string(problem.dtype)));
  }
  const Shape q = with_batch(problem.spec(slots.query)).shape;
  const Shape k = with_batch(problem.spec(slots.key)).shape;
  AttentionProblem call{.slots = slots,
                        .batch = q[0],
                        .q_len = q[1],
                        .kv_len = k[1],
                        .heads = q[2],
                        .kv_heads = k[2],
                        .head_dim = q[3],
                        .value_dim = problem.spec(slots.value).shape.back()};
  require(problem, call.q_len < kMaxLength && call.kv_len < kMaxLength,
          "sequences must be shorter than 2^30 rows");
  require_groups(problem, call);
  parse_options(problem, call);
  check_policies(problem, call);
  set_band(call);
  return call;
}

// Shapes of rows, without the batch axis where the call's operands have none.
Shape rows_shape(const Problem& problem, const AttentionProblem& call, std::int64_t rows,
                 std::int64_t heads, std::int64_t dim) {
  if (problem.spec(call.slots.query).shape.size() == 3) return {rows, heads, dim};
  return {call.batch, rows, heads, dim};
}

Shape lse_shape(const Problem& problem, const AttentionProblem& call) {
  if (problem.spec(call.slots.query).shape.size() == 3) return {call.heads, call.q_len};
  return {call.batch, call.heads, call.q_len};
}

// Rows begin with a byte of two elements.
bool are_even(const TensorSpec& spec) {
  bool even = spec.offset % 2 == 0;
  for (std::size_t axis = 0; axis + 1 < spec.shape.size(); ++axis)
    even = even && (spec.shape[axis] <= 1 || spec.strides[axis] % 2 == 0);
  return even;
}

void require_spec(const Problem& problem, std::size_t slot, DType dtype, const Shape& shape) {
  const TensorSpec wanted = TensorSpec::contiguous(dtype, shape);
  require(problem, problem.spec(slot).dtype == dtype && problem.spec(slot).shape == shape,
          operand_text(problem, slot) + " must be " + wanted.to_string());
}

}  // namespace

void require_contiguous_rows(const Problem& problem, std::size_t slot) {
  if (!problem.has(slot)) return;
  const TensorSpec& spec = problem.spec(slot);
  require(problem, spec.shape.back() <= 1 || spec.strides.back() == 1,
          problem.operation->operands[slot].name + " must be contiguous along its last axis");
}

void require_rows(const Problem& problem, std::size_t slot, bool may_be_packed) {
  const TensorSpec& spec = problem.spec(slot);
  const std::string name = problem.operation->operands[slot].name;
  require(problem, spec.shape.size() == 4 || (may_be_packed && spec.shape.size() == 3),
          name + " " + spec.to_string() + " must have the 4 axes [batch, rows, heads, dim]" +
              (may_be_packed ? ", or [rows, heads, dim] with cum_seqlens" : ""));
  require_contiguous_rows(problem, slot);
  require_dim(problem, slot);
}

void require_dim(const Problem& problem, std::size_t slot) {
  const TensorSpec& spec = problem.spec(slot);
  require(problem, spec.shape.back() >= 1 && spec.shape.back() <= kMaxHeadDim,
          problem.operation->operands[slot].name + " " + spec.to_string() +
              " must have a last axis of 1 to " + std::to_string(kMaxHeadDim));
}

void require_groups(const Problem& problem, const AttentionProblem& call) {
  require(problem, call.kv_heads >= 1 && call.heads % call.kv_heads == 0,
          "the " + std::to_string(call.heads) + " query heads must be a multiple of the " +
              std::to_string(call.kv_heads) + " key/value heads");
}

void check_stored(const Problem& problem, AttentionProblem& call) {
  const AttentionSlots& slots = call.slots;
  const auto name = [&](std::size_t slot) { return problem.operation->operands[slot].name; };
  call.stored = problem.spec(slots.key).dtype;
  for (const auto& [slot, rows] :
       {std::pair{slots.key_scale, slots.key}, std::pair{slots.value_scale, slots.value}}) {
    const Shape& shape = problem.spec(rows).shape;
    require(problem, problem.has(slot) == call.has_codes(),
            name(rows) +
                (call.has_codes() ? " holds codes and needs " : " holds no codes and takes no ") +
                name(slot));
    if (!call.has_codes()) continue;
    require(problem,
            !is_packed(call.stored) || (shape.back() % 2 == 0 && are_even(problem.spec(rows))),
            operand_text(problem, rows) + " has rows that begin or end within a byte");
    const Shape& of = problem.spec(slot).shape;
    bool fits = of.size() == 3;
    for (std::size_t axis = 0; fits && axis < 3; ++axis)
      fits = of[axis] == 1 || of[axis] == shape[axis];
    require(problem, fits,
            operand_text(problem, slot) + " must have the axes of " + operand_text(problem, rows) +
                " but the last, or 1 in their place");
  }
}

void set_band(AttentionProblem& call) {
  const std::int64_t shift = call.bottom_right && !call.policies ? call.kv_len - call.q_len : 0;
  call.band_low = INDEX_MIN;
  call.band_high = INDEX_MAX;
  if (call.window_left < INDEX_MAX)
    call.band_low = std::max<std::int64_t>(INDEX_MIN, shift - call.window_left);
  if (call.window_right < INDEX_MAX)
    call.band_high = std::min<std::int64_t>(INDEX_MAX, shift + call.window_right);
  if (call.causal) call.band_high = std::min(call.band_high, shift);
}

void parse_options(const Problem& problem, AttentionProblem& call) {
  call.scale = 1 / std::sqrt(static_cast<double>(call.head_dim));
  for (const char* name : {"softmax_scale", "attn_scale"}) {
    if (has_option(problem, name))
      call.scale = kernel::number_option(problem, name).value_or(call.scale);
  }
  for (const char* name : {"logits_soft_cap", "attn_logits_soft_cap"}) {
    if (!has_option(problem, name)) continue;
    if (const auto cap = kernel::number_option(problem, name)) {
      if (*cap <= 0) kernel::bad_option(problem, name, "greater than 0");
      call.soft_cap = *cap;
    }
  }
  if (has_option(problem, "dropout_prob")) {
    call.dropout = kernel::number_option(problem, "dropout_prob").value_or(0);
    if (call.dropout < 0 || call.dropout >= 1)
      kernel::bad_option(problem, "dropout_prob", "at least 0 and less than 1");
    const auto seed = kernel::integers_option(problem, "dropout_seed");
    if (seed && seed->size() != 1) kernel::bad_option(problem, "dropout_seed", "one integer");
    call.seed = seed ? static_cast<std::uint64_t>(seed->front()) : 0;
  }
  if (has_option(problem, "normalize_output"))
    call.normalize = kernel::bool_option(problem, "normalize_output");
  if (has_option(problem, "num_splits")) {
    const auto splits = kernel::integers_option(problem, "num_splits");
    if (splits && (splits->size() != 1 || splits->front() < 0 || splits->front() > 1024))
      kernel::bad_option(problem, "num_splits", "an integer from 0 to 1024");
    call.splits = splits ? splits->front() : 0;
  }
  if (has_option(problem, "bias_order")) {
    call.bias_after_cap =
        kernel::choice_option(problem, "bias_order", {"before_cap", "after_cap"}) == 1;
  }
  parse_band(problem, call);
}

std::string make_key(const Problem& problem, const AttentionProblem& call) {
  const bool low = call.band_low > INDEX_MIN, high = call.band_high < INDEX_MAX;
  const std::string band = low && high ? "window" + bucket(call.band_high - call.band_low + 1)
                           : low       ? "low"
                           : high      ? "causal"
                                       : "full";
  std::string key = "dtype=" + std::string(to_string(problem.dtype)) +
                    ";d=" + std::to_string(call.head_dim) +
                    ";dv=" + std::to_string(call.value_dim) + ";q=" + bucket(call.q_len) +
                    ";k=" + bucket(call.kv_len) +
                    ";bh=" + (call.splits > 0 ? "any" : bucket(call.batch * call.heads)) +
                    ";group=" + std::to_string(call.group()) + ";band=" + band +
                    ";cap=" + (call.soft_cap > 0 ? "1" : "0");
  if (call.policies) key += ";policies=" + std::to_string(call.features);
  if (call.chunk > 0) key += ";chunk=" + bucket(call.chunk);
  if (call.sequences > 0)
    key += call.packed ? ";packed=" + bucket(call.sequences) : std::string(";padded");
  if (call.splits > 0) key += ";splits=" + std::to_string(call.splits);
  return key;
}

TensorSpec with_rank(TensorSpec spec, std::size_t rank) {
  while (spec.shape.size() < rank) {
    spec.shape.insert(spec.shape.begin(), 1);
    spec.strides.insert(spec.strides.begin(), 0);
  }
  return spec;
}

TensorSpec with_pair_axes(TensorSpec spec) {
  while (spec.shape.size() < 4) {
    spec.shape.insert(spec.shape.begin() + 1, 1);
    spec.strides.insert(spec.strides.begin() + 1, 0);
  }
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (spec.shape[axis] == 1) spec.strides[axis] = 0;
  }
  return spec;
}

double AttentionProblem::visible_pairs() const {
  double pairs = 0;
  if (packed && sequences > 1) {  // where they begin is on the device: the average
    AttentionProblem one = *this;
    one.sequences = 1;
    one.q_len = std::max<std::int64_t>(q_len / sequences, 1);
    if (!is_paged()) one.kv_len = std::max<std::int64_t>(kv_len / sequences, 1);
    return static_cast<double>(std::min(q_len, sequences)) * one.visible_pairs();
  }
  const std::int64_t shift = bottom_right && policies ? kv_len - q_len : 0;
  for (std::int64_t row = 0; row < q_len; ++row) {
    std::int64_t first = first_key(row + shift), last = last_key(row + shift);
    if (chunk > 0) {
      const std::int64_t start = FLOOR_DIV(row + shift, chunk) * chunk;
      first = std::max(first, start);
      last = std::min(last, start + chunk);
    }
    pairs += static_cast<double>(std::max<std::int64_t>(0, last - first));
  }
  return pairs;
}

void validate_attention(Problem& problem) {
  AttentionProblem call = parse_attention(problem);
  const AttentionSlots& slots = call.slots;
  problem.infer_output(slots.output, problem.dtype,
                       rows_shape(problem, call, call.q_len, call.heads, call.value_dim));
  require_contiguous_rows(problem, slots.output);
  if (slots.log_sum_exp != kNoOperand)
    problem.infer_output(slots.log_sum_exp, DType::kF32, lse_shape(problem, call));
  require_contiguous_rows(problem, slots.log_sum_exp);
  if (slots.weights != kNoOperand) {
    problem.infer_output(slots.weights, problem.dtype,
                         {call.batch, call.heads, call.q_len, call.kv_len});
    require_contiguous_rows(problem, slots.weights);
  }
  problem.key = make_key(problem, call);
  problem.set_details(call);
}

void validate_attention_backward(Problem& problem) {
  AttentionProblem call = parse_attention(problem);
  const AttentionSlots& slots = call.slots;
  for (const std::size_t slot : {slots.output, slots.output_gradient}) {
    require_spec(problem, slot, problem.dtype,
                 rows_shape(problem, call, call.q_len, call.heads, call.value_dim));
    require_contiguous_rows(problem, slot);
  }
  require_spec(problem, slots.log_sum_exp, DType::kF32, lse_shape(problem, call));
  require_contiguous_rows(problem, slots.log_sum_exp);
  problem.infer_output(slots.query_gradient, problem.dtype, problem.spec(slots.query).shape);
  problem.infer_output(slots.key_gradient, problem.dtype, problem.spec(slots.key).shape);
  problem.infer_output(slots.value_gradient, problem.dtype, problem.spec(slots.value).shape);
  for (const std::size_t slot : {slots.query_gradient, slots.key_gradient, slots.value_gradient})
    require_contiguous_rows(problem, slot);
  const auto like = [&](std::size_t gradient, std::size_t input) {
    if (problem.has(input)) {
      problem.infer_output(gradient, problem.spec(input).dtype, problem.spec(input).shape);
    } else {
      require(problem, !problem.requested[gradient] && !problem.has(gradient),
              problem.operation->operands[gradient].name + " was asked for, but the call has no " +
                  problem.operation->operands[input].name);
    }
  };
  like(slots.bias_gradient, slots.bias);
  like(slots.sinks_gradient, slots.sinks);
  problem.key = make_key(problem, call) + (problem.has(slots.bias_gradient) ? ";dbias" : "");
  problem.set_details(call);
}

}  // namespace tessera::operations::attention
