// SPDX-License-Identifier: Apache-2.0
#include "operations/cells_core/layout.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "operations/common/launch.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::cells {
namespace {

abi::u32 narrow(std::uint64_t value) { return static_cast<abi::u32>(value); }
abi::u32 narrow(std::int64_t value) { return static_cast<abi::u32>(value); }

const CellProblem& call_of(const Problem& problem) { return problem.as<CellProblem>(); }

std::int64_t kept_of(const CellProblem& call) {
  return call.slots.cell == Cell::kLstm ? 5 : call.slots.cell == Cell::kGru ? 4 : 1;
}

// The same elements with the first two axes as one; nothing where no stride says so.
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

// Products take the input's rows as one axis, and those behind lengths may hold NaN.
bool copies_input(const Problem& problem) {
  const CellSlots& slots = call_of(problem).slots;
  if (!slots.backward()) return false;
  const bool weights = problem.has(slots.grad_weight_ih);
  const bool any = weights || problem.has(slots.grad_input) || problem.has(slots.grad_bias_ih);
  return (weights && problem.has(slots.lengths)) || (any && !folded(problem.spec(slots.input)));
}

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

// Of all tokens: weight_ih input + bias_ih in both directions.
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

std::optional<CallStep> hidden_gradients(const Problem& problem, std::int64_t direction) {
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
  const std::int64_t gates = call.gates * call.hidden, hidden = call.directions * call.hidden;
  const std::uint64_t sums = slots.cell == Cell::kGru ? layout.turned : layout.product;
  step.operands.emplace_back("weight", Place{slots.weight_hh, part(problem.spec(slots.weight_hh))});
  step.operands.emplace_back(
      "input", scratch_place(layout.before + static_cast<std::uint64_t>(direction * call.hidden),
                             {call.rows(), call.hidden}, {hidden, 1}));
  step.operands.emplace_back("grad_output",
                             scratch_place(sums + static_cast<std::uint64_t>(direction * gates),
                                           {call.rows(), gates}, {call.width(), 1}));
  return step;
}

namespace {

// Where the operands [directions, batch, hidden] of h and c are.
template <class Args>
void place_states(Args& args, const Problem& problem, std::size_t h, std::size_t c) {
  if (problem.has(h)) {
    const TensorSpec& spec = problem.spec(h);
    args.h_offset = narrow(spec.offset);
    args.h_direction = narrow(spec.strides[0]);
    args.h_batch = narrow(spec.strides[1]);
    args.h_unit = narrow(spec.strides[2]);
  }
  if (problem.has(c)) {
    const TensorSpec& spec = problem.spec(c);
    args.c_offset = narrow(spec.offset);
    args.c_direction = narrow(spec.strides[0]);
    args.c_batch = narrow(spec.strides[1]);
    args.c_unit = narrow(spec.strides[2]);
  }
}

}  // namespace

std::vector<std::byte> begin_arguments(const Problem& problem, bool backward) {
  const CellProblem& call = call_of(problem);
  const CellSlots& slots = call.slots;
  const CellLayout layout = layout_of(problem);
  const PackedPlaces& packed = backward ? layout.backward : layout.forward;
  const std::size_t h = backward ? slots.grad_h_n : slots.h0;
  const std::size_t c = backward ? slots.grad_c_n : slots.c0;
  abi::CellBeginArgs args{};
  const auto mark = [&](bool holds, abi::u32 feature) { args.features |= holds ? feature : 0U; };
  mark(problem.has(slots.bias_hh), CELL_HAS_BIAS);
  mark(problem.has(h), CELL_HAS_H);
  mark(problem.has(c), CELL_HAS_C);
  mark(problem.has(slots.lengths), CELL_HAS_LENGTHS);
  mark(backward, CELL_BACKWARD);
  mark(backward && copies_input(problem), CELL_CLEANS);
  args.type = dtype_axis(problem.dtype);
  args.batch = narrow(call.batch);
  args.tokens = narrow(call.tokens);
  args.inputs = narrow(call.features);
  args.hidden = narrow(call.hidden);
  args.gates = narrow(call.gates);
  args.directions = narrow(call.directions);
  args.vectors = narrow(packed.vectors);
  args.panels = narrow(packed.panels);
  args.terms = narrow(packed.terms);
  const TensorSpec& weight = problem.spec(slots.weight_hh);
  args.weight_offset = narrow(weight.offset);
  args.weight_direction = narrow(weight.strides[0]);
  args.weight_row = narrow(weight.strides[1]);
  args.weight_column = narrow(weight.strides[2]);
  if (problem.has(slots.bias_hh)) {
    const TensorSpec& bias = problem.spec(slots.bias_hh);
    args.bias_offset = narrow(bias.offset);
    args.bias_direction = narrow(bias.strides[0]);
    args.bias_row = narrow(bias.strides[1]);
  }
  place_states(args, problem, h, c);
  if (problem.has(slots.lengths)) {
    args.lengths_offset = narrow(problem.spec(slots.lengths).offset);
    args.lengths_stride = narrow(problem.spec(slots.lengths).strides[0]);
  }
  const TensorSpec& input = problem.spec(slots.input);
  args.input_offset = narrow(input.offset);
  args.input_batch = narrow(input.strides[0]);
  args.input_token = narrow(input.strides[1]);
  args.input_feature = narrow(input.strides[2]);
  args.weights = narrow(packed.weights);
  args.bias = narrow(layout.bias);
  args.lengths = narrow(layout.lengths);
  args.state = narrow(packed.state);
  args.cell = narrow(layout.cell);
  args.carry = narrow(layout.carry);
  args.clean = narrow(layout.clean * 4 / static_cast<std::uint64_t>(size_of(problem.dtype)));
  return argument_bytes(args);
}

// Of the launch for a step; backward, `step` -1 gives the gradients of h0 and c0.
std::vector<std::byte> step_arguments(const Problem& problem, const Config& config, bool backward,
                                      std::int64_t step) {
  const CellProblem& call = call_of(problem);
  const CellSlots& slots = call.slots;
  const CellLayout layout = layout_of(problem);
  const PackedPlaces& packed = backward ? layout.backward : layout.forward;
  const std::size_t out = backward ? slots.grad_output : slots.output;
  const std::size_t h = backward ? slots.grad_h0 : slots.h_n;
  const std::size_t c = backward ? slots.grad_c0 : slots.c_n;
  abi::CellStepArgs args{};
  const auto mark = [&](bool holds, abi::u32 feature) { args.features |= holds ? feature : 0U; };
  mark(problem.has(h), CELL_HAS_H);
  mark(problem.has(c), CELL_HAS_C);
  mark(call.reverse, CELL_REVERSE);
  mark(call.relu, CELL_RELU);
  mark(slots.backward(), CELL_KEEPS);
  mark(backward ? step < 0 : step + 1 >= call.tokens, CELL_LAST);
  args.type = dtype_axis(problem.dtype);
  args.step = narrow(step);
  args.batch = narrow(call.batch);
  args.tokens = narrow(call.tokens);
  args.hidden = narrow(call.hidden);
  args.directions = narrow(call.directions);
  args.terms = narrow(packed.terms);
  args.rows = config.at("ROWS");
  args.product = narrow(layout.product);
  args.weights = narrow(packed.weights);
  args.bias = narrow(layout.bias);
  args.lengths = narrow(layout.lengths);
  const std::int64_t launch = backward ? call.tokens - 1 - step : step;
  args.from_state = narrow(packed.state + (launch % 2 == 0 ? 0 : packed.state_size));
  args.to_state = narrow(packed.state + (launch % 2 == 0 ? packed.state_size : 0));
  args.cell = narrow(layout.cell);
  args.carry = narrow(layout.carry);
  args.kept = narrow(layout.kept);
  args.before = narrow(layout.before);
  args.turned = narrow(layout.turned);
  if (problem.has(out)) {
    const TensorSpec& spec = problem.spec(out);
    args.out_offset = narrow(spec.offset);
    args.out_batch = narrow(spec.strides[0]);
    args.out_token = narrow(spec.strides[1]);
    args.out_feature = narrow(spec.strides[2]);
  }
  place_states(args, problem, h, c);
  return argument_bytes(args);
}

Dim3 step_groups(const Problem& problem, const Config& config, bool backward) {
  const CellProblem& call = call_of(problem);
  const CellLayout layout = layout_of(problem);
  const PackedPlaces& packed = backward ? layout.backward : layout.forward;
  return {narrow(packed.panels), ceil_div(call.batch, config.at("ROWS")), narrow(call.directions)};
}

std::vector<Define> axes(const Problem& problem, const DeviceProfile& profile) {
  return profile.backend == Backend::kVulkan ? storage_axes(problem, profile)
                                             : std::vector<Define>{};
}

Pass begin_pass(const CellSlots& slots, bool backward) {
  Pass pass;
  pass.name = backward ? "begin_backward" : "begin";
  pass.opencl = {.file = "cells/core/begin.cl", .entry = "cells_begin"};
  pass.vulkan = {.file = "cells/core/begin.comp", .entry = "main"};
  pass.bindings = {slots.weight_hh,
                   slots.bias_hh,
                   backward ? slots.grad_h_n : slots.h0,
                   backward ? slots.grad_c_n : slots.c0,
                   slots.lengths,
                   slots.input,
                   kScratch,
                   kErrors};
  pass.axes = axes;
  pass.specialized_on = std::vector<std::string>{};
  pass.group_size = [](const Config&) { return Dim3{64, 1, 1}; };
  pass.groups = [](const Problem& problem, const Config&) {
    const std::uint64_t items = layout_of(problem).end;
    return Dim3{narrow(std::clamp<std::uint64_t>(items / 64, 1, 1024))};
  };
  pass.args = [backward](const Problem& problem, const Config&) {
    return begin_arguments(problem, backward);
  };
  pass.errors_at = offsetof(abi::CellBeginArgs, errors);
  return pass;
}

Pass step_pass(const CellSlots& slots, bool backward, const std::string& file,
               const std::string& entry, bool vulkan) {
  Pass pass;
  pass.name = backward ? "backward" : "forward";
  pass.opencl = {.file = file + pass.name + ".cl", .entry = entry + "_" + pass.name};
  if (vulkan) pass.vulkan = {.file = file + pass.name + ".comp", .entry = "main"};
  pass.bindings = {kScratch, backward ? slots.grad_output : slots.output,
                   backward ? slots.grad_h0 : slots.h_n, backward ? slots.grad_c0 : slots.c_n};
  pass.axes = axes;
  pass.constants = [](const Problem& problem, const Config&) {
    return std::vector<Define>{{"CELL", kind_of(problem)}};
  };
  pass.groups = [backward](const Problem& problem, const Config& config) {
    return step_groups(problem, config, backward);
  };
  pass.args = [backward](const Problem& problem, const Config& config) {
    return step_arguments(problem, config, backward, 0);
  };
  return pass;
}

}  // namespace

