// SPDX-License-Identifier: Apache-2.0
// A call of a layer of recurrent cells or of its gradients after validation. lstm, gru and rnn
// share all of their inside; CellSlots says which operand is where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "operations/common/ways.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::cells {

enum class Cell : std::uint8_t { kRnn, kLstm, kGru };

struct CellSlots {
  Cell cell = Cell::kRnn;
  std::size_t input = 0, weight_ih = 1, weight_hh = 2;
  std::size_t weight_hr = kNoOperand;  // of lstm
  std::size_t bias_ih = kNoOperand, bias_hh = kNoOperand;
  std::size_t h0 = kNoOperand, c0 = kNoOperand, lengths = kNoOperand;
  std::size_t output = kNoOperand, h_n = kNoOperand, c_n = kNoOperand;  // forward
  std::size_t reserve = kNoOperand;  // what forward leaves to backward
  // Backward. A gradient of an operand has its shape and dtype.
  std::size_t grad_output = kNoOperand, grad_h_n = kNoOperand, grad_c_n = kNoOperand;
  std::size_t grad_input = kNoOperand, grad_weight_ih = kNoOperand, grad_weight_hh = kNoOperand;
  std::size_t grad_weight_hr = kNoOperand;
  std::size_t grad_bias_ih = kNoOperand, grad_bias_hh = kNoOperand;
  std::size_t grad_h0 = kNoOperand, grad_c0 = kNoOperand;
  std::size_t count = 0;  // of operands
  bool backward() const { return grad_output != kNoOperand; }
  // Gradients, and what they are the gradients of.
  std::vector<std::pair<std::size_t, std::size_t>> gradients() const;
};

constexpr std::int64_t gates_of(Cell cell) {
  return cell == Cell::kLstm ? 4 : cell == Cell::kGru ? 3 : 1;
}

CellSlots cell_slots(Cell cell, bool backward);

struct CellProblem {
  CellSlots slots{};
  std::int64_t batch = 0, tokens = 0, features = 0, hidden = 0;
  std::int64_t outputs = 0;  // numbers of h: hidden, or those of its projection
  std::int64_t directions = 1, gates = 1;
  bool reverse = false;  // of the first direction; the second runs the other way
  bool relu = false;     // of rnn
  bool projects = false;
  bool has_reserve = false;

  std::int64_t rows() const { return batch * tokens; }
  std::int64_t width() const { return directions * gates * hidden; }  // of all gates of a token
  // Blocks of `hidden` numbers that a step keeps for the way back, beside h before it.
  std::int64_t kept_blocks() const {
    return slots.cell == Cell::kLstm ? 5 : slots.cell == Cell::kGru ? 4 : 1;
  }
  // All numbers of a step in the reserve: those blocks, with a projection what it takes, and h
  // before.
  std::int64_t kept() const { return kept_blocks() * hidden + (projects ? hidden : 0) + outputs; }
  bool runs_forward() const { return !slots.backward() || !has_reserve; }
  // Products of a token.
  std::int64_t products() const {
    return width() * (outputs + features) + (projects ? directions * outputs * hidden : 0);
  }
  bool backwards(std::int64_t direction) const { return reverse != (direction == 1); }
};

inline const CellProblem& call_of(const Problem& problem) { return problem.as<CellProblem>(); }

void validate_cells(Problem& problem, const CellSlots& slots);
void reference_cells(const Problem& problem, std::span<HostTensor> tensors);
std::vector<Raised> raises_cells(const Problem& problem, std::span<HostTensor> tensors);
Workload cells_workload(const CellSlots& slots);
std::vector<Way> cells_ways(const CellSlots& slots);

}  // namespace tessera::operations::cells
