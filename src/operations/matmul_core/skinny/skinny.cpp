// SPDX-License-Identifier: Apache-2.0
// Few rows times a matrix, which is read once at the speed of memory: any GPU, any strides, any
// storage types.
#include <algorithm>
#include <string>

#include "base/vendor_ids.hpp"
#include "kernel/config_order.hpp"
#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/matmul_core/arguments.hpp"
#include "operations/matmul_core/launch.hpp"
#include "operations/matmul_core/skinny/geometry.h"

namespace tessera::operations::matmul {
namespace {

constexpr std::uint32_t kMostGroups = 65535;  // of a launch along an axis
constexpr std::int64_t kLeastTerms = 256;     // of a share
constexpr std::int64_t kMostRows = 16;        // beyond, other kernels read a matrix as fast
constexpr std::int64_t kMostRowsBesideMatrixUnits = 8;
constexpr std::uint32_t kMostSums = 64;     // of an item
constexpr std::uint32_t kMostLanes = 512;   // whose sums are added up in three steps
constexpr std::uint32_t kMostVectors = 32;  // of b that an item asks for at once

enum Order : std::uint32_t { kNeither, kByTerms, kByColumns };

std::vector<Tunable> tunables() {
  std::vector<Tunable> list{
#include "operations/matmul_core/skinny/skinny.def"
  };
  list.push_back({.id = 30, .name = "FILL", .fallback = 1, .launch_only = true});
  return list;
}

struct SkinnyGeometry {
  std::uint32_t rows = 0, block_n = 0, block_k = 0;
  std::uint64_t local_bytes = 0;
};

using Number = std::uint32_t;
SkinnyGeometry geometry_of(const Config& config) {
#include "kernel/tunable_locals.inc"
#include "operations/matmul_core/skinny/skinny.def"
  return {.rows = ROWS,
          .block_n = BLOCK_N,
          .block_k = BLOCK_K,
          .local_bytes = std::uint64_t{16} * SKINNY_LOCAL_VECTORS};
}

std::uint64_t blocks_of(const Product& product, const Config& config) {
  const SkinnyGeometry geometry = geometry_of(config);
  return std::uint64_t{ceil_div(product.m, geometry.rows)} * ceil_div(product.n, geometry.block_n) *
         static_cast<std::uint64_t>(product.batches());
}

std::uint32_t splits(const Product& product, const Config& config) {
  return filling_splits(product, blocks_of(product, config), config.at("FILL"),
                        std::max<std::int64_t>(kLeastTerms, geometry_of(config).block_k));
}

Order order_of(const Product& product) {
  const abi::u32 features = arguments_of(product).features;
  if ((features & MATMUL_B_BY_TERMS) != 0) return kByTerms;
  return (features & MATMUL_B_BY_COLUMNS) != 0 ? kByColumns : kNeither;
}

bool reads_by_columns(const Problem& problem) {
  return std::ranges::any_of(
      products_of(problem), [](const Product& product) { return order_of(product) == kByColumns; });
}

std::int64_t most_rows(const Problem& problem) {
  std::int64_t most = 1;
  for (const Product& product : products_of(problem)) most = std::max(most, product.m);
  return most;
}

// Columns that items have beside one another are 64 bytes of a row or more where they are
// neighbours in memory. Work-groups that share fewer columns come first where there would be too
// few of them.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  // ocloc and ptxas take 3 s for 8 rows of an item, or for as many squares.
  const bool is_opencl = profile.backend == Backend::kOpenCL;
  const bool is_intel = is_opencl && profile.vendor_id == kVendorIntel;
  const bool is_nvidia = is_opencl && profile.vendor_id == kVendorNvidia;
  const std::uint32_t most_item_rows = is_intel || is_nvidia ? 4 : 8;
  // One program serves all on a CPU.
  std::uint32_t rows = is_cpu(profile) ? most_item_rows : 1;
  while (rows < most_item_rows && rows < most_rows(problem)) rows *= 2;
  const auto config = [&](std::uint32_t columns, std::uint32_t squares, std::uint32_t lanes_k,
                          std::uint32_t items, std::uint32_t fill) {
    return Config{{"ROWS", rows},       {"COLUMNS", columns}, {"SQUARES", squares},
                  {"LANES_K", lanes_k}, {"WG_X", items},      {"FILL", fill}};
  };
  if (is_cpu(profile)) return {config(4, 2, 16, 32, 1)};  // they only check these kernels
  const std::uint32_t fill = kernel::compute_units_of(profile);
  // Intel's compiler for Vulkan spills with two rows of four squares.
  const std::uint32_t four_squares = profile.vendor_id == kVendorIntel ? 1 : 2;  // rows at most
  const std::uint32_t wide = rows <= four_squares ? 4 : rows <= 4 ? 2 : 1;
  const std::uint32_t squares = is_intel ? 1 : is_nvidia ? 4 / rows : wide;
  std::vector<Config> list;
  if (reads_by_columns(problem)) {
    list = {config(4, squares, 16, 256, fill), config(4, squares, 8, 128, fill),
            config(4, squares, 16, 128, fill)};
  } else {
    list = {config(4, squares, 32, 128, fill), config(4, squares, 128, 128, fill),
            config(4, squares, 64, 64, fill)};
  }
  if (rows * 8 <= kMostSums) list.push_back(config(8, std::max(squares / 2, 1U), 32, 256, fill));
  std::erase_if(list, [&](const Config& each) {
    return (profile.local_memory != 0 && geometry_of(each).local_bytes > profile.local_memory) ||
           (profile.max_group_size != 0 && each.group().x > profile.max_group_size);
  });
  if (list.empty()) list = {config(4, squares, 16, 32, fill)};
  kernel::put_first(list, [&](const Config& each) {
    return std::ranges::all_of(products_of(problem), [&](const Product& product) {
      return blocks_of(product, each) >= fill;
    });
  });
  return list;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t rows = config.at("ROWS"), columns = config.at("COLUMNS");
  const std::uint32_t lanes = config.at("LANES_K"), squares = config.at("SQUARES");
  if (rows == 0 || columns == 0 || columns % 4 != 0 || rows > kMostSums || columns > kMostSums ||
      rows * columns > kMostSums)
    return "takes fours of columns, and at most 64 sums an item";
  if (squares == 0 || squares > kMostVectors || squares * columns > kMostVectors)
    return "asks for at most 32 vectors at once";
  if (lanes == 0 || lanes > kMostLanes || config.get("WG_X", 1) % lanes != 0)
    return "takes work-groups of whole rows of up to 512 lanes, and WG_X is " +
           std::to_string(config.get("WG_X", 1));
  if (Refusal no = rejects_products(problem, profile)) return no;
  for (const Product& product : products_of(problem)) {
    if (product.m > kMostRows)
      return "takes products of at most 16 rows, or of at most 8 columns, which become rows";
    if (product.m > rows && rows % 4 != 0 &&
        (arguments_of(product).features & MATMUL_A_BY_ROWS) != 0)
      return "has blocks of " + std::to_string(rows) +
             " rows, and reads fours of rows that are contiguous";
    const std::uint32_t shares = splits(product, config);
    if (blocks_of(product, config) * shares >= std::uint64_t{1} << 31)
      return "counts blocks to 2^31";
    if (partial_start(problem, 0) + partial_floats(product, shares) >= std::uint64_t{1} << 31)
      return "counts elements to 2^31, and the sums of shares are more";
  }
  return std::nullopt;
}

Pass product_pass(const Stage& stage) {
  Pass pass;
  pass.name = stage.name;
  pass.opencl = {.file = "matmul/skinny/product.cl", .entry = "matmul_skinny"};
  pass.vulkan = {.file = "matmul/skinny/product.comp", .entry = "main"};
  const auto& slots = stage.slots;
  pass.bindings = with_finish({slots[kA], slots[kB], kScratch}, stage);
  pass.axes = storage_axes;
  pass.constants = [stage](const Problem& problem, const Config&) {
    std::vector<Define> list = type_constants(problem, stage);
    const auto product = product_of(problem, stage);
    list.push_back({"B_ORDER", product ? order_of(*product) : kNeither});
    return list;
  };
  pass.groups = [stage](const Problem& problem, const Config& config) {
    const auto product = product_of(problem, stage);
    if (!product || product->is_empty() || product->terms() == 0) return Dim3{0, 0, 0};
    const std::uint64_t units = blocks_of(*product, config) * splits(*product, config);
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

bool prefers_skinny(const Problem& problem, const DeviceProfile& profile) {
  const bool multiplied = problem.dtype != DType::kF32 && has(profile.features, Feature::kMmaSync);
  return most_rows(problem) <= (multiplied ? kMostRowsBesideMatrixUnits : kMostRows);
}

}  // namespace

Way skinny_way(const MatmulSlots& slots) {
  Variant variant;
  variant.name = "skinny";
  variant.idea = "few rows in registers, the matrix straight from memory, terms shared by lanes";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
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
          .rule = {.why = "few rows: as fast as the matrix is read", .when = prefers_skinny}};
}

}  // namespace tessera::operations::matmul
