// SPDX-License-Identifier: Apache-2.0
// Step by step, with states in registers: any device. Spans of the tokens at once where there are
// too few channels to keep it busy; backward always.
#include <algorithm>
#include <string>
#include <utility>

#include "base/vendor_ids.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/selective_scan/launch.hpp"

namespace tessera::operations::state_space {
namespace {

constexpr std::int64_t kMostStates = 256;

std::int64_t items_of(const Config& config) {
  return std::int64_t{config.group().x} * config.group().y;
}
std::int64_t tiles_of(const Problem& problem, const Config& config) {
  const ScanCall& call = scan_call_of(problem);
  return call.groups * ceil_div(call.layout.dim / call.groups, config.group().x);
}
std::int64_t spans_of(const Problem& problem, const Config& config) {
  return std::max<std::int64_t>(ceil_div(scan_layout_of(problem).tokens, config.at("SPAN")), 1);
}
std::int64_t units_of(const Problem& problem, const Config& config) {
  return scan_layout_of(problem).batch * spans_of(problem, config);
}
bool has_spans(const Problem& problem, const Config& config) {
  return scan_call_of(problem).backward || spans_of(problem, config) > 1;
}

// Where things begin in scratch, in floats; all are multiples of four.
struct Scratch {
  std::int64_t made = 0, back = 0, sums = 0, products = 0, end = 0;
};
Scratch scratch_of(const Problem& problem, const Config& config) {
  const ScanCall& call = scan_call_of(problem);
  const std::int64_t tiles = tiles_of(problem, config), units = units_of(problem, config);
  const std::int64_t kept = units * tiles * config.at("ROWS") * items_of(config);
  const bool spans = has_spans(problem, config);
  Scratch scratch;
  scratch.made = 4 * boundary_vectors(call.layout);
  scratch.back = scratch.made + (spans ? kept : 0);
  scratch.sums = scratch.back + (call.backward ? kept : 0);
  const std::int64_t sums = ceil_div(2 * units * tiles * config.group().x, 4) * std::int64_t{4};
  scratch.products = scratch.sums + (spans ? sums : 0);
  scratch.end =
      scratch.products +
      (has_factors(problem) ? 2 * call.layout.batch * call.layout.tokens * tiles * call.states : 0);
  return scratch;
}

abi::ScanArgs arguments_of(const Problem& problem, const Config& config) {
  const Scratch scratch = scratch_of(problem, config);
  const auto narrow = [](std::int64_t value) { return static_cast<abi::u32>(value); };
  abi::ScanArgs args = scan_arguments(problem);
  args.span = config.at("SPAN");
  args.spans = narrow(spans_of(problem, config));
  args.lanes = config.group().x;
  args.parts = config.group().y;
  args.rows = config.at("ROWS");
  args.made = narrow(scratch.made / 4);
  args.back = narrow(scratch.back / 4);
  args.sums = narrow(scratch.sums);
  args.products = narrow(scratch.products);
  return args;
}

std::uint64_t local_bytes(const Problem& problem, const Config& config) {
  const auto items = static_cast<std::uint64_t>(items_of(config));
  const std::uint64_t rows = config.at("ROWS"), states = rows * config.group().y;
  const std::uint64_t lanes = config.group().x, span = config.at("SPAN");
  const std::uint64_t block = 4 * config.at("BLOCK") * (2 * states + 2 * lanes + items);
  if (!scan_call_of(problem).backward) return block;
  const std::uint64_t back =
      4 * (span * (2 * states + 4 * lanes) + items * (span * (2 * rows + 3) + 2));
  return std::max(block, back);
}

// Of the loops of an item: over the tokens of a span, twice on the way back, with a search for each
// sequence among them; over sequences; over spans.
std::int64_t rounds_of(const Problem& problem, const Config& config) {
  const ScanCall& call = scan_call_of(problem);
  const std::int64_t span = config.at("SPAN");
  const std::int64_t sequences = call.layout.packed ? call.layout.sequences : 0;
  const std::int64_t tokens =
      span * config.group().y + std::min(span, sequences) * search_rounds(call.layout);
  return std::max((call.backward ? 2 : 1) * tokens + sequences, units_of(problem, config));
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const ScanCall& call = scan_call_of(problem);
  const std::uint32_t rows = config.at("ROWS");
  if (rows == 0 || rows % 4 != 0)
    return "takes states by fours, and ROWS is " + std::to_string(rows);
  if (config.at("BLOCK") == 0 || config.at("BLOCK") > 32) return "takes blocks of 1 to 32 tokens";
  if (config.at("SPAN") == 0) return "takes spans of at least one token";
  if (call.backward && config.at("SPAN") > 32) return "takes spans of up to 32 tokens";
  if (call.states > kMostStates)
    return "takes up to " + std::to_string(kMostStates) + " states of a channel";
  if (std::int64_t{rows} * config.group().y < call.states)
    return "takes " + std::to_string(rows * config.group().y) + " states, and the call has " +
           std::to_string(call.states);
  if (Refusal no = rejects_storage16(problem, profile)) return no;
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  if (units_of(problem, config) * tiles_of(problem, config) >= kMost ||
      scratch_of(problem, config).end >= kMost)
    return "counts spans' states to 2^31";
  if (Refusal no = rejects_rounds(rounds_of(problem, config), profile)) return no;
  return rejects_long_operands(problem, profile, {});
}

// Takes as many tokens of `name` off as work-groups have no room for.
void fit(const Problem& problem, Config& config, const std::string& name, std::uint64_t room) {
  while (config.at(name) > 1 && local_bytes(problem, config) > room)
    config.set(name, config.at(name) - 1);
}

// Processors have one program each for up to 32 states.
Config config_of_cpu(const ScanCall& call) {
  const std::uint32_t parts = std::max(ceil_div(call.states, 16), 2U);
  return {{"ROWS", 16}, {"WG_X", std::max(16 / parts, 2U)}, {"WG_Y", parts}, {"BLOCK", 8}};
}

// Few states of an item: more of them hide each other's latencies, and on the way back their states
// of a span lie in work-group memory.
Config config_of_gpu(const ScanCall& call, const DeviceProfile& profile) {
  const std::uint32_t rows = call.states <= 64 ? 4 : 8;
  const std::uint32_t parts = std::max(ceil_div(call.states, rows), 1U);
  const std::uint32_t items = call.backward ? 64 : 128;
  // On an H200 blocks of 32 tokens, 8 of an item, take 0.92 of the time of 16 through OpenCL and
  // 1.32 through Vulkan. More of an item spill on Arc.
  const std::uint32_t own = has(profile.features, Feature::kNvidiaPtx) ? 8 : 4;
  const bool few = call.layout.tokens <= parts;
  const std::uint32_t block = call.backward ? 8
                              : few         ? std::min(parts, 16U)
                                            : std::min(own * parts, 4 * own);
  return {{"ROWS", rows}, {"WG_X", std::max(items / parts, 2U)}, {"WG_Y", parts}, {"BLOCK", block}};
}

// Spans cost the steps twice: as many as keep a device busy that one span leaves idle.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const ScanCall& call = scan_call_of(problem);
  Config config = is_cpu(profile) ? config_of_cpu(call) : config_of_gpu(call, profile);
  config.set("SPAN", 8);
  const std::uint64_t most_bytes = std::min<std::uint64_t>(32768, profile.local_memory);
  fit(problem, config, "BLOCK", most_bytes);
  if (call.backward) {
    // Of AMD's, twelve work-groups share 128 KiB; more states of an item's tokens spill on Arc. On
    // an H200 8, 12 and 14 tokens took 1.13, 0.99 and 0.96 ms, but through Vulkan 14 took 12.5,
    // 8 10.7.
    constexpr std::uint64_t kTwelfth = 131072 / 12, kMost = 49152;
    const bool ptx = has(profile.features, Feature::kNvidiaPtx);
    if (!is_cpu(profile)) config.set("SPAN", std::min(ptx ? 14U : 8U, 4 * config.group().y));
    fit(problem, config, "SPAN",
        profile.vendor_id == kVendorAmd ? kTwelfth
        : ptx                           ? std::min(kMost, profile.local_memory)
                                        : most_bytes);
    return {config};
  }
  const std::int64_t units = std::max(profile.compute_units, 2U);
  const std::int64_t items =
      std::max<std::int64_t>(call.layout.batch * tiles_of(problem, config) * items_of(config), 1);
  const std::int64_t idle = is_cpu(profile) ? 4 * items_of(config) : 128 * units;
  const std::int64_t busy = is_cpu(profile) ? 4 * items_of(config) : 512 * units;
  const std::int64_t least = is_cpu(profile) ? 16 : 32;
  const std::int64_t most = std::max<std::int64_t>(call.layout.tokens / least, 1);
  const std::int64_t spans = items >= idle ? 1 : std::clamp<std::int64_t>(busy / items, 1, most);
  const std::uint32_t span = std::max(ceil_div(call.layout.tokens, spans), 1U);
  config.set("SPAN", loses_rounds(profile) ? std::min(span, 1024U) : span);
  return {config};
}

Pass new_pass(const std::string& name, std::vector<std::size_t> bindings) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "state_space/scan/" + name + ".cl", .entry = "selective_scan_" + name};
  pass.vulkan = {.file = "state_space/scan/" + name + ".comp", .entry = "main"};
  pass.bindings = std::move(bindings);
  pass.axes = typed_axes;
  pass.specialized_on = std::vector<std::string>{"ROWS"};
  pass.constants = [](const Problem& problem, const Config&) {
    return std::vector<Define>{{"ROWS_TYPE", dtype_axis(problem.dtype)}};
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    return groups_of(units_of(problem, config) * tiles_of(problem, config));
  };
  pass.args = [](const Problem& problem, const Config& config) {
    return argument_bytes(arguments_of(problem, config));
  };
  return pass;
}

