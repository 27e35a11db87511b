// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "abi/shared.h"
#include "kernel/option_access.hpp"
#include "operations/flash_attention/problem.hpp"
#include "tessera/error.hpp"

namespace tessera::operations {
namespace {

constexpr std::int64_t kMaxHeadDim = 512;
constexpr std::int64_t kMaxLength = std::int64_t{1}
                                    << 30;  // so that i + INDEX_MAX does not overflow 32 bits

void require(bool condition, const std::string& sentence) {
  if (!condition) throw InvalidArgument("flash_attention: " + sentence);
}

void require_feature_axis(const TensorSpec& spec, const std::string& name) {
  require(spec.shape.size() == 4,
          name + " " + spec.to_string() + " must have the 4 axes [batch, rows, heads, dim]");
  require(spec.shape[3] <= 1 || spec.strides[3] == 1,
          name + " must be contiguous along its last axis");
  require(spec.shape[3] >= 1 && spec.shape[3] <= kMaxHeadDim,
          name + " " + spec.to_string() + " must have a last axis of 1 to " +
              std::to_string(kMaxHeadDim));
}

void require_equal(const Problem& problem, std::size_t a, std::size_t b, std::size_t axis,
                   const char* what) {
  const auto& operands = problem.operation->operands;
  require(problem.spec(a).shape[axis] == problem.spec(b).shape[axis],
          operands[a].name + " " + problem.spec(a).to_string() + " and " + operands[b].name + " " +
              problem.spec(b).to_string() + " must have the same " + what);
}

void parse_band(const Problem& problem, FlashAttentionProblem& call) {
  const bool causal = kernel::bool_option(problem, "causal");
  const bool bottom_right =
      kernel::choice_option(problem, "causal_alignment", {"top_left", "bottom_right"}) == 1;
  const auto window = kernel::integers_option(problem, "sliding_window");
  const std::int64_t shift = bottom_right ? call.kv_len - call.q_len : 0;
  call.band_low = INDEX_MIN;
  call.band_high = INDEX_MAX;
  if (window) {
    const bool valid = !window->empty() && window->size() <= 2 && std::ranges::min(*window) >= 0;
    if (!valid)
      kernel::bad_option(problem, "sliding_window", "one or two integers that are not negative");
    call.band_low =
        std::max<std::int64_t>(INDEX_MIN, shift - std::min(kMaxLength, window->front()));
    call.band_high =
        std::min<std::int64_t>(INDEX_MAX, shift + std::min(kMaxLength, window->back()));
  }
  if (causal) call.band_high = std::min(call.band_high, shift);
}

std::string make_key(const Problem& problem, const FlashAttentionProblem& call) {
  const auto bucket = [](std::int64_t n) {
    return std::to_string(kernel::next_power_of_two(static_cast<std::uint64_t>(n)));
  };
  const bool low = call.band_low > INDEX_MIN, high = call.band_high < INDEX_MAX;
  const std::string band = low && high ? "window" + bucket(call.band_high - call.band_low + 1)
                           : low       ? "low"
                           : high      ? "causal"
                                       : "full";
  return "dtype=" + std::string(to_string(problem.dtype)) + ";d=" + std::to_string(call.head_dim) +
         ";dv=" + std::to_string(call.value_dim) + ";q=" + bucket(call.q_len) +
         ";k=" + bucket(call.kv_len) + ";bh=" + bucket(call.batch * call.heads) +
         ";group=" + std::to_string(call.group()) + ";band=" + band +
         ";cap=" + (call.soft_cap > 0 ? "1" : "0");
}

}  // namespace

double FlashAttentionProblem::visible_pairs() const {
  double pairs = 0;
  for (std::int64_t row = 0; row < q_len; ++row) {
    pairs += static_cast<double>(std::max<std::int64_t>(0, last_key(row) - first_key(row)));
  }
  return pairs;
}

void validate_flash_attention(Problem& problem) {
  require_feature_axis(problem.spec(kQuery), "query");
  require_feature_axis(problem.spec(kKey), "key");
  require_feature_axis(problem.spec(kValue), "value");
  require_equal(problem, kQuery, kKey, 0, "batch");
  require_equal(problem, kKey, kValue, 0, "batch");
  require_equal(problem, kKey, kValue, 1, "number of rows");
  require_equal(problem, kKey, kValue, 2, "number of heads");
  require_equal(problem, kQuery, kKey, 3, "head_dim");
  problem.dtype = problem.spec(kQuery).dtype;
  for (const std::size_t slot : {kKey, kValue}) {
    require(problem.spec(slot).dtype == problem.dtype, problem.operation->operands[slot].name +
                                                           " must have the dtype of query, " +
                                                           std::string(to_string(problem.dtype)));
  }
  const Shape& q = problem.spec(kQuery).shape;
  const Shape& k = problem.spec(kKey).shape;
  FlashAttentionProblem call{.batch = q[0],
                             .q_len = q[1],
                             .kv_len = k[1],
                             .heads = q[2],
                             .kv_heads = k[2],
                             .head_dim = q[3],
                             .value_dim = problem.spec(kValue).shape[3]};
  require(call.q_len < kMaxLength && call.kv_len < kMaxLength,
          "sequences must be shorter than 2^30 rows");
  require(call.kv_heads >= 1 && call.heads % call.kv_heads == 0,
          "the " + std::to_string(call.heads) + " query heads must be a multiple of the " +
              std::to_string(call.kv_heads) + " key/value heads");
  call.scale = kernel::number_option(problem, "softmax_scale")
                   .value_or(1 / std::sqrt(static_cast<double>(call.head_dim)));
  if (const auto cap = kernel::number_option(problem, "logits_soft_cap")) {
    if (*cap <= 0) kernel::bad_option(problem, "logits_soft_cap", "greater than 0");
    call.soft_cap = *cap;
  }
  parse_band(problem, call);
  problem.infer_output(kOutput, problem.dtype,
                       {call.batch, call.q_len, call.heads, call.value_dim});
  problem.infer_output(kLogSumExp, DType::kF32, {call.batch, call.heads, call.q_len});
  const TensorSpec& output = problem.spec(kOutput);
  require(output.shape[3] <= 1 || output.strides[3] == 1,
          "output must be contiguous along its last axis");
  if (problem.has(kLogSumExp)) {
    const TensorSpec& lse = problem.spec(kLogSumExp);
    require(lse.shape[2] <= 1 || lse.strides[2] == 1,
            "log_sum_exp must be contiguous along its last axis");
  }
  problem.key = make_key(problem, call);
  problem.set_details(call);
}

}  // namespace tessera::operations
