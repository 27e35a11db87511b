// SPDX-License-Identifier: Apache-2.0
// NVIDIA's Hopper through OpenCL: groups of 16-bit operands by tensor copies and wgmma.
#include <algorithm>
#include <cstddef>
#include <string>

#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/grouped_core/copies.hpp"
#include "operations/grouped_core/gated.hpp"
#include "operations/grouped_core/hopper/geometry.h"
#include "operations/grouped_core/stages.hpp"
#include "operations/matmul_core/core/hopper_results.h"

namespace tessera::operations::matmul {
namespace {

constexpr std::uint32_t kRows = 128;  // of a tile
constexpr std::uint32_t kItems = 384, kListItems = 128;
constexpr std::uint32_t kMostGroups = 256;                       // that stay
constexpr std::uint32_t kMostStages = 3, kMostNarrowStages = 4;  // that fit local memory
constexpr std::uint64_t kMapFloats = 32;

std::vector<Tunable> tunables() {
  return {
#include "operations/grouped_core/hopper/hopper.def"
      {.id = 31, .name = "GROUPS", .fallback = 132, .launch_only = true},
  };
}

// Copies begin at multiples of 16 bytes along the contiguous axis; groups begin anywhere along the
// ragged one.
Refusal refuses(const Problem& problem, const GroupedStage& stage) {
  const auto product = grouped_product(problem, stage);
  if (!product || product->is_empty() || product->k == 0) return std::nullopt;
  const abi::MatmulArgs args = matmul_arguments(problem, stage);
  const std::uint32_t columns = problem.as<GroupedProblem>().gate ? 2 * args.n : args.n;
  if (product->dtypes[kLeft] != problem.dtype || product->dtypes[kRight] != problem.dtype ||
      !tensor_copies_take(args.a, problem.dtype, args.m, args.k, 1) ||
      !tensor_copies_take(args.b, problem.dtype, args.k, columns,
                          stage.over_terms ? 1 : args.batches))
    return "takes operands of one type of 16 bits that are contiguous along an axis, with offsets "
           "and strides that are multiples of 16 bytes";
  const bool ragged = stage.over_terms ? args.a.column == 1 || args.b.row == 1 : args.a.column != 1;
  if (ragged) return "takes no operands that are contiguous along the axis that groups share";
  return std::nullopt;
}

std::uint32_t result_of(const Problem& problem, const GroupedStage& stage) {
  const auto product = grouped_product(problem, stage);
  if (!product) return HOPPER_ANY_RESULT;
  const abi::MatmulArgs args = matmul_arguments(problem, stage);
  const DType dtype = product->dtypes[kProduct];
  const bool adds = stage.over_terms && (args.features & MATMUL_ADDEND) != 0;
  if (adds || args.result.column != 1 ||
      !tensor_copies_take(args.result, dtype, args.m, args.n, stage.over_terms ? args.batches : 1))
    return HOPPER_ANY_RESULT;
  return dtype == DType::kF16 ? HOPPER_F16 : dtype == DType::kBF16 ? HOPPER_BF16 : HOPPER_WORDS;
}

// Of the groups whose sizes nobody here knows, at most.
std::uint64_t tiles_of(const Problem& problem, const GroupedStage& stage,
                       const GroupedProduct& product, std::uint32_t block_n) {
  const std::uint64_t blocks = stage.over_terms ? ceil_div(product.m, kRows) : 1;
  const std::uint32_t columns = problem.as<GroupedProblem>().gate ? block_n / 2 : block_n;
  return grouped_items(problem, stage, kRows) * blocks * ceil_div(product.n, columns);
}

std::vector<Define> constants(const Problem& problem, const GroupedStage& stage) {
  const abi::MatmulArgs args = matmul_arguments(problem, stage);
  const auto& gate = problem.as<GroupedProblem>().gate;
  return {{"A_BY_TERMS", args.a.column == 1 ? 1U : 0U},
          {"B_BY_TERMS", args.b.row == 1 ? 1U : 0U},
          {"RESULT", result_of(problem, stage)},
          {"FEATURES", gate ? HOPPER_HALVES | *gate : 0},
          {"RAGGED", static_cast<std::uint32_t>(stage.over_terms ? GROUPED_TERMS : GROUPED_ROWS)}};
}

// In scratch, in floats: the list of groups, then the maps.
std::uint64_t maps_start(std::int64_t held, std::int64_t groups) {
  constexpr std::uint64_t kBytes = 128;
  const std::uint64_t list =
      16 * (1 + static_cast<std::uint64_t>(held)) + 4 * static_cast<std::uint64_t>(groups);
  return (list + kBytes - 1) / kBytes * kBytes / 4;
}

std::uint64_t scratch_bytes(std::int64_t held, std::int64_t groups) {
  return 4 * (maps_start(held, groups) +
              kMapFloats * (GROUPED_MAPS + 2 * static_cast<std::uint64_t>(held)));
}

abi::MatmulArgs product_arguments(const Problem& problem, const GroupedStage& stage) {
  abi::MatmulArgs args = matmul_arguments(problem, stage);
  const auto& call = problem.as<GroupedProblem>();
  args.maps = static_cast<abi::u32>(maps_start(call.held, call.groups));
  return args;
}

Pass hopper_pass(const std::string& name, const char* file, const char* entry,
                 const GroupedStage& stage) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = file, .entry = entry, .ptx_target = "sm_90a"};
  pass.axes = dtype_axes;
  pass.constants = [stage](const Problem& problem, const Config&) {
    return constants(problem, stage);
  };
  return pass;
}

