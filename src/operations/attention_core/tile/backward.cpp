// SPDX-License-Identifier: Apache-2.0
// attention/tile/backward_keys and attention/tile/backward_queries: any GPU, through OpenCL and
// Vulkan.
#include <algorithm>
#include <string>
#include <utility>

#include "base/large_registers.hpp"
#include "base/nvidia_architecture.hpp"
#include "base/vendor_ids.hpp"
#include "kernel/tunable_list.inc"
#include "operations/attention_core/backward_launch.hpp"
#include "operations/attention_core/tile/backward_geometry.hpp"
#include "operations/attention_core/tile/compiled.hpp"
#include "operations/attention_core/tile/ranking.hpp"

namespace tessera::operations::attention {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/attention_core/tile/backward.def"
  };
}

Config make_config(std::uint32_t wg, std::uint32_t block_q, std::uint32_t block_k,
                   std::uint32_t item_rows, std::uint32_t slice_d, std::uint32_t slice_step) {
  return {{"WG_X", wg},         {"BLOCK_Q", block_q},
          {"BLOCK_K", block_k}, {"ITEM_ROWS", item_rows},
          {"SLICE_D", slice_d}, {"SLICE_STEP", slice_step}};
}

TileBackwardGeometry geometry(const Problem& problem, const Config& config) {
  return tile_backward_geometry(config, head_dim(problem), value_dim(problem));
}

bool fits(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const TileBackwardGeometry tile = geometry(problem, config);
  return tile.valid && (profile.local_memory == 0 || tile.local_bytes <= profile.local_memory) &&
         (profile.max_group_size == 0 || config.group().x <= profile.max_group_size);
}

constexpr std::uint32_t kMostRegisters = 224;  // of 255 on the GPUs that have fewest

// Square blocks with four scores per item and row, so that an item of a block has 4 rows / block of
// each row's features: the largest block whose sums stay in registers, with the longest slices that
// fit local memory. On a CPU, where nobody needs speed of these tiles, the smallest: PoCL compiles
// them in 4 s, and blocks of 16 in 12. With wide rows it is the other way round: loops over the
// sums of an item are unrolled, and larger groups have fewer of them (dims 238 and 174, bf16:
// minutes with blocks of 8, 12 s with 16).
Config fitting_config(const Problem& problem, const DeviceProfile& profile) {
  constexpr std::pair<std::uint32_t, std::uint32_t> kSlices[] = {{32, 16}, {16, 16}, {16, 8},
                                                                 {8, 8},   {8, 4},   {4, 4}};
  const Config smallest = make_config(16, 8, 8, 1, 4, 4);
  if (is_cpu(profile)) {
    for (std::uint32_t block = 8; block <= 32; block *= 2) {
      const Config config = make_config(block * block / 4, block, block, 1, 4, 4);
      if (fits(problem, config, profile) && geometry(problem, config).registers <= kMostRegisters)
        return config;
    }
    return smallest;
  }
  for (const bool spills : {false, true}) {
    for (std::uint32_t block = 64; block >= 8; block /= 2) {
      for (std::uint32_t rows = 8; rows >= 1; rows /= 2) {
        for (const auto& [slice_d, slice_step] : kSlices) {
          if (slice_step > block) continue;
          const Config config =
              make_config(block * block / (4 * rows), block, block, rows, slice_d, slice_step);
          if (!fits(problem, config, profile)) continue;
          if (spills || geometry(problem, config).registers <= kMostRegisters) return config;
        }
      }
    }
  }
  return smallest;
}

// In the order of what was measured on an H200 through OpenCL, where it was.
std::vector<Config> gpu_configs(std::uint32_t dim) {
  if (dim <= 64) {
    return {make_config(128, 64, 64, 4, 32, 16), make_config(128, 64, 64, 8, 32, 16),
            make_config(128, 64, 32, 4, 32, 16), make_config(256, 128, 64, 4, 16, 16),
            make_config(64, 32, 32, 4, 32, 16)};
  }
  if (dim <= 128) {
    return {make_config(256, 64, 64, 4, 32, 16), make_config(128, 64, 32, 4, 32, 16),
            make_config(128, 64, 64, 8, 32, 16), make_config(256, 64, 64, 4, 16, 8),
            make_config(128, 32, 32, 2, 32, 16)};
  }
  if (dim <= 256) {
    return {make_config(256, 64, 64, 4, 32, 8), make_config(256, 128, 32, 4, 32, 8),
            make_config(128, 32, 32, 2, 16, 8)};
  }
  return {make_config(256, 64, 32, 2, 16, 8), make_config(256, 32, 32, 1, 16, 4)};
}

// As the tile kernels of the forward pass (tile_variant.cpp): no spills, and two waves or more to a
// SIMD of GCN, four of RDNA.
std::vector<Config> amd_configs(std::uint32_t dim) {
  if (dim <= 128) return {make_config(256, 64, 64, 4, 16, 8), make_config(256, 64, 32, 2, 16, 8)};
  if (dim <= 256) return {make_config(256, 64, 32, 2, 16, 8)};
  return {};
}

