// SPDX-License-Identifier: Apache-2.0
#include "operations/norms/cuts.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "base/large_registers.hpp"
#include "base/vendor_ids.hpp"
#include "kernel/config_order.hpp"
#include "kernel/gpu.hpp"
#include "kernel/option_access.hpp"
#include "operations/common/launch.hpp"

namespace tessera::operations::norms {
namespace {

constexpr std::uint32_t kMostVectors = 16;
constexpr std::uint32_t kMostGroups = 65535;  // of a launch along an axis
constexpr std::uint32_t kAllFeatures = 4095;  // of abi::NormForwardArgs and NormBackwardArgs

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
  Config config{{"VECTORS", kept}, {"WG_X", x},
                {"WG_Y", y},       {"SM80", has(profile.features, Feature::kMmaSync) ? 1U : 0U},
                {"PER_CALL", 1U},  {"GROUPS", kMostGroups}};
  if (quantises(problem)) {
    config.set("SM90", has(profile.features, Feature::kWgmma) ? 1U : 0U);
  } else {
    config.set("AHEAD", cut.ahead ? 1U : 0U);
  }
  if (call.backward) {
    // Enough work-groups to keep every unit busy; each leaves a row of sums for each of its lines.
    const std::uint32_t units = profile.compute_units != 0 ? profile.compute_units : 32;
    config.set("GROUPS", units * std::max(1U, cut.resident / (x * y)));
    const std::uint32_t lines = kernel::most_items(profile, kCombineColumns * kCombineLines);
    if (lines < kCombineColumns * kCombineLines) config.set("LINES", lines / kCombineColumns);
  }
  return config;
}

// Whether rows fill its lines, and lines its groups.
bool fills(const NormProblem& call, const Config& config) {
  return call.rows % config.get("WG_Y", 1) == 0 &&
         call.dim == std::int64_t{4} * config.at("VECTORS") * config.get("WG_X", 1);
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
  Config config{{"VECTORS", kVectors}, {"WG_X", kItems},
                {"WG_Y", kLines},      {"SM80", 0},
                {"PER_CALL", 0},       {"GROUPS", std::max(3U, ceil_div(blocks, blocks_each))}};
  config.set(quantises(problem) ? "SM90" : "AHEAD", call.backward ? 1U : 0U);
  return config;
}

}  // namespace

bool quantises(const Problem& problem) {
  return !problem.as<NormProblem>().backward && problem.has(kScale);
}

std::vector<Define> line_constants(const Problem& problem, const Config& config) {
  const NormProblem& call = problem.as<NormProblem>();
  const bool per_call = config.at("PER_CALL") != 0;
  const bool pairs = problem.dtype == DType::kF32 || config.at("VECTORS") % 2 == 0;
  std::vector<Define> constants{{"ALIGNED", pairs && is_aligned(problem) ? 1U : 0U},
                                {"CENTERED", call.centered ? 1U : 0U},
                                {"WHOLE", per_call && fills(call, config) ? 1U : 0U},
                                {"FEATURES", per_call ? features_of(problem) : kAllFeatures}};
  if (quantises(problem))
    constants.push_back({"CODES", per_call ? dtype_axis(problem.spec(kOutput).dtype) : 0U});
  return constants;
}

Dealing deal_groups(const Problem& problem, const Config& config) {
  return deal(problem.as<NormProblem>().rows, config.get("WG_Y", 1), config.at("GROUPS"));
}

Dim3 line_groups(const Problem& problem, const Config& config) {
  return {static_cast<std::uint32_t>(deal_groups(problem, config).groups)};
}

std::vector<Config> line_space(const Problem& problem, const DeviceProfile& profile) {
  // Processors run these kernels only to check them: one program for all rows.
  if (is_cpu(profile)) return {processor_config(problem)};
  // On an H200, rows of 4096: 256 items with 4 vectors each are ahead. Backward, 16-bit rows are
  // asked for ahead; of floats that takes so many registers that one group is on a unit, not two.
  const NormProblem& call = problem.as<NormProblem>();
  const bool backward = call.backward, halves = problem.dtype != DType::kF32;
  std::vector<Cut> cuts{{256, 4}, {128, 8}, {256, 8}, {512, 8}, {1024, 8}};
  if (backward) {
    cuts = {{256, 4, halves, 512}, {256, 4, !halves, 512}, {128, 8, false, 512},
            {512, 4, halves, 512}, {256, 8, false, 256},   {1024, 4, false, 1024}};
  }
  // Of rows that no group holds, fewer vectors than spill of an item's 64 registers: on an H200
  // 2048 rows of 20480 took 0.235 ms backward with 2, and 0.314 with 4, of floats 0.299 and 0.668;
  // rows of 65536 forward 0.192 with 6, and 0.201 with 8, of floats 0.205 with 4, and 0.222 with 8.
  const Cut largest = cuts.back();
  if (call.dim > std::int64_t{4} * largest.vectors * largest.items) {
    cuts.pop_back();
    const std::uint32_t vectors = backward ? 2 : halves ? 6 : 4;
    cuts.insert(cuts.begin(), {largest.items, vectors, false, largest.resident});
  }
  // Other compilers spill of rows that are asked for ahead and of 8 vectors backward, Mesa's for
  // NVIDIA of larger groups, AMD's of 4 vectors of long rows or with a mean, and Intel's of 2, with
  // 128 registers to an item.
  if (profile.vendor_id == kVendorNvidia) {
    if (profile.backend == Backend::kVulkan)
      std::erase_if(cuts, [&](const Cut& cut) {
        return backward ? cut.items * cut.vectors > 1024 : cut.items > 512;
      });
  } else if (backward && profile.vendor_id == kVendorIntel) {
    cuts = {{256, 1}, {512, 2}, {512, 1}};
    // By ocloc 2 vectors are 14 registers too many for Xe2's 16 lanes, and 26 with a mean.
    constexpr unsigned kXe2 = 20;
    const bool wide = call.centered || intel_ip_version(profile).first >= kXe2;
    if (profile.backend == Backend::kOpenCL && wide) cuts = {{256, 1}, {512, 1}};
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
    // With a mean, 8 vectors of rows that end within are 4 of Intel's 128 registers too many.
    if (profile.vendor_id == kVendorIntel && call.centered && config.at("VECTORS") == 8 &&
        !fills(call, config))
      continue;
    if (std::ranges::find(result, config) == result.end()) result.push_back(std::move(config));
  }
  // Groups that hold a row are first, then the larger ones.
  kernel::sort_configs(result, [dim = call.dim](const Config& config) {
    const std::int64_t held = std::int64_t{4} * config.at("VECTORS") * config.at("WG_X");
    return held >= dim ? std::int64_t{0} : dim - held;
  });
  return result;
}

Refusal rejects_lines(const Config& config, const DeviceProfile& profile) {
  const std::uint32_t vectors = config.at("VECTORS");
  if (vectors == 0 || vectors > kMostVectors)
    return "keeps 1 to " + std::to_string(kMostVectors) + " vectors an item, and VECTORS is " +
           std::to_string(vectors);
  if (Refusal no = rejects_conversions(config, profile)) return no;
  if (!std::has_single_bit(config.get("WG_X", 1)))
    return "takes lines of a power of two of items, and WG_X is " +
           std::to_string(config.get("WG_X", 1));
  return std::nullopt;
}

}  // namespace tessera::operations::norms
