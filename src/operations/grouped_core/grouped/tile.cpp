// SPDX-License-Identifier: Apache-2.0
// Tiles in local memory, sums in registers: any GPU, any strides, any storage types.
#include <algorithm>
#include <string>

#include "base/large_registers.hpp"
#include "base/vendor_ids.hpp"
#include "kernel/config_order.hpp"
#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/grouped_core/grouped/geometry.h"
#include "operations/grouped_core/stages.hpp"
#include "operations/sparse_core/stages.hpp"

namespace tessera::operations::matmul {
namespace {

constexpr std::uint32_t kMostGroups = 65535;  // of a launch along an axis

std::vector<Tunable> tunables() {
  return {
#include "operations/grouped_core/grouped/tile.def"
  };
}

struct Geometry {
  std::uint32_t block_m = 0, block_n = 0;
  std::uint64_t local_bytes = 0;
};

using Number = std::uint32_t;
Geometry geometry_of(const Config& config) {
#include "kernel/tunable_locals.inc"
#include "operations/grouped_core/grouped/tile.def"
  return {.block_m = BLOCK_M, .block_n = BLOCK_N, .local_bytes = std::uint64_t{16} * TILE_VECTORS};
}

std::uint32_t rows_of(const Config& config) { return geometry_of(config).block_m; }

// Work-groups of which each has a tile, at most.
std::uint64_t units_of(const Problem& problem, const GroupedStage& stage,
                       const GroupedProduct& product, const Geometry& geometry) {
  const std::uint64_t blocks = stage.over_terms ? ceil_div(product.m, geometry.block_m) : 1;
  return grouped_items(problem, stage, geometry.block_m) * blocks *
         ceil_div(product.n, geometry.block_n);
}

Config make_config(std::uint32_t rows, std::uint32_t columns, std::uint32_t block_k,
                   std::uint32_t lanes_m, std::uint32_t items) {
  return {{"ROWS", rows},
          {"COLUMNS", columns},
          {"BLOCK_K", block_k},
          {"LANES_M", lanes_m},
          {"WG_X", items}};
}

bool fits(const Config& config, const DeviceProfile& profile) {
  return (profile.local_memory == 0 || geometry_of(config).local_bytes <= profile.local_memory) &&
         (profile.max_group_size == 0 || config.group().x <= profile.max_group_size);
}

// Largest tiles first.
std::vector<Config> cuts_of(const DeviceProfile& profile) {
  if (is_cpu(profile)) return {make_config(4, 4, 8, 4, 16)};  // they only check these kernels
  std::vector<Config> list{make_config(8, 8, 16, 16, 256), make_config(8, 8, 16, 8, 128),
                           make_config(8, 8, 16, 8, 64), make_config(4, 8, 16, 8, 64),
                           make_config(4, 4, 16, 8, 64)};
  if (profile.vendor_id == kVendorIntel) {  // 128 registers to an item
    list = {make_config(4, 8, 16, 16, 256), make_config(4, 4, 16, 16, 256),
            make_config(4, 8, 16, 8, 64), make_config(4, 4, 16, 8, 64)};
    // Mesa's compiler keeps 32 sums of an item in scratch memory.
    if (profile.backend == Backend::kVulkan)
      std::erase_if(list, [](const Config& config) { return config.at("COLUMNS") == 8; });
  }
  std::erase_if(list, [&](const Config& config) {
    return config.at("ROWS") * config.at("COLUMNS") == 64 &&
           config.group().x < kernel::fewest_items_of_64_sums(profile);
  });
  list.push_back(make_config(4, 4, 8, 4, 16));
  std::erase_if(list, [&](const Config& config) { return !fits(config, profile); });
  return list;
}

// Those first of which the groups, were they equal, fill half.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  std::vector<Config> list = cuts_of(profile);
  const auto& call = problem.as<GroupedProblem>();
  const std::int64_t mean = call.m / std::max<std::int64_t>(call.held, 1);
  kernel::put_first(list, [&](const Config& config) { return 2 * mean >= rows_of(config); });
  return list;
}

Refusal rejects_cut(const Config& config) {
  const std::uint32_t rows = config.at("ROWS"), columns = config.at("COLUMNS");
  const std::uint32_t lanes = config.at("LANES_M"), items = config.get("WG_X", 1);
  if (rows == 0 || rows % 4 != 0 || columns == 0 || columns % 4 != 0 || rows * columns > 256)
    return "takes fours of rows and columns, at most 256 sums an item";
  if (config.at("BLOCK_K") == 0 || config.at("BLOCK_K") % 4 != 0) return "takes terms by fours";
  if (lanes == 0 || items % lanes != 0)
    return "takes work-groups of whole rows of lanes, and WG_X is " + std::to_string(items);
  return std::nullopt;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = rejects_cut(config)) return no;
  if (is_eight_bits(problem.dtype) && MATMUL_BLOCK % config.at("BLOCK_K") != 0)
    return "takes terms of 8 bits by divisors of " + std::to_string(MATMUL_BLOCK);
  const Geometry geometry = geometry_of(config);
  if (Refusal no = rejects_grouped(problem, profile, geometry.block_m)) return no;
  for (const GroupedStage& stage : grouped_stages(problem.as<GroupedProblem>().slots)) {
    const auto product = grouped_product(problem, stage);
    if (product && units_of(problem, stage, *product, geometry) >= std::uint64_t{1} << 31)
      return "counts tiles to 2^31";
  }
  return std::nullopt;
}

