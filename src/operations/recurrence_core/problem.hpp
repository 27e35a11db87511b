// SPDX-License-Identifier: Apache-2.0
// A call of a recurrence or of its gradients after validation. recurrent, gla, lightning_attention
// and, with beta, delta rules share all of their inside; RecurrenceSlots says which operand is
// where.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "operations/common/ways.hpp"
#include "tessera/record.hpp"

namespace tessera::operations::recurrence {

struct RecurrenceSlots {
  std::size_t query = 0, key = 1, value = 2;
  std::size_t g = kNoOperand, gamma = kNoOperand, gk = kNoOperand, gv = kNoOperand;
  std::size_t beta = kNoOperand;  // of delta rules: how much of what a key holds is replaced
  // Of a call with a state that is changed in place, initial_state and final_state are that one.
  std::size_t initial_state = kNoOperand, state = kNoOperand, cu_seqlens = kNoOperand;
  std::size_t output = kNoOperand, final_state = kNoOperand;  // forward
  // Backward. A gradient has the shape and dtype of what it is the gradient of.
  std::size_t grad_output = kNoOperand, grad_final_state = kNoOperand;
  std::size_t grad_query = kNoOperand, grad_key = kNoOperand, grad_value = kNoOperand;
  std::size_t grad_g = kNoOperand, grad_gamma = kNoOperand;
  std::size_t grad_gk = kNoOperand, grad_gv = kNoOperand, grad_beta = kNoOperand;
  std::size_t grad_initial_state = kNoOperand;
  std::size_t count = 0;   // of operands
  bool of_layers = false;  // the decay is that of a layer of lightning attention, by options
  bool backward() const { return grad_output != kNoOperand; }
  bool delta() const { return beta != kNoOperand; }
  // Gradients, and what they are the gradients of.
  std::vector<std::pair<std::size_t, std::size_t>> gradients() const;
};

RecurrenceSlots recurrent_slots(bool backward);
RecurrenceSlots gla_slots(bool backward);
RecurrenceSlots lightning_slots(bool backward);
RecurrenceSlots delta_slots(bool gate, bool backward);

struct RecurrenceProblem {
  RecurrenceSlots slots{};
  std::int64_t batch = 0, tokens = 0, heads = 0, key_dim = 0, value_dim = 0;
  std::int64_t sequences = 0;  // batch entries, or those that are packed
  bool packed = false, reverse = false;
  bool in_place = false;  // the call has a state, which it reads and writes
  bool key_gate = false;  // g has an axis of key dims
  double scale = 0;
  double slope = 0;  // head times this joins the log decay
};

void validate_recurrence(Problem& problem, const RecurrenceSlots& slots);
void reference_recurrence(const Problem& problem, std::span<HostTensor> tensors);
std::vector<Raised> raises_recurrence(const Problem& problem, std::span<HostTensor> tensors);
Workload recurrence_workload(const RecurrenceSlots& slots);
std::vector<Way> recurrence_ways(const RecurrenceSlots& slots);

}  // namespace tessera::operations::recurrence
