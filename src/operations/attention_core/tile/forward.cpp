// SPDX-License-Identifier: Apache-2.0
// attention/tile/forward: any GPU, through OpenCL and Vulkan.
#include <algorithm>
#include <utility>

#include "base/large_registers.hpp"
#include "base/nvidia_architecture.hpp"
#include "base/vendor_ids.hpp"
#include "kernel/option_access.hpp"
#include "kernel/tunable_list.inc"
#include "operations/attention_core/launch.hpp"
#include "operations/attention_core/tile/compiled.hpp"
#include "operations/attention_core/tile/forward_geometry.hpp"
#include "operations/attention_core/tile/ranking.hpp"

namespace tessera::operations::attention {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/attention_core/tile/forward.def"
      kSplits,
  };
}

// A list has an item for each sequence at least, and most devices take 65535 work-groups along an
// axis through Vulkan: packed sequences beyond half of that share tiles with their neighbours.
bool takes_list(const Problem& problem) {
  constexpr std::int64_t kMostSequences = std::int64_t{1} << 15;
  const AttentionProblem& call = call_of(problem);
  return is_listed(problem) && (call.is_paged() || call.sequences <= kMostSequences);
}

// Short queries of a group share their keys, so they share a work-group.
AttentionTiling tiling(const Problem& problem, const Config& config) {
  const AttentionProblem& call = call_of(problem);
  const std::uint32_t rows = config.at("BLOCK_Q");
  const bool packs =
      2 * rows_of_sequence(problem) <= rows && call.group() > 0;  // a call may have no heads
  return {.rows = rows,
          .keys = config.at("BLOCK_K"),
          .pack = packs ? static_cast<std::uint32_t>(call.group()) : 1,
          .splits = splits_of(config),
          .maps = !call.is_paged(),
          .listed = takes_list(problem) ? rows : 0};
}

Dim3 groups(const Problem& problem, const Config& config) {
  const AttentionProblem& call = call_of(problem);
  const AttentionTiling cut = tiling(problem, config);
  return {cut.listed > 0 ? listed_items(problem, cut) : ceil_div(call.q_len * cut.pack, cut.rows),
          static_cast<std::uint32_t>(call.heads) / cut.pack,
          static_cast<std::uint32_t>(call.batch)};
}

Config with_splits(Config config, const Problem& problem, const DeviceProfile& profile) {
  config.set("SPLITS",
             filling_splits(problem, profile, groups(problem, config), config.at("BLOCK_K")));
  return config;
}

Config make_config(std::uint32_t wg, std::uint32_t block_q, std::uint32_t block_k,
                   std::uint32_t item_rows, std::uint32_t slice_d, std::uint32_t slice_k,
                   std::uint32_t keep_q, std::uint32_t prefetch) {
  return {
      {"WG_X", wg},         {"BLOCK_Q", block_q}, {"BLOCK_K", block_k}, {"ITEM_ROWS", item_rows},
      {"SLICE_D", slice_d}, {"SLICE_K", slice_k}, {"KEEP_Q", keep_q},   {"PREFETCH", prefetch}};
}

bool fits(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const TileGeometry geometry = tile_geometry(config, head_dim(problem), value_dim(problem));
  return geometry.valid &&
         (profile.local_memory == 0 || geometry.local_bytes <= profile.local_memory) &&
         (profile.max_group_size == 0 || config.group().x <= profile.max_group_size);
}

// Lanes along the value axis so that an item owns 8 columns, as many rows as fit its registers, and
// the longest slices that fit local memory; smaller items, then smaller groups, where nothing fits.
// On a CPU the items of a group run one after the other, so small groups do; through OpenCL, where
// CPUs have kernels of their own, items are small, too: PoCL compiles one of 2 rows in half the
// time.
Config fitting_config(const Problem& problem, const DeviceProfile& profile) {
  const auto lanes_wanted = kernel::next_power_of_two((value_dim(problem) + 7) / 8);
  const auto lanes_k = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(lanes_wanted, 8, 64));
  const std::uint32_t most_items = is_cpu(profile) ? 4 * lanes_k : lanes_k >= 32 ? 256 : 128;
  constexpr std::pair<std::uint32_t, std::uint32_t> kSlices[] = {{32, 16}, {16, 16}, {16, 8},
                                                                 {8, 8},   {8, 4},   {4, 4}};
  const std::uint32_t most_rows = !is_cpu(profile)                      ? 8
                                  : profile.backend == Backend::kOpenCL ? 2
                                                                        : 4;
  for (std::uint32_t items = most_items; items >= lanes_k; items /= 2) {
    for (std::uint32_t rows = most_rows; rows >= 1; rows /= 2) {
      for (const auto& [slice_d, slice_k] : kSlices) {
        const Config config =
            make_config(items, rows * items / lanes_k, 4 * lanes_k, rows, slice_d, slice_k, 0, 0);
        if (fits(problem, config, profile)) return config;
      }
    }
  }
  return make_config(16, 4, 64, 1, 4, 4, 0, 0);
}

