// SPDX-License-Identifier: Apache-2.0
#include "operations/recurrence_core/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "operations/common/numerics.hpp"
#include "operations/recurrence_core/factors.hpp"

namespace tessera::operations::recurrence {
namespace {

std::vector<double> read(const Problem& problem, std::span<HostTensor> tensors, std::size_t slot) {
  return problem.has(slot) ? tensors[slot].read() : std::vector<double>{};
}

// Of weight h in a sum, where a float h is off by `error` at most.
double term_bound(double weight, double size, double error, double sum) {
  const double scaled = std::fabs(weight);
  return scaled * (error + sum * size) + lost_of(scaled * (size + error));
}

}  // namespace

std::vector<std::int64_t> boundaries_of(const RecurrenceProblem& call,
                                        std::span<HostTensor> tensors) {
  std::vector<std::int64_t> boundaries;
  std::int64_t least = 0;
  for (const double value : tensors[call.slots.cu_seqlens].read()) {
    least = std::clamp(static_cast<std::int64_t>(value), least, call.tokens);
    boundaries.push_back(least);
  }
  return boundaries;
}

// Of [key_dim, columns]: h, the sum of the magnitudes of what it is the sum of, and by how much a
// float h may be off (running error analysis: Higham, Accuracy and Stability of Numerical
// Algorithms, 3.3).
struct RecurrenceOracle::States {
  std::vector<double> h, size, error;

  explicit States(std::size_t count) : h(count), size(count), error(count) {}
  void decay(std::size_t at, const Factor& a) {
    error[at] = a.value * error[at] + (a.value * a.error + a.lost) * size[at] +
                lost_of(a.value * (size[at] + error[at]));
    h[at] *= a.value;
    size[at] *= a.value;
  }
  // `unit`: of the rounding of a factor of the term.
  void add(std::size_t at, double term, double unit = 0) {
    h[at] += term;
    size[at] += std::fabs(term);
    error[at] += 3 * kUnitF32 * size[at] + unit * std::fabs(term) + lost_of(size[at]);
  }
};

// What rounded factors lose near 0, in units of that. Chunks of products round what has decayed to
// their ends or from their beginnings, wherever those are: nothing here decays. With w the query
// times the scale, an output may lose what its query (times the state before the chunk), that state
// (times the query), a weight (times its value), and the query and keys of a weight do.
struct RecurrenceOracle::Lost {
  std::vector<double> most;      // of the state's size, so far
  std::vector<double> states;    // |key| + |value|, added up, of each element of the state
  std::vector<double> products;  // |key| |value|, likewise
  std::vector<double> values;    // |value|, likewise, of each column

