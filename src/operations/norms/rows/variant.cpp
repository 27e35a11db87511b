// SPDX-License-Identifier: Apache-2.0
// Rows in the registers of work-groups: any device.
#include <algorithm>
#include <bit>
#include <string>

#include "base/vendor_ids.hpp"
#include "kernel/gpu.hpp"
#include "kernel/option_access.hpp"
#include "kernel/tunable_list.hpp"
#include "operations/common/launch.hpp"
#include "operations/norms/passes.hpp"

namespace tessera::operations::norms {
namespace {

constexpr std::uint32_t kMostVectors = 16;
constexpr std::uint32_t kMostGroups = 65535;  // of a launch along an axis
constexpr std::uint32_t kAllFeatures = 4095;  // of abi::NormForwardArgs and NormBackwardArgs
constexpr std::uint32_t kCombineColumns = 8, kCombineLines = 32;

// Lines of a work-group that adds up what others left.
std::uint32_t combine_lines(const Config& config) { return config.get("LINES", kCombineLines); }

std::vector<Tunable> tunables(bool backward) {
  std::vector<Tunable> list{
#include "operations/norms/rows/tunables.def"
  };
  list.push_back({.id = 31, .name = "GROUPS", .fallback = kMostGroups, .launch_only = true});
  if (backward)
    list.push_back({.id = 32, .name = "LINES", .fallback = kCombineLines, .launch_only = true});
  return list;
}

std::vector<Define> constants(const Problem& problem, const Config& config) {
  const NormProblem& call = problem.as<NormProblem>();
  const bool per_call = config.at("PER_CALL") != 0;
  const bool whole = call.rows % config.get("WG_Y", 1) == 0 &&
                     call.dim == std::int64_t{4} * config.at("VECTORS") * config.get("WG_X", 1);
  const bool pairs = problem.dtype == DType::kF32 || config.at("VECTORS") % 2 == 0;
  return {{"ALIGNED", pairs && is_aligned(problem) ? 1U : 0U},
          {"CENTERED", call.centered ? 1U : 0U},
          {"WHOLE", per_call && whole ? 1U : 0U},
          {"FEATURES", per_call ? features_of(problem) : kAllFeatures}};
}

Dealing deal_groups(const Problem& problem, const Config& config) {
  return deal(problem.as<NormProblem>().rows, config.get("WG_Y", 1), config.at("GROUPS"));
}

Dim3 groups_of(const Problem& problem, const Config& config) {
  return {static_cast<std::uint32_t>(deal_groups(problem, config).groups)};
}

std::uint32_t power_of_two(std::int64_t n, std::uint32_t least, std::uint32_t most) {
  const auto power =
      kernel::next_power_of_two(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1)));
  return std::clamp<std::uint32_t>(static_cast<std::uint32_t>(std::min<std::uint64_t>(power, most)),
                                   least, most);
}

// Lines of about `vectors` vectors an item, in groups of at most `items`; backward, with rows asked
// for ahead or not, and as many groups as have `resident` items on a unit together.
struct Cut {
  std::uint32_t items, vectors;
  bool ahead = false;
  std::uint32_t resident = 1024;
};

Config config_of(const Problem& problem, const DeviceProfile& profile, const Cut& cut) {
  const NormProblem& call = problem.as<NormProblem>();
  const std::int64_t row_vectors = ceil_div(call.dim, 4);
  const std::uint32_t x = power_of_two(ceil_div(row_vectors, cut.vectors), 8, cut.items);
  // Two vectors of a 16-bit type are 16 bytes.
  const std::uint32_t least = problem.dtype == DType::kF32 ? 1 : 2;
  const auto kept = static_cast<std::uint32_t>(
      std::min<std::int64_t>(cut.vectors, least * ceil_div(ceil_div(row_vectors, x), least)));
  const std::uint32_t y = std::max(1U, std::min(cut.items, 128U) / x);
  Config config{{"VECTORS", kept},
                {"WG_X", x},
                {"WG_Y", y},
                {"SM80", has(profile.features, Feature::kMmaSync) ? 1U : 0U},
                {"AHEAD", cut.ahead ? 1U : 0U},
                {"PER_CALL", 1U},
                {"GROUPS", kMostGroups}};
  if (call.backward) {
    // Enough work-groups to keep every unit busy; each leaves a row of sums for each of its lines.
    const std::uint32_t units = profile.compute_units != 0 ? profile.compute_units : 32;
    config.set("GROUPS", units * std::max(1U, cut.resident / (x * y)));
    const std::uint32_t lines = kernel::most_items(profile, kCombineColumns * kCombineLines);
    if (lines < kCombineColumns * kCombineLines) config.set("LINES", lines / kCombineColumns);
  }
  return config;
}