// What measured best, or promises to, by the width of a value row. On an H200 through OpenCL the
// 64-wide f32 case reached 33 of 64 TFLOP/s with {128, 64, 64, 4, 32, 16}.
std::vector<Config> gpu_configs(std::uint32_t value_dim) {
  if (value_dim <= 64) {
    return {make_config(128, 64, 64, 4, 32, 16, 0, 0),  make_config(128, 64, 64, 8, 32, 16, 0, 0),
            make_config(128, 128, 32, 8, 32, 16, 0, 0), make_config(128, 64, 64, 8, 16, 16, 0, 1),
            make_config(128, 32, 64, 4, 32, 16, 0, 0),  make_config(128, 64, 32, 4, 32, 16, 0, 0)};
  }
  if (value_dim <= 128) {
    return {make_config(128, 64, 64, 8, 32, 16, 0, 0),  make_config(128, 64, 64, 4, 32, 16, 0, 0),
            make_config(128, 64, 64, 8, 16, 16, 0, 1),  make_config(128, 64, 128, 8, 16, 16, 0, 0),
            make_config(256, 128, 64, 8, 16, 16, 0, 0), make_config(128, 32, 64, 4, 16, 8, 0, 0)};
  }
  if (value_dim <= 256) {
    return {make_config(128, 64, 64, 8, 32, 16, 0, 0), make_config(256, 64, 128, 8, 16, 8, 0, 0),
            make_config(128, 32, 128, 8, 16, 8, 0, 0), make_config(256, 16, 128, 2, 8, 4, 0, 0)};
  }
  return {make_config(256, 32, 256, 8, 8, 4, 0, 0), make_config(256, 16, 256, 4, 8, 4, 0, 0),
          make_config(128, 4, 256, 2, 8, 4, 0, 0)};
}

// 4 x 4 scores and outputs to an item, and 256 items that share a tile: by both of AMD's compilers
// none of them spills, nor has memory of its own; 9 to 13 KiB of local memory for 128 items. Up to
// 128 columns that leaves 2 or 3 waves to a SIMD of GCN, 4 to 6 of RDNA (RADV: 84 to 128 registers,
// where the first cuts of the others take 168 to 256).
std::vector<Config> amd_configs(std::uint32_t value_dim) {
  if (value_dim <= 64)
    return {make_config(256, 64, 64, 4, 16, 8, 0, 0), make_config(128, 64, 32, 4, 32, 16, 0, 0)};
  if (value_dim <= 128)
    return {make_config(256, 64, 64, 4, 16, 8, 0, 0), make_config(128, 32, 64, 4, 16, 8, 0, 0)};
  if (value_dim <= 256)
    return {make_config(256, 32, 128, 4, 16, 8, 0, 0), make_config(256, 64, 64, 4, 16, 8, 0, 0)};
  return {};
}

// LLVM holds 4 rows of an item where Mesa holds 8.
std::vector<Config> amd_opencl_configs(std::uint32_t value_dim) {
  if (value_dim > 256) return {make_config(256, 16, 256, 4, 8, 4, 0, 0)};
  return {};
}

// An item has 128 registers, so it takes 2 rows and short slices: ANV and ocloc spill none of the
// first ones from Xe-LP to Xe2. {256, 64, 64, 4, 16, 8} is for Xe2, where it spills none either.
std::vector<Config> intel_configs(std::uint32_t value_dim) {
  if (value_dim <= 64)
    return {make_config(256, 64, 64, 2, 8, 8, 0, 0), make_config(256, 64, 64, 4, 16, 8, 0, 0),
            make_config(128, 32, 64, 2, 8, 8, 0, 0)};
  if (value_dim <= 128)
    return {make_config(256, 32, 128, 2, 16, 8, 0, 0), make_config(256, 32, 64, 2, 16, 8, 0, 0)};
  if (value_dim <= 256)
    return {make_config(256, 32, 64, 2, 8, 4, 0, 0), make_config(256, 16, 128, 2, 8, 4, 0, 0)};
  return {make_config(256, 16, 256, 2, 4, 4, 0, 0)};
}

