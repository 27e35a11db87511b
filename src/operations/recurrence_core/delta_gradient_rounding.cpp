// SPDX-License-Identifier: Apache-2.0
#include "operations/recurrence_core/delta_gradient_rounding.hpp"

#include <cmath>

#include "operations/common/numerics.hpp"
#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/delta_rounding.hpp"

namespace tessera::operations::recurrence {
namespace {

double magnitude_of(const double* x, const double* y, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += std::fabs(x[i] * y[i]);
  return sum;
}
// Magnitudes of a state's products with a row of its columns, for each key dim.
std::vector<double> magnitudes_of(const std::vector<double>& state, const double* row,
                                  std::size_t keys, std::size_t columns) {
  std::vector<double> sums(keys);
  for (std::size_t k = 0; k < keys; ++k)
    sums[k] = magnitude_of(state.data() + k * columns, row, columns);
  return sums;
}

}  // namespace

DeltaGradientRounding::DeltaGradientRounding(std::size_t keys, std::size_t columns, double scale,
                                             double unit, double lost)
    : keys_(keys), columns_(columns), scale_(std::fabs(scale)), unit_(unit), lost_(lost) {}

double DeltaGradientRounding::between(std::size_t first, std::size_t last) const {
  double factor = 1;
  for (std::size_t t = first; t < last; ++t) factor *= tokens_[t].decay;
  return factor;
}

std::vector<std::vector<double>> DeltaGradientRounding::slopes(
    const std::vector<double>& dstate) const {
  const std::size_t count = tokens_.size();
  const double sum = sum_error(3 * RECUR_DELTA_CHUNK), root = std::sqrt(static_cast<double>(keys_));
  std::vector<double> norms(columns_);
  for (std::size_t at = 0; at < dstate.size(); ++at)
    norms[at % columns_] += dstate[at] * dstate[at];
  // Of each token the triangle's column below it, the column of its solution, magnitudes of what is
  // missing, and of its products with the solution.
  std::vector<std::vector<double>> triangle(count), solution(count), missing(count), sums(count),
      bounds(count);
  for (std::size_t t = count; t-- > 0;) {
    const Token& token = tokens_[t];
    const double norm = norm_of(token.key, keys_), until = between(t + 1, count);
    missing[t].resize(columns_);
    bounds[t].resize(columns_);
    sums[t].resize(columns_);
    for (std::size_t v = 0; v < columns_; ++v) {
      double held = 0;
      for (std::size_t k = 0; k < keys_; ++k) held += token.key[k] * dstate[k * columns_ + v];
      missing[t][v] = until * std::fabs(held);
      bounds[t][v] = until * norm * (kDeltaSplit * std::sqrt(norms[v]) + root * lost_);
    }
    double decay = 1;
    for (std::size_t i = t; i < count; ++i) {
      if (i > t) decay *= tokens_[i].decay;
      const double weight = std::fabs(decay * product_of(tokens_[i].query, token.key, keys_));
      for (std::size_t v = 0; v < columns_; ++v) {
        const double given = scale_ * std::fabs(tokens_[i].grad_output[v]);
        missing[t][v] += weight * given;
        bounds[t][v] += unit_ * weight * given + lost_ * given;
      }
      if (i > t)
        triangle[t].push_back(tokens_[i].beta * decay *
                              product_of(tokens_[i].key, token.key, keys_));
    }
    // The solution's column is that of the inverse: row by row.
    solution[t].assign(count - t, 0);
    solution[t][0] = 1;
    for (std::size_t i = t + 1; i < count; ++i)
      for (std::size_t j = t; j < i; ++j)
        solution[t][i - t] -= triangle[j][i - j - 1] * solution[t][j - t];
    for (std::size_t v = 0; v < columns_; ++v) {
      double others = 0;
      for (std::size_t i = t; i < count; ++i) {
        sums[t][v] += std::fabs(solution[t][i - t]) * missing[i][v];
        if (i > t) others += std::fabs(triangle[t][i - t - 1]) * sums[i][v];
      }
      bounds[t][v] += (3 * kDeltaSplit + sum) * sums[t][v] + sum * others;
    }
    keep_finite(bounds[t]);
  }
  return bounds;
}

double DeltaGradientRounding::lost() const {
  double norms = 0;
  for (const Token& token : tokens_)
    norms += norm_of(token.query, keys_) + norm_of(token.key, keys_);
  return std::isfinite(norms) ? lost_ * norms : 0;
}

DeltaGradientRounding::Bounds DeltaGradientRounding::gradients(
    const std::vector<double>& state, const std::vector<double>& dstate) const {
  const std::size_t count = tokens_.size();
  const double sum = sum_error(static_cast<double>(2 * RECUR_DELTA_CHUNK + keys_ + columns_));
  const double once = unit_ + sum, twice = (1 + unit_) * (1 + unit_) - 1 + sum,
               thrice = std::pow(1 + unit_, 3) - 1 + sum;
  Bounds bounds{.query = std::vector<double>(count * keys_),
                .key = std::vector<double>(count * keys_),
                .beta = std::vector<double>(count),
                .decay = std::vector<double>(count)};
  // What the pair of a token and an earlier one, or of a token and one of both states, adds to the
  // gradients of all decays between them.
  const auto add_decays = [&](std::size_t first, std::size_t end, double bound) {
    for (std::size_t t = first; t < end; ++t) bounds.decay[t] += bound;
  };
  std::vector<double> ones(columns_, 1);
  for (std::size_t t = 0; t < count; ++t) {
    const Token& token = tokens_[t];
    const double since = between(0, t + 1), until = between(t + 1, count);
    const double beta = std::fabs(token.beta);
    const double* slope = token.change_slope.data();
    const double given_size = magnitude_of(token.grad_output, ones.data(), columns_),
                 slope_size = magnitude_of(slope, ones.data(), columns_),
                 change_size = magnitude_of(token.change.data(), ones.data(), columns_);
    const std::vector<double> held = magnitudes_of(state, token.grad_output, keys_, columns_),
                              spent = magnitudes_of(state, slope, keys_, columns_),
                              gained = magnitudes_of(dstate, token.change.data(), keys_, columns_);
    double of_query = 0, of_key = 0, of_change = 0;
    for (std::size_t k = 0; k < keys_; ++k) {
      double state_row = 0, dstate_row = 0;
      for (std::size_t v = 0; v < columns_; ++v) {
        state_row += std::fabs(state[k * columns_ + v]);
        dstate_row += std::fabs(dstate[k * columns_ + v]);
      }
      const double x = since * scale_ * (once * held[k] + lost_ * given_size);
      const double y = since * (twice * spent[k] + lost_ * (slope_size + state_row));
      const double z = until * (twice * gained[k] + lost_ * (change_size + dstate_row));
      bounds.query[t * keys_ + k] += x;
      bounds.key[t * keys_ + k] += beta * y + z;
      of_query += std::fabs(token.query[k]) * x;
      of_key += std::fabs(token.key[k]) * y;
      of_change += std::fabs(token.key[k]) * z;
    }
    bounds.beta[t] += of_key;
    add_decays(0, t + 1, of_query + beta * of_key);
    add_decays(t + 1, count, of_change);
    double decay = 1;
    for (std::size_t s = t + 1; s-- > 0;) {
      const Token& other = tokens_[s];
      const double* change = other.change.data();
      const double other_size = magnitude_of(change, ones.data(), columns_);
      const double p = decay * scale_ * magnitude_of(token.grad_output, change, columns_);
      const double n = s < t ? decay * magnitude_of(slope, change, columns_) : 0;
      const double p_lost = lost_ * (1 + decay * scale_ * given_size),
                   n_lost = s < t ? lost_ * decay * (slope_size + other_size) : 0;
      for (std::size_t k = 0; k < keys_; ++k) {
        const double key = std::fabs(token.key[k]), others = std::fabs(other.key[k]);
        bounds.query[t * keys_ + k] += (twice * p + p_lost) * others;
        bounds.key[s * keys_ + k] += (twice * p + p_lost) * std::fabs(token.query[k]);
        if (s == t) continue;
        const double weight = beta * (thrice * n + n_lost) + lost_;
        bounds.key[s * keys_ + k] += weight * key;
        bounds.key[t * keys_ + k] += weight * others;
      }
      if (s < t) {
        const double of_keys = magnitude_of(token.key, other.key, keys_),
                     of_queries = magnitude_of(token.query, other.key, keys_);
        bounds.beta[t] += (twice * n + n_lost) * of_keys;
        add_decays(s + 1, t + 1,
                   (once * p + p_lost) * of_queries + beta * (twice * n + n_lost) * of_keys);
      }
      decay *= other.decay;
    }
  }
  for (std::vector<double>* all : {&bounds.query, &bounds.key, &bounds.beta, &bounds.decay})
    keep_finite(*all);
  return bounds;
}

}  // namespace tessera::operations::recurrence
