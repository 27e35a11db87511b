// SPDX-License-Identifier: Apache-2.0
// What outputs must be, and the reference: the oracle's paths, put where they belong.
#include "operations/cells_core/expect.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "operations/cells_core/oracle.hpp"

namespace tessera::operations::cells {
namespace {

// Elements of outputs, as far as they are asked for.
struct Output {
  Estimates elements;
  std::vector<bool> known;
};

class Gathered {
 public:
  explicit Gathered(const Problem& problem) : problem_(problem) {}

  bool wants(std::size_t slot) const { return slot != kNoOperand && problem_.has(slot); }
  void put(std::size_t slot, std::int64_t place, const Estimates& values) {
    if (!wants(slot)) return;
    Output& to = of(slot);
    std::copy(values.begin(), values.end(), to.elements.begin() + place);
    std::fill_n(to.known.begin() + place, values.size(), true);
  }
  // Joins what is there.
  void add(std::size_t slot, std::int64_t place, const Estimates& values) {
    if (!wants(slot)) return;
    Output& to = of(slot);
    for (std::size_t i = 0; i < values.size(); ++i) {
      Estimate& element = to.elements[at(place) + i];
      element = to.known[at(place) + i] ? element + values[i] : values[i];
      to.known[at(place) + i] = true;
    }
  }
  const std::map<std::size_t, Output>& outputs() const { return outputs_; }

 private:
  Output& of(std::size_t slot) {
    Output& output = outputs_[slot];
    const std::size_t count = at(problem_.spec(slot).elements());
    if (output.elements.size() != count)
      output = {Estimates(count), std::vector<bool>(count, false)};
    return output;
  }
  const Problem& problem_;
  std::map<std::size_t, Output> outputs_;
};

// Which of the call is computed: every `every`th batch entry, and so many steps of each.
struct Extent {
  std::int64_t every = 1, steps = 0;
  bool whole = true;
};

class Gatherer {
 public:
  Gatherer(const Problem& problem, std::span<HostTensor> tensors, bool rounds_factors)
      : call_(problem.as<CellProblem>()),
        oracle_(problem, tensors, rounds_factors),
        gathered_(problem) {}

  Gathered run(const Extent& extent) {
    for (std::int64_t direction = 0; direction < call_.directions; ++direction) {
      WeightSums sums(call_);
      for (std::int64_t batch = 0; batch < call_.batch; batch += extent.every) {
        const Path path = oracle_.path(direction, batch);
        if (call_.slots.backward()) {
          backward(path, extent.whole ? &sums : nullptr);
        } else {
          forward(path, extent.steps);
        }
      }
      if (call_.slots.backward() && extent.whole) put_weights(direction, sums);
    }
    return std::move(gathered_);
  }

 private:
  // Gradients of what all batch entries share, in one direction.
  struct WeightSums {
    explicit WeightSums(const CellProblem& call)
        : ih(at(call.gates * call.hidden), Sums(at(call.features))),
          hh(at(call.gates * call.hidden), Sums(at(call.outputs))),
          hr(at(call.projects ? call.outputs : 0), Sums(at(call.hidden))),
          bias_ih(at(call.gates * call.hidden), Sums(1)),
          bias_hh(at(call.gates * call.hidden), Sums(1)) {}
    std::vector<Sums> ih, hh, hr, bias_ih, bias_hh;
  };

  std::int64_t state_place(const Path& path, std::int64_t size) const {
    return (path.direction * call_.batch + path.batch) * size;
  }
  std::int64_t output_place(const Path& path, std::int64_t token) const {
    return ((path.batch * call_.tokens + token) * call_.directions + path.direction) *
           call_.outputs;
  }

  void forward(const Path& path, std::int64_t steps) {
    StepValues values = oracle_.start(path);
    const std::int64_t last = std::min(path.length, steps);
    for (std::int64_t step = 0; step < last; ++step) {
      values = oracle_.step(path, step, values);
      const std::int64_t token = oracle_.token(path, step);
      gathered_.put(call_.slots.output, output_place(path, token), values.h);
      gathered_.put(call_.slots.reserve, oracle_.kept_place(path, token), oracle_.kept(values));
    }
    for (std::int64_t token = path.length; token < call_.tokens; ++token) {
      gathered_.put(call_.slots.output, output_place(path, token), Estimates(at(call_.outputs)));
      gathered_.put(call_.slots.reserve, oracle_.kept_place(path, token),
                    Estimates(at(call_.kept())));
    }
    if (last < path.length) return;
    gathered_.put(call_.slots.h_n, state_place(path, call_.outputs), values.h);
    gathered_.put(call_.slots.c_n, state_place(path, call_.hidden), values.c);
  }

