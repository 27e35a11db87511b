// SPDX-License-Identifier: Apache-2.0
// Sequences in spans that work-groups share: what each span makes of an empty state, then the state
// before each of them; the kernels that take steps go on from there.
#include <algorithm>
#include <utility>

#include "operations/common/launch.hpp"
#include "operations/recurrence_core/launch.hpp"
#include "operations/recurrence_core/tile/tile.hpp"

namespace tessera::operations::recurrence {
namespace {

constexpr std::uint32_t kCarryItems = 64;

const RecurrenceProblem& call_of(const Problem& problem) { return problem.as<RecurrenceProblem>(); }

std::int64_t items_of(const Config& config) {
  return std::int64_t{config.group().x} * config.group().y;
}

// Of the states of a span in all sequences and heads, in vectors of four floats.
std::int64_t vectors_of(const Problem& problem, const Config& config) {
  return units_of(call_of(problem), columns_of(config)) * config.at("ROWS") * items_of(config);
}

std::int64_t factors_of(const Config& config) {
  return std::int64_t{config.at("ROWS")} * config.group().y;
}

Pass spans_pass(const std::string& name, std::vector<std::size_t> bindings) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "recurrence/tile/spans.cl", .entry = "recurrence_spans"};
  pass.vulkan = {.file = "recurrence/tile/spans.comp", .entry = "main"};
  pass.bindings = std::move(bindings);
  pass.axes = shader_storage_axes;
  pass.groups = span_groups;
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(arguments_of(problem));
  };
  return pass;
}

}  // namespace

std::int64_t spans_of(const Problem& /*problem*/, const Config& config) {
  return std::max<std::int64_t>(config.get("SPANS", 1), 1);
}

std::uint64_t span_bytes(const Problem& problem, const Config& config) {
  const std::int64_t spans = spans_of(problem, config);
  if (spans == 1) return 0;
  const std::int64_t factors = units_of(call_of(problem), columns_of(config)) * factors_of(config);
  return static_cast<std::uint64_t>(spans * (16 * vectors_of(problem, config) + 4 * factors) + 16);
}

void add_span_arguments(const Problem& problem, const Config& config, std::uint64_t begin,
                        abi::RecurArgs& args) {
  args.spans = static_cast<abi::u32>(spans_of(problem, config));
  const auto states = static_cast<std::uint64_t>(args.spans) *
                      static_cast<std::uint64_t>(vectors_of(problem, config));
  args.span_states = static_cast<abi::u32>(begin);
  args.span_factors = static_cast<abi::u32>(4 * (begin + states));
}

Dim3 span_groups(const Problem& problem, const Config& config) {
  return groups_of(spans_of(problem, config) * units_of(call_of(problem), columns_of(config)));
}

std::vector<Pass> span_passes(const RecurrenceSlots& slots) {
  Pass carry;
  carry.name = "carry";
  carry.opencl = {.file = "recurrence/tile/carry.cl", .entry = "recurrence_carry"};
  carry.vulkan = {.file = "recurrence/tile/carry.comp", .entry = "main"};
  carry.bindings = {kScratch};
  carry.specialized_on = std::vector<std::string>{};
  carry.group_size = [](const Config&) { return Dim3{kCarryItems}; };
  carry.groups = [](const Problem& problem, const Config& config) {
    const std::int64_t groups = vectors_of(problem, config) / kCarryItems;
    return Dim3{static_cast<std::uint32_t>(std::clamp<std::int64_t>(groups, 1, 16384))};
  };
  carry.args = [](const Problem&, const Config&) { return argument_bytes(abi::RecurSpanArgs{}); };
  return list_of(spans_pass("spans", {slots.key, slots.value, slots.g, slots.gamma, slots.gk,
                                      slots.gv, slots.initial_state, kScratch}),
                 std::move(carry));
}

Pass gradient_spans_pass(const RecurrenceSlots& slots) {
  return spans_pass("back", {slots.query, slots.grad_output, slots.g, slots.gamma, slots.gk,
                             slots.gv, slots.grad_final_state, kScratch});
}

void add_span_steps(const Problem& problem, const Config& config, const std::string& pass,
                    const abi::RecurArgs& args, std::vector<Step>& steps) {
  abi::RecurSpanArgs carry{};
  carry.vectors = static_cast<abi::u32>(vectors_of(problem, config));
  carry.rows = config.at("ROWS");
  carry.lanes = config.group().x;
  carry.items = static_cast<abi::u32>(items_of(config));
  carry.factors = static_cast<abi::u32>(factors_of(config));
  carry.spans = args.spans;
  carry.span_states = args.span_states;
  carry.span_factors = args.span_factors;
  // Nobody asks what the last span makes.
  const Dim3 groups =
      groups_of((spans_of(problem, config) - 1) * units_of(call_of(problem), columns_of(config)));
  steps.push_back(LaunchStep{.pass = pass, .groups = groups, .args = argument_bytes(args)});
  steps.push_back(LaunchStep{.pass = "carry", .args = argument_bytes(carry)});
  abi::RecurArgs again = args;
  again.features |= RECUR_AGAIN;
  steps.push_back(LaunchStep{.pass = pass,
                             .groups = groups_of(units_of(call_of(problem), columns_of(config))),
                             .args = argument_bytes(again)});
}

}  // namespace tessera::operations::recurrence