// By ocloc: on Xe2 the first cut for 64 columns spills 19 to 29 registers of 16 lanes, that for 256
// spills 5 to 41 in float, and that for 512 spills 5; on Xe-LP the first for 256 spills 4. These
// spill none.
std::vector<Config> intel_opencl_configs(const DeviceProfile& profile, std::uint32_t value_dim) {
  constexpr unsigned kXe2 = 20;
  const unsigned generation = intel_ip_version(profile).first;
  if (generation >= kXe2 && value_dim <= 64) return {make_config(256, 64, 64, 4, 16, 8, 0, 0)};
  if (generation >= kXe2 && value_dim > 128 && value_dim <= 256)
    return {make_config(256, 32, 128, 4, 16, 8, 0, 0)};
  if (generation >= kXe2 && value_dim > 256) return {make_config(512, 16, 256, 1, 4, 4, 0, 0)};
  if (!has_large_registers(profile) && value_dim > 128 && value_dim <= 256)
    return {make_config(256, 16, 128, 2, 8, 4, 0, 0)};
  return {};
}

// All cuts, those first that were made for the vendor.
std::vector<Config> cuts(const DeviceProfile& profile, std::uint32_t value_dim) {
  std::vector<Config> configs;
  const auto take = [&](const std::vector<Config>& more) {
    for (const Config& config : more) {
      if (std::ranges::find(configs, config) == configs.end()) configs.push_back(config);
    }
  };
  if (profile.vendor_id == kVendorAmd && profile.backend == Backend::kOpenCL)
    take(amd_opencl_configs(value_dim));
  if (profile.vendor_id == kVendorAmd) take(amd_configs(value_dim));
  if (profile.vendor_id == kVendorIntel && profile.backend == Backend::kOpenCL)
    take(intel_opencl_configs(profile, value_dim));
  if (profile.vendor_id == kVendorIntel) take(intel_configs(value_dim));
  // By ptxas that is 4 rows for 512 columns, too: 8 of them take 3.3 s for others than Hopper.
  const bool others_of_nvidia =
      has(profile.features, Feature::kNvidiaPtx) && !has(profile.features, Feature::kWgmma);
  if (others_of_nvidia && value_dim > 256) take(amd_opencl_configs(value_dim));
  // And at 256 columns it spills 22 registers of the first cut in float, none of this one.
  if (others_of_nvidia && value_dim > 128 && value_dim <= 256)
    take({make_config(256, 64, 128, 8, 16, 8, 0, 0)});
  // Before NVIDIA's matrix instructions wide rows take these tiles: with 8 rows of an item ptxas
  // spills 26 registers at 256 columns, and takes 3 to 4.6 s from 128 on.
  if (lacks_matrix_instructions(profile) && value_dim > 64) take(amd_configs(value_dim));
  take(gpu_configs(value_dim));
  take(amd_configs(value_dim));
  take(intel_configs(value_dim));
  return configs;
}

std::optional<TileFigures> figures_of(const Problem& problem, const Config& config,
                                      const DeviceProfile& profile) {
  return compiled_tile(TileKernel::kForward, config,
                       std::max(head_dim(problem), value_dim(problem)), profile);
}

