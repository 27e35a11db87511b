// SPDX-License-Identifier: Apache-2.0
#include "operations/cells_core/oracle.hpp"

#include <algorithm>
#include <utility>

namespace tessera::operations::cells {
namespace {

// [directions, rows, columns] to [directions, columns, rows].
std::vector<double> turned(const std::vector<double>& from, std::int64_t directions,
                           std::int64_t rows, std::int64_t columns) {
  std::vector<double> to(from.size());
  for (std::int64_t d = 0; d < directions; ++d) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j)
        to[at((d * columns + j) * rows + i)] = from[at((d * rows + i) * columns + j)];
    }
  }
  return to;
}

// Factors times the rows of a matrix of `columns` columns.
template <class Factor>
Estimates multiply(const double* matrix, std::int64_t columns, const Factor& factors) {
  Sums sums(at(columns));
  for (std::size_t i = 0; i < factors.size(); ++i) sums.add(factors[i], matrix + i * at(columns));
  return sums.take();
}

void add_to(Estimates& to, const Estimates& terms) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = to[i] + terms[i];
}

}  // namespace

CellOracle::CellOracle(const Problem& problem, std::span<HostTensor> tensors, bool rounds_factors)
    : problem_(problem),
      call_(problem.as<CellProblem>()),
      tensors_(tensors),
      rounds_factors_(rounds_factors && bits_of(problem.dtype) < 32) {
  const CellSlots& slots = call_.slots;
  input_ = read(slots.input);
  weight_ih_ = read(slots.weight_ih);
  weight_hh_ = read(slots.weight_hh);
  const std::int64_t rows = call_.gates * call_.hidden;
  ih_turned_ = turned(weight_ih_, call_.directions, rows, call_.features);
  hh_turned_ = turned(weight_hh_, call_.directions, rows, call_.outputs);
  if (call_.projects) {
    weight_hr_ = read(slots.weight_hr);
    hr_turned_ = turned(weight_hr_, call_.directions, call_.outputs, call_.hidden);
  }
  bias_ih_ = read(slots.bias_ih);
  bias_hh_ = read(slots.bias_hh);
  h0_ = read(slots.h0);
  c0_ = read(slots.c0);
  grad_output_ = read(slots.grad_output);
  lengths_ = read(slots.lengths);
  if (!call_.runs_forward()) reserve_ = read(slots.reserve);
}

std::vector<double> CellOracle::read(std::size_t slot) const {
  return problem_.has(slot) ? tensors_[slot].read() : std::vector<double>{};
}

Estimates CellOracle::part(const std::vector<double>& from, std::int64_t place,
                           std::int64_t count) const {
  Estimates values(at(count));
  for (std::size_t i = 0; i < values.size() && !from.empty(); ++i)
    values[i].value = from[at(place) + i];
  return values;
}

Path CellOracle::path(std::int64_t direction, std::int64_t batch) const {
  Path path{.direction = direction, .batch = batch, .length = call_.tokens};
  if (!lengths_.empty()) {
    path.length = static_cast<std::int64_t>(
        std::clamp(lengths_[at(batch)], 0.0, static_cast<double>(call_.tokens)));
  }
  return path;
}

Estimate CellOracle::c_behind(const StepValues& values, std::int64_t j) const {
  const auto gate = [&](std::int64_t block) { return values.gates[at(block * call_.hidden + j)]; };
  return gate(1) * values.c_before[at(j)] + gate(0) * gate(2);
}

std::int64_t CellOracle::token(const Path& path, std::int64_t step) const {
  return call_.backwards(path.direction) ? path.length - 1 - step : step;
}

const double* CellOracle::input(const Path& path, std::int64_t step) const {
  return input_.data() + at((path.batch * call_.tokens + token(path, step)) * call_.features);
}

StepValues CellOracle::start(const Path& path) const {
  const std::int64_t entry = path.direction * call_.batch + path.batch;
  StepValues values;
  values.h = part(h0_, entry * call_.outputs, call_.outputs);
  values.c = part(c0_, entry * call_.hidden, call_.hidden);
  return values;
}

