// SPDX-License-Identifier: Apache-2.0
// Blocks and panels of floats in private memory: processors through OpenCL.
#include <algorithm>
#include <string>

#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/grouped_core/stages.hpp"
#include "operations/sparse_core/stages.hpp"

namespace tessera::operations::matmul {
namespace {

constexpr std::uint32_t kPanels = 8;  // of an item, at most: PANELS of the kernel

std::vector<Tunable> tunables() {
  return {
#include "operations/grouped_core/grouped_cpu/cpu.def"
  };
}

std::uint32_t rows_of(const Config& config) { return config.at("BLOCK_M"); }

std::uint64_t blocks_of(const Problem& problem, const GroupedStage& stage,
                        const GroupedProduct& product, const Config& config) {
  const std::uint64_t blocks = stage.over_terms ? ceil_div(product.m, rows_of(config)) : 1;
  return grouped_items(problem, stage, rows_of(config)) * blocks;
}

// Of `blocks` blocks of rows by n columns.
struct Items {
  std::uint32_t panels = 1;  // of an item
  std::uint64_t units = 0;
};

// Fewer panels where four leave too few items for the processors to share evenly.
Items items_of(std::uint64_t blocks, std::int64_t n, const Config& config) {
  constexpr std::uint64_t kItems = 64;
  const std::uint64_t panels = ceil_div(n, 2 * std::int64_t{config.at("VECTOR_WIDTH")});
  Items items;
  items.panels =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(panels * blocks / kItems, 1, kPanels));
  items.units = blocks * ((panels + items.panels - 1) / items.panels);
  return items;
}

Items items_of(const Problem& problem, const GroupedStage& stage, const GroupedProduct& product,
               const Config& config) {
  return items_of(blocks_of(problem, stage, product, config), product.n, config);
}

std::vector<Config> space(const Problem& /*problem*/, const DeviceProfile& profile) {
  const std::uint32_t width = vector_width(profile);
  const auto config = [&](std::uint32_t rows, std::uint32_t block_m) {
    return Config{{"ROWS", rows}, {"BLOCK_M", block_m}, {"BLOCK_K", 256}, {"VECTOR_WIDTH", width}};
  };
  std::vector<Config> list{config(8, 128), config(12, 144)};
  if (width < 16) list = {config(6, 96), config(4, 128)};
  return list;
}

Refusal rejects_cut(const Config& config) {
  const std::uint32_t width = config.at("VECTOR_WIDTH"), terms = config.at("BLOCK_K");
  const std::uint32_t rows = config.at("ROWS"), block = config.at("BLOCK_M");
  if (Refusal no = rejects_vector_width(config)) return no;
  if (rows == 0 || rows > 16 || block == 0 || block % rows != 0)
    return "takes blocks of whole tiles of 1 to 16 rows";
  constexpr std::uint32_t kExact = 1024;  // products of i8 whose sum is a whole number of float
  if (terms == 0 || terms > kExact || terms % MATMUL_BLOCK != 0)
    return "takes blocks of at most " + std::to_string(kExact) + " terms, multiples of " +
           std::to_string(MATMUL_BLOCK);
  const std::uint64_t floats =
      std::uint64_t{2 * kPanels} * block * width + std::uint64_t{terms} * (block + 2 * width);
  return rejects_private_bytes(4 * floats);
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = rejects_cut(config)) return no;
  if (Refusal no = rejects_grouped(problem, profile, rows_of(config))) return no;
  for (const GroupedStage& stage : grouped_stages(problem.as<GroupedProblem>().slots)) {
    const auto product = grouped_product(problem, stage);
    if (product && items_of(problem, stage, *product, config).units >= std::uint64_t{1} << 31)
      return "counts items to 2^31";
  }
  return std::nullopt;
}

Pass cpu_pass(const std::string& name) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "matmul/grouped_cpu/product.cl", .entry = "grouped_product_cpu"};
  return pass;
}

Pass product_pass(const GroupedStage& stage) {
  Pass pass = cpu_pass(stage.name);
  pass.constants = [stage](const Problem& problem, const Config&) {
    return grouped_constants(problem, stage);
  };
  pass.groups = [stage](const Problem& problem, const Config& config) {
    const auto product = grouped_product(problem, stage);
    if (!product || product->is_empty()) return Dim3{0, 0, 0};
    return Dim3{static_cast<std::uint32_t>(items_of(problem, stage, *product, config).units)};
  };
  pass.args = [stage](const Problem& problem, const Config& config) {
    const auto product = grouped_product(problem, stage);
    if (!product) return argument_bytes(abi::GroupedArgs{});
    abi::GroupedArgs args = product->args;
    args.panels = items_of(problem, stage, *product, config).panels;
    return argument_bytes(args);
  };
  return pass;
}

// ---- blocks of a sparse matrix: a result is a group ---------------------------------------------

Items items_of(const SparseProduct& product, const Config& config) {
  const std::uint64_t blocks =
      static_cast<std::uint64_t>(product.results) * ceil_div(product.m, rows_of(config));
  return items_of(blocks, product.n, config);
}

Pass sparse_pass(const SparseStage& stage) {
  Pass pass = cpu_pass(stage.name);
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
    return Dim3{static_cast<std::uint32_t>(items_of(*product, config).units)};
  };
  pass.args = [stage](const Problem& problem, const Config& config) {
    const auto product = sparse_product(problem, stage);
    if (!product) return argument_bytes(abi::GroupedArgs{});
    abi::GroupedArgs args = product->args;
    args.panels = items_of(*product, config).panels;
    return argument_bytes(args);
  };
  return pass;
}

Refusal rejects_sparse_panels(const Problem& problem, const Config& config,
                              const DeviceProfile& profile) {
  if (Refusal no = rejects_cut(config)) return no;
  return rejects_sparse(problem, profile);
}

}  // namespace

Way sparse_cpu_way(const SparseSlots& slots) {
  Variant variant;
  variant.name = "cpu";
  variant.idea =
      "an item multiplies rows with panels of a result's blocks, tile by tile in registers";
  variant.needs = opencl_cpu();
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects_sparse_panels;
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    return sparse_scratch(problem);
  };
  variant.passes = sparse_passes(slots, sparse_pass);
  return {.variant = std::move(variant),
          .rule = {.why = "processors want panels of vectors, and no local memory",
                   .when = [](const Problem& problem, const DeviceProfile& profile) {
                     const auto& call = problem.as<SparseProblem>();
                     return is_opencl_cpu(profile) && call.block_k >= 8 && call.block_n >= 8;
                   }}};
}

Way grouped_cpu_way(const GroupedSlots& slots) {
  Variant variant;
  variant.name = "cpu";
  variant.idea = "an item multiplies rows of one group with panels, tile by tile in registers";
  variant.needs = opencl_cpu();
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  if (!slots.backward())
    variant.dtypes.insert(variant.dtypes.end(), {DType::kI8, DType::kE4M3FN, DType::kE5M2});
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return grouped_scratch(problem, rows_of(config));
  };
  variant.passes = grouped_passes(slots, rows_of, product_pass);
  return {.variant = std::move(variant),
          .rule = {.why = "processors want panels of vectors, and no local memory",
                   .when = [](const Problem&, const DeviceProfile& profile) {
                     return is_opencl_cpu(profile);
                   }}};
}

}  // namespace tessera::operations::matmul