// Wide rows by LLVM, which spills 3 to 150 registers of an item with the cuts above and below (RDNA
// 2 and 3).
std::vector<Config> amd_opencl_configs(std::uint32_t dim) {
  if (dim > 256) return {make_config(256, 32, 32, 1, 16, 4)};
  if (dim > 192) return {make_config(256, 64, 32, 2, 8, 4)};
  return {};
}

// Two rows of 4 scores to an item: 98 to 131 of its 128 registers by ANV, and no spill.
std::vector<Config> intel_configs(std::uint32_t dim) {
  if (dim <= 64) return {make_config(256, 64, 32, 2, 8, 4), make_config(128, 32, 32, 2, 16, 4)};
  if (dim <= 128) return {make_config(256, 64, 32, 2, 8, 4), make_config(256, 32, 32, 1, 8, 4)};
  if (dim <= 256) return {make_config(512, 64, 32, 1, 8, 4), make_config(256, 32, 32, 1, 8, 4)};
  return {make_config(1024, 64, 64, 1, 8, 4)};
}

// On an H200 through Vulkan: 1.51 ms where the first of the others takes 1.97 (64 columns, f32, 8
// heads of 2048 rows), 3.65 and 4.06 (128).
std::vector<Config> nvidia_vulkan_configs(std::uint32_t dim) {
  if (dim <= 128) return {make_config(256, 64, 64, 4, 16, 8)};
  return {};
}

// By ocloc 3 and 19 registers of Xe2's 16 lanes spill with the first cut above, and 5 or 13 with
// others of as many items; up to 64 columns 6 of Xe-LP's, of rows that are not aligned.
std::vector<Config> intel_opencl_configs(const DeviceProfile& profile, std::uint32_t dim) {
  if (dim <= (has_large_registers(profile) ? 64U : 0U) || dim > 128) return {};
  return {make_config(512, 64, 32, 1, 8, 4)};
}

// All cuts, those first that were made for the vendor.
std::vector<Config> cuts(const DeviceProfile& profile, std::uint32_t dim) {
  std::vector<Config> configs;
  const auto take = [&](const std::vector<Config>& more) {
    for (const Config& config : more) {
      if (std::ranges::find(configs, config) == configs.end()) configs.push_back(config);
    }
  };
  if (profile.vendor_id == kVendorAmd && profile.backend == Backend::kOpenCL)
    take(amd_opencl_configs(dim));
  if (profile.vendor_id == kVendorAmd) take(amd_configs(dim));
  if (profile.vendor_id == kVendorIntel && profile.backend == Backend::kOpenCL)
    take(intel_opencl_configs(profile, dim));
  if (profile.vendor_id == kVendorIntel) take(intel_configs(dim));
  if (profile.vendor_id == kVendorNvidia && profile.backend == Backend::kVulkan)
    take(nvidia_vulkan_configs(dim));
  // By ptxas for Turing: 168 registers in 1.3 s, where the first of the others takes 255 in 3.2 s.
  if (lacks_matrix_instructions(profile) && dim > 128) take(amd_configs(dim));
  take(gpu_configs(dim));
  take(amd_configs(dim));
  take(intel_configs(dim));
  return configs;
}

std::optional<TileFigures> figures_of(TileKernel kernel, const Problem& problem,
                                      const Config& config, const DeviceProfile& profile) {
  return compiled_tile(kernel, config, std::max(head_dim(problem), value_dim(problem)), profile);
}

// By compilers, or where nobody compiled it, by what an item of such a GPU has; and by local
// memory.
bool strains(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const TileBackwardGeometry tile = geometry(problem, config);
  const auto kernel_strains = [&](TileKernel kernel, kernel::Effort effort) {
    const auto figures = figures_of(kernel, problem, config, profile);
    if (figures) effort.registers = 0;
    return (figures && figures->strains) || kernel::strains(effort, profile);
  };
  return kernel_strains(TileKernel::kKeys, tile.keys) ||
         kernel_strains(TileKernel::kQueries, tile.queries);
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  std::vector<Config> configs;
  const auto add = [&](const Config& config) {
    if (std::ranges::find(configs, config) == configs.end()) configs.push_back(config);
  };
  if (is_gpu(profile)) {
    const std::uint32_t dim = std::max(head_dim(problem), value_dim(problem));
    for (const Config& config : cuts(profile, dim)) {
      if (fits(problem, config, profile)) add(config);
    }
  }
  add(fitting_config(problem, profile));
  // Loops over an item's sums are unrolled, and PoCL takes minutes for those that no GPU's
  // registers would hold.
  if (is_cpu(profile)) {
    for (const Config& config :
         {make_config(16, 8, 32, 2, 8, 8), make_config(16, 16, 16, 4, 8, 4)}) {
      if (fits(problem, config, profile) && geometry(problem, config).registers <= kMostRegisters)
        add(config);
    }
  }
  const auto compiled = [&](const Config& config) {
    return figures_of(TileKernel::kKeys, problem, config, profile).has_value();
  };
  // In the order of the lists where no compiler for such GPUs was asked.
  if (is_gpu(profile) && !kernel::is_measured(profile) && std::ranges::any_of(configs, compiled)) {
    kernel::rank(
        configs, [&](const Config& config) { return strains(problem, config, profile); },
        [&](const Config& config) { return tile_backward_cycles(problem, config, profile); });
  }
  return configs;
}

