// SPDX-License-Identifier: Apache-2.0
// Step by step on any GPU: columns of a state stay in the registers of a work-group.
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>

#include "kernel/option_access.hpp"
#include "kernel/tunable_list.hpp"
#include "operations/common/launch.hpp"
#include "operations/recurrence_core/launch.hpp"
#include "operations/recurrence_core/tile/geometry.h"

namespace tessera::operations::recurrence {
namespace {

std::vector<Tunable> tunables() {
  std::vector<Tunable> list{
#include "operations/recurrence_core/tile/tile.def"
  };
  list.push_back({.id = 30, .name = "LAUNCH", .fallback = 0, .launch_only = true});
  return list;
}

const RecurrenceProblem& call_of(const Problem& problem) { return problem.as<RecurrenceProblem>(); }

using Number = std::uint32_t;
std::uint64_t local_bytes_of(const Config& config) {
  const Number WG_Y = config.get("WG_Y", 1);
#include "kernel/tunable_locals.inc"
#include "operations/recurrence_core/tile/tile.def"
  return std::uint64_t{16} * RECUR_VECTORS + std::uint64_t{8} * RECUR_ITEMS;
}

std::int64_t columns_of(const Config& config) { return std::int64_t{4} * config.group().x; }

std::uint32_t power_of_two(std::int64_t n) {
  return static_cast<std::uint32_t>(
      kernel::next_power_of_two(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1))));
}

// `lanes`: of four columns.
Config make_config(const Problem& problem, std::uint32_t rows, std::uint32_t lanes,
                   std::uint32_t tokens) {
  const RecurrenceProblem& call = call_of(problem);
  return {{"ROWS", rows},
          {"WG_Y", std::max(power_of_two(ceil_div(call.key_dim, rows)), 2U)},
          {"WG_X", std::min(lanes, std::max(power_of_two(ceil_div(call.value_dim, 4)), 2U))},
          {"TOKENS", std::min(tokens, power_of_two(call.tokens))},
          {"LAUNCH", 0}};
}

// Processors only check these kernels: one program each for small, usual and large key dims.
Config cpu_config(const Problem& problem, const DeviceProfile& profile) {
  const std::int64_t key_dim = call_of(problem).key_dim;
  Config config{{"ROWS", 8}, {"WG_X", 4}, {"TOKENS", 3}, {"LAUNCH", 0}};
  config.set("WG_Y", key_dim <= 16 ? 2 : key_dim <= 128 ? 16 : 64);
  if (key_dim > 128) config.set("TOKENS", 2);
  if (profile.backend == Backend::kVulkan) config.set("LAUNCH", 512);
  return config;
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  if (is_cpu(profile)) return {cpu_config(problem, profile)};
  std::vector<Config> list;
  for (const auto& [rows, lanes, tokens] :
       {std::array{8U, 8U, 8U}, std::array{8U, 8U, 4U}, std::array{16U, 8U, 4U},
        std::array{8U, 16U, 4U}, std::array{4U, 8U, 4U}, std::array{16U, 16U, 2U},
        std::array{8U, 4U, 2U}, std::array{16U, 4U, 1U}}) {
    Config config = make_config(problem, rows, lanes, tokens);
    const Dim3 group = config.group();
    const bool fits =
        (profile.local_memory == 0 || local_bytes_of(config) <= profile.local_memory) &&
        (profile.max_group_size == 0 || group.x * group.y <= profile.max_group_size) &&
        group.x * group.y <= 512;
    if (fits && std::ranges::count(list, config) == 0) list.push_back(std::move(config));
  }
  return list;
}

Config first_config(const Problem& problem, const DeviceProfile& profile) {
  const std::vector<Config> list = space(problem, profile);
  return list.empty() ? make_config(problem, 16, 4, 1) : list.front();
}

std::vector<Define> axes(const Problem& problem, const DeviceProfile& profile) {
  if (profile.backend != Backend::kVulkan) return {};
  return {{"STORAGE16", problem.dtype != DType::kF32 ? 1U : 0U}};
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
  if (problem.dtype != DType::kF32 && !has(profile.features, Feature::kStorage16))
    return "needs storage16 for operands of 16 bits, which this device lacks";
  return rejects_recurrence(problem, profile);
}

// Launches that share the tokens of a sequence.
std::int64_t launches_of(const Problem& problem, const Config& config) {
  const std::int64_t most = config.get("LAUNCH", 0), tokens = call_of(problem).tokens;
  return most == 0 ? 1 : std::max<std::int64_t>(1, ceil_div(tokens, most));
}

std::vector<Step> steps(const Problem& problem, const Config& config) {
  const std::int64_t launches = launches_of(problem, config);
  std::vector<Step> list;
  for (std::int64_t i = 0; i < launches; ++i) {
    abi::RecurForwardArgs args = forward_arguments(problem);
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

std::optional<Way> tile_way(const RecurrenceSlots& slots) {
  if (slots.backward()) return std::nullopt;
  Variant variant;
  variant.name = "tile";
  variant.idea = "columns of a state in registers, tokens in order";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = [](const Problem&, const Config& config) { return local_bytes_of(config); };
  variant.scratch_bytes = [](const Problem& problem, const Config& config) -> std::uint64_t {
    return launches_of(problem, config) > 1 ? state_bytes(call_of(problem)) : 0;
  };
  Pass pass;
  pass.name = "forward";
  pass.opencl = {.file = "recurrence/tile/forward.cl", .entry = "recurrence_forward"};
  pass.vulkan = {.file = "recurrence/tile/forward.comp", .entry = "main"};
  pass.bindings = forward_bindings(slots);
  pass.axes = axes;
  pass.groups = [](const Problem& problem, const Config& config) {
    return groups_of(units_of(call_of(problem), columns_of(config)));
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(forward_arguments(problem));
  };
  pass.errors_at = offsetof(abi::RecurForwardArgs, errors);
  variant.passes = {std::move(pass)};
  variant.steps = steps;
  return Way{.variant = std::move(variant),
             .rule = {.why = "runs everywhere",
                      .when = [](const Problem&, const DeviceProfile&) { return true; },
                      .config = first_config}};
}

}  // namespace tessera::operations::recurrence