// Three groups step over the rows, but for calls in which lavapipe would lose count: it ends a
// kernel's loops after 65535 rounds in all.
Config processor_config(const Problem& problem) {
  constexpr std::uint32_t kVectors = 2, kItems = 16, kLines = 4;
  constexpr std::int64_t kMostRounds = 32768, kRoundsOfSums = 32, kPasses = 5;
  const NormProblem& call = problem.as<NormProblem>();
  const std::int64_t rounds = kRoundsOfSums + kPasses * ceil_div(call.dim, 4 * kItems);
  const std::uint32_t blocks = ceil_div(call.rows, kLines);
  const auto blocks_each =
      static_cast<std::uint32_t>(std::max<std::int64_t>(1, kMostRounds / rounds));
  return {{"VECTORS", kVectors},
          {"WG_X", kItems},
          {"WG_Y", kLines},
          {"SM80", 0},
          {"AHEAD", call.backward ? 1U : 0U},
          {"PER_CALL", 0},
          {"GROUPS", std::max(3U, ceil_div(blocks, blocks_each))}};
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  // Processors run these kernels only to check them: one program for all rows.
  if (is_cpu(profile)) return {processor_config(problem)};
  // On an H200, rows of 4096: 256 items with 4 vectors each are ahead. Backward, 16-bit rows are
  // asked for ahead; of floats that takes so many registers that one group is on a unit, not two.
  std::vector<Cut> cuts{{256, 4}, {128, 8}, {256, 8}, {512, 8}, {1024, 8}};
  if (problem.as<NormProblem>().backward) {
    const bool ahead = problem.dtype != DType::kF32;
    cuts = {{256, 4, ahead, 512}, {256, 4, !ahead, 512}, {128, 8, false, 512},
            {512, 4, ahead, 512}, {256, 8, false, 256},  {1024, 4, false, 1024}};
  }
  // Other compilers spill of rows that are asked for ahead and of 8 vectors backward, Mesa's for
  // NVIDIA of larger groups, AMD's of 4 vectors of long rows or with a mean, and Intel's of 2, with
  // 128 registers to an item.
  const bool backward = problem.as<NormProblem>().backward;
  if (profile.vendor_id == kVendorNvidia) {
    if (profile.backend == Backend::kVulkan)
      std::erase_if(cuts, [&](const Cut& cut) {
        return backward ? cut.items * cut.vectors > 1024 : cut.items > 512;
      });
  } else if (backward && profile.vendor_id == kVendorIntel) {
    cuts = {{256, 1}, {512, 2}, {512, 1}};
    // By ocloc 2 vectors and a mean are 26 registers too many for Xe2's 16 lanes.
    if (profile.backend == Backend::kOpenCL && problem.as<NormProblem>().centered)
      cuts = {{256, 1}, {512, 1}};
  } else if (backward && profile.vendor_id == kVendorAmd) {
    cuts = {{256, 2}, {512, 2}, {128, 2}};
  } else if (backward || problem.dtype == DType::kF32) {
    cuts = {{256, 4}, {512, 2}, {512, 4}};
  } else {
    cuts = {{128, 8}, {256, 4}, {512, 2}, {512, 4}};
  }
  std::vector<Config> result;
  for (Cut& cut : cuts) {
    cut.items = kernel::most_items(profile, cut.items);
    Config config = config_of(problem, profile, cut);
    if (std::ranges::find(result, config) == result.end()) result.push_back(std::move(config));
  }
  // Groups that hold a row are first, then the larger ones.
  const std::int64_t dim = problem.as<NormProblem>().dim;
  std::ranges::stable_sort(result, {}, [dim](const Config& config) {
    const std::int64_t held = std::int64_t{4} * config.at("VECTORS") * config.at("WG_X");
    return held >= dim ? std::int64_t{0} : dim - held;
  });
  return result;
}