// What kernels that take block after block are specialised on.
const std::vector<std::string> kOfBlocks{"ROWS", "BLOCK", "ROWS_TYPE"};
const std::vector<std::string> kOfSpans{"ROWS", "SPAN", "ROWS_TYPE"};  // on the way back

Pass spans_pass() {
  Pass pass =
      new_pass("spans", {kScanU, kScanDelta, kScanA, kScanB, kScanBias, kScanInitial, kScratch});
  pass.groups = [](const Problem& problem, const Config& config) {
    if (!has_spans(problem, config)) return Dim3{0, 0, 0};
    return groups_of(units_of(problem, config) * tiles_of(problem, config));
  };
  pass.specialized_on = kOfBlocks;
  return pass;
}

Pass carry_pass(bool back) {
  Pass pass = new_pass("carry", {kScanA, kScratch});
  if (back) pass.name = "carry_back";
  pass.groups = [](const Problem& problem, const Config& config) {
    if (!has_spans(problem, config)) return Dim3{0, 0, 0};
    return groups_of(scan_layout_of(problem).batch * tiles_of(problem, config));
  };
  pass.args = [back](const Problem& problem, const Config& config) {
    abi::ScanArgs args = arguments_of(problem, config);
    if (back) args.features |= SCAN_BACK;
    return argument_bytes(args);
  };
  return pass;
}

