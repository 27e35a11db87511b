// SPDX-License-Identifier: Apache-2.0
// The definition of attention's gradients, double precision:
//
//   delta[i] = sum_d do[i,d] o[i,d]              p[i,j] = exp(score[i,j] - log_sum_exp[i])
//              (of rows that see no key nothing counts: their output is 0 whatever is in memory)
//   dp[i,j]  = keep[i,j] sum_d do[i,d] v[j,d]    ds[i,j] = p[i,j] (dp[i,j] - delta[i])
//   du[i,j]  = ds[i,j] slope of the cap          dq[i] = scale sum_j du[i,j] k[j]
//   dk[j]    = scale sum_i du[i,j] q[i]          dv[j] = sum_i keep[i,j] p[i,j] do[i]
//   dbias    = du, or ds where the bias comes after the cap, summed over broadcast axes
//   dsink[n] = -sum_i exp(sink[n] - log_sum_exp[i]) delta[i], i over the rows that see a key
//
// Without normalize_output, with m[i] the largest score of the row, a key's or a sink's:
//
//   p[i,j]  = exp(score[i,j] - m[i])             ds[i,j] = p[i,j] dp[i,j] - (m[i] is j's) delta[i]
//   dsink[n] = -sum_i (m[i] is n's) delta[i]
//
// With biases or slopes, float may not hold log_sum_exp to a part of 1. Where its magnitude is
// above COARSE_LOG_SUM_EXP, p[i,j] = exp(score[i,j] - m[i]) / (sum of that over keys and sinks).
#include <cmath>

#include "base/system/parallel.hpp"
#include "operations/attention_core/core/policy_args.h"
#include "operations/attention_core/oracle/reference.hpp"
#include "operations/attention_core/oracle/thresholds.hpp"

