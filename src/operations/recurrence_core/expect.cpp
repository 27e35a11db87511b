// SPDX-License-Identifier: Apache-2.0
// What outputs must be, and the reference: the oracle's units, put where they belong.
#include <algorithm>
#include <cmath>
#include <optional>
#include <thread>
#include <utility>

#include "base/system/parallel.hpp"
#include "base/tensors/rounding.hpp"
#include "operations/common/numerics.hpp"
#include "operations/recurrence_core/oracle.hpp"
#include "operations/recurrence_core/workload.hpp"

namespace tessera::operations::recurrence {
namespace {

class Gathered {
 public:
  // `some`: not of all units, and what no unit writes has no bound.
  Gathered(const Problem& problem, const RecurrenceProblem& call, bool some)
      : call_(call), outputs_(problem.operands.size()) {
    const RecurrenceSlots& s = call.slots;
    for (const std::size_t slot :
         {s.output, s.final_state, s.grad_query, s.grad_key, s.grad_value, s.grad_g, s.grad_gamma,
          s.grad_gk, s.grad_gv, s.grad_beta, s.grad_initial_state}) {
      if (!problem.has(slot)) continue;
      const std::vector<double> zeros(static_cast<std::size_t>(problem.spec(slot).elements()));
      outputs_[slot] = Bounded{zeros, zeros, std::vector<bool>(some ? zeros.size() : 0, true)};
    }
  }

  // Rows of a unit: [length, dim].
  void rows(std::size_t slot, const Unit& unit, const Bounded& from, std::int64_t dim) {
    Bounded* to = of(slot);
    if (to == nullptr) return;
    for (std::int64_t t = 0; t < unit.length(); ++t) {
      const std::int64_t place =
          ((unit.batch * call_.tokens + unit.begin + t) * call_.heads + unit.head) * dim;
      copy(from, t * dim, *to, place, dim);
    }
  }
  void state(std::size_t slot, const Unit& unit, const Bounded& from) {
    const std::int64_t count = call_.key_dim * call_.value_dim;
    if (Bounded* to = of(slot))
      copy(from, 0, *to, (unit.sequence * call_.heads + unit.head) * count, count);
  }
  void add_head(std::size_t slot, const Unit& unit, double value, double bound) {
    Bounded* to = of(slot);
    if (to == nullptr) return;
    to->values[static_cast<std::size_t>(unit.head)] += value;
    to->bounds[static_cast<std::size_t>(unit.head)] += bound;
    if (!to->unbounded.empty()) to->unbounded[static_cast<std::size_t>(unit.head)] = false;
  }
  // Calls use(slot, values) for every output of the call.
  template <class Use>
  void each(Use use) {
    for (std::size_t slot = 0; slot < outputs_.size(); ++slot) {
      if (outputs_[slot]) use(slot, *outputs_[slot]);
    }
  }

 private:
  Bounded* of(std::size_t slot) {
    const bool wanted = slot < outputs_.size() && outputs_[slot].has_value();
    return wanted ? &*outputs_[slot] : nullptr;
  }
  static void copy(const Bounded& from, std::int64_t first, Bounded& to, std::int64_t place,
                   std::int64_t count) {
    std::copy_n(from.values.begin() + first, count, to.values.begin() + place);
    std::copy_n(from.bounds.begin() + first, count, to.bounds.begin() + place);
    if (from.unbounded.empty()) {
      if (!to.unbounded.empty()) std::fill_n(to.unbounded.begin() + place, count, false);
      return;
    }
    to.unbounded.resize(to.values.size());
    std::copy_n(from.unbounded.begin() + first, count, to.unbounded.begin() + place);
  }

