// SPDX-License-Identifier: Apache-2.0
// Few rows through Vulkan by matrices whose elements are made where weights arrive, in registers.
#include "operations/quantised_core/cooperative/stream.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/vendor_ids.hpp"
#include "kernel/config_order.hpp"
#include "kernel/gpu.hpp"
#include "kernel/matrices.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/cooperative_tiles.hpp"
#include "operations/common/launch.hpp"
#include "operations/quantised_core/problem.hpp"

namespace tessera::operations::quantised {
namespace {

constexpr std::int64_t kMostRows = 8;
constexpr std::uint64_t kInputBytes = 32768;  // of local memory, at most

std::vector<Tunable> tunables() {
  return {
#include "operations/quantised_core/cooperative/stream.def"
      {.id = 31, .name = "GROUPS", .fallback = 264, .launch_only = true},
  };
}

// Of input, in local memory.
std::uint32_t rows_of(const Problem& problem, std::uint32_t matrix_n) {
  return problem.as<QuantisedProblem>().m == 1 ? 1 : matrix_n;
}

// Turns of a sub-group whose input local memory holds: all, or as many as fit.
std::uint32_t part_turns(const Problem& problem, const DeviceProfile& profile,
                         std::uint32_t subgroups, std::uint32_t rows) {
  const std::uint32_t turn = QUANT_STREAM_TERMS * subgroups;
  const auto room = static_cast<std::uint32_t>(
      std::min(kInputBytes, profile.local_memory * std::uint64_t{2} / 3));
  return std::max(
      std::min(room / (2 * turn * rows), ceil_div(problem.as<QuantisedProblem>().k, turn)), 1U);
}

// Of a work-group; 0 where the kernel has no such geometry.
std::uint64_t local_bytes_of(const Problem& problem, const Config& config) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/quantised_core/cooperative/stream.def"
  constexpr Number kMost = 4096;  // keeps every product below in 32 bits
  for (const Number value : {WG_X, LANES, MATRIX_M, MATRIX_N, PART_TURNS}) {
    if (value == 0 || value > kMost) return 0;
  }
  if (!(QUANT_STREAM_VALID)) return 0;
  const Number ROWS = rows_of(problem, MATRIX_N);
  return QUANT_STREAM_LOCAL_BYTES;
}

std::uint64_t blocks_of(const Problem& problem, const Config& config) {
  const auto& call = problem.as<QuantisedProblem>();
  return ceil_div(call.matrices * call.n, config.at("MATRIX_M"));
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  std::vector<Config> list;
  for (const MatrixShape& shape : profile.matrix_shapes) {
    if (shape.input != problem.dtype || shape.n < kMostRows) continue;
    for (const std::uint32_t subgroups : {8U, 16U, 4U, 2U}) {
      list.push_back(
          {{"WG_X", subgroups * profile.subgroup_size},
           {"LANES", profile.subgroup_size},
           {"MATRIX_M", shape.m},
           {"MATRIX_N", shape.n},
           {"MATRIX_K", shape.k},
           {"AHEAD", is_cpu(profile) ? 1U : 2U},
           {"PART_TURNS", part_turns(problem, profile, subgroups, rows_of(problem, shape.n))},
           {"GROUPS", 16 / subgroups * kernel::compute_units_of(profile)}});
    }
  }
  std::erase_if(list, [&](const Config& config) {
    const std::uint64_t bytes = local_bytes_of(problem, config);
    return bytes == 0 || bytes > profile.local_memory || config.group().x > profile.max_group_size;
  });
  kernel::sort_configs(list, [](const Config& one) { return one.at("MATRIX_N"); });
  if (is_cpu(profile) && !list.empty()) list.resize(1);  // they only check this kernel
  return list;
}

Refusal rejects_call(const Problem& problem) {
  const auto& call = problem.as<QuantisedProblem>();
  if (Refusal no = rejects_blocks_and_codes(problem)) return no;
  if (format_of(problem) != QUANT_NIBBLES) return "takes weights of 4 bits";
  if (call.m > kMostRows) return "takes at most 8 rows";
  if (group_of(problem) % 4 != 0) return "takes scales of a multiple of 128 terms";
  if (call.k == 0) return "takes at least one term";
  return rejects_rows_off_vectors(problem);
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = kernel::rejects_matrices(problem, config, profile)) return no;
  if (config.at("MATRIX_N") < kMostRows || local_bytes_of(problem, config) == 0)
    return "has no such geometry (operations/quantised_core/cooperative/stream.h)";
  if (Refusal no = rejects_quantised(problem, profile)) return no;
  return rejects_call(problem);
}

Pass product_pass() {
  Pass pass;
  pass.name = "product";
  pass.vulkan = {.file = "quantised/cooperative/stream.comp", .entry = "main"};
  pass.bindings = {kInput, kWeight, kScale, kZero, kOutput};
  pass.axes = dtype_axes;
  pass.constants = [](const Problem& problem, const Config& config) -> std::vector<Define> {
    std::vector<Define> list = weight_constants(problem);
    list.push_back({"ROWS", rows_of(problem, config.at("MATRIX_N"))});
    return list;
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    const std::uint64_t blocks = blocks_of(problem, config);
    return groups_of_units(std::min(
        blocks, std::max<std::uint64_t>(config.at("GROUPS"), ceil_div(blocks, QUANT_STREAM_BAND))));
  };
  pass.args = product_arguments;
  return pass;
}

// On NVIDIA's GPUs, where it was measured: one row only of so many columns that work-groups have
// several blocks of them (H200, 28672 x 8192: 52 us, and 54.6 by `lanes`).
bool prefers_cooperative_stream(const Problem& problem, const DeviceProfile& profile) {
  constexpr std::uint64_t kBlocks = 4;  // of a work-group
  if (profile.backend != Backend::kVulkan || profile.vendor_id != kVendorNvidia ||
      problem.dtype != DType::kF16 || rejects_quantised(problem, profile) || rejects_call(problem))
    return false;
  const std::vector<Config> list = space(problem, profile);
  return !list.empty() && (problem.as<QuantisedProblem>().m > 1 ||
                           blocks_of(problem, list.front()) >= kBlocks * list.front().at("GROUPS"));
}

}  // namespace

Way cooperative_stream_way() {
  Variant variant;
  variant.name = "cooperative_stream";
  variant.idea = "weights become elements of cooperative matrices in registers; input stays";
  variant.needs = kernel::matrix_needs();
  variant.dtypes = {DType::kF16};
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = local_bytes_of;
  variant.passes = list_of(product_pass());
  return {.variant = std::move(variant),
          .rule = {.why = "few rows by matrices, from weights that go straight to registers",
                   .when = prefers_cooperative_stream}};
}

}  // namespace tessera::operations::quantised