// No map: a group of the keys kernel looks at the rows' intervals instead.
BackwardTiling tiling(const Problem& /*problem*/, const Config& /*config*/) {
  return {.map = {.maps = false}};
}

Pass tile_pass(const std::string& kernel, bool policies) {
  Pass pass = backward_pass(kernel, tiling, policies);
  pass.opencl = {.file = "attention/tile/backward_" + kernel + ".cl",
                 .entry = "attention_tile_backward_" + kernel};
  pass.vulkan = {.file = "attention/tile/backward_" + kernel + ".comp", .entry = "main"};
  return pass;
}

// The scratch buffer, and the operands of the policies behind it.
void bind_scratch(Pass& pass, const AttentionSlots& slots, bool policies) {
  if (!policies) {
    pass.bindings.push_back(kScratch);
    return;
  }
  for (const std::size_t slot : policy_bindings(slots)) pass.bindings.push_back(slot);
}

Pass keys_pass(const AttentionSlots& slots, bool policies) {
  Pass pass = tile_pass("keys", policies);
  pass.bindings = {slots.query,           slots.key,         slots.value,
                   slots.output_gradient, slots.log_sum_exp, slots.key_gradient,
                   slots.value_gradient};
  bind_scratch(pass, slots, policies);
  pass.groups = [policies](const Problem& problem, const Config& config) {
    const AttentionProblem& call = call_of(problem);
    if (!is_for(problem, policies)) return Dim3{0, 1, 1};
    return Dim3{ceil_div(call.kv_len, config.at("BLOCK_K")),
                static_cast<std::uint32_t>(call.kv_heads), static_cast<std::uint32_t>(call.batch)};
  };
  return pass;
}

Pass queries_pass(const AttentionSlots& slots, bool policies) {
  Pass pass = tile_pass("queries", policies);
  pass.bindings = {slots.query,           slots.key,         slots.value,
                   slots.output_gradient, slots.log_sum_exp, slots.query_gradient};
  bind_scratch(pass, slots, policies);
  pass.groups = [policies](const Problem& problem, const Config& config) {
    return is_for(problem, policies) ? row_groups(problem, config.at("BLOCK_Q")) : Dim3{0, 1, 1};
  };
  return pass;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (!geometry(problem, config).valid)
    return "has a work-group that does not divide into tiles "
           "(operations/attention_core/tile/backward.h)";
  return rejects_long_offsets(problem, profile,
                              backward_scratch_bytes(problem, tiling(problem, config)));
}

Variant tile_backward_variant(const AttentionSlots& slots) {
  Variant variant;
  variant.name = "tile";
  variant.idea =
      "scores anew; dk and dv by a group per tile of keys, dq by one per tile of queries, no "
      "atomics";
  variant.needs = {.features = Feature::kStorage16};
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = tunables();
  variant.passes = list_of(rows_pass(slots), delta_pass(slots, tiling), peaks_pass(slots, tiling),
                           keys_pass(slots, false), queries_pass(slots, false),
                           keys_pass(slots, true), queries_pass(slots, true));
  for (Pass& pass : policy_gradient_passes(slots, tiling))
    variant.passes.push_back(std::move(pass));
  variant.space = space;
  variant.local_bytes = [](const Problem& problem, const Config& config) -> std::uint64_t {
    return geometry(problem, config).local_bytes;
  };
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return backward_scratch_bytes(problem, tiling(problem, config));
  };
  variant.rejects = rejects;
  return variant;
}

}  // namespace

double tile_backward_cycles(const Problem& problem, const Config& config,
                            const DeviceProfile& profile) {
  const AttentionProblem& call = call_of(problem);
  const TileBackwardGeometry tile = geometry(problem, config);
  const double batch = static_cast<double>(call.batch);
  const double row_tiles = ceil_div(call.q_len, config.at("BLOCK_Q"));
  const double key_tiles = ceil_div(call.kv_len, config.at("BLOCK_K"));
  kernel::Effort keys = tile.keys, queries = tile.queries;
  keys.groups = std::max(1.0, key_tiles * batch * static_cast<double>(call.kv_heads));
  keys.rounds = row_tiles * static_cast<double>(call.group());
  queries.groups = std::max(1.0, row_tiles * batch * static_cast<double>(call.heads));
  queries.rounds = key_tiles;
  if (const auto figures = figures_of(TileKernel::kKeys, problem, config, profile))
    keys.registers = figures->registers;
  if (const auto figures = figures_of(TileKernel::kQueries, problem, config, profile))
    queries.registers = figures->registers;
  return kernel::predicted_cycles(keys, profile) + kernel::predicted_cycles(queries, profile);
}

Way tile_backward(const AttentionSlots& slots) {
  return {.variant = tile_backward_variant(slots),
          .rule = {.why = "the base tier runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; }}};
}

}  // namespace tessera::operations::attention