  const RecurrenceProblem& call_;
  std::vector<std::optional<Bounded>> outputs_;  // by slot; 0 where no unit writes
};

// Calls add(compute(unit)) for units, in their order; they are computed on all cores.
template <class Compute, class Add>
void for_units(const std::vector<Unit>& units, Compute compute, Add add) {
  const std::size_t most = std::max(1U, std::thread::hardware_concurrency());
  for (std::size_t first = 0; first < units.size(); first += most) {
    std::vector<decltype(compute(units[0]))> results(std::min(most, units.size() - first));
    parallel_for(results.size(), [&](std::size_t i) { results[i] = compute(units[first + i]); });
    for (std::size_t i = 0; i < results.size(); ++i) add(units[first + i], results[i]);
  }
}

// Of each `stride`-th head.
Gathered gather(const Problem& problem, std::span<HostTensor> tensors, bool rounds,
                std::int64_t stride = 1) {
  const auto& call = problem.as<RecurrenceProblem>();
  const RecurrenceSlots& slots = call.slots;
  const RecurrenceOracle oracle(problem, tensors, rounds);
  Gathered gathered(problem, call, stride > 1);
  std::vector<Unit> units = oracle.units();
  std::erase_if(units, [&](const Unit& unit) { return unit.head % stride != 0; });
  if (!slots.backward()) {
    for_units(
        units, [&](const Unit& unit) { return oracle.forward(unit, 0, call.value_dim); },
        [&](const Unit& unit, const RecurrenceOracle::Forward& result) {
          gathered.rows(slots.output, unit, result.output, call.value_dim);
          gathered.state(slots.final_state, unit, result.state);
        });
    return gathered;
  }
  for_units(
      units, [&](const Unit& unit) { return oracle.backward(unit); },
      [&](const Unit& unit, const RecurrenceOracle::Backward& result) {
        gathered.rows(slots.grad_query, unit, result.query, call.key_dim);
        gathered.rows(slots.grad_key, unit, result.key, call.key_dim);
        gathered.rows(slots.grad_value, unit, result.value, call.value_dim);
        if (call.key_gate) {
          gathered.rows(slots.grad_g, unit, result.gk, call.key_dim);
        } else {
          gathered.rows(slots.grad_g, unit, result.gate, 1);
        }
        gathered.rows(slots.grad_gk, unit, result.gk, call.key_dim);
        gathered.rows(slots.grad_gv, unit, result.gv, call.value_dim);
        gathered.rows(slots.grad_beta, unit, result.beta, 1);
        gathered.add_head(slots.grad_gamma, unit, result.gamma, result.gamma_bound);
        gathered.state(slots.grad_initial_state, unit, result.state);
      });
  return gathered;
}

// Without the elements that have no bound.
Expectation bounded_of(std::size_t slot, Bounded all) {
  Expectation expected{.slot = slot};
  if (std::find(all.unbounded.begin(), all.unbounded.end(), true) == all.unbounded.end()) {
    expected.values = std::move(all.values);
    expected.bounds = std::move(all.bounds);
    return expected;
  }
  for (std::size_t i = 0; i < all.values.size(); ++i) {
    if (all.unbounded[i]) continue;
    expected.elements.push_back(i);
    expected.values.push_back(all.values[i]);
    expected.bounds.push_back(all.bounds[i]);
  }
  return expected;
}

void round_bounds(const Problem& problem, Expectation& expected) {
  const DType dtype = problem.spec(expected.slot).dtype;
  for (std::size_t i = 0; i < expected.values.size(); ++i)
    expected.bounds[i] +=
        storage_unit(dtype) * (std::fabs(expected.values[i]) + expected.bounds[i]) +
        smallest_number(dtype);
}

// Some columns of some units, at equal distances, where all would take too long.
std::vector<Expectation> expect_columns(const Problem& problem, std::span<HostTensor> tensors,
                                        bool rounds, double max_flops) {
  const auto& call = problem.as<RecurrenceProblem>();
  const RecurrenceOracle oracle(problem, tensors, rounds);
  const double of_column = 16.0 * static_cast<double>(call.tokens * call.key_dim);
  const auto count = std::max<std::int64_t>(2, static_cast<std::int64_t>(max_flops / of_column));
  Expectation output{.slot = call.slots.output}, state{.slot = call.slots.final_state};
  const auto units = static_cast<std::int64_t>(oracle.units().size());
  const std::int64_t columns = units * call.value_dim;
  const auto column_of = [&](std::size_t i) {
    return static_cast<std::int64_t>(i) * (columns - 1) / std::max<std::int64_t>(count - 1, 1);
  };
  const auto unit_of = [&](std::int64_t column) -> const Unit& {
    return oracle.units()[static_cast<std::size_t>(column / call.value_dim)];
  };
  std::vector<RecurrenceOracle::Forward> results(
      static_cast<std::size_t>(std::min(count, columns)));
  parallel_for(results.size(), [&](std::size_t i) {
    results[i] = oracle.forward(unit_of(column_of(i)), column_of(i) % call.value_dim, 1);
  });
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Unit& unit = unit_of(column_of(i));
    const std::int64_t v = column_of(i) % call.value_dim;
    const RecurrenceOracle::Forward& result = results[i];
    for (std::int64_t t = 0; t < unit.length(); ++t) {
      const std::int64_t row = (unit.batch * call.tokens + unit.begin + t) * call.heads + unit.head;
      output.elements.push_back(static_cast<std::size_t>(row * call.value_dim + v));
      output.values.push_back(result.output.values[static_cast<std::size_t>(t)]);
      output.bounds.push_back(result.output.bounds[static_cast<std::size_t>(t)]);
    }
    for (std::int64_t k = 0; k < call.key_dim; ++k) {
      const std::int64_t row = (unit.sequence * call.heads + unit.head) * call.key_dim + k;
      state.elements.push_back(static_cast<std::size_t>(row * call.value_dim + v));
      state.values.push_back(result.state.values[static_cast<std::size_t>(k)]);
      state.bounds.push_back(result.state.bounds[static_cast<std::size_t>(k)]);
    }
  }
  std::vector<Expectation> expected;
  for (Expectation* one : {&output, &state}) {
    if (!problem.has(one->slot) || one->elements.empty()) continue;
    round_bounds(problem, *one);
    expected.push_back(std::move(*one));
  }
  return expected;
}

}  // namespace

