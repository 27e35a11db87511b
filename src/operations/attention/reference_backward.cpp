// SPDX-License-Identifier: Apache-2.0
// The definition of attention's gradients, double precision:
//
//   delta[i] = sum_d do[i,d] o[i,d]              p[i,j] = exp(score[i,j] - log_sum_exp[i])
//   dp[i,j]  = keep[i,j] sum_d do[i,d] v[j,d]    ds[i,j] = p[i,j] (dp[i,j] - delta[i])
//   du[i,j]  = ds[i,j] slope of the cap          dq[i] = scale sum_j du[i,j] k[j]
//   dk[j]    = scale sum_i du[i,j] q[i]          dv[j] = sum_i keep[i,j] p[i,j] do[i]
//   dbias    = du, or ds where the bias comes after the cap, summed over broadcast axes
//   dsink[n] = -sum_i exp(sink[n] - log_sum_exp[i]) delta[i]
#include <cmath>

#include "base/parallel.hpp"
#include "operations/attention/reference.hpp"

namespace tessera::operations {
namespace {

// Float weights below 2^-126 may be flushed to 0, which is no rounding of theirs: in magnitudes
// they count for what 8 x 16 roundings of 2^-24 make 2^-126 of.
constexpr double kFlushedWeight = 0x1p-109;

// Adds what every (batch, head, row, key) of `whole` holds to the element of a broadcast shape that
// it came from.
std::vector<double> sum_broadcast(const AttentionProblem& call, Shape shape,
                                  const std::vector<double>& whole) {
  if (shape.size() == 2) shape.insert(shape.begin() + 1, 1);
  if (shape.size() == 3) shape.insert(shape.begin() + 1, 1);
  std::vector<double> sums(static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]));
  const std::int64_t heads_per_head = call.heads / std::max<std::int64_t>(shape[1], 1);
  std::size_t at = 0;
  for (std::int64_t b = 0; b < call.batch; ++b) {
    for (std::int64_t h = 0; h < call.heads; ++h) {
      for (std::int64_t i = 0; i < call.q_len; ++i) {
        for (std::int64_t j = 0; j < call.kv_len; ++j, ++at) {
          const std::int64_t to =
              (((shape[0] > 1 ? b : 0) * shape[1] + (shape[1] > 1 ? h / heads_per_head : 0)) *
                   shape[2] +
               (shape[2] > 1 ? i : 0)) *
                  shape[3] +
              (shape[3] > 1 ? j : 0);
          sums[static_cast<std::size_t>(to)] += whole[at];
        }
      }
    }
  }
  return sums;
}

}  // namespace

AttentionGradients::AttentionGradients(const Problem& problem, std::span<const HostTensor> tensors)
    : pairs_(problem, tensors) {
  const AttentionSlots& slots = pairs_.call().slots;
  gradient_ = read_heads(tensors[slots.output_gradient], problem.spec(slots.output_gradient));
  const std::vector<Matrix> output = read_heads(tensors[slots.output], problem.spec(slots.output));
  log_sum_exp_ = tensors[slots.log_sum_exp].read();
  for (std::size_t at = 0; at < gradient_.size(); ++at) {
    for (Eigen::Index row = 0; row < gradient_[at].rows(); ++row) {
      delta_.push_back(gradient_[at].row(row).dot(output[at].row(row)));
      delta_magnitude_.push_back(
          gradient_[at].row(row).cwiseAbs().dot(output[at].row(row).cwiseAbs()));
    }
  }
}

double AttentionGradients::weight(const Pair& pair, std::int64_t batch, std::int64_t head,
                                  std::int64_t row) const {
  const AttentionProblem& call = pairs_.call();
  const double lse =
      log_sum_exp_[static_cast<std::size_t>((batch * call.heads + head) * call.q_len + row)];
  return std::isinf(lse) ? 0 : std::exp(pair.score - lse);
}

AttentionGradients::Element AttentionGradients::element(std::int64_t batch, std::int64_t head,
                                                        std::int64_t row, std::int64_t key) const {
  const AttentionProblem& call = pairs_.call();
  const auto at = static_cast<std::size_t>((batch * call.heads + head) * call.q_len + row);
  if (!pairs_.sees(batch, head, row, key) || std::isinf(log_sum_exp_[at])) return {};
  const Pair pair = pairs_.pair(batch, head, row, key);
  const auto g = gradient(batch, head).row(row);
  const auto v = pairs_.value(batch, head).row(key);
  const double p = weight(pair, batch, head, row), keep = pairs_.keep(batch, head, row, key);
  const double ds = p * (keep * g.dot(v) - delta_[at]);
  return {.logit = ds * pair.slope,
          .score = ds,
          .magnitude =
              (p + kFlushedWeight) * (keep * g.cwiseAbs().dot(v.cwiseAbs()) + delta_magnitude_[at]),
          .score_magnitude = pair.magnitude};
}

