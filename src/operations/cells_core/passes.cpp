// SPDX-License-Identifier: Apache-2.0
// The launches of a call.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "operations/cells_core/layout.hpp"
#include "operations/common/launch.hpp"

namespace tessera::operations::cells {
namespace {

abi::u32 narrow(std::uint64_t value) { return static_cast<abi::u32>(value); }
abi::u32 narrow(std::int64_t value) { return static_cast<abi::u32>(value); }

// What launches do: those of cells, and of projections, which follow them, but on the way back go
// before.
struct Stage {
  bool backward = false, projects = false;
  bool has_reserve = false;  // which the cells' way back takes
};

std::string pass_name(const std::string& forward, const Stage& stage) {
  return stage.backward ? forward + "_backward" : forward;
}

// Of recurrent weights, or of those of a projection.
const PackedProduct& recurrent(const CellLayout& layout, bool backward) {
  return backward ? layout.backward : layout.forward;
}
const PackedProduct& projection(const CellLayout& layout, bool backward) {
  return backward ? layout.project_backward : layout.project;
}

// Where the operand's first element is, and how far apart those of its three axes are.
void place(const Problem& problem, std::size_t slot, abi::u32& offset,
           const std::array<abi::u32*, 3>& strides) {
  if (!problem.has(slot)) return;
  const TensorSpec& spec = problem.spec(slot);
  offset = narrow(spec.offset);
  for (std::size_t axis = 0; axis < 3; ++axis) *strides[axis] = narrow(spec.strides[axis]);
}
template <class Args>
void place_h(Args& args, const Problem& problem, std::size_t h) {
  place(problem, h, args.h_offset, {&args.h_direction, &args.h_batch, &args.h_unit});
}
template <class Args>
void place_c(Args& args, const Problem& problem, std::size_t c) {
  place(problem, c, args.c_offset, {&args.c_direction, &args.c_batch, &args.c_unit});
}
template <class Args>
void place_out(Args& args, const Problem& problem, std::size_t out) {
  place(problem, out, args.out_offset, {&args.out_batch, &args.out_token, &args.out_feature});
}

// Packs `product` and sets its states to 0.
abi::CellBeginArgs pack_arguments(const Problem& problem, const Config& config,
                                  const PackedProduct& product, std::size_t slot, bool backward) {
  abi::CellBeginArgs args{};
  args.type = dtype_axis(problem.dtype);
  args.batch = narrow(call_of(problem).batch);
  args.directions = narrow(call_of(problem).directions);
  args.units = narrow(product.units);
  args.depth = narrow(product.depth);
  args.vectors = narrow(product.vectors);
  args.at_once = std::min(config.get("AT_ONCE", args.vectors), args.vectors);
  args.panels = narrow(product.panels);
  // Processors, whose way has AT_ONCE, divide less; on GPUs neighbours write neighbouring lanes.
  args.lanes = config.get("AT_ONCE", 0) != 0 ? CELL_LANES : 1;
  args.terms = narrow(product.terms);
  const TensorSpec& weight = problem.spec(slot);
  args.weight_offset = narrow(weight.offset);
  args.weight_direction = narrow(weight.strides[0]);
  args.weight_unit = narrow(weight.strides[backward ? 2 : 1]);
  args.weight_term = narrow(weight.strides[backward ? 1 : 2]);
  args.weights = narrow(product.weights);
  args.state = narrow(product.state);
  return args;
}

std::vector<std::byte> begin_arguments(const Problem& problem, const Config& config,
                                       bool backward) {
  const CellProblem& call = call_of(problem);
  const CellSlots& slots = call.slots;
  const CellLayout layout = layout_of(problem);
  const std::size_t h = backward ? slots.grad_h_n : slots.h0;
  const std::size_t c = backward ? slots.grad_c_n : slots.c0;
  abi::CellBeginArgs args =
      pack_arguments(problem, config, recurrent(layout, backward), slots.weight_hh, backward);
  const auto mark = [&](bool holds, abi::u32 feature) { args.features |= holds ? feature : 0U; };
  mark(problem.has(slots.bias_hh), CELL_HAS_BIAS);
  mark(problem.has(h), CELL_HAS_H);
  mark(problem.has(c), CELL_HAS_C);
  mark(problem.has(slots.lengths), CELL_HAS_LENGTHS);
  mark(backward, CELL_BACKWARD | CELL_WIDE);
  mark(backward && copies_input(problem), CELL_CLEANS);
  mark(!backward || !call.runs_forward(), CELL_FIRST);
  args.tokens = narrow(call.tokens);
  args.inputs = narrow(call.features);
  args.hidden = narrow(call.hidden);
  args.outputs = narrow(call.outputs);
  args.gates = narrow(call.gates);
  if (!backward) args.weight_gate = narrow(call.hidden * args.weight_unit);
  if (problem.has(slots.bias_hh)) {
    const TensorSpec& bias = problem.spec(slots.bias_hh);
    args.bias_offset = narrow(bias.offset);
    args.bias_direction = narrow(bias.strides[0]);
    args.bias_row = narrow(bias.strides[1]);
  }
  place_h(args, problem, h);
  place_c(args, problem, c);
  if (problem.has(slots.lengths)) {
    args.lengths_offset = narrow(problem.spec(slots.lengths).offset);
    args.lengths_stride = narrow(problem.spec(slots.lengths).strides[0]);
  }
  const TensorSpec& input = problem.spec(slots.input);
  args.input_offset = narrow(input.offset);
  args.input_batch = narrow(input.strides[0]);
  args.input_token = narrow(input.strides[1]);
  args.input_feature = narrow(input.strides[2]);
  args.bias = narrow(layout.bias);
  args.lengths = narrow(layout.lengths);
  args.cell = narrow(layout.cell);
  args.carry = narrow(layout.carry);
  args.clean = narrow(layout.clean * 4 / static_cast<std::uint64_t>(size_of(problem.dtype)));
  return argument_bytes(args);
}

std::vector<std::byte> pack_projection(const Problem& problem, const Config& config,
                                       bool backward) {
  const CellLayout layout = layout_of(problem);
  abi::CellBeginArgs args = pack_arguments(problem, config, projection(layout, backward),
                                           call_of(problem).slots.weight_hr, backward);
  args.features = CELL_BACKWARD | CELL_WIDE;
  return argument_bytes(args);
}

// Of two states that take turns, what a step reads, and what it leaves to the next.
std::uint64_t state_of(const CellProblem& call, const PackedProduct& product, bool backward,
                       std::int64_t step, bool next) {
  const std::int64_t launch = (backward ? call.tokens - 1 - step : step) + (next ? 1 : 0);
  return product.state + (launch % 2 == 0 ? 0 : product.state_size);
}

template <class Args>
void place_step(Args& args, const Problem& problem, const Config& config, bool backward,
                std::int64_t step) {
  const CellProblem& call = call_of(problem);
  const CellLayout layout = layout_of(problem);
  args.features = dtype_axis(problem.dtype) << CELL_TYPE_SHIFT;
  if (call.reverse) args.features |= CELL_REVERSE;
  if (call.slots.backward() || call.has_reserve) args.features |= CELL_KEEPS;
  if (!call.slots.backward()) args.features |= CELL_HAS_OUTPUT;
  if (backward ? step < 0 : step + 1 >= call.tokens) args.features |= CELL_LAST;
  args.step = narrow(step);
  args.batch = narrow(call.batch);
  args.tokens = narrow(call.tokens);
  args.directions = narrow(call.directions);
  args.rows = config.get("ROWS", 1);
  args.lengths = narrow(layout.lengths);
}

// Whether a launch is all steps, not one. Projections are launches between steps.
bool is_alone(const CellProblem& call, const Config& config) {
  return config.get("ALONE", 0) != 0 && !call.projects;
}

// Of the launch for a step; backward, `step` -1 gives the gradients of h0 and c0.
std::vector<std::byte> step_arguments(const Problem& problem, const Config& config, bool backward,
                                      std::int64_t step) {
  const CellProblem& call = call_of(problem);
  const CellSlots& slots = call.slots;
  const CellLayout layout = layout_of(problem);
  const bool takes_projection = backward && call.projects;
  const PackedProduct& states = recurrent(layout, backward);
  const PackedProduct& product = takes_projection ? layout.project_backward : states;
  const std::size_t out = backward ? slots.grad_output : slots.output;
  const std::size_t h = backward ? slots.grad_h0 : slots.h_n;
  const std::size_t c = backward ? slots.grad_c0 : slots.c_n;
  abi::CellStepArgs args{};
  place_step(args, problem, config, backward, step);
  const auto mark = [&](bool holds, abi::u32 feature) { args.features |= holds ? feature : 0U; };
  mark(problem.has(h) && !call.projects, CELL_HAS_H);
  mark(problem.has(c), CELL_HAS_C);
  mark(call.relu, CELL_RELU);
  mark(call.projects, CELL_PROJECTS);
  args.hidden = narrow(call.hidden);
  mark(is_alone(call, config), CELL_ALL_STEPS | CELL_LAST);
  args.terms = narrow(product.terms);
  args.product = narrow(layout.product);
  args.weights = narrow(product.weights);
  args.bias = narrow(layout.bias);
  args.from_state =
      narrow(takes_projection ? product.state : state_of(call, states, backward, step, false));
  if (call.projects && !backward) {
    args.to_state = narrow(layout.project.state);
    args.to_terms = narrow(layout.project.terms);
  } else {
    args.to_state = narrow(state_of(call, states, backward, step, true));
    args.to_terms = narrow(states.terms);
  }
  args.cell = narrow(layout.cell);
  args.carry = narrow(layout.carry);
  args.turned = narrow(layout.turned);
  args.kept = narrow(kept_place(problem).first);
  args.kept_row = narrow(call.kept());
  place_out(args, problem, out);
  place_h(args, problem, h);
  place_c(args, problem, c);
  return argument_bytes(args);
}

std::vector<std::byte> project_arguments(const Problem& problem, const Config& config,
                                         bool backward, std::int64_t step) {
  const CellProblem& call = call_of(problem);
  const CellSlots& slots = call.slots;
  const CellLayout layout = layout_of(problem);
  const PackedProduct& states = recurrent(layout, backward);
  const PackedProduct& product = backward ? states : layout.project;
  const std::size_t h = backward ? slots.grad_h0 : slots.h_n;
  abi::CellProjectArgs args{};
  place_step(args, problem, config, backward, step);
  if (problem.has(h)) args.features |= CELL_HAS_H;
  if (backward) args.features |= CELL_BACKWARD;
  args.outputs = narrow(call.outputs);
  args.terms = narrow(product.terms);
  args.weights = narrow(product.weights);
  if (backward) {
    args.from_state = narrow(state_of(call, states, true, step, false));
    args.to_state = narrow(layout.project_backward.state);
    args.to_terms = narrow(layout.project_backward.terms);
    args.carry = narrow(layout.carry);
    args.carry_terms = narrow(call.outputs);
    args.kept = narrow(layout.of_h);
    args.kept_row = narrow(call.outputs);
  } else {
    args.from_state = narrow(product.state);
    args.to_state = narrow(state_of(call, states, false, step, true));
    args.to_terms = narrow(states.terms);
    args.carry = narrow(state_of(call, states, false, step, false));
    args.carry_terms = narrow(states.terms);
    args.kept = narrow(kept_place(problem).first) + narrow(call.kept() - call.outputs);
    args.kept_row = narrow(call.kept());
  }
  place_out(args, problem, backward ? slots.grad_output : slots.output);
  place_h(args, problem, h);
  return argument_bytes(args);
}

std::vector<std::byte> arguments_of(const Problem& problem, const Config& config,
                                    const Stage& stage, std::int64_t step) {
  return stage.projects ? project_arguments(problem, config, stage.backward, step)
                        : step_arguments(problem, config, stage.backward, step);
}

Dim3 step_groups(const Problem& problem, const Config& config, const Stage& stage) {
  const CellProblem& call = call_of(problem);
  const CellLayout layout = layout_of(problem);
  // On the way back cells take what the projection gives, and it takes what they give.
  const bool other = stage.backward ? call.projects && !stage.projects : stage.projects;
  const PackedProduct& product =
      other ? projection(layout, stage.backward) : recurrent(layout, stage.backward);
  return {is_alone(call, config) ? 1U : narrow(product.panels),
          ceil_div(call.batch, config.at("ROWS")), narrow(call.directions)};
}

Pass begin_pass() {
  Pass pass;
  pass.opencl = {.file = kBeginKernel, .entry = "cells_begin"};
  pass.vulkan = {.file = "cells/core/begin.comp", .entry = "main"};
  pass.axes = shader_storage_axes;
  pass.specialized_on = std::vector<std::string>{};
  pass.group_size = [](const Config&) { return Dim3{64, 1, 1}; };
  pass.groups = [](const Problem& problem, const Config&) {
    const std::uint64_t items = layout_of(problem).end;
    return Dim3{narrow(std::clamp<std::uint64_t>(items / 64, 1, 1024))};
  };
  pass.errors_at = offsetof(abi::CellBeginArgs, errors);
  return pass;
}

Pass begin_pass(const CellSlots& slots, bool backward) {
  Pass pass = begin_pass();
  pass.name = pass_name("begin", {.backward = backward});
  pass.bindings = {slots.weight_hh,
                   slots.bias_hh,
                   backward ? slots.grad_h_n : slots.h0,
                   backward ? slots.grad_c_n : slots.c0,
                   slots.lengths,
                   slots.input,
                   kScratch,
                   kErrors};
  pass.args = [backward](const Problem& problem, const Config& config) {
    return begin_arguments(problem, config, backward);
  };
  return pass;
}

// The same kernel with nothing but weights.
Pass pack_pass(const CellSlots& slots, bool backward) {
  Pass pass = begin_pass();
  pass.name = pass_name("pack", {.backward = backward});
  pass.bindings = {slots.weight_hr, kNoOperand, kNoOperand, kNoOperand,
                   kNoOperand,      kNoOperand, kScratch,   kErrors};
  pass.args = [backward](const Problem& problem, const Config& config) {
    return pack_projection(problem, config, backward);
  };
  return pass;
}

std::string step_name(const Stage& stage) {
  if (stage.projects) return pass_name("project", stage);
  if (stage.has_reserve) return "backward_of_reserve";
  return stage.backward ? "backward" : "forward";
}

// What a forward call keeps, or a backward one finds, in the operand; what it makes again itself is
// in scratch, as gradients of h are.
std::size_t kept_slot(const CellSlots& slots, const Stage& stage) {
  return stage.has_reserve || !slots.backward() ? slots.reserve : kScratch;
}

Pass step_pass(const CellSlots& slots, const Stage& stage, const std::string& file,
               const std::string& entry, bool vulkan) {
  Pass pass;
  pass.name = step_name(stage);
  const std::string kernel = stage.projects ? "project" : stage.backward ? "backward" : "forward";
  pass.opencl = {.file = file + kernel + ".cl", .entry = entry + "_" + kernel};
  if (vulkan) pass.vulkan = {.file = file + kernel + ".comp", .entry = "main"};
  pass.bindings = {kScratch, stage.backward ? slots.grad_output : slots.output,
                   stage.backward ? slots.grad_h0 : slots.h_n};
  if (!stage.projects) pass.bindings.push_back(stage.backward ? slots.grad_c0 : slots.c_n);
  pass.bindings.push_back(kept_slot(slots, stage));
  pass.axes = shader_storage_axes;
  if (!stage.projects) {
    pass.constants = [](const Problem& problem, const Config&) {
      return std::vector<Define>{{"CELL", kind_of(problem)}};
    };
  }
  pass.groups = [stage](const Problem& problem, const Config& config) {
    return step_groups(problem, config, stage);
  };
  pass.args = [stage](const Problem& problem, const Config& config) {
    return arguments_of(problem, config, stage, 0);
  };
  return pass;
}

}  // namespace

std::vector<Pass> cell_passes(const CellSlots& slots, const std::string& file,
                              const std::string& entry, bool vulkan) {
  std::vector<Pass> passes;
  for (const bool backward : {false, true}) {
    if (backward && !slots.backward()) continue;
    passes.push_back(begin_pass(slots, backward));
    passes.push_back(step_pass(slots, {.backward = backward}, file, entry, vulkan));
    if (backward)
      passes.push_back(
          step_pass(slots, {.backward = true, .has_reserve = true}, file, entry, vulkan));
    if (slots.weight_hr == kNoOperand) continue;
    passes.push_back(pack_pass(slots, backward));
    const Stage stage{.backward = backward, .projects = true};
    passes.push_back(step_pass(slots, stage, file, entry, vulkan));
  }
  return passes;
}

namespace {

LaunchStep launch_of(const Problem& problem, const Config& config, const Stage& stage,
                     std::int64_t step) {
  return {.pass = step_name(stage), .args = arguments_of(problem, config, stage, step)};
}

}  // namespace

std::vector<Step> cell_steps(const Problem& problem, const Config& config) {
  const CellProblem& call = call_of(problem);
  const bool alone = is_alone(call, config);
  const std::int64_t launches = alone ? 1 : std::max<std::int64_t>(call.tokens, 1);
  std::vector<Step> forward, backward;
  for (std::int64_t step = 0; step < launches; ++step) {
    forward.push_back(launch_of(problem, config, {}, step));
    if (call.projects) forward.push_back(launch_of(problem, config, {.projects = true}, step));
  }
  if (!call.slots.backward()) return cell_steps_with(problem, std::move(forward), {});
  for (std::int64_t step = call.tokens - 1; step >= (alone ? call.tokens - 1 : -1); --step) {
    if (call.projects)
      backward.push_back(launch_of(problem, config, {.backward = true, .projects = true}, step));
    backward.push_back(
        launch_of(problem, config, {.backward = true, .has_reserve = call.has_reserve}, step));
  }
  return cell_steps_with(problem, std::move(forward), std::move(backward));
}

std::vector<Step> cell_steps_with(const Problem& problem, std::vector<Step> forward,
                                  std::vector<Step> backward,
                                  std::optional<std::uint64_t> rounded_h) {
  const CellProblem& call = call_of(problem);
  std::vector<Step> steps;
  const auto begin = [&](bool backward) {
    steps.push_back(LaunchStep{.pass = pass_name("begin", {.backward = backward})});
    if (call.projects)
      steps.push_back(LaunchStep{.pass = pass_name("pack", {.backward = backward})});
  };
  if (call.runs_forward()) {
    begin(false);
    if (call.rows() > 0) steps.push_back(input_product(problem));
    for (Step& step : forward) steps.push_back(std::move(step));
  }
  if (!call.slots.backward()) return steps;
  begin(true);
  for (Step& step : backward) steps.push_back(std::move(step));
  for (CallStep& product : gradient_products(problem, rounded_h))
    steps.push_back(std::move(product));
  return steps;
}

}  // namespace tessera::operations::cells
