// SPDX-License-Identifier: Apache-2.0
// Step by step, with states in registers: any device. Spans of the tokens at once where there are
// too few channels to keep it busy; backward always.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include "kernel/tunable_list.hpp"
#include "operations/common/launch.hpp"
#include "operations/selective_scan/args.h"
#include "operations/selective_scan/call.hpp"

namespace tessera::operations::state_space {
namespace {

constexpr std::int64_t kMostStates = 256;
constexpr std::uint32_t kCombineItems = 64;

const ScanCall& call_of(const Problem& problem) { return problem.as<ScanCall>(); }
const Layout& layout_of(const Problem& problem) { return call_of(problem).layout; }

std::int64_t items_of(const Config& config) {
  return std::int64_t{config.group().x} * config.group().y;
}
std::int64_t tiles_of(const Problem& problem, const Config& config) {
  const ScanCall& call = call_of(problem);
  return call.groups * ceil_div(call.layout.dim / call.groups, config.group().x);
}
std::int64_t spans_of(const Problem& problem, const Config& config) {
  return std::max<std::int64_t>(ceil_div(layout_of(problem).tokens, config.at("SPAN")), 1);
}
std::int64_t units_of(const Problem& problem, const Config& config) {
  return layout_of(problem).batch * spans_of(problem, config);
}
bool has_spans(const Problem& problem, const Config& config) {
  return call_of(problem).backward || spans_of(problem, config) > 1;
}

// Whether gradients of b or c are wanted, of which blocks of channels have shares.
bool has_factors(const Problem& problem) {
  return call_of(problem).backward && (problem.has(kScanGradB) || problem.has(kScanGradC));
}

// Where things begin in scratch, in floats; all are multiples of four.
struct Scratch {
  std::int64_t made = 0, back = 0, sums = 0, products = 0, end = 0;
};
Scratch scratch_of(const Problem& problem, const Config& config) {
  const ScanCall& call = call_of(problem);
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

abi::u32 features_of(const Problem& problem) {
  const ScanCall& call = call_of(problem);
  abi::u32 features = 0;
  const auto mark = [&](bool holds, abi::u32 feature) { features |= holds ? feature : 0U; };
  constexpr std::array kFactors{std::size_t{kScanB}, std::size_t{kScanC}};
  mark(call.layout.packed, SCAN_PACKED);
  mark(problem.has(kScanD), SCAN_D);
  mark(problem.has(kScanZ), SCAN_Z);
  mark(problem.has(kScanBias), SCAN_BIAS);
  mark(call.softplus, SCAN_SOFTPLUS);
  mark(problem.has(kScanInitial), SCAN_INITIAL);
  mark(problem.has(kScanFinal), SCAN_FINAL);
  mark(by_fours(problem, kFactors), SCAN_ALIGNED);
  if (!call.backward) return features;
  mark(problem.has(kScanGradU), SCAN_GRAD_U);
  mark(problem.has(kScanGradDelta), SCAN_GRAD_DELTA);
  mark(problem.has(kScanGradA), SCAN_GRAD_A);
  mark(problem.has(kScanGradB), SCAN_GRAD_B);
  mark(problem.has(kScanGradC), SCAN_GRAD_C);
  mark(problem.has(kScanGradD), SCAN_GRAD_D);
  mark(problem.has(kScanGradZ), SCAN_GRAD_Z);
  mark(problem.has(kScanGradBias), SCAN_GRAD_BIAS);
  mark(problem.has(kScanGradInitial), SCAN_GRAD_INITIAL);
  return features;
}

abi::u32 narrow(std::int64_t value) { return static_cast<abi::u32>(value); }

abi::ScanFactors factors_of(const Problem& problem, std::size_t slot) {
  if (!problem.has(slot)) return {};
  const TensorSpec& spec = problem.spec(slot);
  return {narrow(spec.offset), narrow(spec.strides[0]), narrow(spec.strides[1]),
          narrow(spec.strides[2]), narrow(spec.strides[3])};
}

// Of an operand of channels: [dim] or [dim, state].
void place(const Problem& problem, std::size_t slot, abi::u32& offset, abi::u32& row,
           abi::u32* column = nullptr) {
  if (!problem.has(slot)) return;
  const TensorSpec& spec = problem.spec(slot);
  offset = narrow(spec.offset);
  row = narrow(spec.strides[0]);
  if (column != nullptr) *column = narrow(spec.strides[1]);
}

abi::ScanArgs arguments_of(const Problem& problem, const Config& config) {
  const ScanCall& call = call_of(problem);
  const Scratch scratch = scratch_of(problem, config);
  abi::ScanArgs args{};
  args.features = features_of(problem);
  args.types = type_of(problem, kScanU, SCAN_TYPE_ROWS) | type_of(problem, kScanA, SCAN_TYPE_A) |
               type_of(problem, kScanD, SCAN_TYPE_D) | type_of(problem, kScanBias, SCAN_TYPE_BIAS);
  args.tokens = narrow(call.layout.tokens);
  args.batches = narrow(call.layout.batch);
  args.sequences = narrow(call.layout.sequences);
  args.dim = narrow(call.layout.dim);
  args.groups = narrow(call.groups);
  args.states = narrow(call.states);
  args.span = config.at("SPAN");
  args.spans = narrow(spans_of(problem, config));
  args.lanes = config.group().x;
  args.parts = config.group().y;
  args.rows = config.at("ROWS");
  args.made = narrow(scratch.made / 4);
  args.back = narrow(scratch.back / 4);
  args.sums = narrow(scratch.sums);
  args.products = narrow(scratch.products);
  place(problem, kScanA, args.a_offset, args.a_row, &args.a_column);
  place(problem, kScanD, args.d_offset, args.d_stride);
  place(problem, kScanBias, args.bias_offset, args.bias_stride);
  args.u = rows_of(problem, kScanU);
  args.delta = rows_of(problem, kScanDelta);
  args.z = rows_of(problem, kScanZ);
  args.result = rows_of(problem, kScanOutput);
  args.initial_state = rows_of(problem, kScanInitial);
  args.final_state = rows_of(problem, kScanFinal);
  args.b = factors_of(problem, kScanB);
  args.c = factors_of(problem, kScanC);
  if (!call.backward) return args;
  place(problem, kScanGradA, args.da_offset, args.da_row, &args.da_column);
  place(problem, kScanGradD, args.dd_offset, args.dd_stride);
  place(problem, kScanGradBias, args.dbias_offset, args.dbias_stride);
  args.du = rows_of(problem, kScanGradU);
  args.ddelta = rows_of(problem, kScanGradDelta);
  args.dz = rows_of(problem, kScanGradZ);
  args.dinitial = rows_of(problem, kScanGradInitial);
  args.db = factors_of(problem, kScanGradB);
  args.dc = factors_of(problem, kScanGradC);
  return args;
}

std::uint64_t local_bytes(const Problem& problem, const Config& config) {
  const auto items = static_cast<std::uint64_t>(items_of(config));
  if (!call_of(problem).backward) return 4 * items;
  return 4 * items * (std::uint64_t{config.at("ROWS")} * (config.at("SPAN") + 2) + 3);
}

// Of the loops of an item: over the tokens of a span, twice on the way back, with a search for each
// sequence among them; over sequences; over spans.
std::int64_t rounds_of(const Problem& problem, const Config& config) {
  const ScanCall& call = call_of(problem);
  const std::int64_t span = config.at("SPAN");
  const std::int64_t sequences = call.layout.packed ? call.layout.sequences : 0;
  const std::int64_t tokens =
      span * config.group().y + std::min(span, sequences) * search_rounds(call.layout);
  return std::max((call.backward ? 2 : 1) * tokens + sequences, units_of(problem, config));
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const ScanCall& call = call_of(problem);
  const std::uint32_t rows = config.at("ROWS");
  if (rows == 0 || rows % 4 != 0)
    return "takes states by fours, and ROWS is " + std::to_string(rows);
  if (config.at("SPAN") == 0) return "takes spans of at least one token";
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

// As many spans as keep a device busy.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const ScanCall& call = call_of(problem);
  // On the way back an item's states of a span lie in work-group memory: on GPUs as few as can be.
  const bool few = call.backward && !is_cpu(profile);
  const std::uint32_t rows = few || call.states <= 4 ? 4 : call.states <= 8 ? 8 : 16;
  const std::uint32_t parts = std::max(ceil_div(call.states, rows), 1U);
  const std::uint32_t items = is_cpu(profile) ? 16 : 64;
  Config config{{"ROWS", rows}, {"WG_X", std::max(items / parts, 2U)}, {"WG_Y", parts}};
  // Processors only check Vulkan's kernels: one program each for up to 32 states.
  if (is_cpu(profile) && profile.backend == Backend::kVulkan && call.states <= 32)
    config = {{"ROWS", 16}, {"WG_X", 8}, {"WG_Y", 2}};
  if (call.backward) {
    config.set("SPAN", 8);
    return {config};
  }
  const std::int64_t busy =
      std::int64_t{is_cpu(profile) ? 2 : 16} * std::max(profile.compute_units, 2U);
  const std::int64_t work =
      std::max<std::int64_t>(call.layout.batch * tiles_of(problem, config), 1);
  const std::int64_t least = is_cpu(profile) ? 16 : 32;
  const std::int64_t most = std::max<std::int64_t>(call.layout.tokens / least, 1);
  const std::int64_t spans = std::clamp<std::int64_t>(busy / work, 1, most);
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
  pass.groups = [](const Problem& problem, const Config& config) {
    return groups_of(units_of(problem, config) * tiles_of(problem, config));
  };
  pass.args = [](const Problem& problem, const Config& config) {
    return argument_bytes(arguments_of(problem, config));
  };
  return pass;
}

Pass spans_pass() {
  Pass pass =
      new_pass("spans", {kScanU, kScanDelta, kScanA, kScanB, kScanBias, kScanInitial, kScratch});
  pass.groups = [](const Problem& problem, const Config& config) {
    if (!has_spans(problem, config)) return Dim3{0, 0, 0};
    return groups_of(units_of(problem, config) * tiles_of(problem, config));
  };
  return pass;
}

Pass carry_pass(bool back) {
  Pass pass = new_pass("carry", {kScanA, kScratch});
  if (back) pass.name = "carry_back";
  pass.groups = [](const Problem& problem, const Config& config) {
    if (!has_spans(problem, config)) return Dim3{0, 0, 0};
    return groups_of(layout_of(problem).batch * tiles_of(problem, config));
  };
  pass.args = [back](const Problem& problem, const Config& config) {
    abi::ScanArgs args = arguments_of(problem, config);
    if (back) args.features |= SCAN_BACK;
    return argument_bytes(args);
  };
  return pass;
}

Pass combine_pass() {
  constexpr abi::u32 kCombined =
      SCAN_GRAD_A | SCAN_GRAD_B | SCAN_GRAD_C | SCAN_GRAD_D | SCAN_GRAD_BIAS;
  Pass pass = new_pass("combine",
                       {kScanGradB, kScanGradC, kScanGradA, kScanGradD, kScanGradBias, kScratch});
  pass.specialized_on = std::vector<std::string>{};
  pass.group_size = [](const Config&) { return Dim3{kCombineItems}; };
  pass.groups = [](const Problem& problem, const Config&) {
    if ((features_of(problem) & kCombined) == 0) return Dim3{0, 0, 0};
    const ScanCall& call = call_of(problem);
    const std::int64_t factors = has_factors(problem) ? 2 * call.layout.batch * call.layout.tokens *
                                                            call.groups * call.states
                                                      : 0;
    return groups_of(ceil_div(factors + call.layout.dim * (call.states + 2), kCombineItems));
  };
  return pass;
}

std::vector<Pass> passes(bool backward) {
  std::vector<Pass> list{boundaries_pass(layout_of, kScanOffsets), spans_pass(), carry_pass(false)};
  if (!backward) {
    list.push_back(
        new_pass("forward", {kScanU, kScanDelta, kScanA, kScanB, kScanC, kScanD, kScanZ, kScanBias,
                             kScanInitial, kScanOutput, kScanFinal, kScratch}));
    return list;
  }
  list.push_back(new_pass("back_spans", {kScanDelta, kScanA, kScanC, kScanZ, kScanBias,
                                         kScanGradOutput, kScanGradFinal, kScratch}));
  list.push_back(carry_pass(true));
  Pass gradients =
      new_pass("gradients", {kScanU, kScanDelta, kScanA, kScanB, kScanC, kScanD, kScanZ, kScanBias,
                             kScanInitial, kScanGradOutput, kScanGradFinal, kScanGradU,
                             kScanGradDelta, kScanGradZ, kScanGradInitial, kScratch});
  gradients.specialized_on = std::vector<std::string>{"ROWS", "SPAN"};
  list.push_back(std::move(gradients));
  list.push_back(combine_pass());
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
                   .when = [](const Problem&, const DeviceProfile&) { return true; },
                   .config =
                       [](const Problem& problem, const DeviceProfile& profile) {
                         return space(problem, profile).front();
                       }}};
}

}  // namespace tessera::operations::state_space