std::uint32_t kind_of(const Problem& problem) {
  switch (call_of(problem).slots.cell) {
    case Cell::kLstm:
      return CELL_LSTM;
    case Cell::kGru:
      return CELL_GRU;
    default:
      return CELL_RNN;
  }
}

CellLayout layout_of(const Problem& problem) {
  const CellProblem& call = call_of(problem);
  const auto count = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b);
  };
  CellLayout layout;
  std::uint64_t next = 0;
  const auto take = [&](std::uint64_t floats) {
    return std::exchange(next, next + (floats + 15) / 16 * 16);
  };
  const std::int64_t entries = call.directions * call.batch;
  const auto pack = [&](PackedPlaces& packed, std::int64_t vectors, std::int64_t units,
                        std::int64_t terms) {
    packed.vectors = vectors;
    packed.panels = ceil_div(call.hidden, units);
    packed.terms = (terms + 3) / 4 * 4;
    packed.weights =
        take(count(call.directions * packed.panels * vectors * CELL_LANES, packed.terms));
    packed.state_size = count(entries, packed.terms);
    packed.state = take(2 * packed.state_size);
  };
  pack(layout.forward, call.gates, CELL_LANES, call.hidden);
  layout.product = take(count(call.rows(), call.width()));
  layout.bias = take(count(call.directions, call.gates * call.hidden));
  layout.lengths = take(count(call.batch, 1));
  layout.cell = take(count(entries, call.hidden));
  if (call.slots.backward()) {
    pack(layout.backward, CELL_BACK_VECTORS, CELL_BACK_VECTORS * CELL_LANES,
         call.gates * call.hidden);
    layout.carry = take(count(entries, call.hidden));
    layout.kept = take(count(call.rows(), call.directions * kept_of(call) * call.hidden));
    layout.before = take(count(call.rows(), call.directions * call.hidden));
    if (call.slots.cell == Cell::kGru) layout.turned = take(count(call.rows(), call.width()));
    if (copies_input(problem)) layout.clean = take(count(call.rows(), call.features));
  }
  layout.end = next + CELL_LANES;  // kernels of processors read whole vectors
  return layout;
}

