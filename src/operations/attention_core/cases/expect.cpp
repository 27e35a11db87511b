// SPDX-License-Identifier: Apache-2.0
// What attention's outputs must be. Bounds by the analysis of one pass with float accumulation: the
// storage rounding of the output, 8 float roundings of the sum over keys, which grow with the
// square root of their number, and what the roundings of scores move: keys that weigh too much take
// from the others, so an output moves by at most sum_j p |v - o| of it. Where products take 16-bit
// factors, weights are rounded to the storage type, too: one by one, so that on the whole their
// errors add up in quadrature. What 16-bit storage adds on the whole is bounded by what one
// rounding costs. Elements that a row leaves undecided are not looked at.
#include <algorithm>
#include <cmath>
#include <random>

#include "base/system/parallel.hpp"
#include "operations/attention_core/cases/workload.hpp"
#include "operations/attention_core/oracle/reference.hpp"
#include "operations/attention_core/oracle/thresholds.hpp"

namespace tessera::operations::attention {
std::vector<std::int64_t> affordable_rows(std::int64_t count, double flops_per_row,
                                          double max_flops) {
  std::vector<std::int64_t> chosen;
  const double affordable = max_flops / std::max(flops_per_row, 1.0);
  if (static_cast<double>(count) <= affordable) {
    for (std::int64_t at = 0; at < count; ++at) chosen.push_back(at);
    return chosen;
  }
  std::mt19937_64 random(1);
  const auto wanted = std::max<std::int64_t>(static_cast<std::int64_t>(affordable), 64);
  for (std::int64_t n = 0; n < wanted; ++n)
    chosen.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count)));
  std::ranges::sort(chosen);
  return chosen;
}

namespace {

// Of the finite ones.
double root_mean(std::span<const double> squares) {
  double sum = 0, count = 0;
  for (const double square : squares) {
    if (!std::isfinite(square)) continue;
    sum += square;
    count += 1;
  }
  return count > 0 ? std::sqrt(sum / count) : 0;
}

// Takes what is `out` out of lists of as many.
template <class... Lists>
void leave_out(const std::vector<std::uint8_t>& out, Lists&... lists) {
  if (std::ranges::count(out, 1) == 0) return;
  const auto shorten = [&](auto& list) {
    std::size_t kept = 0;
    for (std::size_t n = 0; n < out.size(); ++n)
      if (out[n] == 0) list[kept++] = list[n];
    list.resize(kept);
  };
  (shorten(lists), ...);
}

}  // namespace

std::vector<Expectation> expect_attention(const Problem& problem, std::span<HostTensor> tensors,
                                          const Arithmetic& arithmetic, double max_flops) {
  const AttentionPairs pairs(problem, tensors);
  const AttentionProblem& call = pairs.call();
  const double output_unit = storage_unit(problem.dtype);
  const double smallest = smallest_number(problem.dtype);
  const double lse_factor = exp_roundings(arithmetic.backend);

  // A weight, at most 1 before dropout and before it is divided by the sum, is rounded by a unit of
  // itself or half of the smallest number: what that adds to the bounds, and its expected square.
  const bool rounds_weights = arithmetic.rounds_factors && problem.dtype != DType::kF32;

  const double row_flops = 4 * static_cast<double>(call.kv_len) *
                           static_cast<double>(call.head_dim + call.value_dim) / 2;
  const std::vector<std::int64_t> chosen =
      affordable_rows(call.batch * call.heads * call.q_len, row_flops, max_flops);
  const auto dim = static_cast<std::size_t>(call.value_dim);
  const auto keys = static_cast<std::size_t>(call.kv_len);
  Expectation output{.slot = call.slots.output}, log_sum_exp{.slot = call.slots.log_sum_exp},
      weights{.slot = call.slots.weights};
  const auto resize = [&](Expectation& expectation, std::size_t per_row) {
    expectation.elements.resize(chosen.size() * per_row);
    expectation.values.resize(chosen.size() * per_row);
    expectation.bounds.resize(chosen.size() * per_row);
  };
  resize(output, dim);
  resize(log_sum_exp, 1);
  if (problem.has(weights.slot)) resize(weights, keys);
  std::vector<double> roundings(output.bounds.size()), squares(output.bounds.size());
  std::vector<std::uint8_t> undecided(output.bounds.size());
  parallel_for(chosen.size(), [&](std::size_t n) {
    const std::int64_t at = chosen[n];
    const std::int64_t i = at % call.q_len, head = at / call.q_len % call.heads,
                       batch = at / call.q_len / call.heads;
    const AttentionRow row = attention_row(pairs, batch, head, i);
    const double length = std::sqrt(static_cast<double>(row.keys.size())) + kLeastGrowth;
    for (std::size_t d = 0; d < dim; ++d) {
      const auto column = static_cast<Eigen::Index>(d);
      const std::size_t index = n * dim + d;
      output.elements[index] =
          static_cast<std::size_t>((batch * call.q_len + i) * call.heads + head) * dim + d;
      const double value = std::fabs(row.output[column]), magnitude = row.magnitude[column];
      // Undivided sums move with the largest score, too.
      const double moved = (magnitude + (call.normalize ? value : magnitude)) * row.score_magnitude;
      undecided[index] = row.undecided[d] ? 1 : 0;
      output.values[index] = row.output[column];
      output.bounds[index] = output_unit * value +
                             kRoundings * kUnitF32 * (moved + magnitude * length) +
                             kSmallestWeight * row.values[column] + smallest;
      if (rounds_weights) {
        roundings[index] =
            output_unit * magnitude + smallest / 2 * row.largest_weight * row.values[column];
        squares[index] = output_unit * output_unit * row.squares[column];
      }
    }
    log_sum_exp.elements[n] = static_cast<std::size_t>(at);
    log_sum_exp.values[n] = row.log_sum_exp;
    log_sum_exp.bounds[n] =
        std::isinf(row.log_sum_exp)
            ? 0
            : lse_factor * kUnitF32 *
                  (std::fabs(row.log_sum_exp) + row.score_magnitude + kLeastGrowth);
    if (!problem.has(weights.slot)) return;
    for (std::size_t j = 0; j < keys; ++j)
      weights.elements[n * keys + j] = static_cast<std::size_t>(at) * keys + j;
    for (std::size_t j = 0; j < row.keys.size(); ++j) {
      const std::size_t index = n * keys + static_cast<std::size_t>(row.keys[j]);
      const double weight = row.weights[static_cast<Eigen::Index>(j)];
      weights.values[index] = weight;
      weights.bounds[index] = output_unit * weight +
                              2 * lse_factor * kUnitF32 * weight * (row.score_magnitude + length) +
                              smallest + kSmallestWeight;
    }
  });
  leave_out(undecided, output.elements, output.values, output.bounds, roundings, squares);
  output.rms_bound = rms_bound(problem.dtype, output, kRmsFactor) + root_mean(squares);
  for (std::size_t n = 0; n < roundings.size(); ++n) output.bounds[n] += roundings[n];
  weights.rms_bound = rms_bound(problem.dtype, weights, kRmsFactor);
  std::vector<Expectation> expectations{std::move(output)};
  if (problem.has(log_sum_exp.slot)) expectations.push_back(std::move(log_sum_exp));
  if (problem.has(weights.slot)) expectations.push_back(std::move(weights));
  return expectations;
}

}  // namespace tessera::operations::attention