Estimates CellOracle::last(const Path& path, std::size_t slot) const {
  const std::int64_t size = slot == call_.slots.grad_h_n ? call_.outputs : call_.hidden;
  return part(read(slot), (path.direction * call_.batch + path.batch) * size, size);
}

Estimates CellOracle::h_as_factors(Estimates h) const {
  for (Estimate& factor : h) {
    if (!rounds_factors_) break;
    factor.variance += square(storage_unit(problem_.dtype) * factor.value) +
                       square(smallest_number(problem_.dtype));
  }
  return h;
}

StepValues CellOracle::step(const Path& path, std::int64_t step, const StepValues& before) const {
  const std::int64_t hidden = call_.hidden, rows = call_.gates * hidden;
  const std::int64_t first = path.direction * rows;
  const double* x = input(path, step);
  Estimates factors(at(call_.features));
  for (std::size_t i = 0; i < factors.size(); ++i) factors[i].value = x[i];
  Estimates a = multiply(ih_turned_.data() + first * call_.features, rows, factors);
  Estimates b = multiply(hh_turned_.data() + first * call_.outputs, rows, h_as_factors(before.h));
  if (!bias_ih_.empty()) add_to(a, part(bias_ih_, first, rows));
  if (!bias_hh_.empty()) add_to(b, part(bias_hh_, first, rows));
  StepValues values;
  values.h_before = before.h;
  values.c_before = before.c;
  values.gates.resize(at(rows));
  values.h.resize(at(hidden));
  values.c.resize(at(hidden));
  const auto gate = [&](std::int64_t block, std::int64_t j) -> Estimate& {
    return values.gates[at(block * hidden + j)];
  };
  const auto sum = [&](std::int64_t block, std::int64_t j) {
    return a[at(block * hidden + j)] + b[at(block * hidden + j)];
  };
  for (std::int64_t j = 0; j < hidden; ++j) {
    Estimate& h = values.h[at(j)];
    switch (call_.slots.cell) {
      case Cell::kRnn:
        h = gate(0, j) = activation(sum(0, j));
        break;
      case Cell::kLstm:
        for (const std::int64_t block : {0, 1, 3}) gate(block, j) = sigmoid(sum(block, j));
        gate(2, j) = tanh(sum(2, j));
        values.c[at(j)] = c_behind(values, j);
        h = gate(3, j) * tanh(values.c[at(j)]);
        break;
      case Cell::kGru: {
        for (const std::int64_t block : {0, 1}) gate(block, j) = sigmoid(sum(block, j));
        const Estimate& recurrent = b[at(2 * hidden + j)];
        gate(2, j) = tanh(a[at(2 * hidden + j)] + gate(0, j) * recurrent);
        h = (Estimate{1} - gate(1, j)) * gate(2, j) + gate(1, j) * before.h[at(j)];
        break;
      }
    }
  }
  if (call_.slots.cell == Cell::kGru) values.recurrent.assign(b.begin() + 2 * hidden, b.end());
  if (call_.projects) {
    values.unprojected = std::move(values.h);
    values.h = multiply(hr_turned_.data() + path.direction * hidden * call_.outputs, call_.outputs,
                        values.unprojected);
  }
  return values;
}

std::int64_t CellOracle::kept_place(const Path& path, std::int64_t token) const {
  return ((path.batch * call_.tokens + token) * call_.directions + path.direction) * call_.kept();
}

Estimates CellOracle::kept(const StepValues& values) const {
  Estimates all = values.gates;
  if (call_.slots.cell == Cell::kLstm)
    all.insert(all.end(), values.c_before.begin(), values.c_before.end());
  for (const Estimates* more : {&values.recurrent, &values.unprojected, &values.h_before})
    all.insert(all.end(), more->begin(), more->end());
  return all;
}

