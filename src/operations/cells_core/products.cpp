// SPDX-License-Identifier: Apache-2.0
// What the library's own matrix products do of a call.
#include <optional>
#include <string>
#include <utility>

#include "operations/cells_core/layout.hpp"
#include "operations/common/launch.hpp"

namespace tessera::operations::cells {
namespace {

// Element `index` of the first axis.
TensorSpec part_of(const TensorSpec& spec, std::int64_t index) {
  TensorSpec result{.dtype = spec.dtype,
                    .shape = Shape(spec.shape.begin() + 1, spec.shape.end()),
                    .strides = Shape(spec.strides.begin() + 1, spec.strides.end()),
                    .offset = spec.offset + index * spec.strides[0]};
  return result;
}

Place scratch_place(std::uint64_t offset, Shape shape, Shape strides) {
  return {.slot = kScratch,
          .spec = {.dtype = DType::kF32,
                   .shape = std::move(shape),
                   .strides = std::move(strides),
                   .offset = static_cast<std::int64_t>(offset)}};
}

// Adds operands of linear_backward: an operand and its gradient, as `view` sees them.
template <class View>
bool add_gradient(const Problem& problem, CallStep& step, const std::string& name,
                  std::size_t gradient, View view) {
  if (!problem.has(gradient)) return false;
  step.operands.emplace_back("grad_" + name, Place{gradient, view(problem.spec(gradient))});
  return true;
}

CallStep backward_call() {
  CallStep step{.operation = "linear_backward"};
  // The gradients of sums are floats, and stay so.
  step.options = {{"precision", std::string("highest")}};
  return step;
}

std::optional<CallStep> input_gradients(const Problem& problem) {
  const CellProblem& call = call_of(problem);
  const CellSlots& slots = call.slots;
  const CellLayout layout = layout_of(problem);
  CallStep step = backward_call();
  const auto fold = [](const TensorSpec& spec) { return *folded(spec); };
  bool any = add_gradient(problem, step, "input", slots.grad_input, fold);
  any |= add_gradient(problem, step, "weight", slots.grad_weight_ih, fold);
  if (add_gradient(problem, step, "bias", slots.grad_bias_ih, fold)) {
    any = true;
    step.operands.emplace_back("bias", Place{slots.bias_ih, fold(problem.spec(slots.bias_ih))});
  }
  if (!any) return std::nullopt;
  Place input{.slot = slots.input, .spec = problem.spec(slots.input)};
  if (copies_input(problem)) {
    input = {.slot = kScratch,
             .spec = TensorSpec::contiguous(problem.dtype, {call.rows(), call.features})};
    input.spec.offset = static_cast<std::int64_t>(
        layout.clean * 4 / static_cast<std::uint64_t>(size_of(problem.dtype)));
  } else {
    input.spec = fold(input.spec);
  }
  step.operands.emplace_back("input", input);
  step.operands.emplace_back("weight", Place{slots.weight_ih, fold(problem.spec(slots.weight_ih))});
  step.operands.emplace_back(
      "grad_output", scratch_place(layout.product, {call.rows(), call.width()}, {call.width(), 1}));
  return step;
}

// Floats, or elements, [rows, width] of one direction, of all that lie side by side in scratch.
Place rows_in_scratch(const CellProblem& call, std::uint64_t first, std::int64_t direction,
                      std::int64_t width) {
  return scratch_place(first + static_cast<std::uint64_t>(direction * width), {call.rows(), width},
                       {call.directions * width, 1});
}

// The same of what steps kept: `width` numbers of each, `from` its first.
Place rows_of_kept(const Problem& problem, std::int64_t from, std::int64_t direction,
                   std::int64_t width) {
  const CellProblem& call = call_of(problem);
  const KeptPlace kept = kept_place(problem);
  Place place =
      scratch_place(kept.first + static_cast<std::uint64_t>(direction * call.kept() + from),
                    {call.rows(), width}, {call.directions * call.kept(), 1});
  place.slot = kept.slot;
  return place;
}

std::optional<CallStep> hidden_gradients(const Problem& problem, std::int64_t direction,
                                         std::optional<std::uint64_t> rounded_h) {
  const CellProblem& call = call_of(problem);
  const CellSlots& slots = call.slots;
  const CellLayout layout = layout_of(problem);
  CallStep step = backward_call();
  const auto part = [&](const TensorSpec& spec) { return part_of(spec, direction); };
  bool any = add_gradient(problem, step, "weight", slots.grad_weight_hh, part);
  if (add_gradient(problem, step, "bias", slots.grad_bias_hh, part)) {
    any = true;
    step.operands.emplace_back("bias", Place{slots.bias_hh, part(problem.spec(slots.bias_hh))});
  }
  if (!any) return std::nullopt;
  const std::uint64_t sums = slots.cell == Cell::kGru ? layout.turned : layout.product;
  step.operands.emplace_back("weight", Place{slots.weight_hh, part(problem.spec(slots.weight_hh))});
  Place h = rows_of_kept(problem, call.kept() - call.outputs, direction, call.outputs);
  if (rounded_h) {
    h = rows_in_scratch(call, *rounded_h, direction, call.hidden);
    h.spec.dtype = problem.dtype;
  }
  step.operands.emplace_back("input", h);
  step.operands.emplace_back("grad_output",
                             rows_in_scratch(call, sums, direction, call.gates * call.hidden));
  return step;
}

std::optional<CallStep> projection_gradients(const Problem& problem, std::int64_t direction) {
  const CellProblem& call = call_of(problem);
  const CellSlots& slots = call.slots;
  if (!call.projects || !problem.has(slots.grad_weight_hr)) return std::nullopt;
  const CellLayout layout = layout_of(problem);
  CallStep step = backward_call();
  const auto part = [&](const TensorSpec& spec) { return part_of(spec, direction); };
  add_gradient(problem, step, "weight", slots.grad_weight_hr, part);
  step.operands.emplace_back("weight", Place{slots.weight_hr, part(problem.spec(slots.weight_hr))});
  step.operands.emplace_back(
      "input", rows_of_kept(problem, call.kept_blocks() * call.hidden, direction, call.hidden));
  step.operands.emplace_back("grad_output",
                             rows_in_scratch(call, layout.of_h, direction, call.outputs));
  return step;
}

}  // namespace

std::optional<TensorSpec> folded(const TensorSpec& spec) {
  const Shape &shape = spec.shape, &strides = spec.strides;
  TensorSpec result{.dtype = spec.dtype, .offset = spec.offset};
  result.shape = {shape[0] * shape[1]};
  if (shape[0] == 1 || shape[1] == 0) {
    result.strides = {strides[1]};
  } else if (shape[1] == 1) {
    result.strides = {strides[0]};
  } else if (shape[0] == 0 || strides[0] == shape[1] * strides[1]) {
    result.strides = {strides[1]};
  } else {
    return std::nullopt;
  }
  result.shape.insert(result.shape.end(), shape.begin() + 2, shape.end());
  result.strides.insert(result.strides.end(), strides.begin() + 2, strides.end());
  return result;
}

bool copies_input(const Problem& problem) {
  // Products take the input's rows as one axis, and those behind lengths may hold NaN.
  const CellSlots& slots = call_of(problem).slots;
  if (!slots.backward()) return false;
  const bool weights = problem.has(slots.grad_weight_ih);
  const bool any = weights || problem.has(slots.grad_input) || problem.has(slots.grad_bias_ih);
  return (weights && problem.has(slots.lengths)) || (any && !folded(problem.spec(slots.input)));
}

CallStep input_product(const Problem& problem) {
  const CellProblem& call = call_of(problem);
  const CellSlots& slots = call.slots;
  TensorSpec input = problem.spec(slots.input);
  Shape rows{call.batch, call.tokens};
  if (const auto fold = folded(input)) {
    input = *fold;
    rows = {call.rows()};
  }
  rows.push_back(call.width());
  Place product{.slot = kScratch, .spec = TensorSpec::contiguous(DType::kF32, rows)};
  product.spec.offset = static_cast<std::int64_t>(layout_of(problem).product);
  CallStep step{.operation = "linear"};
  step.operands = {{"input", {slots.input, input}},
                   {"weight", {slots.weight_ih, *folded(problem.spec(slots.weight_ih))}},
                   {"output", product}};
  if (problem.has(slots.bias_ih))
    step.operands.emplace_back("bias", Place{slots.bias_ih, *folded(problem.spec(slots.bias_ih))});
  step.options = {{"output_dtype", std::string("f32")}, {"precision", std::string("high")}};
  return step;
}

std::vector<CallStep> gradient_products(const Problem& problem,
                                        std::optional<std::uint64_t> rounded_h) {
  std::vector<CallStep> calls;
  const auto add = [&](std::optional<CallStep> call) {
    if (call) calls.push_back(*std::move(call));
  };
  add(input_gradients(problem));
  for (std::int64_t direction = 0; direction < call_of(problem).directions; ++direction) {
    add(hidden_gradients(problem, direction, rounded_h));
    add(projection_gradients(problem, direction));
  }
  return calls;
}

}  // namespace tessera::operations::cells