  void backward(const Path& path, WeightSums* sums) {
    const CellSlots& slots = call_.slots;
    std::vector<StepValues> values{oracle_.start(path)};
    for (std::int64_t step = 0; step < path.length; ++step)
      values.push_back(call_.runs_forward() ? oracle_.step(path, step, values.back())
                                            : oracle_.kept_step(path, step));
    Estimates dh = oracle_.last(path, slots.grad_h_n), dc = oracle_.last(path, slots.grad_c_n);
    for (std::int64_t step = path.length - 1; step >= 0; --step) {
      const StepValues& made = values[at(step + 1)];
      const StepGradients gradients = oracle_.step_back(path, step, made, dh, dc);
      if (gathered_.wants(slots.grad_input)) {
        gathered_.add(slots.grad_input, input_place(path, oracle_.token(path, step)),
                      oracle_.input_gradient(path, gradients));
      }
      if (sums == nullptr) continue;
      const double* x = oracle_.input(path, step);
      const double one = 1;
      const Estimates h = oracle_.h_as_factors(made.h_before);
      for (std::size_t i = 0; i < sums->ih.size(); ++i) {
        sums->ih[i].add(gradients.of_input_sums[i], x);
        sums->hh[i].add(gradients.of_hidden_sums[i], h.data());
        sums->bias_ih[i].add(gradients.of_input_sums[i], &one);
        sums->bias_hh[i].add(gradients.of_hidden_sums[i], &one);
      }
      for (std::size_t i = 0; i < sums->hr.size(); ++i)
        sums->hr[i].add(gradients.of_h[i], made.unprojected.data());
    }
    for (std::int64_t token = path.length; token < call_.tokens; ++token)
      gathered_.put(slots.grad_input, input_place(path, token), Estimates(at(call_.features)));
    gathered_.put(slots.grad_h0, state_place(path, call_.outputs), dh);
    gathered_.put(slots.grad_c0, state_place(path, call_.hidden), dc);
  }

  std::int64_t input_place(const Path& path, std::int64_t token) const {
    return (path.batch * call_.tokens + token) * call_.features;
  }

  void put_weights(std::int64_t direction, const WeightSums& sums) {
    const CellSlots& slots = call_.slots;
    const std::int64_t rows = call_.gates * call_.hidden;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t row = direction * rows + i;
      gathered_.put(slots.grad_weight_ih, row * call_.features, sums.ih[at(i)].take());
      gathered_.put(slots.grad_weight_hh, row * call_.outputs, sums.hh[at(i)].take());
      gathered_.put(slots.grad_bias_ih, row, sums.bias_ih[at(i)].take());
      gathered_.put(slots.grad_bias_hh, row, sums.bias_hh[at(i)].take());
    }
    for (std::size_t i = 0; i < sums.hr.size(); ++i) {
      const std::int64_t row = direction * call_.outputs + static_cast<std::int64_t>(i);
      gathered_.put(slots.grad_weight_hr, row * call_.hidden, sums.hr[i].take());
    }
  }

  const CellProblem& call_;
  CellOracle oracle_;
  Gathered gathered_;
};

Extent extent_of(const CellProblem& call, double max_flops) {
  Extent extent{.steps = call.tokens};
  // Three sums for each product, and each product three times on the way back.
  const double entry =
      (call.slots.backward() ? 18.0 : 6.0) * static_cast<double>(call.tokens * call.products());
  const double entries = std::max(1.0, max_flops / std::max(entry, 1.0));
  if (entries >= static_cast<double>(call.batch)) return extent;
  extent.every =
      static_cast<std::int64_t>(std::ceil(static_cast<double>(call.batch) / std::floor(entries)));
  extent.whole = false;
  if (!call.slots.backward() && entry > max_flops) {
    extent.steps = std::clamp<std::int64_t>(
        static_cast<std::int64_t>(static_cast<double>(call.tokens) * max_flops / entry),
        std::min<std::int64_t>(call.tokens, 16), call.tokens);
  }
  return extent;
}

}  // namespace

void reference_cells(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<CellProblem>();
  const Gathered gathered = Gatherer(problem, tensors, false).run({.steps = call.tokens});
  for (const auto& [slot, output] : gathered.outputs()) {
    std::vector<double> values;
    values.reserve(output.elements.size());
    for (const Estimate& element : output.elements) values.push_back(element.value);
    tensors[slot].write(values);
  }
}

std::vector<Raised> raises_cells(const Problem& problem, std::span<HostTensor> tensors) {
  const auto& call = problem.as<CellProblem>();
  std::vector<Raised> raised;
  if (!problem.has(call.slots.lengths)) return raised;
  const std::vector<double> lengths = tensors[call.slots.lengths].read();
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 0 || lengths[i] > static_cast<double>(call.tokens))
      raised.push_back({.error = 0, .index = static_cast<std::uint32_t>(i)});
  }
  return raised;
}

std::vector<Expectation> expect_cells(const Problem& problem, std::span<HostTensor> tensors,
                                      const Arithmetic& arithmetic, double max_flops) {
  const auto& call = problem.as<CellProblem>();
  const Gathered gathered =
      Gatherer(problem, tensors, arithmetic.rounds_factors).run(extent_of(call, max_flops));
  std::vector<Expectation> expected;
  for (const auto& [slot, output] : gathered.outputs()) {
    const DType dtype = problem.spec(slot).dtype;
    Expectation result{.slot = slot};
    const bool all = std::ranges::count(output.known, false) == 0;
    for (std::size_t i = 0; i < output.elements.size(); ++i) {
      if (!output.known[i]) continue;
      const Estimate& element = output.elements[i];
      const double bound = 8 * std::sqrt(element.variance);
      if (!all) result.elements.push_back(i);
      result.values.push_back(element.value);
      result.bounds.push_back(bound + storage_unit(dtype) * (std::fabs(element.value) + bound) +
                              smallest_number(dtype));
    }
    if (!result.values.empty()) expected.push_back(std::move(result));
  }
  return expected;
}

}  // namespace tessera::operations::cells
