// SPDX-License-Identifier: Apache-2.0
#include "operations/cells_core/records.hpp"

#include <utility>

#include "operations/common/gradients.hpp"

namespace tessera::operations::cells {
namespace {

const std::vector<DType> kFloats{DType::kF32, DType::kF16, DType::kBF16};
constexpr const char* kCells = "[directions, batch, hidden]";
constexpr const char* kGateRows = "[directions, gates * hidden]";

// What a step keeps for its gradients.
Operand reserve_operand(const CellSlots& slots) {
  const bool forward = !slots.backward();
  const std::string doc =
      slots.cell == Cell::kLstm
          ? "of each step gates i, f, g, o, c before it, with weight_hr what that projects, and h "
            "before it"
      : slots.cell == Cell::kGru
          ? "of each step gates r, z, n, weight_hh h + bias_hh of n, and h before it"
          : "of each step h, and h before it";
  const std::string numbers = slots.cell == Cell::kLstm  ? "5 * hidden [+ hidden] + proj"
                              : slots.cell == Cell::kGru ? "5 * hidden"
                                                         : "2 * hidden";
  return {.name = "reserve",
          .role = forward ? Role::kOutput : Role::kInput,
          .optional = true,
          .shape = "[batch, seq, directions, " + numbers + "]",
          .dtypes = {DType::kF32},
          .doc = forward
                     ? doc + "; 0 behind lengths"
                     : "what forward left there; forward is computed again where it is left out"};
}

std::vector<Operand> operands_of(const CellSlots& slots) {
  // h has `hidden` numbers where nothing projects it.
  const std::string outputs = slots.weight_hr == kNoOperand ? "hidden" : "proj";
  const std::string states = "[directions, batch, " + outputs + "]";
  const std::string output = "[batch, seq, directions * " + outputs + "]";
  std::vector<Operand> list(slots.count);
  const auto add = [&](std::size_t slot, Operand operand) {
    if (slot == kNoOperand) return;
    if (operand.dtypes.empty()) operand.dtypes = kFloats;
    list[slot] = std::move(operand);
  };
  add(slots.input, {.name = "input", .shape = "[batch, seq, features]"});
  add(slots.weight_ih, {.name = "weight_ih",
                        .shape = "[directions, gates * hidden, features]",
                        .doc = "one direction or two; blocks of hidden rows, one for each gate"});
  add(slots.weight_hh, {.name = "weight_hh",
                        .shape = "[directions, gates * hidden, " + outputs + "]",
                        .doc = "likewise"});
  add(slots.weight_hr, {.name = "weight_hr",
                        .optional = true,
                        .shape = "[directions, proj, hidden]",
                        .doc = "projection of h; proj is hidden where it is left out"});
  add(slots.bias_ih, {.name = "bias_ih", .optional = true, .shape = kGateRows});
  add(slots.bias_hh, {.name = "bias_hh", .optional = true, .shape = kGateRows});
  add(slots.h0, {.name = "h0", .optional = true, .shape = states, .doc = "0 where it is left out"});
  add(slots.c0, {.name = "c0", .optional = true, .shape = kCells, .doc = "0 where it is left out"});
  add(slots.lengths, {.name = "lengths",
                      .optional = true,
                      .shape = "[batch]",
                      .dtypes = {DType::kI32},
                      .doc = "tokens of each batch entry; seq where it is left out"});
  add(slots.output, {.name = "output",
                     .role = Role::kOutput,
                     .shape = output,
                     .doc = "h of each token, 0 behind lengths"});
  add(slots.h_n, {.name = "h_n",
                  .role = Role::kOutput,
                  .optional = true,
                  .shape = states,
                  .doc = "h after the last token"});
  add(slots.c_n, {.name = "c_n",
                  .role = Role::kOutput,
                  .optional = true,
                  .shape = kCells,
                  .doc = "c after the last token"});
  add(slots.reserve, reserve_operand(slots));
  add(slots.grad_output, {.name = "grad_output", .shape = output});
  add(slots.grad_h_n,
      {.name = "grad_h_n", .optional = true, .shape = states, .doc = "0 where it is left out"});
  add(slots.grad_c_n,
      {.name = "grad_c_n", .optional = true, .shape = kCells, .doc = "0 where it is left out"});
  for (const auto& [gradient, operand] : slots.gradients()) {
    if (gradient != kNoOperand) list[gradient] = gradient_operand(list[operand]);
  }
  return list;
}

Operation new_record(const std::string& name, const CellSlots& slots) {
  Operation operation;
  operation.name = name;
  operation.operands = operands_of(slots);
  operation.options = {{.name = "reverse",
                        .fallback = false,
                        .type = "bool",
                        .doc = "the first direction runs from the last token to the first, and the "
                               "second the other way"}};
  if (slots.cell == Cell::kRnn) {
    operation.options.push_back({.name = "activation",
                                 .fallback = std::string("tanh"),
                                 .type = "one of tanh, relu",
                                 .doc = "of the sum"});
  }
  operation.errors = {{.kind = "length_outside_tokens",
                       .operand = "lengths",
                       .sentence = "lies outside of the tokens"}};
  operation.validate = [slots](Problem& problem) { validate_cells(problem, slots); };
  operation.reference = reference_cells;
  operation.raises = raises_cells;
  add_ways(operation, cells_ways(slots));
  operation.workload = cells_workload(slots);
  return operation;
}

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> CellSlots::gradients() const {
  return {{grad_input, input},
          {grad_weight_ih, weight_ih},
          {grad_weight_hh, weight_hh},
          {grad_weight_hr, weight_hr},
          {grad_bias_ih, bias_ih},
          {grad_bias_hh, bias_hh},
          {grad_h0, h0},
          {grad_c0, c0}};
}

CellSlots cell_slots(Cell cell, bool backward) {
  CellSlots slots{.cell = cell};
  std::size_t next = 3;
  const auto give = [&](bool has, std::size_t& slot) {
    if (has) slot = next++;
  };
  const bool memory = cell == Cell::kLstm;
  give(memory, slots.weight_hr);
  give(true, slots.bias_ih);
  give(true, slots.bias_hh);
  give(true, slots.h0);
  give(memory, slots.c0);
  give(true, slots.lengths);
  give(!backward, slots.output);
  give(!backward, slots.h_n);
  give(!backward && memory, slots.c_n);
  give(!backward, slots.reserve);
  give(backward, slots.grad_output);
  give(backward, slots.grad_h_n);
  give(backward && memory, slots.grad_c_n);
  give(backward, slots.reserve);
  give(backward, slots.grad_input);
  give(backward, slots.grad_weight_ih);
  give(backward, slots.grad_weight_hh);
  give(backward && memory, slots.grad_weight_hr);
  give(backward, slots.grad_bias_ih);
  give(backward, slots.grad_bias_hh);
  give(backward, slots.grad_h0);
  give(backward && memory, slots.grad_c0);
  slots.count = next;
  return slots;
}

std::vector<Operation> new_records(const std::string& name, Cell cell, const std::string& summary,
                                   const std::string& formula) {
  Operation forward = new_record(name, cell_slots(cell, false));
  forward.summary = summary;
  forward.formula = formula;
  Operation backward = new_record(name + "_backward", cell_slots(cell, true));
  backward.summary = "gradients of " + name;
  backward.formula =
      "back through time: grad_h_t = grad_output_t + what the step after t gives h_t, grad_h_n "
      "behind the last; d_t the gradient of the gates' sums; grad_input = d weight_ih; "
      "grad_weight_ih = d^T input; grad_weight_hh = d^T h_(t-1)";
  return list_of(std::move(forward), std::move(backward));
}

}  // namespace tessera::operations::cells
