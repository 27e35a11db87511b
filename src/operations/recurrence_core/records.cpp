// SPDX-License-Identifier: Apache-2.0
#include "operations/recurrence_core/records.hpp"

#include "operations/common/gradients.hpp"

namespace tessera::operations::recurrence {
namespace {

// Numbers the operands that an operation has, in the order of its record.
struct Has {
  bool g = false, gamma = false, more_gates = false, beta = false;
};
RecurrenceSlots number_slots(const Has& has, bool backward) {
  RecurrenceSlots slots;
  std::size_t next = 3;
  const auto give = [&](bool wanted, std::size_t& slot) {
    if (wanted) slot = next++;
  };
  give(has.beta, slots.beta);
  give(has.g, slots.g);
  give(has.gamma, slots.gamma);
  give(has.more_gates, slots.gk);
  give(has.more_gates, slots.gv);
  give(true, slots.initial_state);
  give(!backward, slots.state);
  give(true, slots.cu_seqlens);
  give(!backward, slots.output);
  give(!backward, slots.final_state);
  give(backward, slots.grad_output);
  give(backward, slots.grad_final_state);
  give(backward, slots.grad_query);
  give(backward, slots.grad_key);
  give(backward, slots.grad_value);
  give(backward && has.beta, slots.grad_beta);
  give(backward && has.g, slots.grad_g);
  give(backward && has.gamma, slots.grad_gamma);
  give(backward && has.more_gates, slots.grad_gk);
  give(backward && has.more_gates, slots.grad_gv);
  give(backward, slots.grad_initial_state);
  slots.count = next;
  return slots;
}

const std::vector<DType> kFloats{DType::kF32, DType::kF16, DType::kBF16};
constexpr const char* kKeys = "[batch, seq, heads, key_dim]";
constexpr const char* kValues = "[batch, seq, heads, value_dim]";
constexpr const char* kStates = "[sequences, heads, key_dim, value_dim]";
constexpr const char* kDecayDoc = "a log decay, in the dtype of query or in f32";

class Operands {
 public:
  explicit Operands(std::size_t count) : list_(count) {}
  void add(std::size_t slot, Operand operand) {
    if (slot == kNoOperand) return;
    if (operand.dtypes.empty()) operand.dtypes = kFloats;
    list_[slot] = std::move(operand);
  }
  void add_gradient(std::size_t slot, std::size_t of) {
    if (slot == kNoOperand) return;
    list_[slot] = gradient_operand(list_[of]);
  }
  std::vector<Operand> take() { return std::move(list_); }

 private:
  std::vector<Operand> list_;
};

std::vector<Operand> operands_of(const RecurrenceSlots& slots) {
  Operands list(slots.count);
  list.add(slots.query, {.name = "query", .shape = kKeys});
  list.add(slots.key, {.name = "key", .shape = kKeys});
  list.add(slots.value, {.name = "value", .shape = kValues});
  list.add(slots.beta, {.name = "beta",
                        .shape = "[batch, seq, heads]",
                        .doc = "how much of what a key holds its token replaces, in the dtype of "
                               "query or in f32"});
  list.add(slots.g, {.name = "g",
                     .optional = true,
                     .shape = "[batch, seq, heads] or [batch, seq, heads, key_dim]",
                     .doc = kDecayDoc});
  list.add(slots.gamma, {.name = "g_gamma",
                         .optional = true,
                         .shape = "[heads]",
                         .doc = "a log decay of each step, in the dtype of query or in f32"});
  list.add(slots.gk, {.name = "gk", .optional = true, .shape = kKeys, .doc = kDecayDoc});
  list.add(slots.gv, {.name = "gv", .optional = true, .shape = kValues, .doc = kDecayDoc});
  list.add(slots.initial_state, {.name = "initial_state",
                                 .optional = true,
                                 .shape = kStates,
                                 .dtypes = {DType::kF32},
                                 .doc = "0 where it is left out",
                                 .stand_in = slots.backward() ? "" : "state"});
  list.add(slots.state, {.name = "state",
                         .role = Role::kInOut,
                         .optional = true,
                         .shape = kStates,
                         .dtypes = {DType::kF32},
                         .doc = "the state before the first token, which becomes that after the "
                                "last; in place of initial_state and final_state"});
  list.add(slots.cu_seqlens,
           {.name = "cu_seqlens",
            .optional = true,
            .shape = "[sequences + 1]",
            .dtypes = {DType::kI32},
            .doc = "sequence s is tokens cu_seqlens[s] to cu_seqlens[s + 1] - 1 of batch entry 0"});
  list.add(slots.output, {.name = "output",
                          .role = Role::kOutput,
                          .shape = kValues,
                          .doc = "0 for tokens of no sequence"});
  list.add(slots.final_state, {.name = "final_state",
                               .role = Role::kOutput,
                               .optional = true,
                               .shape = kStates,
                               .dtypes = {DType::kF32},
                               .doc = "the state after the last token",
                               .stand_in = "state"});
  list.add(slots.grad_output,
           {.name = "grad_output", .shape = kValues, .doc = "in the dtype of query"});
  list.add(slots.grad_final_state, {.name = "grad_final_state",
                                    .optional = true,
                                    .shape = kStates,
                                    .dtypes = {DType::kF32},
                                    .doc = "0 where it is left out"});
  for (const auto& [gradient, operand] : slots.gradients()) list.add_gradient(gradient, operand);
  return list.take();
}

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> RecurrenceSlots::gradients() const {
  return {{grad_query, query}, {grad_key, key},     {grad_value, value},
          {grad_g, g},         {grad_gamma, gamma}, {grad_gk, gk},
          {grad_gv, gv},       {grad_beta, beta},   {grad_initial_state, initial_state}};
}

RecurrenceSlots recurrent_slots(bool backward) {
  return number_slots({.g = true, .gamma = true, .more_gates = true}, backward);
}
RecurrenceSlots gla_slots(bool backward) {
  return number_slots({.g = true, .gamma = true}, backward);
}
RecurrenceSlots lightning_slots(bool backward) {
  RecurrenceSlots slots = number_slots({}, backward);
  slots.of_layers = true;
  return slots;
}
RecurrenceSlots delta_slots(bool gate, bool backward) {
  return number_slots({.g = gate, .beta = true}, backward);
}

Operation new_record(const std::string& name, const RecurrenceSlots& slots) {
  Operation operation;
  operation.name = name;
  operation.operands = operands_of(slots);
  operation.options = {
      {.name = "reverse",
       .fallback = false,
       .type = "bool",
       .doc = "time runs from the last token of each sequence to its first"},
      {.name = "softmax_scale", .type = "float", .doc = "key_dim^-1/2 where it is not set"}};
  operation.errors = {{.kind = "offset_outside_tokens",
                       .operand = "cu_seqlens",
                       .sentence = "lies outside of the tokens"},
                      {.kind = "offset_decreases",
                       .operand = "cu_seqlens",
                       .sentence = "is less than the one before it"}};
  operation.validate = [slots](Problem& problem) { validate_recurrence(problem, slots); };
  operation.reference = reference_recurrence;
  operation.raises = raises_recurrence;
  add_ways(operation, recurrence_ways(slots));
  operation.workload = recurrence_workload(slots);
  return operation;
}

}  // namespace tessera::operations::recurrence
