// SPDX-License-Identifier: Apache-2.0
// The definition of delta rules and of their gradients in double precision, step by step.
//
// A token multiplies what errors there are by I - beta k k^T, whose norm is max(1, |1 - beta k^T
// k|), but whose elements' magnitudes have a larger one. So bounds are of a column's norm, not of
// each element: Higham, Accuracy and Stability of Numerical Algorithms, 3.3, with norms.
#include <algorithm>
#include <cmath>
#include <optional>

#include "operations/common/numerics.hpp"
#include "operations/recurrence_core/delta_gradient_rounding.hpp"
#include "operations/recurrence_core/delta_rounding.hpp"
#include "operations/recurrence_core/factors.hpp"
#include "operations/recurrence_core/oracle.hpp"

namespace tessera::operations::recurrence {

// A row of key dims.
struct Row {
  const double* keys = nullptr;
  double norm = 0;
};

namespace {

// Columns of a state or of its gradient.
class Columns {
 public:
  std::vector<double> h;      // [key_dim, columns]
  std::vector<double> error;  // by how much a float column may be off, as a norm

  Columns(std::size_t keys, std::size_t columns)
      : h(keys * columns),
        error(columns),
        keys_(keys),
        sum_(sum_error(static_cast<double>(keys))),
        recent_(columns),
        before_(columns) {}

  // The norm of what a column is made of: of itself, and of what the last 64 tokens or more have
  // added to it. Ways that take chunks make it of those.
  std::vector<double> sizes() const {
    std::vector<double> sizes(error.size());
    for (std::size_t at = 0; at < h.size(); ++at) sizes[at % sizes.size()] += h[at] * h[at];
    for (std::size_t v = 0; v < sizes.size(); ++v)
      sizes[v] = std::sqrt(sizes[v]) + recent_[v] + before_[v];
    return sizes;
  }

  void next_token() {
    if (++tokens_ % 64 != 0) return;
    before_ = recent_;
    std::ranges::fill(recent_, 0);
  }

  void decay(const std::vector<Factor>& factors) {
    std::vector<double> slip(error.size());
    double most = 0, lost = 0;
    for (std::size_t k = 0; k < keys_; ++k) {
      const Factor& a = factors[k];
      most = std::max(most, a.value * (1 + a.error) + a.lost);
      lost += a.value < 1 ? 0x1p-126 : 0;
      for (std::size_t v = 0; v < error.size(); ++v) {
        double& element = h[k * error.size() + v];
        const double off = (a.value * a.error + a.lost) * element;
        slip[v] += off * off;
        element *= a.value;
      }
    }
    for (std::size_t v = 0; v < error.size(); ++v) {
      error[v] = most * error[v] + std::sqrt(slip[v]) + lost;
      recent_[v] *= most;
      before_[v] *= most;
    }
  }

  // The products of columns with a row: values, and bounds of their errors; `local` are those that
  // columns without errors would have.
  struct Products {
    std::vector<double> values, bounds, local;
  };
  Products times(const Row& row) const {
    const std::vector<double> size = sizes();
    Products result{.values = std::vector<double>(error.size()), .bounds = {}, .local = size};
    for (std::size_t at = 0; at < h.size(); ++at)
      result.values[at % error.size()] += row.keys[at / error.size()] * h[at];
    for (std::size_t v = 0; v < error.size(); ++v)
      result.local[v] = sum_ * row.norm * size[v] + static_cast<double>(keys_) * 0x1p-126;
    result.bounds = result.local;
    for (std::size_t v = 0; v < error.size(); ++v) result.bounds[v] += row.norm * error[v];
    return result;
  }

  // What else all columns may be off by, as a norm.
  void lose(double norm) {
    for (double& bound : error) bound += norm;
  }

  // Errors go through I - beta k k^T.
  void replace(const Row& key, double beta) {
    const double norm = std::max(1.0, std::fabs(1 - beta * key.norm * key.norm));
    for (double& bound : error) bound *= norm;
  }
  void add(const Row& row, const std::vector<double>& weights, const std::vector<double>& bounds) {
    for (std::size_t at = 0; at < h.size(); ++at)
      h[at] += row.keys[at / error.size()] * weights[at % error.size()];
    for (std::size_t v = 0; v < error.size(); ++v) recent_[v] += row.norm * std::fabs(weights[v]);
    const std::vector<double> size = sizes();
    for (std::size_t v = 0; v < error.size(); ++v)
      error[v] += row.norm * bounds[v] + 3 * kUnitF32 * size[v] +
                  static_cast<double>(keys_) * lost_of(size[v]);
  }

