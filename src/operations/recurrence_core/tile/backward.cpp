// SPDX-License-Identifier: Apache-2.0
// The gradients step by step: forward for those of queries, with states on the way; backward for
// the others; then what blocks of columns have is added up.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "operations/common/launch.hpp"
#include "operations/recurrence_core/gradients.hpp"
#include "operations/recurrence_core/launch.hpp"
#include "operations/recurrence_core/tile/tile.hpp"

namespace tessera::operations::recurrence {
namespace {

const RecurrenceProblem& call_of(const Problem& problem) { return problem.as<RecurrenceProblem>(); }

// Of the passes that go back.
abi::RecurArgs gradient_arguments(const Problem& problem, const Config& config) {
  abi::RecurArgs args = tile_backward_arguments(problem, config);
  add_span_arguments(problem, config, scratch_of(problem, config).gradient_spans, args);
  return args;
}

constexpr abi::u32 kForth = RECUR_GRAD_QUERY | RECUR_GRAD_DECAY;
constexpr abi::u32 kCombined =
    RECUR_GRAD_QUERY | RECUR_GRAD_KEY | RECUR_GRAD_DECAY | RECUR_GRAD_BETA;
constexpr abi::u32 kBack =
    RECUR_GRAD_KEY | RECUR_GRAD_VALUE | RECUR_GRAD_DECAY | RECUR_GRAD_INITIAL;

std::vector<std::byte> backward_bytes(const Problem& problem, const Config& config) {
  return argument_bytes(tile_backward_arguments(problem, config));
}

// The same pass through Vulkan.
Pass with_shader(Pass pass) {
  pass.vulkan = {.file = "recurrence/tile/" + pass.name + ".comp", .entry = "main"};
  pass.axes = shader_storage_axes;
  return pass;
}

// A pass that is launched where one of the gradients is wanted.
Pass new_pass(const std::string& name, abi::u32 gradients, std::vector<std::size_t> bindings) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "recurrence/tile/" + name + ".cl", .entry = "recurrence_" + name};
  pass.bindings = std::move(bindings);
  pass.groups = [gradients](const Problem& problem, const Config& config) {
    if (!wants(problem, gradients)) return Dim3{0, 0, 0};
    return span_groups(problem, config);
  };
  pass.args = backward_bytes;
  return with_shader(std::move(pass));
}

std::vector<Pass> decay_passes(const RecurrenceSlots& slots) {
  std::vector<Pass> passes = span_passes(slots), steps = tile_gradient_passes(slots);
  passes.push_back(gradient_spans_pass(slots));
  std::ranges::move(steps, std::back_inserter(passes));
  return passes;
}

// Forward and back for delta rules, whose gradients all need the states.
std::vector<Pass> delta_passes(const RecurrenceSlots& slots) {
  constexpr abi::u32 kAll = RECUR_GRAD_QUERY | RECUR_GRAD_KEY | RECUR_GRAD_VALUE | RECUR_GRAD_BETA |
                            RECUR_GRAD_DECAY | RECUR_GRAD_INITIAL;
  Pass states = new_pass("delta_states", kAll,
                         {slots.key, slots.value, slots.beta, slots.g, slots.initial_state,
                          slots.grad_output, kScratch});
  Pass gradients =
      new_pass("delta_gradients", kAll & ~RECUR_GRAD_QUERY,
               {slots.query, slots.key, slots.value, slots.beta, slots.g, slots.grad_output,
                slots.grad_final_state, slots.grad_value, slots.grad_initial_state, kScratch});
  return list_of(std::move(states), std::move(gradients));
}

}  // namespace

abi::RecurArgs tile_backward_arguments(const Problem& problem, const Config& config) {
  const BackwardScratch scratch = scratch_of(problem, config);
  const auto narrow = [](std::uint64_t value) { return static_cast<abi::u32>(value); };
  abi::RecurArgs args = arguments_of(problem);
  args.segment = config.at("SEGMENT");
  args.tiles = ceil_div(call_of(problem).value_dim, columns_of(config));
  args.kept = narrow(scratch.kept);
  args.inner = narrow(scratch.inner);
  args.dquery_shares = narrow(scratch.dquery_shares);
  args.dkey_shares = narrow(scratch.dkey_shares);
  args.decay_shares = narrow(scratch.decay_shares);
  args.sums = narrow(scratch.sums);
  args.beta_shares = narrow(scratch.beta_shares);
  args.boundaries = narrow(4 * scratch.boundaries);
  add_span_arguments(problem, config, scratch.spans, args);
  return args;
}