std::vector<Pass> passes(bool backward) {
  std::vector<Pass> list =
      list_of(boundaries_pass(scan_layout_of, kScanOffsets), spans_pass(), carry_pass(false));
  if (!backward) {
    list.push_back(
        new_pass("forward", {kScanU, kScanDelta, kScanA, kScanB, kScanC, kScanD, kScanZ, kScanBias,
                             kScanInitial, kScanOutput, kScanFinal, kScratch}));
    list.back().specialized_on = kOfBlocks;
    return list;
  }
  list.push_back(new_pass("back_spans", {kScanDelta, kScanA, kScanC, kScanZ, kScanBias,
                                         kScanGradOutput, kScanGradFinal, kScratch}));
  list.back().specialized_on = kOfSpans;
  list.push_back(carry_pass(true));
  Pass gradients =
      new_pass("gradients", {kScanU, kScanDelta, kScanA, kScanB, kScanC, kScanD, kScanZ, kScanBias,
                             kScanInitial, kScanGradOutput, kScanGradFinal, kScanGradU,
                             kScanGradDelta, kScanGradZ, kScanGradInitial, kScratch});
  gradients.specialized_on = kOfSpans;
  list.push_back(std::move(gradients));
  list.push_back(scan_combine_pass(arguments_of));
  return list;
}

std::vector<Tunable> tunables(bool backward) {
  if (backward) {
    return {
#include "operations/selective_scan/backward.def"
    };
  }
  std::vector<Tunable> list{
#include "operations/selective_scan/tile.def"
  };
  list.push_back({.id = 30, .name = "SPAN", .fallback = 64, .launch_only = true});
  return list;
}

}  // namespace

Way scan_tile_way(bool backward) {
  Variant variant;
  variant.name = "tile";
  variant.idea = backward ? "spans of tokens at once; states of a span in local memory"
                          : "states in registers, step by step; spans of tokens at once";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = tunables(backward);
  variant.passes = passes(backward);
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = local_bytes;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return static_cast<std::uint64_t>(4 * scratch_of(problem, config).end);
  };
  return {.variant = std::move(variant),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; }}};
}

}  // namespace tessera::operations::state_space