Pass prepare_pass(const GroupedSlots& slots, const GroupedStage& stage) {
  const Pass list = grouped_list_pass(slots, {stage});
  Pass pass = hopper_pass(stage.name + " maps", "matmul/hopper/grouped_list.cl",
                          "grouped_hopper_list", stage);
  pass.specialized_on = std::vector<std::string>{"BLOCK_N", "A_BY_TERMS", "B_BY_TERMS",
                                                 "RESULT",  "FEATURES",   "RAGGED"};
  pass.group_size = [](const Config&) { return Dim3{kListItems}; };
  pass.groups = list.groups;
  pass.errors_at = list.errors_at;
  pass.bindings = list.bindings;
  for (const GroupedRole role : {kLeft, kRight, kProduct})
    pass.bindings.push_back(stage.slots[role]);
  pass.args = [stage](const Problem& problem, const Config&) {
    const auto held = static_cast<std::uint64_t>(problem.as<GroupedProblem>().held);
    return argument_bytes(abi::GroupedPrepareArgs{.list = list_arguments(problem, held, 0),
                                                  .product = product_arguments(problem, stage)});
  };
  return pass;
}

Pass product_pass(const GroupedStage& stage) {
  Pass pass = hopper_pass(stage.name, "matmul/hopper/grouped.cl", "grouped_hopper", stage);
  pass.bindings = {stage.slots[kLeft], stage.slots[kRight], kScratch, stage.slots[kAdded],
                   stage.slots[kProduct]};
  pass.groups = [stage](const Problem& problem, const Config& config) {
    const auto product = grouped_product(problem, stage);
    if (!product || product->is_empty()) return Dim3{0, 0, 0};
    const std::uint64_t tiles = tiles_of(problem, stage, *product, config.at("BLOCK_N"));
    return Dim3{
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(tiles, 1, config.at("GROUPS")))};
  };
  pass.args = [stage](const Problem& problem, const Config&) {
    return argument_bytes(product_arguments(problem, stage));
  };
  return pass;
}

// Wide tiles first, but for products that have too few of them.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const std::uint32_t groups =
      std::min<std::uint32_t>(kernel::compute_units_of(profile), kMostGroups);
  const auto config = [&](std::uint32_t block_n, std::uint32_t stages) {
    return Config{{"BLOCK_N", block_n}, {"STAGES", stages}, {"WG_X", kItems}, {"GROUPS", groups}};
  };
  std::vector<Config> list{config(256, kMostStages), config(128, kMostNarrowStages)};
  const std::vector<GroupedStage> stages = grouped_stages(problem.as<GroupedProblem>().slots);
  const bool few = std::ranges::any_of(stages, [&](const GroupedStage& stage) {
    const auto product = grouped_product(problem, stage);
    return product && product->k > 0 && tiles_of(problem, stage, *product, 256) * 4 < 3 * groups;
  });
  if (few) std::swap(list[0], list[1]);
  return list;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t block_n = config.at("BLOCK_N"), stages = config.at("STAGES");
  if (block_n != 128 && block_n != 256) return "takes tiles of 128 or 256 columns";
  if (stages < 2 || stages > (block_n == 256 ? kMostStages : kMostNarrowStages))
    return "has local memory for 2 or 3 stages, of tiles of 128 columns for 4";
  if (config.get("WG_X", 0) != kItems || config.at("GROUPS") == 0 ||
      config.at("GROUPS") > kMostGroups)
    return "takes at most " + std::to_string(kMostGroups) + " work-groups, of three warpgroups";
  if (Refusal no = rejects_grouped(problem, profile, kRows)) return no;
  const auto& call = problem.as<GroupedProblem>();
  if (call.held > GROUPED_MOST_HELD)
    return "takes at most " + std::to_string(GROUPED_MOST_HELD) + " groups with a matrix";
  for (const GroupedStage& stage : grouped_stages(call.slots)) {
    const auto product = grouped_product(problem, stage);
    if (!product) continue;
    if (Refusal no = refuses(problem, stage)) return no;
    if (tiles_of(problem, stage, *product, block_n) >= std::uint64_t{1} << 31)
      return "counts tiles to 2^31";
    if (call.gate && call.n >= std::int64_t{1} << 30)
      return "counts columns of gate and up to 2^31";
    if (call.gate && !product->is_empty() && result_of(problem, stage) == HOPPER_ANY_RESULT)
      return "leaves gated results by tensor copies, at multiples of 16 bytes";
  }
  return std::nullopt;
}

bool prefers_hopper(const Problem& problem, const DeviceProfile& profile) {
  constexpr std::int64_t kLeastRows = 16, kLeastColumns = 64;  // below, most of a tile is empty
  const auto& call = problem.as<GroupedProblem>();
  return has(profile.features, Feature::kWgmma) && call.m >= kLeastRows &&
         call.n >= kLeastColumns && call.k >= kLeastColumns;
}

}  // namespace

std::uint64_t gated_scratch(std::int64_t groups) { return scratch_bytes(groups, groups); }

Way grouped_hopper_way(const GroupedSlots& slots) {
  Variant variant;
  variant.name = "hopper";
  variant.idea = "wgmma on tiles of groups, which a counter hands out and one item copies";
  variant.needs = {.backends = {Backend::kOpenCL},
                   .features = Feature::kNvidiaPtx | Feature::kWgmma};
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    const auto& call = problem.as<GroupedProblem>();
    return scratch_bytes(call.held, call.groups);
  };
  for (const GroupedStage& stage : grouped_stages(slots)) {
    variant.passes.push_back(prepare_pass(slots, stage));
    variant.passes.push_back(product_pass(stage));
  }
  return {.variant = std::move(variant),
          .rule = {.why = "Hopper's matrix unit", .when = prefers_hopper}};
}

}  // namespace tessera::operations::matmul