std::vector<Pass> tile_gradient_passes(const RecurrenceSlots& slots) {
  if (slots.delta()) return delta_passes(slots);
  Pass states = new_pass("states", kForth,
                         {slots.key, slots.value, slots.g, slots.gamma, slots.gk, slots.gv,
                          slots.initial_state, slots.grad_output, kScratch});
  Pass gradients = new_pass("gradients", kBack,
                            {slots.query, slots.key, slots.value, slots.g, slots.gamma, slots.gk,
                             slots.gv, slots.grad_output, slots.grad_final_state, slots.grad_value,
                             slots.grad_gv, slots.grad_initial_state, kScratch});
  gradients.args = [](const Problem& problem, const Config& config) {
    return argument_bytes(gradient_arguments(problem, config));
  };
  return list_of(std::move(states), std::move(gradients));
}

Pass tile_combine_pass(const RecurrenceSlots& slots) {
  Pass combine = with_shader(combine_pass(slots, backward_bytes));
  combine.groups = [](const Problem& problem, const Config&) {
    if (!wants(problem, kCombined)) return Dim3{0, 0, 0};
    return groups_of(rows_of(call_of(problem)));
  };
  return combine;
}

Pass tile_gamma_pass(const RecurrenceSlots& slots, PassArguments arguments) {
  return with_shader(gamma_pass(slots, arguments));
}

BackwardScratch scratch_of(const Problem& problem, const Config& config) {
  const RecurrenceProblem& call = call_of(problem);
  const std::int64_t segment = config.at("SEGMENT"),
                     tiles = ceil_div(call.value_dim, columns_of(config));
  const std::int64_t state = std::int64_t{config.at("ROWS")} * config.group().x * config.group().y;
  // Sequences that lie one behind the other have a segment more each than their tokens together.
  const std::int64_t segments = call.batch * call.tokens / segment + call.sequences + 1;
  const std::int64_t shares = tiles * rows_of(call) * ceil_div(call.key_dim, 4);
  const bool decay = wants(problem, RECUR_GRAD_DECAY), delta = call.slots.delta();
  BackwardScratch scratch;
  const auto add = [&](bool has, std::int64_t vectors) {
    const std::uint64_t begin = scratch.end;
    if (has) scratch.end += static_cast<std::uint64_t>(vectors);
    return begin;
  };
  scratch.kept = add(decay || delta, segments * call.heads * tiles * state);
  scratch.inner = add(decay || delta, spans_of(problem, config) *
                                          units_of(call, columns_of(config)) * segment * state);
  scratch.dquery_shares = add(true, shares);
  scratch.dkey_shares = add(true, shares);
  scratch.decay_shares = add(decay, shares);
  scratch.sums = add(decay, ceil_div(rows_of(call), 4));
  scratch.beta_shares = add(delta, ceil_div(tiles * rows_of(call), 4));
  const auto of_spans = static_cast<std::int64_t>(span_bytes(problem, config) / 16 + 1);
  scratch.spans = add(spans_of(problem, config) > 1, of_spans);
  scratch.gradient_spans = add(spans_of(problem, config) > 1, of_spans);
  scratch.boundaries = add(call.packed, call.sequences / 4 + 1);
  return scratch;
}

std::vector<Step> backward_steps(const Problem& problem, const Config& config) {
  std::vector<Step> steps;
  const auto add = [&](const char* pass, abi::u32 gradients) {
    if (wants(problem, gradients)) steps.push_back(LaunchStep{.pass = pass});
  };
  if (call_of(problem).packed) steps.push_back(LaunchStep{.pass = "boundaries"});
  const bool spans = spans_of(problem, config) > 1;
  if (spans && wants(problem, kForth)) {
    abi::RecurArgs args = tile_backward_arguments(problem, config);
    args.scale = 1;
    add_span_steps(problem, config, "spans", args, steps);
  }
  if (spans && wants(problem, kBack)) {
    abi::RecurArgs args = gradient_arguments(problem, config);
    args.features ^= RECUR_REVERSE;
    args.features &= ~RECUR_INITIAL;
    args.features |= RECUR_BACK | ((args.features & RECUR_FINAL) != 0 ? RECUR_INITIAL : 0U);
    args.key = args.query;
    args.value = args.result;
    args.initial_state = args.final_state;
    add_span_steps(problem, config, "back", args, steps);
  }
  add("states", kForth);
  add("gradients", kBack);
  add("combine", kCombined);
  add("gamma", RECUR_GRAD_GAMMA);
  return steps;
}

std::vector<Pass> backward_passes(const RecurrenceSlots& slots) {
  std::vector<Pass> passes = slots.delta() ? tile_gradient_passes(slots) : decay_passes(slots);
  passes.insert(passes.begin(),
                boundaries_pass(slots, [](const Problem& problem, const Config& config) {
                  return 16 * scratch_of(problem, config).boundaries;
                }));
  passes.push_back(tile_combine_pass(slots));
  if (!slots.delta()) passes.push_back(tile_gamma_pass(slots, backward_bytes));
  return passes;
}

}  // namespace tessera::operations::recurrence