  Lost(const States& states_before, std::size_t columns)
      : most(states_before.size), states(most.size()), products(most.size()), values(columns) {}
  void add(const double* key, const double* value, const States& now) {
    const std::size_t columns = values.size();
    for (std::size_t v = 0; v < columns; ++v) values[v] += std::fabs(value[v]);
    for (std::size_t at = 0; at < most.size(); ++at) {
      const double k = std::fabs(key[at / columns]), v = std::fabs(value[at % columns]);
      most[at] = std::max(most[at], now.size[at] + now.error[at]);
      states[at] += k + v;
      products[at] += k * v;
    }
  }
  // Of an output's share of a key dim, and of all of them.
  double share(std::size_t at, double query) const {
    return most[at] + products[at] +
           std::fabs(query) * (1 + values[at % values.size()] + states[at]);
  }
};

RecurrenceOracle::RecurrenceOracle(const Problem& problem, std::span<HostTensor> tensors,
                                   bool rounds)
    : call_(problem.as<RecurrenceProblem>()),
      factor_unit_(rounds ? storage_unit(problem.dtype) : 0),
      factor_lost_(rounds ? smallest_number(problem.dtype) : 0) {
  const RecurrenceSlots& slots = call_.slots;
  query_ = read(problem, tensors, slots.query);
  key_ = read(problem, tensors, slots.key);
  value_ = read(problem, tensors, slots.value);
  g_ = read(problem, tensors, slots.g);
  gamma_ = read(problem, tensors, slots.gamma);
  gk_ = read(problem, tensors, slots.gk);
  gv_ = read(problem, tensors, slots.gv);
  beta_ = read(problem, tensors, slots.beta);
  initial_ = read(problem, tensors, slots.initial_state);
  grad_output_ = read(problem, tensors, slots.grad_output);
  grad_final_ = read(problem, tensors, slots.grad_final_state);
  std::vector<std::int64_t> boundaries;
  if (call_.packed) boundaries = boundaries_of(call_, tensors);
  for (std::int64_t sequence = 0; sequence < call_.sequences; ++sequence) {
    const auto at = static_cast<std::size_t>(sequence);
    Unit unit{.sequence = sequence, .batch = sequence, .end = call_.tokens};
    if (call_.packed)
      unit = {.sequence = sequence, .batch = 0, .begin = boundaries[at], .end = boundaries[at + 1]};
    for (unit.head = 0; unit.head < call_.heads; ++unit.head) units_.push_back(unit);
  }
}

std::int64_t RecurrenceOracle::token(const Unit& unit, std::int64_t step) const {
  return call_.reverse ? unit.end - 1 - step : unit.begin + step;
}

const double* RecurrenceOracle::row(const std::vector<double>& values, const Unit& unit,
                                    std::int64_t token, std::int64_t dim) const {
  return values.data() + ((unit.batch * call_.tokens + token) * call_.heads + unit.head) * dim;
}

RecurrenceOracle::Decay RecurrenceOracle::decay(const Unit& unit, std::int64_t token,
                                                std::int64_t first) const {
  const auto keys = static_cast<std::size_t>(call_.key_dim);
  double shared = call_.slope * static_cast<double>(unit.head), size = std::fabs(shared);
  const auto add = [&](double term) {
    shared += term;
    size += std::fabs(term);
  };
  if (!gamma_.empty()) add(gamma_[static_cast<std::size_t>(unit.head)]);
  if (!g_.empty() && !call_.key_gate) add(*row(g_, unit, token, 1));
  Decay decay{.keys = std::vector<double>(keys, shared),
              .key_sizes = std::vector<double>(keys, size)};
  const auto add_row = [&](const std::vector<double>& terms) {
    const double* from = row(terms, unit, token, call_.key_dim);
    for (std::size_t k = 0; k < keys; ++k) {
      decay.keys[k] += from[k];
      decay.key_sizes[k] += std::fabs(from[k]);
    }
  };
  if (call_.key_gate) add_row(g_);
  if (!gk_.empty()) add_row(gk_);
  if (!gv_.empty()) decay.values = row(gv_, unit, token, call_.value_dim) + first;
  return decay;
}

RecurrenceOracle::States RecurrenceOracle::initial(const Unit& unit, std::int64_t first,
                                                   std::int64_t columns) const {
  States states(static_cast<std::size_t>(call_.key_dim * columns));
  if (initial_.empty()) return states;
  const std::int64_t rows = (unit.sequence * call_.heads + unit.head) * call_.key_dim;
  for (std::int64_t k = 0; k < call_.key_dim; ++k) {
    for (std::int64_t v = 0; v < columns; ++v) {
      const double value =
          initial_[static_cast<std::size_t>((rows + k) * call_.value_dim + first + v)];
      states.h[static_cast<std::size_t>(k * columns + v)] = value;
      states.size[static_cast<std::size_t>(k * columns + v)] = std::fabs(value);
    }
  }
  return states;
}

// Calls use(at, key, column, factor) for every element of a state.
template <class Decay, class Use>
void each_factor(const Decay& decay, std::int64_t columns, Use use) {
  const std::size_t width = static_cast<std::size_t>(columns);
  for (std::size_t k = 0; k < decay.keys.size(); ++k) {
    Factor factor = factor_of(decay.keys[k], decay.key_sizes[k]);
    for (std::size_t v = 0; v < width; ++v) {
      if (decay.values != nullptr)
        factor = factor_of(decay.keys[k] + decay.values[v],
                           decay.key_sizes[k] + std::fabs(decay.values[v]));
      use(k * width + v, k, v, factor);
    }
  }
}

void RecurrenceOracle::step(const Unit& unit, std::int64_t token, std::int64_t first,
                            std::int64_t columns, States& states) const {
  const double* key = row(key_, unit, token, call_.key_dim);
  const double* value = row(value_, unit, token, call_.value_dim) + first;
  each_factor(decay(unit, token, first), columns,
              [&](std::size_t at, std::size_t k, std::size_t v, const Factor& factor) {
                states.decay(at, factor);
                states.add(at, key[k] * value[v], factor_unit_);
              });
}

RecurrenceOracle::Forward RecurrenceOracle::forward(const Unit& unit, std::int64_t first,
                                                    std::int64_t columns) const {
  if (!beta_.empty()) return forward_delta(unit, first, columns);
  States states = initial(unit, first, columns);
  std::optional<Lost> lost;
  if (factor_lost_ > 0) lost.emplace(states, static_cast<std::size_t>(columns));
  // The query decayed, or what it is made of, and the state or the weight.
  const double rounded = (1 + factor_unit_) * (1 + factor_unit_) - 1;
  Forward result;
  const auto width = static_cast<std::size_t>(columns);
  result.output.values.resize(static_cast<std::size_t>(unit.length()) * width);
  result.output.bounds.resize(result.output.values.size());
  for (std::int64_t i = 0; i < unit.length(); ++i) {
    const std::int64_t at_token = token(unit, i);
    step(unit, at_token, first, columns, states);
    if (lost) {
      lost->add(row(key_, unit, at_token, call_.key_dim),
                row(value_, unit, at_token, call_.value_dim) + first, states);
    }
    const double* query = row(query_, unit, at_token, call_.key_dim);
    const auto place = static_cast<std::size_t>(at_token - unit.begin) * width;
    for (std::size_t k = 0; k < static_cast<std::size_t>(call_.key_dim); ++k) {
      const double weight = call_.scale * query[k];
      for (std::size_t v = 0; v < width; ++v) {
        const std::size_t at = k * width + v;
        result.output.values[place + v] += weight * states.h[at];
        result.output.bounds[place + v] +=
            term_bound(weight, states.size[at], states.error[at],
                       sum_error(static_cast<double>(call_.key_dim))) +
            rounded * std::fabs(weight) * (states.size[at] + states.error[at]);
        if (lost) {
          result.output.bounds[place + v] +=
              factor_lost_ * std::fabs(call_.scale) * lost->share(at, query[k]);
        }
      }
    }
    for (std::size_t v = 0; lost && v < width; ++v)
      result.output.bounds[place + v] += factor_lost_ * std::fabs(call_.scale) * lost->values[v];
  }
  for (std::size_t at = 0; lost && at < states.error.size(); ++at)
    states.error[at] += factor_lost_ * lost->states[at];
  result.state = {std::move(states.h), std::move(states.error)};
  return result;
}

// Gradients of h arrive as D; H before each token is kept.
RecurrenceOracle::Backward RecurrenceOracle::backward(const Unit& unit) const {
  if (!beta_.empty()) return backward_delta(unit);
  const auto keys = static_cast<std::size_t>(call_.key_dim);
  const auto columns = static_cast<std::size_t>(call_.value_dim);
  const auto length = static_cast<std::size_t>(unit.length());
  std::vector<States> before{initial(unit, 0, call_.value_dim)};
  for (std::int64_t i = 0; i < unit.length(); ++i) {
    before.push_back(before.back());
    step(unit, token(unit, i), 0, call_.value_dim, before.back());
  }
  States gradient(keys * columns);
  if (!grad_final_.empty()) {
    const std::int64_t from =
        (unit.sequence * call_.heads + unit.head) * call_.key_dim * call_.value_dim;
    for (std::size_t at = 0; at < keys * columns; ++at) {
      gradient.h[at] = grad_final_[static_cast<std::size_t>(from) + at];
      gradient.size[at] = std::fabs(gradient.h[at]);
    }
  }
  Backward result;
  const auto resize = [&](Bounded& to, std::size_t width) {
    to.values.resize(length * width);
    to.bounds.resize(length * width);
  };
  for (Bounded* to : {&result.query, &result.key, &result.gk}) resize(*to, keys);
  for (Bounded* to : {&result.value, &result.gv}) resize(*to, columns);
  resize(result.gate, 1);
  for (Bounded* to : {&result.gk, &result.gv, &result.gate})
    to->unbounded.resize(to->values.size());
  const auto add = [](Bounded& to, std::size_t at, double value, double bound) {
    to.values[at] += value;
    to.bounds[at] += bound;
  };
  const double key_sum = sum_error(static_cast<double>(call_.key_dim)),
               value_sum = sum_error(static_cast<double>(call_.value_dim));
  // Rounded factors: a row or what it has decayed to, and the state, its gradient or a weight; of
  // gradients of decays, the state and its gradient.
  const double rounded = (1 + factor_unit_) * (1 + factor_unit_) - 1;
  // What they lose near 0, in units of that, as Lost has it: of states up to each token, forward,
  // and of their gradients.
  std::vector<double> lost_states(length + 1), lost_gradients(length + 1);
  if (factor_lost_ > 0) {
    const auto largest = [](const double* row, std::size_t count) {
      double most = 0;
      for (std::size_t j = 0; j < count; ++j) most = std::max(most, std::fabs(row[j]));
      return most;
    };
    for (std::size_t i = 0; i < length; ++i) {
      const std::int64_t t = token(unit, static_cast<std::int64_t>(i));
      lost_states[i + 1] = lost_states[i] + largest(row(key_, unit, t, call_.key_dim), keys) +
                           largest(row(value_, unit, t, call_.value_dim), columns);
    }
    for (std::size_t i = length; i-- > 0;) {
      const std::int64_t t = token(unit, static_cast<std::int64_t>(i));
      lost_gradients[i] = lost_gradients[i + 1] +
                          largest(row(query_, unit, t, call_.key_dim), keys) +
                          std::fabs(call_.scale) *
                              (1 + largest(row(grad_output_, unit, t, call_.value_dim), columns));
    }
  }
  for (std::size_t i = length; i-- > 0;) {
    const double lost_state = factor_lost_ * (1 + lost_states[i + 1]),
                 lost_gradient = factor_lost_ * (1 + lost_gradients[i]);
    const std::int64_t at_token = token(unit, static_cast<std::int64_t>(i));
    const auto place = static_cast<std::size_t>(at_token - unit.begin);
    const double* query = row(query_, unit, at_token, call_.key_dim);
    const double* key = row(key_, unit, at_token, call_.key_dim);
    const double* value = row(value_, unit, at_token, call_.value_dim);
    const double* output = row(grad_output_, unit, at_token, call_.value_dim);
    each_factor(
        decay(unit, at_token, 0), call_.value_dim,
        [&](std::size_t at, std::size_t k, std::size_t v, const Factor& factor) {
          const States &now = before[i + 1], &old = before[i];
          gradient.add(at, call_.scale * query[k] * output[v], factor_unit_);
          const double dh = gradient.h[at], size = gradient.size[at];
          const double weight = call_.scale * output[v];
          add(result.query, place * keys + k, weight * now.h[at],
              term_bound(weight, now.size[at], now.error[at], value_sum) +
                  std::fabs(weight) * (rounded * (now.size[at] + now.error[at]) + lost_state));
          const double gradient_size = size + gradient.error[at];
          add(result.key, place * keys + k, dh * value[v],
              term_bound(value[v], size, gradient.error[at], value_sum) +
                  std::fabs(value[v]) * (rounded * gradient_size + lost_gradient));
          add(result.value, place * columns + v, dh * key[k],
              term_bound(key[k], size, gradient.error[at], key_sum) +
                  std::fabs(key[k]) * (rounded * gradient_size + lost_gradient) +
                  factor_lost_ * gradient_size);
          const double slope = dh * factor.value * old.h[at];
          const double terms = size * old.size[at];
          const double decayed = factor.value * (size + gradient.error[at]);
          const double old_size = old.size[at] + old.error[at];
          const double bound =
              factor.value * (gradient.error[at] * old.size[at] +
                              (size + gradient.error[at]) * old.error[at]) +
              (factor.value * (factor.error + key_sum + value_sum) + factor.lost) * terms +
              lost_of(decayed) * old_size + lost_of(decayed * old_size) +
              rounded * decayed * old_size + lost_gradient * old_size + lost_state * gradient_size;
          add(result.gk, place * keys + k, slope, bound);
          add(result.gv, place * columns + v, slope, bound);
          add(result.gate, place, slope, bound);
          const bool old_turns =
              std::fabs(old.h[at]) <= old.error[at] + rounded * old_size + lost_state;
          const bool gradient_turns =
              std::fabs(dh) <= gradient.error[at] + rounded * gradient_size + lost_gradient;
          if (factor_unit_ > 0 &&
              ((std::isinf(dh) && old_turns) || (std::isinf(old.h[at]) && gradient_turns))) {
            result.gk.unbounded[place * keys + k] = true;
            result.gv.unbounded[place * columns + v] = true;
            result.gate.unbounded[place] = true;
          }
          result.gamma += slope;
          result.gamma_bound +=
              bound + sum_error(static_cast<double>(call_.tokens)) * factor.value * terms;
          gradient.decay(at, factor);
        });
  }
  result.state = {std::move(gradient.h), std::move(gradient.error)};
  return result;
}

}  // namespace tessera::operations::recurrence
