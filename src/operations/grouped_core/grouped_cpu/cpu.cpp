// SPDX-License-Identifier: Apache-2.0
// Blocks and panels of floats in private memory: processors through OpenCL.
#include <algorithm>
#include <string>

#include "kernel/tunable_list.hpp"
#include "operations/common/launch.hpp"
#include "operations/grouped_core/stages.hpp"

namespace tessera::operations::matmul {
namespace {

constexpr std::uint32_t kPanels = 4;  // of an item, at most: PANELS of the kernel

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

// Panels of an item: fewer where four leave too few items for the processors to share evenly.
std::uint32_t panels_of(const Problem& problem, const GroupedStage& stage,
                        const GroupedProduct& product, const Config& config) {
  constexpr std::uint64_t kItems = 64;
  const std::uint64_t panels = ceil_div(product.n, 2 * std::int64_t{config.at("VECTOR_WIDTH")});
  const std::uint64_t items = panels * blocks_of(problem, stage, product, config);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(items / kItems, 1, kPanels));
}

std::uint64_t units_of(const Problem& problem, const GroupedStage& stage,
                       const GroupedProduct& product, const Config& config) {
  const std::int64_t panels = ceil_div(product.n, 2 * std::int64_t{config.at("VECTOR_WIDTH")});
  return blocks_of(problem, stage, product, config) *
         ceil_div(panels, panels_of(problem, stage, product, config));
}

std::vector<Config> space(const Problem& /*problem*/, const DeviceProfile& profile) {
  const std::uint32_t width = vector_width(profile);
  const auto config = [&](std::uint32_t rows, std::uint32_t block_m) {
    return Config{{"ROWS", rows}, {"BLOCK_M", block_m}, {"BLOCK_K", 256}, {"VECTOR_WIDTH", width}};
  };
  std::vector<Config> list{config(8, 64), config(12, 96)};
  if (width < 16) list = {config(4, 64), config(6, 96)};
  return list;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t width = config.at("VECTOR_WIDTH"), terms = config.at("BLOCK_K");
  const std::uint32_t rows = config.at("ROWS"), block = config.at("BLOCK_M");
  if (width != 4 && width != 8 && width != 16)
    return "takes vectors of 4, 8 or 16 floats, and VECTOR_WIDTH is " + std::to_string(width);
  if (rows == 0 || rows > 16 || block == 0 || block % rows != 0)
    return "takes blocks of whole tiles of 1 to 16 rows";
  if (terms == 0 || terms % width != 0) return "takes blocks of whole vectors of terms";
  const std::uint64_t floats =
      std::uint64_t{2 * kPanels} * block * width + std::uint64_t{terms} * (block + 2 * width);
  if (Refusal no = rejects_private_bytes(4 * floats)) return no;
  if (Refusal no = rejects_grouped(problem, profile, block)) return no;
  for (const GroupedStage& stage : grouped_stages(problem.as<GroupedProblem>().slots)) {
    const auto product = grouped_product(problem, stage);
    if (product && units_of(problem, stage, *product, config) >= std::uint64_t{1} << 31)
      return "counts items to 2^31";
  }
  return std::nullopt;
}

Pass product_pass(const GroupedStage& stage) {
  Pass pass;
  pass.name = stage.name;
  pass.opencl = {.file = "matmul/grouped_cpu/product.cl", .entry = "grouped_product_cpu"};
  pass.constants = [stage](const Problem& problem, const Config&) {
    return grouped_constants(problem, stage);
  };
  pass.groups = [stage](const Problem& problem, const Config& config) {
    const auto product = grouped_product(problem, stage);
    if (!product || product->is_empty()) return Dim3{0, 0, 0};
    return Dim3{static_cast<std::uint32_t>(units_of(problem, stage, *product, config))};
  };
  pass.args = [stage](const Problem& problem, const Config& config) {
    const auto product = grouped_product(problem, stage);
    if (!product) return argument_bytes(abi::GroupedArgs{});
    abi::GroupedArgs args = product->args;
    args.panels = panels_of(problem, stage, *product, config);
    return argument_bytes(args);
  };
  return pass;
}

}  // namespace

Way grouped_cpu_way(const GroupedSlots& slots) {
  Variant variant;
  variant.name = "cpu";
  variant.idea = "an item multiplies rows of one group with panels, tile by tile in registers";
  variant.needs = opencl_cpu();
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return grouped_scratch(problem, rows_of(config));
  };
  variant.passes = grouped_passes(slots, rows_of, product_pass);
  return {.variant = std::move(variant),
          .rule = {.why = "processors want panels of vectors, and no local memory",
                   .when = [](const Problem&,
                              const DeviceProfile& profile) { return is_opencl_cpu(profile); },
                   .config =
                       [](const Problem& problem, const DeviceProfile& profile) {
                         return space(problem, profile).front();
                       }}};
}

}  // namespace tessera::operations::matmul
