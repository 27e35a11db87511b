// SPDX-License-Identifier: Apache-2.0
// Matrix units through Vulkan, of any vendor: weights become numbers of the type of input on their
// way to local memory.
#include <algorithm>
#include <vector>

#include "base/vendor_ids.hpp"
#include "kernel/matrices.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/cooperative_tiles.hpp"
#include "operations/common/launch.hpp"
#include "operations/quantised_core/problem.hpp"

namespace tessera::operations::quantised {
namespace {

constexpr std::int64_t kLeastRows = 5;  // below, lanes reads weights at the speed of memory

std::vector<Tunable> tunables() {
  std::vector<Tunable> list = cooperative_tunables();
  const std::vector<Tunable> more{
#include "operations/quantised_core/cooperative/cooperative.def"
  };
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

std::uint32_t rows_of(const Problem& problem) {
  const std::int64_t m = problem.as<QuantisedProblem>().m;
  return m <= 16 ? 16 : m <= 32 ? 32 : 64;
}

std::uint64_t local_bytes_of(const Config& config) {
  return cooperative_local_bytes(config) + std::uint64_t{4} * config.at("BLOCK_N");  // scales
}

// Sums of the terms of a scale are whole steps. Blocks with scales of their own are refused.
bool divides_groups(const Problem& problem, std::uint32_t terms) {
  if (rejects_blocks_and_codes(problem)) return true;
  return terms % QUANT_CHUNK == 0 && group_of(problem) * QUANT_CHUNK % terms == 0;
}

// Steps of many terms first, so that more of the weights are on their way; where tiles are high
// wide ones, which share them.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const std::uint32_t rows = rows_of(problem);
  const bool high = rows == 64;
  std::vector<CooperativeCut> cuts;
  for (const std::uint32_t columns : high ? std::vector{128U, 64U} : std::vector{64U, 128U, 32U}) {
    for (const std::uint32_t terms : {128U, 64U, 32U}) {
      if (!divides_groups(problem, terms)) continue;
      cuts.push_back({rows, columns, terms, high ? 32 : rows, high ? columns / 2 : 32});
    }
  }
  if (is_cpu(profile)) cuts = {{16, 32, 32, 16, 16}};  // they only check this kernel
  std::vector<Config> list = cooperative_configs(problem, profile, cuts);
  std::erase_if(
      list, [&](const Config& config) { return local_bytes_of(config) > profile.local_memory; });
  return list;
}

Refusal rejects_call(const Problem& problem) {
  if (Refusal no = rejects_blocks_and_codes(problem)) return no;
  return rejects_rows_off_vectors(problem);
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = rejects_cooperative_cut(problem, config, profile)) return no;
  if (Refusal no = rejects_quantised(problem, profile)) return no;
  if (Refusal no = rejects_call(problem)) return no;
  if (!divides_groups(problem, config.at("BLOCK_K")))
    return "takes steps of whole chunks of 32 terms, of which a scale has a multiple";
  return std::nullopt;
}

std::uint64_t tiles_of(const Problem& problem, const Config& config) {
  const auto& call = problem.as<QuantisedProblem>();
  return std::uint64_t{ceil_div(call.m, config.at("BLOCK_M"))} *
         ceil_div(call.n, config.at("BLOCK_N"));
}

Pass product_pass() {
  Pass pass;
  pass.name = "product";
  pass.vulkan = {.file = "quantised/cooperative/product.comp", .entry = "main"};
  pass.bindings = {kInput, kWeight, kScale, kZero, kOutput};
  pass.axes = dtype_axes;
  pass.constants = [](const Problem& problem, const Config&) -> std::vector<Define> {
    std::vector<Define> list = weight_constants(problem);
    list.insert(list.end(), {{"A_BY_TERMS", 1}, {"B_BY_TERMS", 1}, {"ALIGNED", 1}});
    return list;
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    return groups_of_units(tiles_of(problem, config));
  };
  pass.args = product_arguments;
  return pass;
}

// On AMD's and Intel's GPUs what is on its way leaves too few registers, by Mesa's compilers.
bool prefers_cooperative(const Problem& problem, const DeviceProfile& profile) {
  return profile.backend == Backend::kVulkan && profile.vendor_id == kVendorNvidia &&
         problem.as<QuantisedProblem>().m >= kLeastRows && !rejects_quantised(problem, profile) &&
         !rejects_call(problem) && !space(problem, profile).empty();
}

}  // namespace

Way cooperative_way() {
  Variant variant;
  variant.name = "cooperative";
  variant.idea = "weights become numbers on their way to local memory; cooperative matrices";
  variant.needs = kernel::matrix_needs();
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = [](const Problem&, const Config& config) { return local_bytes_of(config); };
  variant.passes = list_of(product_pass());
  return {.variant = std::move(variant),
          .rule = {.why = "the device's matrix unit", .when = prefers_cooperative}};
}

}  // namespace tessera::operations::quantised
