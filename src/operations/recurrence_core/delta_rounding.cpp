// SPDX-License-Identifier: Apache-2.0
#include "operations/recurrence_core/delta_rounding.hpp"

#include <cmath>
#include <utility>

#include "operations/common/numerics.hpp"
#include "operations/recurrence_core/args.h"

namespace tessera::operations::recurrence {
namespace {

constexpr std::size_t kChunk = RECUR_DELTA_CHUNK;

}  // namespace

double product_of(const double* x, const double* y, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += x[i] * y[i];
  return sum;
}

void keep_finite(std::vector<double>& bounds) {
  for (double& bound : bounds) bound = std::isfinite(bound) ? bound : 0;
}

double norm_of(const double* row, std::size_t count) {
  return std::sqrt(product_of(row, row, count));
}

DeltaRounding::DeltaRounding(std::size_t keys, std::size_t columns, double unit, double lost)
    : keys_(keys), columns_(columns), unit_(unit), lost_(lost), norms_(columns) {}

void DeltaRounding::begin(const std::vector<double>& state) {
  chunk_.clear();
  before_ = state;
}

std::vector<double> DeltaRounding::change(const Token& token, const std::vector<double>& state) {
  if (chunk_.size() % kChunk == 0) begin(state);
  norms_.assign(columns_, 0);
  for (double& h : before_) h *= token.decay;
  for (std::size_t at = 0; at < before_.size(); ++at)
    norms_[at % columns_] += before_[at] * before_[at];
  for (double& norm : norms_) norm = std::sqrt(norm);
  Earlier now{.key = token.key, .norm = norm_of(token.key, keys_)};
  now.solution.resize(chunk_.size() + 1);
  now.solution.back() = token.beta;
  now.sums.resize(columns_);
  std::vector<double> others(columns_);
  for (Earlier& earlier : chunk_) {
    earlier.decay *= token.decay;
    const double weight = token.beta * earlier.decay * product_of(token.key, earlier.key, keys_);
    for (std::size_t j = 0; j < earlier.solution.size(); ++j)
      now.solution[j] -= weight * earlier.solution[j];
    for (std::size_t v = 0; v < columns_; ++v) others[v] += std::fabs(weight) * earlier.sums[v];
  }
  now.missing.resize(columns_);
  for (std::size_t v = 0; v < columns_; ++v) {
    double held = 0;
    for (std::size_t k = 0; k < keys_; ++k) held += token.key[k] * before_[k * columns_ + v];
    now.missing[v] = std::fabs(token.value[v]) + std::fabs(held);
  }
  for (std::size_t j = 0; j <= chunk_.size(); ++j) {
    const std::vector<double>& missing = j < chunk_.size() ? chunk_[j].missing : now.missing;
    for (std::size_t v = 0; v < columns_; ++v)
      now.sums[v] += std::fabs(now.solution[j]) * missing[v];
  }
  // The solution and what is missing are split, as is their product, and then the change; the
  // triangle's residual is that of sums; what the state holds for the key is of a split state.
  const double sum = sum_error(3 * kChunk);
  std::vector<double> bounds(columns_);
  for (std::size_t v = 0; v < columns_; ++v)
    bounds[v] = (3 * kDeltaSplit + sum) * now.sums[v] + sum * others[v] +
                std::fabs(token.beta) * now.norm *
                    (kDeltaSplit * norms_[v] + std::sqrt(static_cast<double>(keys_)) * lost_);
  keep_finite(bounds);
  chunk_.push_back(std::move(now));
  return bounds;
}

std::vector<double> DeltaRounding::output(const Token& token, const std::vector<double>& change) {
  chunk_.back().change = change;
  const double rounded = (1 + unit_) * (1 + unit_) - 1, norm = norm_of(token.query, keys_);
  std::vector<double> bounds(columns_);
  for (std::size_t v = 0; v < columns_; ++v)
    bounds[v] = norm * (unit_ * norms_[v] + std::sqrt(static_cast<double>(keys_)) * lost_);
  for (const Earlier& earlier : chunk_) {
    const double weight = std::fabs(earlier.decay * product_of(token.query, earlier.key, keys_));
    for (std::size_t v = 0; v < columns_; ++v) {
      const double u = std::fabs(earlier.change[v]);
      bounds[v] += rounded * weight * u + lost_ * (weight + u);
    }
  }
  keep_finite(bounds);
  return bounds;
}

double DeltaRounding::lost() const { return chunk_.back().norm * lost_; }

}  // namespace tessera::operations::recurrence
