// SPDX-License-Identifier: Apache-2.0
// Step by step on any GPU: columns of a state stay in the registers of a work-group.
#include "operations/recurrence_core/tile/tile.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "base/large_registers.hpp"
#include "base/vendor_ids.hpp"
#include "kernel/option_access.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/recurrence_core/launch.hpp"
#include "operations/recurrence_core/tile/geometry.h"

namespace tessera::operations::recurrence {
namespace {

std::vector<Tunable> tunables(const RecurrenceSlots& slots) {
  std::vector<Tunable> list{
#include "operations/recurrence_core/tile/tile.def"
  };
  if (slots.backward()) {
    list.push_back({.id = 31, .name = "SEGMENT", .fallback = 64, .launch_only = true});
  } else {
    list.push_back({.id = 30, .name = "LAUNCH", .fallback = 0, .launch_only = true});
  }
  if (!slots.delta())
    list.push_back({.id = 32, .name = "SPANS", .fallback = 1, .launch_only = true});
  return list;
}

const RecurrenceProblem& call_of(const Problem& problem) { return problem.as<RecurrenceProblem>(); }

// Launches that share the tokens of a sequence.
std::int64_t launches_of(const Problem& problem, const Config& config) {
  const std::int64_t most = config.get("LAUNCH", 0), tokens = call_of(problem).tokens;
  return most == 0 ? 1 : std::max<std::int64_t>(1, ceil_div(tokens, most));
}

// Scratch of spans, or of states between launches.
std::uint64_t carried_bytes(const Problem& problem, const Config& config) {
  if (spans_of(problem, config) > 1) return span_bytes(problem, config);
  return launches_of(problem, config) > 1 ? state_bytes(call_of(problem)) : 0;
}

using Number = std::uint32_t;
std::uint64_t local_bytes_of(const Config& config, const RecurrenceSlots& slots) {
  const Number WG_Y = config.get("WG_Y", 1);
#include "kernel/tunable_locals.inc"
#include "operations/recurrence_core/tile/tile.def"
  const std::uint64_t vectors =
      slots.delta() ? slots.backward() ? RECUR_DELTA_GRADIENTS_VECTORS : RECUR_DELTA_FORWARD_VECTORS
      : slots.backward() ? RECUR_GRADIENTS_VECTORS
                         : RECUR_FORWARD_VECTORS;
  return 16 * vectors + (slots.backward() ? 0 : std::uint64_t{4} * RECUR_ITEMS);
}

std::uint32_t power_of_two(std::int64_t n) {
  return static_cast<std::uint32_t>(
      kernel::next_power_of_two(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
}

// A cut by key dims of an item, lanes of four columns and tokens in local memory; backward also by
// tokens between states that are kept.
struct Cut {
  std::uint32_t rows, lanes, tokens, segment;
};

Config make_config(const Problem& problem, const Cut& cut) {
  const RecurrenceProblem& call = call_of(problem);
  const std::uint32_t parts = std::max(power_of_two(ceil_div(call.key_dim, cut.rows)), 2U);
  const std::uint32_t lanes = std::max(power_of_two(ceil_div(call.value_dim, 4)), 2U);
  Config config{{"ROWS", cut.rows},
                {"WG_Y", parts},
                {"WG_X", std::min(cut.lanes, lanes)},
                {"TOKENS", std::min(cut.tokens, power_of_two(call.tokens))}};
  if (call.slots.backward()) {
    config.set("SEGMENT", cut.segment);
  } else {
    config.set("LAUNCH", 0);
  }
  return config;
}

// Processors have one program each for key dims up to 128 and for more.
Config cpu_config(const Problem& problem, const DeviceProfile& profile) {
  const RecurrenceProblem& call = call_of(problem);
  const bool delta = call.slots.delta(), large = call.key_dim > 128;
  const bool values_decay = problem.has(call.slots.gv);
  Config config{
      {"ROWS", 8}, {"WG_X", call.slots.backward() && large ? 2 : 4}, {"WG_Y", large ? 64 : 16}};
  if (call.slots.backward()) {
    // Spans by the program that forward has.
    config.set("TOKENS", large ? 1 : 3);
    config.set("SEGMENT", large ? 8 : 9);
    if (!delta) config.set("SPANS", call.key_dim <= 16 && !values_decay ? 3 : 1);
    return config;
  }
  config.set("TOKENS", large ? 2 : 3);
  config.set("LAUNCH", profile.backend != Backend::kVulkan ? 0 : delta ? 128 : 512);
  if (delta) return config;
  // Three spans where that is no more programs than it must be.
  const bool spans = !large && !values_decay && !call.in_place;
  config.set("SPANS", spans && launches_of(problem, config) == 1 ? 3 : 1);
  return config;
}

// As many spans as keep a GPU busy, of 64 tokens and more, where values have no decays: a sequence
// in a head is otherwise a work-group's for each tile of columns.
void add_spans(const Problem& problem, const DeviceProfile& profile, std::uint32_t busy,
               Config& config) {
  const RecurrenceProblem& call = call_of(problem);
  const std::int64_t units = units_of(call, columns_of(config));
  const std::int64_t wanted = std::int64_t{busy} * std::max(profile.compute_units, 16U);
  const std::int64_t most =
      call.tokens / std::max<std::int64_t>(call.packed ? call.sequences : 1, 1) / 64;
  const bool fits = !problem.has(call.slots.gv) && !call.in_place && units > 0;
  const std::int64_t spans =
      fits ? std::min({wanted / std::max<std::int64_t>(units, 1), most, std::int64_t{1024}}) : 1;
  config.set("SPANS", static_cast<std::uint32_t>(std::max<std::int64_t>(spans, 1)));
}

// Spans on the way back each hold the states of a segment in scratch: 1 GiB of all, at most.
void limit_spans(const Problem& problem, Config& config) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 30;
  const BackwardScratch scratch = scratch_of(problem, config);
  const std::uint64_t held = 16 * (scratch.dquery_shares - scratch.inner);
  if (held <= kMost) return;
  const auto spans = static_cast<std::uint64_t>(spans_of(problem, config));
  config.set("SPANS", static_cast<std::uint32_t>(std::max<std::uint64_t>(1, spans * kMost / held)));
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  if (is_cpu(profile)) return {cpu_config(problem, profile)};
  const bool backward = call_of(problem).slots.backward();
  std::vector<Cut> forward_cuts{{8, 8, 8, 0},  {8, 8, 4, 0}, {8, 8, 2, 0},   {16, 8, 4, 0},
                                {8, 16, 4, 0}, {4, 8, 4, 0}, {16, 16, 2, 0}, {8, 4, 2, 0}};
  // A single token waits for the states only: measured on an H200, 0.32 ms against 0.36.
  if (call_of(problem).tokens <= 1) forward_cuts.insert(forward_cuts.begin(), {16, 8, 1, 0});
  std::vector<Cut> backward_cuts{{8, 8, 2, 64},  {8, 8, 1, 64},  {8, 4, 2, 64},
                                 {8, 4, 1, 64},  {4, 8, 1, 64},  {8, 2, 1, 64},
                                 {16, 8, 1, 64}, {16, 4, 1, 64}, {16, 2, 1, 64}};
  if (profile.vendor_id == kVendorIntel) {  // more rows are spilled
    forward_cuts = {{4, 8, 4, 0}, {4, 8, 1, 0}, {4, 4, 1, 0}};
    // By ocloc 10 of 128 registers spill, where so many items share sums of key dims.
    const RecurrenceProblem& call = call_of(problem);
    if (call.slots.delta() && call.key_dim > 128 && profile.backend == Backend::kOpenCL)
      forward_cuts.erase(forward_cuts.begin());
    backward_cuts = {{4, 4, 1, 64}, {4, 2, 1, 64}};
  } else if (profile.vendor_id == kVendorAmd) {  // more local memory leaves few waves
    forward_cuts = {{8, 8, 2, 0}, {8, 8, 1, 0}, {8, 4, 1, 0}};
    backward_cuts = {{8, 4, 1, 64}, {8, 2, 1, 64}, {16, 2, 1, 64}};
    if (call_of(problem).key_dim > 256) backward_cuts.erase(backward_cuts.begin());
  }
  // What the least device holds: 16 KiB, and 128 items.
  forward_cuts.push_back({16, 4, 1, 0});
  backward_cuts.push_back({16, 1, 1, 64});
  std::vector<Config> list;
  for (const Cut& cut : backward ? backward_cuts : forward_cuts) {
    Config config = make_config(problem, cut);
    const std::uint32_t items = config.group().x * config.group().y;
    const bool fits = (profile.local_memory == 0 ||
                       local_bytes_of(config, call_of(problem).slots) <= profile.local_memory) &&
                      (profile.max_group_size == 0 || items <= profile.max_group_size) &&
                      items <= 512;
    if (!fits) continue;
    // By ocloc 13 of 128 registers spill with the least that an item takes.
    if (backward && !call_of(problem).slots.delta() && is_xe_hpg(profile))
      config.set(std::string(kLargeRegisters), 1);
    if (call_of(problem).slots.delta()) {
      if (std::ranges::count(list, config) == 0) list.push_back(std::move(config));
      continue;
    }
    for (const std::uint32_t busy : {8U, 16U, 4U, 0U}) {  // at last, one where scratch is short
      if (busy == 0 && !backward) continue;
      add_spans(problem, profile, busy, config);
      if (backward) limit_spans(problem, config);
      if (std::ranges::count(list, config) == 0) list.push_back(config);
    }
  }
  return list;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t rows = config.at("ROWS");
  const Dim3 group = config.group();
  if (rows == 0 || rows % 4 != 0 || rows > 32)
    return "takes key dims of an item by fours, at most 32, and ROWS is " + std::to_string(rows);
  if (config.at("TOKENS") == 0) return "takes at least one token at a time, and TOKENS is 0";
  const std::int64_t held = std::int64_t{group.y} * rows;
  if (call_of(problem).key_dim > held)
    return "holds " + std::to_string(held) + " key dims, and the call has " +
           std::to_string(call_of(problem).key_dim);
  if (spans_of(problem, config) > 1) {
    if (problem.has(call_of(problem).slots.gv))
      return "takes sequences in spans where no value dim decays by itself";
    if (call_of(problem).in_place)
      return "takes sequences in spans where no state is changed in place, for the first span "
             "reads what the last one would write";
    if (launches_of(problem, config) > 1)
      return "takes sequences in spans, or in launches one after the other, not in both";
    if (span_bytes(problem, config) >= std::uint64_t{1} << 33)
      return "counts scratch memory to 2^33 bytes, and the call takes more";
  }
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  return rejects_recurrence(problem, profile);
}

Refusal rejects_backward(const Problem& problem, const Config& config,
                         const DeviceProfile& profile) {
  if (Refusal no = rejects(problem, config, profile)) return no;
  const std::uint32_t segment = config.at("SEGMENT");
  if (segment == 0 || segment % config.at("TOKENS") != 0)
    return "takes segments of whole blocks of TOKENS, and SEGMENT is " + std::to_string(segment);
  if (scratch_of(problem, config).bytes() >= std::uint64_t{1} << 33)
    return "counts scratch memory to 2^33 bytes, and the call takes more";
  const Dim3 group = config.group();
  const std::int64_t sums = call_of(problem).slots.delta() ? 4 : 1;
  return rejects_rounds(call_of(problem).tokens * (15 + std::int64_t{group.x} + sums * group.y),
                        profile);
}

std::vector<Step> steps(const Problem& problem, const Config& config) {
  const std::int64_t launches = launches_of(problem, config);
  std::vector<Step> list;
  if (call_of(problem).packed) list.push_back(LaunchStep{.pass = "boundaries"});
  abi::RecurArgs all = arguments_of(problem);
  all.boundaries = static_cast<abi::u32>(carried_bytes(problem, config) / 4);
  if (spans_of(problem, config) > 1) {
    abi::RecurArgs args = all;
    args.segment = config.at("TOKENS");
    add_span_arguments(problem, config, 0, args);
    abi::RecurArgs of_spans = args;
    of_spans.scale = 1;
    add_span_steps(problem, config, "spans", of_spans, list);
    list.push_back(LaunchStep{.pass = "forward", .args = argument_bytes(args)});
    return list;
  }
  for (std::int64_t i = 0; i < launches; ++i) {
    abi::RecurArgs args = all;
    if (launches > 1) {
      args.most = config.at("LAUNCH");
      args.first = static_cast<abi::u32>(i) * args.most;
      if (i > 0) args.features |= RECUR_RESUME;
      if (i + 1 < launches) args.features |= RECUR_PAUSE;
    }
    list.push_back(LaunchStep{.pass = "forward", .args = argument_bytes(args)});
  }
  return list;
}

}  // namespace

std::int64_t columns_of(const Config& config) { return std::int64_t{4} * config.group().x; }

Config first_tile_config(const Problem& problem, const DeviceProfile& profile) {
  const std::vector<Config> list = space(problem, profile);
  return list.empty() ? make_config(problem, {16, 4, 1, 64}) : list.front();
}

Pass tile_forward_pass(const RecurrenceSlots& slots) {
  Pass pass;
  pass.name = "forward";
  pass.opencl = {.file = "recurrence/tile/forward.cl", .entry = "recurrence_forward"};
  pass.vulkan = {.file = "recurrence/tile/forward.comp", .entry = "main"};
  pass.bindings = forward_bindings(slots);
  if (slots.delta()) {
    pass.opencl = {.file = "recurrence/tile/delta_forward.cl", .entry = "recurrence_delta_forward"};
    pass.vulkan = {.file = "recurrence/tile/delta_forward.comp", .entry = "main"};
  }
  pass.axes = shader_storage_axes;
  pass.groups = span_groups;
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(arguments_of(problem));
  };
  return pass;
}

std::optional<Way> tile_way(const RecurrenceSlots& slots) {
  const bool backward = slots.backward();
  Variant variant;
  variant.name = "tile";
  variant.idea = backward ? "columns of a state and of its gradient in registers, tokens in order"
                          : "columns of a state in registers, tokens in order";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = tunables(slots);
  variant.space = space;
  variant.local_bytes = [slots](const Problem&, const Config& config) {
    return local_bytes_of(config, slots);
  };
  if (backward) {
    variant.rejects = rejects_backward;
    variant.scratch_bytes = [](const Problem& problem, const Config& config) {
      return scratch_of(problem, config).bytes();
    };
    variant.passes = backward_passes(slots);
    if (!slots.delta()) variant.steps = backward_steps;
  } else {
    variant.rejects = rejects;
    variant.scratch_bytes = [](const Problem& problem, const Config& config) {
      return carried_bytes(problem, config) + boundaries_bytes(problem);
    };
    if (!slots.delta()) variant.passes = span_passes(slots);
    variant.passes.push_back(boundaries_pass(slots, carried_bytes));
    variant.passes.push_back(tile_forward_pass(slots));
    variant.steps = steps;
  }
  return Way{.variant = std::move(variant),
             .rule = {.why = "runs everywhere; GPUs take spans of long sequences at once",
                      .when = [](const Problem&, const DeviceProfile&) { return true; },
                      .config = first_tile_config}};
}

}  // namespace tessera::operations::recurrence