Pass tile_pass(const std::string& name) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "matmul/grouped/product.cl", .entry = "grouped_product"};
  pass.vulkan = {.file = "matmul/grouped/product.comp", .entry = "main"};
  pass.axes = storage_axes;
  return pass;
}

Pass product_pass(const GroupedStage& stage) {
  Pass pass = tile_pass(stage.name);
  pass.constants = [stage](const Problem& problem, const Config&) {
    return grouped_constants(problem, stage);
  };
  pass.groups = [stage](const Problem& problem, const Config& config) {
    const auto product = grouped_product(problem, stage);
    if (!product || product->is_empty()) return Dim3{0, 0, 0};
    const std::uint64_t units = units_of(problem, stage, *product, geometry_of(config));
    return Dim3{static_cast<std::uint32_t>(std::min<std::uint64_t>(units, kMostGroups))};
  };
  pass.args = [stage](const Problem& problem, const Config&) {
    const auto product = grouped_product(problem, stage);
    return argument_bytes(product ? product->args : abi::GroupedArgs{});
  };
  return pass;
}

// ---- blocks of a sparse matrix: a result is a group ---------------------------------------------

// Those first whose tiles are no wider than a block.
std::vector<Config> sparse_space(const Problem& problem, const DeviceProfile& profile) {
  std::vector<Config> list = cuts_of(profile);
  // By ocloc one register of Xe-LP's spills beside 16 terms.
  if (profile.vendor_id == kVendorIntel && profile.backend == Backend::kOpenCL &&
      !has_large_registers(profile)) {
    for (Config& config : list) {
      if (config.at("COLUMNS") == 8 && config.group().x == 256) config.set("BLOCK_K", 8);
    }
  }
  const auto& call = problem.as<SparseProblem>();
  kernel::put_first(list, [&](const Config& config) {
    const std::int64_t columns = std::int64_t{config.at("COLUMNS")} *
                                 (config.group().x / std::max(config.at("LANES_M"), 1U));
    return columns <= call.block_n && rows_of(config) <= std::max(call.m, call.block_k);
  });
  return list;
}

std::uint64_t sparse_units(const SparseProduct& product, const Geometry& geometry) {
  return static_cast<std::uint64_t>(product.results) * ceil_div(product.m, geometry.block_m) *
         ceil_div(product.n, geometry.block_n);
}

Pass sparse_pass(const SparseStage& stage) {
  Pass pass = tile_pass(stage.name);
  pass.bindings = {stage.a, stage.b, kScratch, kNoOperand, stage.result, kNoOperand, kNoOperand};
  pass.constants = [stage](const Problem& problem, const Config&) {
    std::vector<Define> constants = sparse_constants(problem, stage);
    constants.push_back({"RAGGED", GROUPED_BLOCKS});
    constants.push_back({"BLOCKS", MATMUL_BLOCKS_NONE});
    return constants;
  };
  pass.groups = [stage](const Problem& problem, const Config& config) {
    const auto product = sparse_product(problem, stage);
    if (!product || product->is_empty()) return Dim3{0, 0, 0};
    const std::uint64_t units = sparse_units(*product, geometry_of(config));
    return Dim3{static_cast<std::uint32_t>(std::min<std::uint64_t>(units, kMostGroups))};
  };
  pass.args = [stage](const Problem& problem, const Config&) {
    const auto product = sparse_product(problem, stage);
    return argument_bytes(product ? product->args : abi::GroupedArgs{});
  };
  return pass;
}

Refusal rejects_sparse_tiles(const Problem& problem, const Config& config,
                             const DeviceProfile& profile) {
  if (Refusal no = rejects_cut(config)) return no;
  return rejects_sparse(problem, profile);
}

}  // namespace

Way sparse_tile_way(const SparseSlots& slots) {
  Variant variant;
  variant.name = "tile";
  variant.idea = "tiles of a result, over the terms of its blocks; both operands in local memory";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = tunables();
  variant.space = sparse_space;
  variant.rejects = rejects_sparse_tiles;
  variant.local_bytes = [](const Problem&, const Config& config) {
    return geometry_of(config).local_bytes;
  };
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    return sparse_scratch(problem);
  };
  variant.passes = sparse_passes(slots, sparse_pass);
  return {.variant = std::move(variant),
          .rule = {.why = "blocks fill tiles",
                   .when =
                       [](const Problem& problem, const DeviceProfile&) {
                         const auto& call = problem.as<SparseProblem>();
                         return call.block_k >= 8 && call.block_n >= 8;
                       },
                   .config =
                       [](const Problem& problem, const DeviceProfile& profile) {
                         const std::vector<Config> list = sparse_space(problem, profile);
                         return list.empty() ? make_config(4, 4, 8, 4, 16) : list.front();
                       }}};
}

Way grouped_tile_way(const GroupedSlots& slots) {
  Variant variant;
  variant.name = "tile";
  variant.idea = "a work list of tiles of one group; both operands in local memory";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  if (!slots.backward())
    variant.dtypes.insert(variant.dtypes.end(), {DType::kI8, DType::kE4M3FN, DType::kE5M2});
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = [](const Problem&, const Config& config) {
    return geometry_of(config).local_bytes;
  };
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return grouped_scratch(problem, rows_of(config));
  };
  variant.passes = grouped_passes(slots, rows_of, product_pass);
  return {.variant = std::move(variant),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; },
                   .config =
                       [](const Problem& problem, const DeviceProfile& profile) {
                         const std::vector<Config> list = space(problem, profile);
                         return list.empty() ? make_config(4, 4, 8, 4, 16) : list.front();
                       }}};
}

}  // namespace tessera::operations::matmul
