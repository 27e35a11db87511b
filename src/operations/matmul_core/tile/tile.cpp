// SPDX-License-Identifier: Apache-2.0
// Tiles in local memory, sums in registers: any GPU, any strides, any storage types.
#include <algorithm>
#include <string>

#include "base/vendor_ids.hpp"
#include "kernel/config_order.hpp"
#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/matmul_core/arguments.hpp"
#include "operations/matmul_core/launch.hpp"
#include "operations/matmul_core/tile/geometry.h"

namespace tessera::operations::matmul {
namespace {

constexpr std::uint32_t kMostGroups = 65535;  // of a launch along an axis
constexpr std::uint32_t kLeastSteps = 4;      // of a share of the terms

std::vector<Tunable> tunables() {
  std::vector<Tunable> list{
#include "operations/matmul_core/tile/tile.def"
  };
  list.push_back({.id = 30, .name = "FILL", .fallback = 1, .launch_only = true});
  return list;
}

struct TileGeometry {
  std::uint32_t block_m = 0, block_n = 0, block_k = 0;
  std::uint64_t local_bytes = 0;
};

using Number = std::uint32_t;
TileGeometry geometry_of(const Config& config) {
#include "kernel/tunable_locals.inc"
#include "operations/matmul_core/tile/tile.def"
  return {.block_m = BLOCK_M,
          .block_n = BLOCK_N,
          .block_k = BLOCK_K,
          .local_bytes = std::uint64_t{16} * TILE_VECTORS};
}

std::uint64_t tiles_of(const Product& product, const TileGeometry& geometry) {
  return std::uint64_t{ceil_div(product.m, geometry.block_m)} *
         ceil_div(product.n, geometry.block_n) * static_cast<std::uint64_t>(product.batches());
}

std::uint32_t splits(const Product& product, const Config& config) {
  const TileGeometry geometry = geometry_of(config);
  if (product.blocks == MATMUL_BLOCKS_WHOLE) return 1;  // shares are floats
  return filling_splits(product, tiles_of(product, geometry), config.at("FILL"),
                        std::int64_t{kLeastSteps} * geometry.block_k);
}

Config make_config(std::uint32_t rows, std::uint32_t columns, std::uint32_t block_k,
                   std::uint32_t lanes_m, std::uint32_t items, std::uint32_t fill) {
  return {{"ROWS", rows},       {"COLUMNS", columns}, {"BLOCK_K", block_k},
          {"LANES_M", lanes_m}, {"WG_X", items},      {"FILL", fill}};
}

bool fits(const Config& config, const DeviceProfile& profile) {
  return (profile.local_memory == 0 || geometry_of(config).local_bytes <= profile.local_memory) &&
         (profile.max_group_size == 0 || config.group().x <= profile.max_group_size);
}

// Largest tiles first, but those of which there are too few to fill the device are last, the
// smallest of them first.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  if (is_cpu(profile)) return {make_config(4, 4, 8, 4, 16, 1)};  // they only check these kernels
  const std::uint32_t fill = 2 * kernel::compute_units_of(profile);
  std::vector<Config> list{
      make_config(8, 8, 16, 16, 256, fill), make_config(8, 8, 8, 16, 256, fill),
      make_config(8, 8, 16, 8, 128, fill),  make_config(8, 8, 16, 8, 64, fill),
      make_config(4, 8, 16, 8, 64, fill),   make_config(4, 4, 16, 8, 64, fill)};
  // Measured on an H200. Of 8 bits an item keeps the sums of a block beside those of all.
  if (profile.vendor_id == kVendorNvidia && !is_eight_bits(problem.dtype)) {
    list.insert(list.begin(),
                {make_config(16, 8, 16, 16, 256, fill), make_config(8, 8, 32, 16, 256, fill)});
  }
  if (profile.vendor_id == kVendorIntel) {  // 128 registers to an item
    list = {make_config(4, 8, 16, 16, 256, fill), make_config(4, 4, 16, 16, 256, fill),
            make_config(4, 8, 16, 8, 64, fill), make_config(4, 4, 16, 8, 64, fill)};
    // Mesa's compiler keeps 32 sums of an item in scratch memory.
    if (profile.backend == Backend::kVulkan)
      std::erase_if(list, [](const Config& config) { return config.at("COLUMNS") == 8; });
  }
  std::erase_if(list, [&](const Config& config) {
    return config.at("ROWS") * config.at("COLUMNS") == 64 &&
           config.group().x < kernel::fewest_items_of_64_sums(profile);
  });
  list.push_back(make_config(4, 4, 8, 4, 16, fill));
  std::erase_if(list, [&](const Config& config) { return !fits(config, profile); });
  const std::vector<Product> products = products_of(problem);
  const auto too_small = kernel::put_first(list, [&](const Config& config) {
    return std::ranges::all_of(products, [&](const Product& product) {
      return 2 * tiles_of(product, geometry_of(config)) >= fill;
    });
  });
  std::ranges::reverse(too_small);
  return list;
}

Config first_config(const Problem& problem, const DeviceProfile& profile) {
  const std::vector<Config> list = space(problem, profile);
  return list.empty() ? make_config(4, 4, 8, 4, 16, 1) : list.front();
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t rows = config.at("ROWS"), columns = config.at("COLUMNS");
  const std::uint32_t lanes = config.at("LANES_M"), items = config.get("WG_X", 1);
  if (rows == 0 || rows % 4 != 0 || columns == 0 || columns % 4 != 0 || rows * columns > 256)
    return "takes fours of rows and columns, at most 256 sums an item";
  if (config.at("BLOCK_K") == 0 || config.at("BLOCK_K") % 4 != 0) return "takes terms by fours";
  if (is_eight_bits(problem.dtype) && MATMUL_BLOCK % config.at("BLOCK_K") != 0)
    return "takes terms of 8 bits by divisors of " + std::to_string(MATMUL_BLOCK);
  if (lanes == 0 || items % lanes != 0)
    return "takes work-groups of whole rows of lanes, and WG_X is " + std::to_string(items);
  if (Refusal no = rejects_products(problem, profile)) return no;
  const TileGeometry geometry = geometry_of(config);
  for (const Product& product : products_of(problem)) {
    const std::uint32_t shares = splits(product, config);
    if (tiles_of(product, geometry) * shares >= std::uint64_t{1} << 31)
      return "counts tiles to 2^31";
    if (partial_start(problem, 0) + partial_floats(product, shares) >= std::uint64_t{1} << 31)
      return "counts elements to 2^31, and the sums of shares are more";
  }
  return std::nullopt;
}

Pass product_pass(const Stage& stage) {
  Pass pass;
  pass.name = stage.name;
  pass.opencl = {.file = "matmul/tile/product.cl", .entry = "matmul_product"};
  pass.vulkan = {.file = "matmul/tile/product.comp", .entry = "main"};
  const auto& slots = stage.slots;
  pass.bindings = with_finish({slots[kA], slots[kB], kScratch}, stage);
  pass.axes = storage_axes;
  pass.constants = [stage](const Problem& problem, const Config&) {
    return type_constants(problem, stage);
  };
  pass.groups = [stage](const Problem& problem, const Config& config) {
    const auto product = product_of(problem, stage);
    if (!product || product->is_empty() || product->terms() == 0) return Dim3{0, 0, 0};
    const std::uint64_t units = tiles_of(*product, geometry_of(config)) * splits(*product, config);
    return Dim3{static_cast<std::uint32_t>(std::min<std::uint64_t>(units, kMostGroups))};
  };
  pass.args = [stage](const Problem& problem, const Config& config) {
    const auto product = product_of(problem, stage);
    if (!product) return argument_bytes(abi::MatmulArgs{});
    abi::MatmulArgs args = arguments_of(*product);
    args.splits = splits(*product, config);
    args.partial = static_cast<abi::u32>(partial_start(problem, 0));
    return argument_bytes(args);
  };
  return pass;
}

}  // namespace

Way tile_way(const MatmulSlots& slots) {
  Variant variant;
  variant.name = "tile";
  variant.idea = "tiles of both operands in local memory, sums in registers";
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
    std::uint64_t floats = 0;
    for (const Product& product : products_of(problem))
      floats = std::max(floats, partial_floats(product, splits(product, config)));
    return 4 * (partial_start(problem, 0) + floats);
  };
  if (slots.backward()) variant.passes.push_back(ones_pass());
  for (const Stage& stage : stages(slots)) {
    variant.passes.push_back(product_pass(stage));
    variant.passes.push_back(combine_pass(stage, splits));
  }
  return {.variant = std::move(variant),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; },
                   .config = first_config}};
}

}  // namespace tessera::operations::matmul
