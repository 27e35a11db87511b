// SPDX-License-Identifier: Apache-2.0
// Chunks of 16 tokens, or single ones, on processors through OpenCL.
#include "operations/recurrence_core/cpu/cpu.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/recurrence_core/launch.hpp"

namespace tessera::operations::recurrence {
namespace {

const RecurrenceProblem& call_of(const Problem& problem) { return problem.as<RecurrenceProblem>(); }

// Of 16 registers of 8 floats, 8 hold the sums of 4 rows of a vector of 16.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const bool wide = vector_width(profile) >= 16;
  std::vector<Config> list;
  for (const std::uint32_t panels : cpu_panels(problem, profile)) {
    list.push_back(
        {{"PANELS", panels}, {"TILE_ROWS", wide ? 8U : 4U}, {"TILE_VECTORS", wide ? 2U : 1U}});
  }
  return list;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t panels = config.at("PANELS");
  if (panels != 1 && panels != 2 && panels != 4)
    return "takes 1, 2 or 4 panels, and PANELS is " + std::to_string(panels);
  const std::uint32_t rows = config.at("TILE_ROWS"), vectors = config.at("TILE_VECTORS");
  if ((rows != 4 && rows != 8) || (vectors != 1 && vectors != 2))
    return "holds sums of 4 or 8 rows of 1 or 2 vectors, and TILE_ROWS is " + std::to_string(rows) +
           ", TILE_VECTORS " + std::to_string(vectors);
  return rejects_recurrence(problem, profile);
}

}  // namespace

std::uint32_t cpu_key_block(const Problem& problem) {
  const std::int64_t key_dim = call_of(problem).key_dim;
  for (const std::uint32_t block : {16U, 64U, 128U, 256U}) {
    if (key_dim <= block) return block;
  }
  return 512;
}

std::int64_t cpu_columns(const Config& config) { return std::int64_t{32} * config.at("PANELS"); }

// Wide blocks take the scores of a chunk once for all columns; narrow ones give every core
// something to do.
std::vector<std::uint32_t> cpu_panels(const Problem& problem, const DeviceProfile& profile) {
  const std::int64_t value_dim = call_of(problem).value_dim;
  std::vector<std::uint32_t> list, too_few;
  for (const std::uint32_t panels : {4U, 2U, 1U}) {
    if (panels > 1 && value_dim <= 32 * panels / 2) continue;
    const bool enough = units_of(call_of(problem), std::int64_t{32} * panels) >=
                        2 * std::int64_t{std::max(profile.compute_units, 1U)};
    (enough ? list : too_few).push_back(panels);
  }
  list.insert(list.end(), too_few.rbegin(), too_few.rend());
  return list;
}

std::optional<Way> cpu_way(const RecurrenceSlots& slots) {
  if (slots.backward()) return cpu_backward_way(slots);
  Variant variant;
  variant.name = "cpu";
  variant.idea = "a state in the caches, chunks of 16 tokens by products of rows and panels";
  variant.needs = opencl_cpu();
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/recurrence_core/cpu/cpu.def"
  };
  variant.space = space;
  variant.rejects = rejects;
  Pass pass;
  pass.name = "forward";
  pass.opencl = {.file = "recurrence/cpu/forward.cl", .entry = "recurrence_forward_cpu"};
  if (slots.delta()) {
    pass.opencl = {.file = "recurrence/cpu/delta_forward.cl",
                   .entry = "recurrence_delta_forward_cpu"};
  }
  pass.bindings = forward_bindings(slots);
  pass.constants = [](const Problem& problem, const Config&) {
    return std::vector<Define>{{"KEY_BLOCK", cpu_key_block(problem)}};
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    return groups_of(units_of(call_of(problem), cpu_columns(config)));
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(arguments_of(problem));
  };
  variant.passes = list_of(
      boundaries_pass(slots, [](const Problem&, const Config&) -> std::uint64_t { return 0; }),
      std::move(pass));
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    return boundaries_bytes(problem);
  };
  return Way{.variant = std::move(variant),
             .rule = {.why = "processors want whole vectors in one item, and no local memory",
                      .when = [](const Problem&, const DeviceProfile& profile) {
                        return is_opencl_cpu(profile);
                      }}};
}

}  // namespace tessera::operations::recurrence