Config first_config(const Problem& problem, const DeviceProfile& profile) {
  return space(problem, profile).front();
}

Variant rows_variant(bool backward) {
  Variant variant = norm_variant(backward, deal_groups);
  variant.name = "rows";
  variant.idea = "a line of work-items keeps a row in registers between its sums and its output";
  variant.tunables = tunables(backward);
  variant.space = space;
  variant.local_bytes = [](const Problem&, const Config& config) -> std::uint64_t {
    return 16ULL * std::max(config.get("WG_X", 1) * config.get("WG_Y", 1),
                            kCombineColumns * combine_lines(config));
  };
  variant.rejects = [others = variant.rejects](const Problem& problem, const Config& config,
                                               const DeviceProfile& profile) -> Refusal {
    const std::uint32_t vectors = config.at("VECTORS");
    if (vectors == 0 || vectors > kMostVectors)
      return "keeps 1 to " + std::to_string(kMostVectors) + " vectors an item, and VECTORS is " +
             std::to_string(vectors);
    if (config.at("SM80") != 0 && !has(profile.features, Feature::kMmaSync))
      return "converts elements by instructions of sm_80, which this device lacks";
    if (!std::has_single_bit(config.get("WG_X", 1)))
      return "takes lines of a power of two of items, and WG_X is " +
             std::to_string(config.get("WG_X", 1));
    return others(problem, config, profile);
  };
  if (!backward) {
    Pass pass = forward_pass();
    pass.constants = constants;
    pass.opencl = {.file = "norms/rows/forward.cl", .entry = "norm_forward"};
    pass.vulkan = {.file = "norms/rows/forward.comp", .entry = "main"};
    pass.groups = groups_of;
    variant.passes = {std::move(pass)};
    return variant;
  }
  Pass pass = backward_pass(deal_groups);
  pass.constants = constants;
  pass.opencl = {.file = "norms/rows/backward.cl", .entry = "norm_backward"};
  pass.vulkan = {.file = "norms/rows/backward.comp", .entry = "main"};
  pass.groups = groups_of;
  variant.passes = {std::move(pass)};
  for (Pass& combine : combine_passes(deal_groups)) {
    const std::size_t slot = combine.bindings.back();
    combine.opencl = {.file = "norms/rows/combine.cl", .entry = "norm_combine"};
    combine.vulkan = {.file = "norms/rows/combine.comp", .entry = "main"};
    combine.specialized_on = std::vector<std::string>{};
    combine.group_size = [](const Config& config) {
      return Dim3{kCombineColumns, combine_lines(config)};
    };
    combine.groups = [slot](const Problem& problem, const Config& config) {
      if (!combines(problem, slot)) return Dim3{0, 0, 0};
      const abi::NormCombineArgs args =
          combine_arguments(problem, deal_groups(problem, config), slot);
      return Dim3{(args.dim + 4 * kCombineColumns - 1) / (4 * kCombineColumns),
                  static_cast<std::uint32_t>(std::min(args.rows, kMostGroups))};
    };
    variant.passes.push_back(std::move(combine));
  }
  return variant;
}

}  // namespace

Way rows_way(bool backward) {
  return {.variant = rows_variant(backward),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; },
                   .config = first_config}};
}

}  // namespace tessera::operations::norms