AttentionGradients::Element AttentionGradients::sink(std::int64_t batch, std::int64_t head,
                                                     std::int64_t row, std::size_t sink) const {
  const AttentionProblem& call = pairs_.call();
  const auto at = static_cast<std::size_t>((batch * call.heads + head) * call.q_len + row);
  if (std::isinf(log_sum_exp_[at])) return {};
  const double logit = pairs_.sinks(head)[sink], p = std::exp(logit - log_sum_exp_[at]);
  return {.logit = -p * delta_[at],
          .score = -p * delta_[at],
          .magnitude = (p + kFlushedWeight) * delta_magnitude_[at],
          .score_magnitude = std::fabs(logit)};
}

AttentionGradients::Row AttentionGradients::query(std::int64_t batch, std::int64_t head,
                                                  std::int64_t row) const {
  const AttentionProblem& call = pairs_.call();
  Row result{.value = Eigen::VectorXd::Zero(call.head_dim),
             .magnitude = Eigen::VectorXd::Zero(call.head_dim)};
  for (std::int64_t key = 0; key < call.kv_len; ++key) {
    if (!pairs_.sees(batch, head, row, key)) continue;
    const Element at = element(batch, head, row, key);
    const auto k = pairs_.key(batch, head).row(key).transpose();
    result.value += call.scale * at.logit * k;
    result.magnitude += std::fabs(call.scale) * at.magnitude * k.cwiseAbs();
    result.score_magnitude = std::max(result.score_magnitude, at.score_magnitude);
    ++result.terms;
  }
  return result;
}

AttentionGradients::Row AttentionGradients::key(std::int64_t batch, std::int64_t kv_head,
                                                std::int64_t key) const {
  const AttentionProblem& call = pairs_.call();
  Row result{.value = Eigen::VectorXd::Zero(call.head_dim),
             .magnitude = Eigen::VectorXd::Zero(call.head_dim)};
  for (std::int64_t head = kv_head * call.group(); head < (kv_head + 1) * call.group(); ++head) {
    for (std::int64_t row = 0; row < call.q_len; ++row) {
      if (!pairs_.sees(batch, head, row, key)) continue;
      const Element at = element(batch, head, row, key);
      const auto q = pairs_.query(batch, head).row(row).transpose();
      result.value += call.scale * at.logit * q;
      result.magnitude += std::fabs(call.scale) * at.magnitude * q.cwiseAbs();
      result.score_magnitude = std::max(result.score_magnitude, at.score_magnitude);
      ++result.terms;
    }
  }
  return result;
}

AttentionGradients::Row AttentionGradients::value(std::int64_t batch, std::int64_t kv_head,
                                                  std::int64_t key) const {
  const AttentionProblem& call = pairs_.call();
  Row result{.value = Eigen::VectorXd::Zero(call.value_dim),
             .magnitude = Eigen::VectorXd::Zero(call.value_dim)};
  for (std::int64_t head = kv_head * call.group(); head < (kv_head + 1) * call.group(); ++head) {
    for (std::int64_t row = 0; row < call.q_len; ++row) {
      if (!pairs_.sees(batch, head, row, key)) continue;
      const Pair pair = pairs_.pair(batch, head, row, key);
      const double p = weight(pair, batch, head, row) * pairs_.keep(batch, head, row, key);
      if (p == 0) continue;  // rows that see nothing may hold any gradient
      const auto g = gradient(batch, head).row(row).transpose();
      result.value += p * g;
      result.magnitude += (p + kFlushedWeight) * g.cwiseAbs();
      result.score_magnitude = std::max(result.score_magnitude, pair.magnitude);
      ++result.terms;
    }
  }
  return result;
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

  if (problem.has(slots.bias_gradient)) {
    std::vector<double> whole(
        static_cast<std::size_t>(call.batch * call.heads * call.q_len * call.kv_len));
    parallel_for(whole.size(), [&](std::size_t n) {
      const auto at = static_cast<std::int64_t>(n);
      const std::int64_t j = at % call.kv_len, i = at / call.kv_len % call.q_len,
                         h = at / call.kv_len / call.q_len % call.heads,
                         b = at / call.kv_len / call.q_len / call.heads;
      const AttentionGradients::Element element = gradients.element(b, h, i, j);
      whole[n] = call.bias_after_cap ? element.score : element.logit;
    });
    tensors[slots.bias_gradient].write(
        sum_broadcast(call, problem.spec(slots.bias_gradient).shape, whole));
  }
  if (problem.has(slots.sinks_gradient)) {
    const Shape& shape = problem.spec(slots.sinks_gradient).shape;
    const std::int64_t heads = shape.size() == 2 ? shape[0] : 1;
    std::vector<double> values(
        static_cast<std::size_t>(problem.spec(slots.sinks_gradient).elements()));
    for (std::int64_t b = 0; b < call.batch; ++b) {
      for (std::int64_t h = 0; h < call.heads; ++h) {
        for (std::int64_t i = 0; i < call.q_len; ++i) {
          for (std::int64_t n = 0; n < shape.back(); ++n) {
            values[static_cast<std::size_t>(h / (call.heads / heads) * shape.back() + n)] +=
                gradients.sink(b, h, i, static_cast<std::size_t>(n)).logit;
          }
        }
      }
    }
    tensors[slots.sinks_gradient].write(values);
  }
}

}  // namespace tessera::operations