StepValues CellOracle::kept_step(const Path& path, std::int64_t step) const {
  std::int64_t place = kept_place(path, token(path, step));
  const auto next = [&](std::int64_t count) {
    return part(reserve_, std::exchange(place, place + count), count);
  };
  StepValues values;
  values.gates = next(call_.gates * call_.hidden);
  if (call_.slots.cell == Cell::kLstm) {
    values.c_before = next(call_.hidden);
    for (std::int64_t j = 0; j < call_.hidden; ++j) values.c.push_back(c_behind(values, j));
  }
  if (call_.slots.cell == Cell::kGru) values.recurrent = next(call_.hidden);
  if (call_.projects) values.unprojected = next(call_.hidden);
  values.h_before = next(call_.outputs);
  return values;
}

StepGradients CellOracle::step_back(const Path& path, std::int64_t step, const StepValues& values,
                                    Estimates& dh, Estimates& dc) const {
  const std::int64_t hidden = call_.hidden, rows = call_.gates * hidden;
  const Estimate one{1};
  StepGradients result;
  Estimates& sums = result.of_input_sums;
  sums.resize(at(rows));
  add_to(dh, part(grad_output_,
                  ((path.batch * call_.tokens + token(path, step)) * call_.directions +
                   path.direction) *
                      call_.outputs,
                  call_.outputs));
  if (call_.projects) {
    result.of_h = dh;
    dh = multiply(weight_hr_.data() + path.direction * call_.outputs * hidden, hidden, dh);
  }
  Estimates passed(at(call_.outputs));  // to h before the step, past the product
  const auto gate = [&](std::int64_t block, std::int64_t j) {
    return values.gates[at(block * hidden + j)];
  };
  const auto give = [&](std::int64_t block, std::int64_t j, const Estimate& gradient) {
    sums[at(block * hidden + j)] = gradient;
  };
  for (std::int64_t j = 0; j < hidden; ++j) {
    const Estimate d = dh[at(j)];
    if (call_.slots.cell == Cell::kRnn) {
      const Estimate h = gate(0, j);
      if (call_.relu) {
        give(0, j, h.value > 0 ? d : Estimate{});
      } else {
        give(0, j, d * (one - h * h));
      }
    } else if (call_.slots.cell == Cell::kLstm) {
      const Estimate i = gate(0, j), f = gate(1, j), g = gate(2, j), o = gate(3, j);
      const Estimate t = tanh(values.c[at(j)]);
      const Estimate c = dc[at(j)] + d * o * (one - t * t);
      give(0, j, c * g * i * (one - i));
      give(1, j, c * values.c_before[at(j)] * f * (one - f));
      give(2, j, c * i * (one - g * g));
      give(3, j, d * t * o * (one - o));
      dc[at(j)] = c * f;
    } else {
      const Estimate r = gate(0, j), z = gate(1, j), n = gate(2, j);
      const Estimate dn = d * (one - z) * (one - n * n);
      give(0, j, dn * values.recurrent[at(j)] * r * (one - r));
      give(1, j, d * (values.h_before[at(j)] - n) * z * (one - z));
      give(2, j, dn);
      passed[at(j)] = d * z;
    }
  }
  result.of_hidden_sums = sums;
  if (call_.slots.cell == Cell::kGru) {
    for (std::int64_t j = 0; j < hidden; ++j) {
      Estimate& n = result.of_hidden_sums[at(2 * hidden + j)];
      n = n * gate(0, j);
    }
  }
  Estimates factors = result.of_hidden_sums;
  for (Estimate& factor : factors) {
    if (rounds_factors_) factor.variance += square(storage_unit(problem_.dtype) * factor.value);
  }
  dh = multiply(weight_hh_.data() + path.direction * rows * call_.outputs, call_.outputs, factors);
  add_to(dh, passed);
  return result;
}

Estimates CellOracle::input_gradient(const Path& path, const StepGradients& gradients) const {
  const std::int64_t rows = call_.gates * call_.hidden;
  return multiply(weight_ih_.data() + path.direction * rows * call_.features, call_.features,
                  gradients.of_input_sums);
}

}  // namespace tessera::operations::cells