// By compilers, or where nobody compiled it, by what an item of such a GPU has; and by local
// memory.
bool strains(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  kernel::Effort effort = tile_geometry(config, head_dim(problem), value_dim(problem)).effort;
  const auto figures = figures_of(problem, config, profile);
  if (figures) effort.registers = 0;
  return (figures && figures->strains) || kernel::strains(effort, profile);
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  std::vector<Config> configs;
  const auto add = [&](const Config& config) {
    if (std::ranges::find(configs, config) == configs.end()) configs.push_back(config);
  };
  if (is_gpu(profile)) {
    for (const Config& config : cuts(profile, value_dim(problem))) {
      if (fits(problem, config, profile)) add(config);
    }
  }
  add(fitting_config(problem, profile));
  if (is_cpu(profile)) {
    for (const Config& config :
         {make_config(32, 16, 32, 4, 16, 16, 1, 0), make_config(16, 16, 32, 8, 16, 8, 0, 1)}) {
      if (fits(problem, config, profile)) add(config);
    }
  }
  for (Config& config : configs) config = with_splits(std::move(config), problem, profile);
  const auto compiled = [&](const Config& config) {
    return figures_of(problem, config, profile).has_value();
  };
  // In the order of the lists where no compiler for such GPUs was asked.
  if (is_gpu(profile) && !kernel::is_measured(profile) && std::ranges::any_of(configs, compiled)) {
    kernel::rank(
        configs, [&](const Config& config) { return strains(problem, config, profile); },
        [&](const Config& config) { return tile_cycles(problem, config, profile); });
  }
  return configs;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const TileGeometry geometry = tile_geometry(config, head_dim(problem), value_dim(problem));
  if (!geometry.valid)
    return "has a work-group that does not divide into tiles "
           "(operations/attention_core/tile/forward.h)";
  if (const Refusal no = rejects_splits(problem, config)) return no;
  if (Refusal no = rejects_list(problem, tiling(problem, config), profile)) return no;
  return rejects_long_offsets(problem, profile, scratch_of(problem, tiling(problem, config)).end);
}

Variant tile(const AttentionSlots& slots, std::string name, std::string idea, bool subgroups) {
  ForwardKernel kernel{.vulkan = "attention/tile/forward.comp",
                       .tiling = tiling,
                       .groups = groups,
                       .constants = code_constants,
                       .lists = takes_list,
                       .takes_codes = true};
  if (!subgroups) {
    kernel.opencl = "attention/tile/forward.cl";
    kernel.entry = "attention_tile";
  }
  kernel.axes = [subgroups](const Problem& problem, const DeviceProfile& profile) {
    std::vector<Define> axes = dtype_axes(problem, profile);
    if (profile.backend == Backend::kVulkan) axes.push_back({"SUBGROUP", subgroups ? 1U : 0U});
    return axes;
  };
  Variant variant = forward_variant(slots, std::move(name), std::move(idea), tunables(), kernel);
  variant.needs = {.features = Feature::kStorage16};
  if (subgroups) {
    variant.needs = {.backends = {Backend::kVulkan},
                     .features = Feature::kStorage16 | Feature::kSubgroupArithmetic};
  }
  variant.space = space;
  variant.local_bytes = [](const Problem& problem, const Config& config) -> std::uint64_t {
    return tile_geometry(config, head_dim(problem), value_dim(problem)).local_bytes;
  };
  variant.rejects = rejects;
  return variant;
}

Variant tile_variant(const AttentionSlots& slots) {
  return tile(slots, "tile",
              "K and V tiles in local memory, scores and outputs in registers, online softmax",
              false);
}

Variant tile_subgroup_variant(const AttentionSlots& slots) {
  return tile(slots, "tile_subgroup", "tile, with row maxima and sums by sub-group shuffles", true);
}

}  // namespace

double tile_cycles(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  kernel::Effort effort = tile_geometry(config, head_dim(problem), value_dim(problem)).effort;
  if (const auto figures = figures_of(problem, config, profile))
    effort.registers = figures->registers;
  const std::uint32_t splits = splits_of(config);
  const Dim3 count = groups(problem, config);
  effort.groups = std::max(1.0, static_cast<double>(count.x) * count.y * count.z * splits);
  effort.rounds = ceil_div(ceil_div(call_of(problem).kv_len, config.at("BLOCK_K")), splits);
  return kernel::predicted_cycles(effort, profile);
}

Way tile_subgroup(const AttentionSlots& slots) {
  return {.variant = tile_subgroup_variant(slots),
          .rule = {.why = "sub-group shuffles save barriers",
                   .when = [](const Problem&, const DeviceProfile& p) {
                     return p.backend == Backend::kVulkan &&
                            has(p.features, Feature::kSubgroupArithmetic);
                   }}};
}

Way tile(const AttentionSlots& slots) {
  return {.variant = tile_variant(slots),
          .rule = {.why = "the base tier runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; }}};
}

}  // namespace tessera::operations::attention