namespace tessera::operations::attention {
namespace {

// Float weights below 2^-126 may be flushed to 0, which is no rounding of theirs: in magnitudes
// they count for what 8 x 16 roundings of 2^-24 make 2^-126 of.
constexpr double kFlushedWeight = 0x1p-109;

}  // namespace

AttentionGradients::AttentionGradients(const Problem& problem, std::span<const HostTensor> tensors,
                                       FactorRounding rounding)
    : pairs_(problem, tensors), rounding_(rounding) {
  const AttentionSlots& slots = pairs_.call().slots;
  gradient_ = read_heads(tensors[slots.output_gradient], problem.spec(slots.output_gradient));
  const std::vector<Matrix> output = read_heads(tensors[slots.output], problem.spec(slots.output));
  if (problem.has(slots.bias)) bias_shape_ = with_pair_axes(problem.spec(slots.bias)).shape;
  log_sum_exp_ = tensors[slots.log_sum_exp].read();
  shift_ = log_sum_exp_;
  for (const double shift : shift_) shift_magnitude_.push_back(std::fabs(shift));
  peak_.assign(shift_.size(), -1);
  sum_.assign(shift_.size(), 1);
  find_peaks();
  for (std::size_t at = 0; at < gradient_.size(); ++at) {
    for (Eigen::Index row = 0; row < gradient_[at].rows(); ++row) {
      const bool counts = sees_any(static_cast<std::int64_t>(at), row);
      counts_.push_back(counts);
      const auto g = gradient_[at].row(row);
      const auto o = output[at].row(row);
      delta_.push_back(counts ? g.dot(o) : 0);
      delta_magnitude_.push_back(counts ? g.cwiseAbs().dot(o.cwiseAbs()) : 0);
    }
  }
}

bool AttentionGradients::sees_any(std::int64_t line, std::int64_t row) const {
  const AttentionProblem& call = pairs_.call();
  for (std::int64_t key = 0; key < call.kv_len; ++key)
    if (pairs_.sees(line / call.heads, line % call.heads, row, key)) return true;
  return false;
}

bool AttentionGradients::has_peak(std::size_t at) const {
  const AttentionProblem& call = pairs_.call();
  if (!call.normalize) return true;
  return (call.features & POLICY_ADDS) != 0 && std::isfinite(log_sum_exp_[at]) &&
         std::fabs(log_sum_exp_[at]) > COARSE_LOG_SUM_EXP;
}

void AttentionGradients::find_peaks() {
  const AttentionProblem& call = pairs_.call();
  parallel_for(shift_.size(), [&](std::size_t at) {
    if (!has_peak(at)) return;
    const auto n = static_cast<std::int64_t>(at);
    const AttentionRow row = attention_row(pairs_, n / call.q_len / call.heads,
                                           n / call.q_len % call.heads, n % call.q_len);
    shift_[at] = row.largest_score;
    shift_magnitude_[at] = row.score_magnitude;
    if (call.normalize) {
      sum_[at] = row.sum;
    } else {
      peak_[at] = row.peak;
    }
  });
}

double AttentionGradients::weight(const Pair& pair, std::int64_t batch, std::int64_t head,
                                  std::int64_t row) const {
  const std::size_t at = index_of(batch, head, row);
  return std::isinf(log_sum_exp_[at]) ? 0 : std::exp(pair.score - shift_[at]) / sum_[at];
}

double AttentionGradients::moved_weight(double score, double magnitude, std::size_t at,
                                        double roundings) const {
  const double exponent = score - shift_[at] - std::log(sum_[at]);
  magnitude += shift_magnitude_[at];
  if (std::fabs(log_sum_exp_[at]) <= COARSE_LOG_SUM_EXP || !has_peak(at))
    return std::exp(exponent) * magnitude;
  // Of weights from the row's own maximum, which are at most 1: exp(x) moved by `off` is no longer
  // a straight line.
  const double unit = kUnitF32 * roundings, off = unit * magnitude;
  return std::max(std::exp(std::min(exponent + off, 0.0)) - std::exp(exponent),
                  -std::exp(exponent) * std::expm1(-off)) /
         unit;
}

AttentionGradients::Element AttentionGradients::element(std::int64_t batch, std::int64_t head,
                                                        std::int64_t row, std::int64_t key) const {
  const AttentionProblem& call = pairs_.call();
  const std::size_t at = index_of(batch, head, row);
  if (!pairs_.sees(batch, head, row, key) || std::isinf(log_sum_exp_[at])) return {};
  const Pair pair = pairs_.pair(batch, head, row, key);
  const auto g = gradient(batch, head).row(row);
  const auto v = pairs_.value(batch, head).row(key);
  const double p = weight(pair, batch, head, row), keep = pairs_.keep(batch, head, row, key);
  // What the gradients of the shift leave of delta here.
  const double share = call.normalize ? p : peak_[at] == key ? 1 : 0;
  const double kept = p * keep * g.dot(v), ds = kept - share * delta_[at];
  const double of_weight = keep * g.dot(v) - (call.normalize ? delta_[at] : 0);
  return {.logit = ds * pair.slope,
          .bias = call.bias_after_cap ? ds : ds * pair.slope,
          .magnitude = (p + kFlushedWeight) * keep * g.cwiseAbs().dot(v.cwiseAbs()) +
                       (share + kFlushedWeight) * delta_magnitude_[at],
          .moved = std::fabs(of_weight) * moved_weight(pair.score, pair.magnitude, at),
          .moved_once = std::fabs(of_weight) * moved_weight(pair.score, pair.magnitude, at, 1)};
}

AttentionGradients::Element AttentionGradients::sink(std::int64_t batch, std::int64_t head,
                                                     std::int64_t row, std::size_t sink) const {
  const AttentionProblem& call = pairs_.call();
  const std::size_t at = index_of(batch, head, row);
  if (!counts_[at] || std::isinf(log_sum_exp_[at])) return {};
  const double logit = pairs_.sinks(head)[sink];
  const double p = call.normalize ? std::exp(logit - shift_[at]) / sum_[at]
                   : peak_[at] == call.kv_len + static_cast<std::int64_t>(sink) ? 1
                                                                                : 0;
  return {.logit = -p * delta_[at],
          .bias = -p * delta_[at],
          .magnitude = (p + kFlushedWeight) * delta_magnitude_[at],
          .moved = call.normalize
                       ? std::fabs(delta_[at]) * moved_weight(logit, std::fabs(logit), at)
                       : std::fabs(p * delta_[at]) * (std::fabs(logit) + shift_magnitude_[at])};
}

void AttentionGradients::add_rounding(Row& row, double factor, const Eigen::VectorXd& of) const {
  const double error = rounding_.of(factor);
  if (error == 0) return;
  row.rounding += error * of.cwiseAbs();
  row.rounding_squares += error * error * of.cwiseAbs2();
}

void AttentionGradients::add_term(Row& row, const Element& at, const Eigen::VectorXd& of) const {
  row.value += at.logit * of;
  row.magnitude += at.magnitude * of.cwiseAbs();
  row.moved += at.moved * of.cwiseAbs();
  row.moved_once += at.moved_once * of.cwiseAbs();
  add_rounding(row, at.logit, of);
  ++row.terms;
}

AttentionGradients::Row AttentionGradients::query(std::int64_t batch, std::int64_t head,
                                                  std::int64_t row) const {
  const AttentionProblem& call = pairs_.call();
  Row result(call.head_dim);
  for (std::int64_t key = 0; key < call.kv_len; ++key) {
    if (!pairs_.sees(batch, head, row, key)) continue;
    const Element at = element(batch, head, row, key);
    const auto k = pairs_.key(batch, head).row(key).transpose();
    add_term(result, at, call.scale * k);
  }
  return result;
}

template <class Visit>
void AttentionGradients::for_each_row_of_key(std::int64_t batch, std::int64_t kv_head,
                                             std::int64_t key, Visit visit) const {
  const AttentionProblem& call = pairs_.call();
  for (std::int64_t head = kv_head * call.group(); head < (kv_head + 1) * call.group(); ++head) {
    for (std::int64_t row = 0; row < call.q_len; ++row) {
      if (pairs_.sees(batch, head, row, key)) visit(head, row);
    }
  }
}

AttentionGradients::Row AttentionGradients::key(std::int64_t batch, std::int64_t kv_head,
                                                std::int64_t key) const {
  const AttentionProblem& call = pairs_.call();
  Row result(call.head_dim);
  for_each_row_of_key(batch, kv_head, key, [&](std::int64_t head, std::int64_t row) {
    const Element at = element(batch, head, row, key);
    const auto q = pairs_.query(batch, head).row(row).transpose();
    add_term(result, at, call.scale * q);
  });
  return result;
}

AttentionGradients::Row AttentionGradients::value(std::int64_t batch, std::int64_t kv_head,
                                                  std::int64_t key) const {
  const AttentionProblem& call = pairs_.call();
  Row result(call.value_dim);
  for_each_row_of_key(batch, kv_head, key, [&](std::int64_t head, std::int64_t row) {
    const Pair pair = pairs_.pair(batch, head, row, key);
    const double p = weight(pair, batch, head, row) * pairs_.keep(batch, head, row, key);
    if (p == 0) return;  // rows that see nothing may hold any gradient
    const auto g = gradient(batch, head).row(row).transpose();
    result.value += p * g;
    result.magnitude += (p + kFlushedWeight) * g.cwiseAbs();
    const std::size_t at = index_of(batch, head, row);
    const double keep = pairs_.keep(batch, head, row, key);
    result.moved += moved_weight(pair.score, pair.magnitude, at) * keep * g.cwiseAbs();
    result.moved_once += moved_weight(pair.score, pair.magnitude, at, 1) * keep * g.cwiseAbs();
    add_rounding(result, p, g);
    ++result.terms;
  });
  return result;
}

void AttentionGradients::for_each_bias_term(const AddTerm& add) const {
  const AttentionProblem& call = pairs_.call();
  const Shape& shape = bias_shape_;
  const std::int64_t group = call.heads / std::max<std::int64_t>(shape[1], 1);
  const auto at = [&](std::size_t axis, std::int64_t n) { return shape[axis] > 1 ? n : 0; };
  for (std::int64_t b = 0; b < call.batch; ++b) {
    for (std::int64_t h = 0; h < call.heads; ++h) {
      for (std::int64_t i = 0; i < call.q_len; ++i) {
        const std::int64_t row =
            ((at(0, b) * shape[1] + at(1, h / group)) * shape[2] + at(2, i)) * shape[3];
        for (std::int64_t j = 0; j < call.kv_len; ++j)
          add(static_cast<std::size_t>(row + at(3, j)), element(b, h, i, j));
      }
    }
  }
}

void AttentionGradients::for_each_sink_term(const AddTerm& add) const {
  const AttentionProblem& call = pairs_.call();
  for (std::int64_t b = 0; b < call.batch; ++b) {
    for (std::int64_t h = 0; h < call.heads; ++h) {
      const std::size_t sinks = pairs_.sinks(h).size();
      const auto first = static_cast<std::size_t>(h / pairs_.heads_per_sinks()) * sinks;
      for (std::int64_t i = 0; i < call.q_len; ++i) {
        for (std::size_t n = 0; n < sinks; ++n) add(first + n, sink(b, h, i, n));
      }
    }
  }
}

void reference_attention_backward(const Problem& problem, std::span<HostTensor> tensors) {
  const AttentionGradients gradients(problem, tensors);
  const AttentionProblem& call = gradients.pairs().call();
  const AttentionSlots& slots = call.slots;

  // Rows of [batch, rows, heads, dim], in that order.
  const auto write_rows = [&](std::size_t slot, std::int64_t rows, std::int64_t heads,
                              const auto& gradient) {
    const std::int64_t dim = problem.spec(slot).shape.back();
    std::vector<double> values(static_cast<std::size_t>(problem.spec(slot).elements()));
    parallel_for(static_cast<std::size_t>(call.batch * rows * heads), [&](std::size_t n) {
      const auto at = static_cast<std::int64_t>(n);
      const AttentionGradients::Row row =
          gradient(at / (rows * heads), at % heads, at / heads % rows);
      Eigen::Map<Eigen::VectorXd>(values.data() + at * dim, dim) = row.value;
    });
    tensors[slot].write(values);
  };
  write_rows(slots.query_gradient, call.q_len, call.heads,
             [&](auto b, auto h, auto i) { return gradients.query(b, h, i); });
  write_rows(slots.key_gradient, call.kv_len, call.kv_heads,
             [&](auto b, auto h, auto j) { return gradients.key(b, h, j); });
  write_rows(slots.value_gradient, call.kv_len, call.kv_heads,
             [&](auto b, auto h, auto j) { return gradients.value(b, h, j); });

  const auto write_sums = [&](std::size_t slot, const auto& for_each_term) {
    if (!problem.has(slot)) return;
    std::vector<double> values(static_cast<std::size_t>(problem.spec(slot).elements()));
    for_each_term(
        [&](std::size_t to, const AttentionGradients::Element& term) { values[to] += term.bias; });
    tensors[slot].write(values);
  };
  write_sums(slots.bias_gradient, [&](const auto& add) { gradients.for_each_bias_term(add); });
  write_sums(slots.sinks_gradient, [&](const auto& add) { gradients.for_each_sink_term(add); });
}

}  // namespace tessera::operations::attention