double recurrence_flops(const Problem& problem) {
  const auto& call = problem.as<RecurrenceProblem>();
  // Of the smallest form: decay, outer product and its sum, inner product; backward twice for the
  // state and its gradient, and thrice for what is made of them. A delta rule has one inner product
  // more; backward it has one for the state, one for its gradient with what follows, and two for
  // gradients of keys.
  const double forward = call.slots.delta() ? 6 : 4, backward = call.slots.delta() ? 18 : 10;
  const double products = call.slots.backward() ? backward : forward;
  const auto tokens = static_cast<double>(call.batch * call.tokens);
  return products * tokens * static_cast<double>(call.heads * call.key_dim * call.value_dim);
}

std::vector<Expectation> expect_recurrence(const Problem& problem, std::span<HostTensor> tensors,
                                           bool rounds, double max_flops) {
  const auto& call = problem.as<RecurrenceProblem>();
  const double share = 4 * recurrence_flops(problem) / max_flops;
  if (!call.slots.backward() && share > 1)
    return expect_columns(problem, tensors, rounds, max_flops);
  // Gradients of keys are sums over all columns, so that heads are the least that can be chosen.
  const auto most = static_cast<double>(std::max<std::int64_t>(call.heads, 1));
  const auto stride = static_cast<std::int64_t>(std::clamp(std::ceil(share), 1.0, most));
  std::vector<Expectation> expected;
  gather(problem, tensors, rounds, stride).each([&](std::size_t slot, Bounded& all) {
    expected.push_back(bounded_of(slot, std::move(all)));
    round_bounds(problem, expected.back());
  });
  return expected;
}

void reference_recurrence(const Problem& problem, std::span<HostTensor> tensors) {
  gather(problem, tensors, false).each([&](std::size_t slot, const Bounded& all) {
    tensors[slot].write(all.values);
  });
}

std::vector<Raised> raises_recurrence(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<RecurrenceProblem>();
  std::vector<Raised> raised;
  if (!call.packed) return raised;
  const std::vector<double> boundaries = tensors[call.slots.cu_seqlens].read();
  for (std::size_t i = 0; i < boundaries.size(); ++i) {
    const auto index = static_cast<std::uint32_t>(i);
    if (boundaries[i] < 0 || boundaries[i] > static_cast<double>(call.tokens))
      raised.push_back({.error = 0, .index = index});
    if (i > 0 && boundaries[i] < boundaries[i - 1]) raised.push_back({.error = 1, .index = index});
  }
  return raised;
}

}  // namespace tessera::operations::recurrence
