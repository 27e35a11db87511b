// SPDX-License-Identifier: Apache-2.0
// The definition of recurrent cells and of their gradients in double precision, step by step, with
// what float arithmetic may be off by.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "operations/cells_core/estimate.hpp"
#include "operations/cells_core/problem.hpp"

namespace tessera::operations::cells {

// One direction of one batch entry.
struct Path {
  std::int64_t direction = 0, batch = 0, length = 0;
};

// What one step reads and makes, a vector of `hidden` for each (of h, `outputs`); gates behind
// their functions, in the order of the weights' blocks; `unprojected` is what becomes h by
// weight_hr.
struct StepValues {
  Estimates h_before, c_before, gates, recurrent;  // recurrent: weight_hh h + bias_hh of n of gru
  Estimates h, c, unprojected;
};

// Gradients that one step leaves, [gates * hidden], and of its h.
struct StepGradients {
  Estimates of_input_sums, of_hidden_sums;  // of weight_ih x + bias_ih, of weight_hh h + bias_hh
  Estimates of_h;
};

class CellOracle {
 public:
  // `rounds_factors`: what is computed may round h to the storage type where it is a factor, and
  // gradients of the gates' sums to as many bits before they multiply weight_hh.
  CellOracle(const Problem& problem, std::span<HostTensor> tensors, bool rounds_factors);

  Path path(std::int64_t direction, std::int64_t batch) const;
  std::int64_t token(const Path& path, std::int64_t step) const;
  // h0 and c0, or what a step behind the last would read.
  StepValues start(const Path& path) const;
  StepValues step(const Path& path, std::int64_t step, const StepValues& before) const;
  Estimates h_as_factors(Estimates h) const;
  // What `step` leaves to the way back, [kept], and a step as far as that has it.
  Estimates kept(const StepValues& values) const;
  StepValues kept_step(const Path& path, std::int64_t step) const;
  std::int64_t kept_place(const Path& path, std::int64_t token) const;
  // `dh` and `dc`: gradients of h and c behind the step; they become those before it.
  StepGradients step_back(const Path& path, std::int64_t step, const StepValues& values,
                          Estimates& dh, Estimates& dc) const;
  // weight_ih^T times the gradients of a step: [features].
  Estimates input_gradient(const Path& path, const StepGradients& gradients) const;
  // grad_h_n and grad_c_n.
  Estimates last(const Path& path, std::size_t slot) const;
  const double* input(const Path& path, std::int64_t step) const;

 private:
  std::vector<double> read(std::size_t slot) const;
  Estimates part(const std::vector<double>& from, std::int64_t place, std::int64_t count) const;
  Estimate c_behind(const StepValues& values, std::int64_t j) const;  // of lstm
  Estimate activation(const Estimate& x) const { return call_.relu ? relu(x) : tanh(x); }

  const Problem& problem_;
  const CellProblem& call_;
  std::span<HostTensor> tensors_;
  bool rounds_factors_ = false;
  std::vector<double> input_, weight_ih_, weight_hh_, ih_turned_, hh_turned_, weight_hr_,
      hr_turned_, bias_ih_, bias_hh_;
  std::vector<double> h0_, c0_, grad_output_, lengths_, reserve_;
};

}  // namespace tessera::operations::cells