std::vector<Pass> cell_passes(const CellSlots& slots, const std::string& file,
                              const std::string& entry, bool vulkan) {
  std::vector<Pass> passes{begin_pass(slots, false), step_pass(slots, false, file, entry, vulkan)};
  if (slots.backward()) {
    passes.push_back(begin_pass(slots, true));
    passes.push_back(step_pass(slots, true, file, entry, vulkan));
  }
  return passes;
}

std::vector<Step> cell_steps(const Problem& problem, const Config& config) {
  const CellProblem& call = call_of(problem);
  std::vector<Step> steps;
  const bool some = call.rows() > 0;
  const auto launch = [&](const char* pass, bool backward, std::int64_t step) {
    steps.push_back(
        LaunchStep{.pass = pass, .args = step_arguments(problem, config, backward, step)});
  };
  steps.push_back(LaunchStep{.pass = "begin"});
  if (some) steps.push_back(input_product(problem));
  for (std::int64_t step = 0; step < std::max<std::int64_t>(call.tokens, 1); ++step)
    launch("forward", false, step);
  if (!call.slots.backward()) return steps;
  steps.push_back(LaunchStep{.pass = "begin_backward"});
  for (std::int64_t step = call.tokens - 1; step >= -1; --step) launch("backward", true, step);
  if (auto call_step = input_gradients(problem)) steps.push_back(*std::move(call_step));
  for (std::int64_t direction = 0; direction < call.directions; ++direction) {
    if (auto call_step = hidden_gradients(problem, direction))
      steps.push_back(*std::move(call_step));
  }
  return steps;
}

Refusal rejects_cells(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const CellProblem& call = call_of(problem);
  const CellSlots& slots = call.slots;
  constexpr std::int64_t kMostGroups = 65535;
  if (config.at("ROWS") == 0) return "takes at least one batch entry at a time, and ROWS is 0";
  if (ceil_div(call.batch, config.at("ROWS")) > kMostGroups)
    return "takes up to 65535 work-groups of batch entries";
  std::vector<std::size_t> merged{slots.weight_ih};
  if (slots.backward()) {
    for (const std::size_t slot : {slots.grad_input, slots.grad_weight_ih, slots.grad_bias_ih})
      merged.push_back(slot);
  }
  merged.push_back(slots.bias_ih);
  for (const std::size_t slot : merged) {
    if (!problem.has(slot) || folded(problem.spec(slot))) continue;
    return "takes " + problem.operation->operands[slot].name +
           " with its first two axes as one, and their strides are apart";
  }
  if (layout_of(problem).end >= std::uint64_t{1} << 31)
    return "counts scratch memory to 2^31 floats, and the call takes more";
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  return rejects_long_operands(problem, profile, {});
}

}  // namespace tessera::operations::cells
