// SPDX-License-Identifier: Apache-2.0
// What the gradients must be, given the output and log_sum_exp that the call brings: what the
// roundings of scores move the terms by, 8 float roundings of the sum of the terms' magnitudes,
// growing with the features of the products and the root of the number of terms, and the storage
// rounding of the result. Variants whose matrix units take 16-bit
// factors round weights and gradients of scores to the storage type, too.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/system/parallel.hpp"
#include "operations/attention_core/cases/workload.hpp"
#include "operations/attention_core/oracle/reference.hpp"
#include "operations/attention_core/oracle/thresholds.hpp"

namespace tessera::operations::attention {
namespace {

AttentionGradients::FactorRounding factor_rounding(const Problem& problem,
                                                   const Arithmetic& arithmetic) {
  if (!arithmetic.rounds_factors || problem.dtype == DType::kF32) return {};
  return {storage_unit(problem.dtype), smallest_number(problem.dtype) / 2};
}

class BackwardExpectations {
 public:
  BackwardExpectations(const Problem& problem, std::span<HostTensor> tensors,
                       const Arithmetic& arithmetic, double max_flops)
      : problem_(problem),
        gradients_(problem, tensors, factor_rounding(problem, arithmetic)),
        call_(gradients_.pairs().call()),
        factor_(exp_roundings(arithmetic.backend)),
        max_flops_(max_flops) {}

  std::vector<Expectation> all() const {
    const AttentionSlots& slots = call_.slots;
    std::vector<Expectation> result{
        rows(slots.query_gradient, call_.q_len, call_.heads, call_.kv_len,
             [&](auto b, auto h, auto i) { return gradients_.query(b, h, i); }),
        rows(slots.key_gradient, call_.kv_len, call_.kv_heads, call_.q_len * call_.group(),
             [&](auto b, auto h, auto j) { return gradients_.key(b, h, j); }),
        rows(slots.value_gradient, call_.kv_len, call_.kv_heads, call_.q_len * call_.group(),
             [&](auto b, auto h, auto j) { return gradients_.value(b, h, j); })};
    if (problem_.has(slots.bias_gradient))
      result.push_back(
          sums(slots.bias_gradient, [&](auto add) { gradients_.for_each_bias_term(add); }));
    if (problem_.has(slots.sinks_gradient))
      result.push_back(
          sums(slots.sinks_gradient, [&](auto add) { gradients_.for_each_sink_term(add); }));
    return result;
  }

 private:
  double bound(std::size_t slot, double value, double magnitude, double moved, double terms) const {
    const DType dtype = problem_.spec(slot).dtype;
    const double growth = std::sqrt(terms) + sum_growth(call_.value_dim) + kLeastGrowth;
    const double of_floats = factor_ * kUnitF32 * (moved + growth * magnitude);
    // What is rounded to the storage type is the value with the errors of float.
    return storage_unit(dtype) * (std::fabs(value) + of_floats) + of_floats +
           smallest_number(dtype);
  }

  // rms_bound() takes an eighth of what eight roundings of the scores move for one of them. Where
  // float holds a score to no part of 1, weights move to 0 or 1 and no further, and one rounding
  // moves them by more than that: what is missing, in squares that are divided by 3.
  double beyond_line(const AttentionGradients::Row& row, Eigen::Index column) const {
    const double once = factor_ / kExpRoundings * kUnitF32 * row.moved_once[column];
    const double counted = factor_ * kUnitF32 * row.moved[column] / kRoundings;
    return std::max(kScoreRoundings * (once * once - counted * counted), 0.0);
  }

  // Rows of [batch, rows, heads, dim].
  template <class Gradient>
  Expectation rows(std::size_t slot, std::int64_t count, std::int64_t heads, std::int64_t terms,
                   Gradient gradient) const {
    const auto dim = static_cast<std::size_t>(problem_.spec(slot).shape.back());
    const double flops = 10 * static_cast<double>(terms) * static_cast<double>(dim);
    const std::vector<std::int64_t> chosen =
        affordable_rows(call_.batch * count * heads, flops, max_flops_ / 3);
    Expectation result{.slot = slot};
    result.elements.resize(chosen.size() * dim);
    result.values.resize(chosen.size() * dim);
    result.bounds.resize(chosen.size() * dim);
    std::vector<double> rounding(result.bounds.size()), squares(chosen.size());
    parallel_for(chosen.size(), [&](std::size_t n) {
      const std::int64_t at = chosen[n];
      const AttentionGradients::Row row =
          gradient(at / (count * heads), at % heads, at / heads % count);
      for (std::size_t d = 0; d < dim; ++d) {
        const auto column = static_cast<Eigen::Index>(d);
        result.elements[n * dim + d] = static_cast<std::size_t>(at) * dim + d;
        result.values[n * dim + d] = row.value[column];
        result.bounds[n * dim + d] = bound(slot, row.value[column], row.magnitude[column],
                                           row.moved[column], static_cast<double>(row.terms));
        rounding[n * dim + d] = row.rounding[column];
        if (std::isfinite(row.rounding_squares[column])) squares[n] += row.rounding_squares[column];
        if (std::isfinite(row.value[column])) squares[n] += beyond_line(row, column);
      }
    });
    for (std::size_t n = 0; n < rounding.size(); ++n) result.bounds[n] += rounding[n];
    // Where few terms decide, their factors' roundings are the error: each has a mean square of at
    // most a third of its largest.
    result.rms_bound =
        rms_bound(problem_.spec(slot).dtype, result,
                  slot == call_.slots.query_gradient ? kQueryGradientRmsFactor : kRmsFactor) +
        std::sqrt(std::reduce(squares.begin(), squares.end()) /
                  std::max<double>(3 * static_cast<double>(rounding.size()), 1));
    return result;
  }

  // Every element of a bias or of sinks is a sum; `visit` calls add(to, term) for its terms.
  template <class Visit>
  Expectation sums(std::size_t slot, Visit visit) const {
    const auto count = static_cast<std::size_t>(problem_.spec(slot).elements());
    std::vector<double> magnitudes(count), moved(count), terms(count);
    Expectation result{
        .slot = slot, .values = std::vector<double>(count), .bounds = std::vector<double>(count)};
    visit([&](std::size_t to, const AttentionGradients::Element& term) {
      result.values[to] += term.bias;
      magnitudes[to] += term.magnitude;
      moved[to] += term.moved;
      terms[to] += 1;
    });
    for (std::size_t n = 0; n < count; ++n)
      result.bounds[n] = bound(slot, result.values[n], magnitudes[n], moved[n], terms[n]);
    result.rms_bound = rms_bound(problem_.spec(slot).dtype, result, kRmsFactor);
    return result;
  }

  const Problem& problem_;
  AttentionGradients gradients_;
  const AttentionProblem& call_;
  double factor_, max_flops_;
};

}  // namespace

std::vector<Expectation> expect_attention_backward(const Problem& problem,
                                                   std::span<HostTensor> tensors,
                                                   const Arithmetic& arithmetic, double max_flops) {
  return BackwardExpectations(problem, tensors, arithmetic, max_flops).all();
}

}  // namespace tessera::operations::attention
