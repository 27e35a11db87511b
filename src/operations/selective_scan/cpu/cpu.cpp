// SPDX-License-Identifier: Apache-2.0
// A channel in every lane, and its states in registers, step by step: processors through OpenCL. An
// item takes all tokens of its channels: spans of them at once would take every step twice.
#include <algorithm>
#include <string>
#include <utility>

#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/selective_scan/launch.hpp"

namespace tessera::operations::state_space {
namespace {

std::int64_t lanes_of(const Config& config) {
  return std::int64_t{config.at("VECTORS")} * config.at("VECTOR_WIDTH");
}
std::int64_t tiles_of(const Problem& problem, const Config& config) {
  const ScanCall& call = scan_call_of(problem);
  return call.groups * ceil_div(call.layout.dim / call.groups, lanes_of(config));
}
// Batch entries of an item: as many as leave several items for each core, so that what a tile knows
// of its channels is made once for them; backward one, which has shares of its own.
std::int64_t batches_of(const Problem& problem, const Config& config) {
  return scan_call_of(problem).backward ? 1 : config.at("BATCHES");
}
std::int64_t items_of(const Problem& problem, const Config& config) {
  return tiles_of(problem, config) *
         ceil_div(scan_layout_of(problem).batch, batches_of(problem, config));
}

// Where things begin in scratch, in floats; all but the last are multiples of four.
struct Scratch {
  std::int64_t made = 0, kept = 0, sums = 0, products = 0, end = 0;
};
Scratch scratch_of(const Problem& problem, const Config& config) {
  const ScanCall& call = scan_call_of(problem);
  const std::int64_t parts = ceil_div(call.states, 4), lanes = lanes_of(config);
  const std::int64_t tiles = call.layout.batch * tiles_of(problem, config);
  Scratch scratch;
  scratch.made = 4 * boundary_vectors(call.layout);
  if (!call.backward) {
    scratch.kept = scratch.sums = scratch.products = scratch.end = scratch.made;
    return scratch;
  }
  scratch.kept = scratch.made + 4 * tiles * lanes * parts;
  scratch.sums = scratch.kept + tiles * lanes * call.states *
                                    ceil_div(call.layout.tokens, config.at("VECTOR_WIDTH"));
  scratch.products = scratch.sums + 2 * tiles * lanes;
  scratch.end =
      scratch.products + (has_factors(problem) ? 2 * call.layout.tokens * tiles * call.states : 0);
  return scratch;
}

abi::ScanArgs arguments_of(const Problem& problem, const Config& config) {
  const Scratch scratch = scratch_of(problem, config);
  const auto narrow = [](std::int64_t value) { return static_cast<abi::u32>(value); };
  abi::ScanArgs args = scan_arguments(problem);
  args.span = narrow(batches_of(problem, config));
  args.spans = 1;
  args.lanes = narrow(lanes_of(config));
  args.rows = 4;
  args.parts = ceil_div(args.states, 4);
  args.made = narrow(scratch.made / 4);
  args.back = narrow(scratch.kept / 4);
  args.sums = narrow(scratch.sums);
  args.products = narrow(scratch.products);
  return args;
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  std::vector<Config> list, too_few;
  const std::int64_t busy = std::int64_t{4} * std::max(profile.compute_units, 1U);
  for (const std::uint32_t vectors : {4U, 1U}) {
    Config config{{"VECTORS", vectors}, {"VECTOR_WIDTH", vector_width(profile)}};
    const std::int64_t tiles = tiles_of(problem, config), batch = scan_layout_of(problem).batch;
    const std::int64_t shares = std::clamp<std::int64_t>(busy / std::max<std::int64_t>(tiles, 1), 1,
                                                         std::max<std::int64_t>(batch, 1));
    config.set("BATCHES", std::max(ceil_div(batch, shares), 1U));
    (tiles * batch >= busy ? list : too_few).push_back(config);
  }
  list.insert(list.end(), too_few.rbegin(), too_few.rend());
  return list;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const std::uint32_t vectors = config.at("VECTORS");
  if (Refusal no = rejects_vector_width(config)) return no;
  if (vectors == 0 || vectors > SCAN_CPU_VECTORS)
    return "takes 1 to 4 vectors, and VECTORS is " + std::to_string(vectors);
  if (config.at("BATCHES") == 0) return "takes at least one batch entry an item";
  if (scan_call_of(problem).states > SCAN_CPU_STATES)
    return "takes up to " + std::to_string(SCAN_CPU_STATES) + " states of a channel";
  if (items_of(problem, config) >= kMost || scratch_of(problem, config).end >= kMost)
    return "counts states of tokens to 2^31";
  return rejects_long_operands(problem, profile, {});
}

Pass cpu_pass(const std::string& name, std::vector<std::size_t> bindings) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "state_space/cpu/scan_" + name + ".cl",
                 .entry = "selective_scan_" + name + "_cpu"};
  pass.bindings = std::move(bindings);
  pass.groups = [](const Problem& problem, const Config& config) {
    return groups_of(items_of(problem, config));
  };
  pass.args = [](const Problem& problem, const Config& config) {
    return argument_bytes(arguments_of(problem, config));
  };
  return pass;
}

std::vector<Pass> passes(bool backward) {
  std::vector<Pass> list = list_of(boundaries_pass(scan_layout_of, kScanOffsets));
  if (!backward) {
    list.push_back(
        cpu_pass("forward", {kScanU, kScanDelta, kScanA, kScanB, kScanC, kScanD, kScanZ, kScanBias,
                             kScanInitial, kScanOutput, kScanFinal, kScratch}));
    return list;
  }
  list.push_back(
      cpu_pass("gradients", {kScanU, kScanDelta, kScanA, kScanB, kScanC, kScanD, kScanZ, kScanBias,
                             kScanInitial, kScanGradOutput, kScanGradFinal, kScanGradU,
                             kScanGradDelta, kScanGradZ, kScanGradInitial, kScratch}));
  list.push_back(scan_combine_pass(arguments_of));
  return list;
}

}  // namespace

Way scan_cpu_way(bool backward) {
  Variant variant;
  variant.name = "cpu";
  variant.idea = backward ? "a channel in every lane; states of a few tokens in private memory"
                          : "a channel in every lane, its states in registers";
  variant.needs = opencl_cpu();
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/selective_scan/cpu/cpu.def"
  };
  variant.tunables.push_back({.id = 30, .name = "VECTORS", .fallback = 4, .launch_only = true});
  variant.tunables.push_back({.id = 31, .name = "BATCHES", .fallback = 1, .launch_only = true});
  variant.passes = passes(backward);
  variant.space = space;
  variant.rejects = rejects;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return static_cast<std::uint64_t>(4 * scratch_of(problem, config).end);
  };
  return {.variant = std::move(variant),
          .rule = {.why = "processors want whole vectors in one item, and no local memory",
                   .when = [](const Problem&, const DeviceProfile& profile) {
                     return is_opencl_cpu(profile);
                   }}};
}

}  // namespace tessera::operations::state_space
