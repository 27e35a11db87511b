// SPDX-License-Identifier: Apache-2.0
// The definition of attention: one row at a time, double precision.
#include "operations/attention_core/oracle/reference.hpp"

#include <cmath>
#include <limits>

#include "base/system/parallel.hpp"
#include "operations/attention_core/oracle/thresholds.hpp"

namespace tessera::operations::attention {
namespace {

// So far below the largest score that weights are no float, whatever is rounded: their scores do
// not count for the error of a row.
constexpr double kNoWeight = 150;
// ln 2^-126: below, float may have no weight.
constexpr double kLeastExponent = -87.33654475055310;

// `weightless` are keys of the row, by their number among the visible ones, that float may have no
// weight for, or that dropout leaves out, and that have values which are not finite.
void find_undecided(AttentionRow& row, const std::vector<std::size_t>& weightless,
                    const Matrix& values) {
  if (weightless.empty()) return;
  for (Eigen::Index d = 0; d < values.cols(); ++d) {
    double of_others = 0;
    bool is_met = false;
    for (std::size_t n = 0, next = 0; n < row.keys.size(); ++n) {
      const double value = values(row.keys[n], d);
      const bool counts = next == weightless.size() || weightless[next] != n;
      if (!counts) ++next;
      if (counts || std::isfinite(value))
        of_others += row.weights[static_cast<Eigen::Index>(n)] * value;
      else
        is_met = true;
    }
    row.undecided[static_cast<std::size_t>(d)] = is_met && !std::isnan(of_others);
  }
}

}  // namespace

AttentionRow attention_row(const AttentionPairs& pairs, std::int64_t batch, std::int64_t head,
                           std::int64_t row) {
  const AttentionProblem& call = pairs.call();
  AttentionRow result{.output = Eigen::VectorXd::Zero(call.value_dim),
                      .magnitude = Eigen::VectorXd::Zero(call.value_dim),
                      .squares = Eigen::VectorXd::Zero(call.value_dim),
                      .values = Eigen::VectorXd::Zero(call.value_dim),
                      .undecided = std::vector<bool>(static_cast<std::size_t>(call.value_dim))};
  double maximum = -std::numeric_limits<double>::infinity();
  std::vector<double> scores, magnitudes;
  double peak_magnitude = 0;
  for (std::int64_t key = 0; key < call.kv_len; ++key) {
    if (!pairs.sees(batch, head, row, key)) continue;
    const Pair pair = pairs.pair(batch, head, row, key);
    result.keys.push_back(key);
    scores.push_back(pair.score);
    magnitudes.push_back(pair.magnitude);
    if (pair.score > maximum) {
      result.peak = key;
      peak_magnitude = pair.magnitude;
    }
    maximum = std::max(maximum, pair.score);
    if (std::isnan(pair.score)) maximum = pair.score;
  }
  for (std::size_t n = 0; n < pairs.sinks(head).size(); ++n) {
    const double sink = pairs.sinks(head)[n];
    if (sink > maximum) result.peak = call.kv_len + static_cast<std::int64_t>(n);
    maximum = std::max(maximum, sink);
    if (std::fabs(sink) > kFarScore) continue;  // has all of the weight or none
    result.score_magnitude = std::max(result.score_magnitude, std::fabs(sink));
  }
  result.largest_score = maximum;
  for (std::size_t n = 0; n < scores.size(); ++n) {
    const double errors = kUnitF32 * kRoundings * (magnitudes[n] + peak_magnitude);
    if (scores[n] + 2 * errors < maximum - kNoWeight) continue;
    result.score_magnitude = std::max(result.score_magnitude, magnitudes[n]);
  }
  double& sum = result.sum;
  for (const double score : scores) sum += std::exp(score - maximum);
  for (const double sink : pairs.sinks(head)) {
    if (sink > -std::numeric_limits<double>::infinity()) sum += std::exp(sink - maximum);
  }
  result.log_sum_exp =
      sum == 0 ? -std::numeric_limits<double>::infinity() : maximum + std::log(sum);
  result.weights.resize(static_cast<Eigen::Index>(scores.size()));
  std::vector<std::size_t> weightless;
  for (std::size_t n = 0; n < scores.size(); ++n) {
    const std::int64_t key = result.keys[n];
    const double keep = pairs.keep(batch, head, row, key);
    const double undropped = std::exp(scores[n] - maximum) / (call.normalize ? sum : 1);
    const double weight = undropped * keep;
    result.largest_weight = std::max(result.largest_weight, undropped);
    const auto value = pairs.value(batch, head).row(key).transpose();
    result.weights[static_cast<Eigen::Index>(n)] = weight;
    result.output += weight * value;
    result.magnitude += weight * value.cwiseAbs();
    result.squares += weight * weight * value.cwiseAbs2();
    result.values += keep * value.cwiseAbs();
    const double errors = kUnitF32 * kRoundings * (magnitudes[n] + peak_magnitude);
    const bool may_be_zero = keep == 0 || scores[n] - errors < maximum + kLeastExponent;
    if (may_be_zero && !value.allFinite()) weightless.push_back(n);
  }
  find_undecided(result, weightless, pairs.value(batch, head));
  return result;
}

void reference_attention(const Problem& problem, std::span<HostTensor> tensors) {
  const AttentionPairs pairs(problem, tensors);
  const AttentionProblem& call = pairs.call();
  const AttentionSlots& slots = call.slots;
  std::vector<double> output(static_cast<std::size_t>(problem.spec(slots.output).elements()));
  std::vector<double> log_sum_exp(static_cast<std::size_t>(call.batch * call.heads * call.q_len));
  std::vector<double> weights(
      problem.has(slots.weights) ? log_sum_exp.size() * static_cast<std::size_t>(call.kv_len) : 0);
  parallel_for(log_sum_exp.size(), [&](std::size_t at) {
    const auto i = static_cast<std::int64_t>(at) % call.q_len;
    const auto head = static_cast<std::int64_t>(at) / call.q_len % call.heads;
    const auto batch = static_cast<std::int64_t>(at) / call.q_len / call.heads;
    const AttentionRow row = attention_row(pairs, batch, head, i);
    const std::int64_t start = ((batch * call.q_len + i) * call.heads + head) * call.value_dim;
    Eigen::Map<Eigen::VectorXd>(output.data() + start, call.value_dim) = row.output;
    log_sum_exp[at] = row.log_sum_exp;
    for (std::size_t n = 0; n < row.keys.size() && !weights.empty(); ++n) {
      weights[at * static_cast<std::size_t>(call.kv_len) + static_cast<std::size_t>(row.keys[n])] =
          row.weights[static_cast<Eigen::Index>(n)];
    }
  });
  tensors[slots.output].write(output);
  if (problem.has(slots.log_sum_exp)) tensors[slots.log_sum_exp].write(log_sum_exp);
  if (problem.has(slots.weights)) tensors[slots.weights].write(weights);
}

}  // namespace tessera::operations::attention