 private:
  std::size_t keys_;
  double sum_;  // what a sum over key dims is off by
  std::vector<double> recent_, before_;
  int tokens_ = 0;
};

void set(Columns& columns, const std::vector<double>& states, std::int64_t row, std::int64_t width,
         std::int64_t first) {
  const auto count = static_cast<std::int64_t>(columns.error.size());
  if (states.empty()) return;
  for (std::int64_t at = 0; at < static_cast<std::int64_t>(columns.h.size()); ++at)
    columns.h[static_cast<std::size_t>(at)] =
        states[static_cast<std::size_t>((row + at / count) * width + first + at % count)];
}

// What a token replaces: value - state^T key, and beta times that, with bounds.
struct Change {
  std::vector<double> found, found_bounds, weights, weight_bounds;
};
Change change_of(const Columns& decayed, const Row& key, const double* value, double beta) {
  const Columns::Products products = decayed.times(key);
  const std::size_t columns = decayed.error.size();
  Change change{.found = products.values,
                .found_bounds = products.bounds,
                .weights = products.values,
                .weight_bounds = products.local};
  for (std::size_t v = 0; v < columns; ++v) {
    const double rounding = 2 * kUnitF32 * (std::fabs(value[v]) + std::fabs(products.values[v]));
    change.found[v] = value[v] - products.values[v];
    change.found_bounds[v] += rounding;
    change.weights[v] = beta * change.found[v];
    change.weight_bounds[v] = std::fabs(beta) * (products.local[v] + rounding) +
                              2 * kUnitF32 * std::fabs(change.weights[v]) +
                              lost_of(std::fabs(change.weights[v]));
  }
  return change;
}

Bounded spread(const Columns& columns) {
  Bounded all{.values = columns.h, .bounds = columns.h};
  for (std::size_t at = 0; at < all.bounds.size(); ++at)
    all.bounds[at] = columns.error[at % columns.error.size()];
  return all;
}

// Of a b, where a and b are off by at most so much, as a term of a sum.
double product_bound(double a, double a_bound, double b, double b_bound, double sum) {
  return std::fabs(a) * b_bound + a_bound * (std::fabs(b) + b_bound) + sum * std::fabs(a * b) +
         lost_of(std::fabs(a * b) + a_bound + b_bound);
}

}  // namespace

// Of a token: its rows, and the factors of its state.
struct RecurrenceOracle::DeltaToken {
  std::size_t place = 0;  // in results, in order of tokens
  Row query{}, key{};
  const double *value = nullptr, *grad_output = nullptr;
  double beta = 0;
  std::vector<Factor> factors{};
};

RecurrenceOracle::DeltaToken RecurrenceOracle::delta_token(const Unit& unit, std::int64_t step,
                                                           std::int64_t first) const {
  const std::int64_t at = token(unit, step);
  const auto keys = static_cast<std::size_t>(call_.key_dim);
  DeltaToken result{.place = static_cast<std::size_t>(at - unit.begin)};
  const auto read = [&](const std::vector<double>& rows) {
    const double* from = row(rows, unit, at, call_.key_dim);
    return Row{.keys = from, .norm = norm_of(from, keys)};
  };
  result.query = read(query_);
  result.key = read(key_);
  result.value = row(value_, unit, at, call_.value_dim) + first;
  if (!grad_output_.empty()) result.grad_output = row(grad_output_, unit, at, call_.value_dim);
  result.beta = *row(beta_, unit, at, 1);
  const Decay decays = decay(unit, at, first);
  for (std::size_t k = 0; k < keys; ++k)
    result.factors.push_back(factor_of(decays.keys[k], decays.key_sizes[k]));
  return result;
}

RecurrenceOracle::Forward RecurrenceOracle::forward_delta(const Unit& unit, std::int64_t first,
                                                          std::int64_t columns) const {
  const auto width = static_cast<std::size_t>(columns);
  Columns state(static_cast<std::size_t>(call_.key_dim), width);
  const std::int64_t row = (unit.sequence * call_.heads + unit.head) * call_.key_dim;
  set(state, initial_, row, call_.value_dim, first);
  std::optional<DeltaRounding> rounding;
  if (factor_unit_ > 0)
    rounding.emplace(static_cast<std::size_t>(call_.key_dim), width, factor_unit_, factor_lost_);
  Forward result;
  result.output.values.resize(static_cast<std::size_t>(unit.length()) * width);
  result.output.bounds.resize(result.output.values.size());
  for (std::int64_t i = 0; i < unit.length(); ++i) {
    const DeltaToken token = delta_token(unit, i, first);
    const DeltaRounding::Token of_chunk{.query = token.query.keys,
                                        .key = token.key.keys,
                                        .value = token.value,
                                        .beta = token.beta,
                                        .decay = token.factors.front().value};
    std::vector<double> rounded(width);
    if (rounding) rounded = rounding->change(of_chunk, state.h);
    state.next_token();
    state.decay(token.factors);
    Change change = change_of(state, token.key, token.value, token.beta);
    for (std::size_t v = 0; v < width; ++v) change.weight_bounds[v] += rounded[v];
    state.replace(token.key, token.beta);
    state.add(token.key, change.weights, change.weight_bounds);
    Columns::Products output = state.times(token.query);
    if (rounding) {
      state.lose(rounding->lost());
      rounded = rounding->output(of_chunk, change.weights);
      for (std::size_t v = 0; v < width; ++v) output.bounds[v] += rounded[v];
    }
    for (std::size_t v = 0; v < width; ++v) {
      result.output.values[token.place * width + v] = call_.scale * output.values[v];
      result.output.bounds[token.place * width + v] =
          std::fabs(call_.scale) * output.bounds[v] + lost_of(std::fabs(output.values[v]));
    }
  }
  result.state = spread(state);
  return result;
}

// The state before each token, decayed, and behind it are kept.
RecurrenceOracle::Backward RecurrenceOracle::backward_delta(const Unit& unit) const {
  const auto keys = static_cast<std::size_t>(call_.key_dim);
  const auto columns = static_cast<std::size_t>(call_.value_dim);
  const auto length = static_cast<std::size_t>(unit.length());
  const std::int64_t row = (unit.sequence * call_.heads + unit.head) * call_.key_dim;
  Columns state(keys, columns), gradient(keys, columns);
  set(state, initial_, row, call_.value_dim, 0);
  set(gradient, grad_final_, row, call_.value_dim, 0);
  std::vector<Columns> decayed, behind;
  std::vector<Change> changes;
  std::optional<DeltaRounding> rounding;
  if (factor_unit_ > 0) rounding.emplace(keys, columns, factor_unit_, factor_lost_);
  std::vector<std::vector<double>> rounded(length, std::vector<double>(columns));
  std::vector<DeltaGradientRounding> chunks;
  std::vector<std::vector<double>> starts;  // states before chunks
  for (std::size_t i = 0; i < length; ++i) {
    const DeltaToken token = delta_token(unit, static_cast<std::int64_t>(i), 0);
    if (rounding) {
      if (i % RECUR_DELTA_CHUNK == 0) {
        chunks.emplace_back(keys, columns, call_.scale, factor_unit_, factor_lost_);
        starts.push_back(state.h);
      }
      rounded[i] = rounding->change({.query = token.query.keys,
                                     .key = token.key.keys,
                                     .value = token.value,
                                     .beta = token.beta,
                                     .decay = token.factors.front().value},
                                    state.h);
    }
    state.next_token();
    state.decay(token.factors);
    decayed.push_back(state);
    changes.push_back(change_of(state, token.key, token.value, token.beta));
    for (std::size_t v = 0; v < columns; ++v) changes[i].weight_bounds[v] += rounded[i][v];
    state.replace(token.key, token.beta);
    state.add(token.key, changes.back().weights, changes.back().weight_bounds);
    behind.push_back(state);
    if (!rounding) continue;
    state.lose(rounding->lost());
    chunks.back().tokens().push_back({.query = token.query.keys,
                                      .key = token.key.keys,
                                      .grad_output = token.grad_output,
                                      .beta = token.beta,
                                      .decay = token.factors.front().value,
                                      .change = changes.back().weights});
  }
  Backward result;
  const auto resize = [&](Bounded& to, std::size_t width) {
    to.values.resize(length * width);
    to.bounds.resize(length * width);
  };
  for (Bounded* to : {&result.query, &result.key, &result.gk}) resize(*to, keys);
  resize(result.value, columns);
  resize(result.gate, 1);
  resize(result.beta, 1);
  const double key_sum = sum_error(static_cast<double>(keys));
  const double column_sum = sum_error(static_cast<double>(columns));
  const double split = rounding ? kDeltaSplit : 0;
  std::vector<std::vector<double>> slopes;  // of the chunk, what those may be off by
  std::vector<double> end;                  // the gradient of the state behind it
  for (std::size_t i = length; i-- > 0;) {
    const DeltaToken token = delta_token(unit, static_cast<std::int64_t>(i), 0);
    const Columns &old = decayed[i], &now = behind[i];
    const Change& change = changes[i];
    const double beta = token.beta;
    const std::size_t of_chunk = i % RECUR_DELTA_CHUNK, chunk = i / RECUR_DELTA_CHUNK;
    if (rounding && (i + 1 == length || of_chunk + 1 == RECUR_DELTA_CHUNK)) {
      end = gradient.h;
      slopes = chunks[chunk].slopes(end);
    }
    gradient.next_token();
    std::vector<double> weights(columns), bounds(columns);
    for (std::size_t v = 0; v < columns; ++v) {
      weights[v] = call_.scale * token.grad_output[v];
      bounds[v] = (2 * kUnitF32 + split) * std::fabs(weights[v]);
    }
    gradient.add(token.query, weights, bounds);
    Columns::Products found = gradient.times(token.key);
    if (rounding) {
      chunks[chunk].tokens()[of_chunk].change_slope = found.values;
      for (std::size_t v = 0; v < columns; ++v) {
        found.bounds[v] += slopes[of_chunk][v];
        found.local[v] += slopes[of_chunk][v];
      }
    }
    for (std::size_t v = 0; v < columns; ++v) {
      const double c = found.values[v], u = change.found[v];
      const std::size_t at = token.place * columns + v;
      result.value.values[at] = beta * c;
      result.value.bounds[at] =
          std::fabs(beta) * (found.bounds[v] + 2 * kUnitF32 * std::fabs(c)) + lost_of(std::fabs(c));
      result.beta.values[token.place] += u * c;
      result.beta.bounds[token.place] +=
          product_bound(u, change.found_bounds[v], c, found.bounds[v], column_sum);
    }
    for (std::size_t k = 0; k < keys; ++k) {
      const std::size_t at = token.place * keys + k;
      for (std::size_t v = 0; v < columns; ++v) {
        const double d = gradient.h[k * columns + v], p = old.h[k * columns + v];
        const double h = now.h[k * columns + v];
        result.query.values[at] += weights[v] * h;
        result.query.bounds[at] +=
            product_bound(weights[v], bounds[v], h, now.error[v], column_sum);
        result.key.values[at] += beta * (d * change.found[v] - p * found.values[v]);
        result.key.bounds[at] +=
            std::fabs(beta) *
                (product_bound(d, gradient.error[v], change.found[v], change.found_bounds[v],
                               column_sum) +
                 product_bound(p, old.error[v], found.values[v], found.bounds[v], column_sum)) +
            std::fabs(d) * rounded[i][v];
      }
    }
    for (std::size_t v = 0; v < columns; ++v) {
      weights[v] = -beta * found.values[v];
      bounds[v] =
          std::fabs(beta) * (found.local[v] + (2 * kUnitF32 + split) * std::fabs(found.values[v]));
    }
    gradient.replace(token.key, beta);
    gradient.add(token.key, weights, bounds);
    // Of the state before the token, decayed: times that state, a gradient of each decay.
    for (std::size_t k = 0; k < keys; ++k) {
      double slope = 0, bound = 0;
      for (std::size_t v = 0; v < columns; ++v) {
        const double d = gradient.h[k * columns + v], p = old.h[k * columns + v];
        slope += d * p;
        bound += product_bound(d, gradient.error[v], p, old.error[v], key_sum + column_sum);
      }
      result.gk.values[token.place * keys + k] = slope;
      result.gk.bounds[token.place * keys + k] = bound;
      result.gate.values[token.place] += slope;
      result.gate.bounds[token.place] += bound;
    }
    gradient.decay(token.factors);
    if (!rounding || of_chunk != 0) continue;
    gradient.lose(chunks[chunk].lost());
    const DeltaGradientRounding::Bounds more = chunks[chunk].gradients(starts[chunk], end);
    for (std::size_t t = 0; t < more.beta.size(); ++t) {
      const std::size_t place = delta_token(unit, static_cast<std::int64_t>(i + t), 0).place;
      for (std::size_t k = 0; k < keys; ++k) {
        result.query.bounds[place * keys + k] += more.query[t * keys + k];
        result.key.bounds[place * keys + k] += more.key[t * keys + k];
      }
      result.beta.bounds[place] += more.beta[t];
      result.gate.bounds[place] += more.decay[t];
    }
  }
  result.state = spread(gradient);
  return result;
}

}  // namespace tessera::operations::recurrence
