// SPDX-License-Identifier: Apache-2.0
// Whole rows in one work-item: processors through OpenCL.
#include <algorithm>
#include <string>

#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/norms/passes.hpp"

namespace tessera::operations::norms {
namespace {

constexpr std::int64_t kMostShares = 64;
constexpr std::int64_t kMostGroups = 65535;

Dealing deal_shares(const Problem& problem, const Config& config) {
  const std::int64_t rows = problem.as<NormProblem>().rows;
  return deal(rows, 1, std::min<std::int64_t>(kMostShares, ceil_div(rows, config.at("ROWS"))));
}

// Outputs that the second cache does not hold go past it; an item has 64 KiB of rows or more.
Config config_of(const Problem& problem, const DeviceProfile& profile, bool stream) {
  const NormProblem& call = problem.as<NormProblem>();
  const auto rows = static_cast<std::uint32_t>(std::clamp<std::int64_t>(16384 / call.dim, 1, 256));
  return {{"ROWS", rows}, {"VECTOR_WIDTH", vector_width(profile)}, {"STREAM", stream ? 1U : 0U}};
}

bool is_large(const Problem& problem) {
  const NormProblem& call = problem.as<NormProblem>();
  constexpr std::int64_t kLargeElements = std::int64_t{1} << 20;
  return call.rows * call.dim >= kLargeElements;
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const bool large = is_large(problem);
  return {config_of(problem, profile, large), config_of(problem, profile, !large)};
}

Dim3 shares_of(const Problem& problem, const Config& config) {
  return {static_cast<std::uint32_t>(deal_shares(problem, config).groups)};
}

Variant cpu_variant(bool backward) {
  Variant variant = norm_variant(backward, deal_shares);
  variant.name = "cpu";
  variant.idea = "an item reads its rows from memory once and from its caches again";
  variant.needs = opencl_cpu();
  variant.tunables = {
#include "operations/norms/cpu/tunables.def"
  };
  variant.tunables.push_back({.id = 30, .name = "ROWS", .fallback = 4, .launch_only = true});
  variant.tunables.push_back({.id = 31, .name = "STREAM", .fallback = 0, .launch_only = true});
  variant.space = space;
  variant.rejects = [others = variant.rejects](const Problem& problem, const Config& config,
                                               const DeviceProfile& profile) -> Refusal {
    if (Refusal no = rejects_vector_width(config)) return no;
    if (config.at("ROWS") == 0) return "takes at least one row an item, and ROWS is 0";
    return others(problem, config, profile);
  };
  if (!backward) {
    Pass pass = forward_pass();
    pass.opencl = {.file = "norms/cpu/forward.cl", .entry = "norm_forward_cpu"};
    pass.groups = [](const Problem& problem, const Config& config) {
      const std::int64_t items = ceil_div(problem.as<NormProblem>().rows, config.at("ROWS"));
      return Dim3{static_cast<std::uint32_t>(std::min(items, kMostGroups))};
    };
    variant.passes = list_of(std::move(pass));
    return variant;
  }
  Pass pass = backward_pass(deal_shares);
  pass.opencl = {.file = "norms/cpu/backward.cl", .entry = "norm_backward_cpu"};
  pass.groups = shares_of;
  variant.passes = list_of(std::move(pass));
  for (Pass& combine : combine_passes(deal_shares)) {
    const std::size_t slot = combine.bindings.back();
    combine.opencl = {.file = "norms/cpu/backward.cl", .entry = "norm_combine_cpu"};
    combine.groups = [slot](const Problem& problem, const Config& config) {
      if (!combines(problem, slot)) return Dim3{0, 0, 0};
      const std::int64_t rows = combine_arguments(problem, deal_shares(problem, config), slot).rows;
      return Dim3{static_cast<std::uint32_t>(std::min(rows, kMostGroups))};
    };
    variant.passes.push_back(std::move(combine));
  }
  return variant;
}

}  // namespace

Way cpu_way(bool backward) {
  return {.variant = cpu_variant(backward),
          .rule = {.why = "processors want whole vectors in one item, and no local memory",
                   .when = [](const Problem&, const DeviceProfile& profile) {
                     return is_opencl_cpu(profile);
                   }}};
}

}  // namespace tessera::operations::norms
