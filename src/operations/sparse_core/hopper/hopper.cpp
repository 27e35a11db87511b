// SPDX-License-Identifier: Apache-2.0
// NVIDIA's Hopper through OpenCL: blocks of 16-bit elements by tensor copies and wgmma.
#include <algorithm>
#include <string>

#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/grouped_core/copies.hpp"
#include "operations/matmul_core/core/hopper_results.h"
#include "operations/sparse_core/hopper/args.h"
#include "operations/sparse_core/stages.hpp"

namespace tessera::operations::matmul {
namespace {

constexpr std::uint32_t kColumns = 128, kTerms = 64;  // of a tile, of a step
constexpr std::uint32_t kRows = 256;                  // of the dense matrix in a tile
constexpr std::uint32_t kItems = 384, kStages = 3, kBand = 32;
constexpr std::uint32_t kListItems = 512, kSortItems = 256;
constexpr std::uint32_t kMostGroups = 256;    // that stay
constexpr std::uint64_t kMapFloats = 4 * 32;  // of a work-group

std::vector<Tunable> tunables() {
  return {
#include "operations/sparse_core/hopper/hopper.def"
      {.id = 31, .name = "GROUPS", .fallback = 132, .launch_only = true},
  };
}

SparseStage forward_of(const SparseSlots& slots) { return sparse_stages(slots).front(); }

// In scratch, in floats: the list of blocks, then the maps.
std::uint64_t maps_start(const Problem& problem) {
  constexpr std::uint64_t kBytes = 128;
  return (sparse_scratch(problem) + kBytes - 1) / kBytes * kBytes / 4;
}

// The product the other way around: columns of blocks are rows.
abi::MatmulArgs turned(const Problem& problem, const SparseProduct& product) {
  const auto& call = problem.as<SparseProblem>();
  const auto view = [](const abi::GroupedView& of) {
    return abi::MatmulView{.offset = of.offset,
                           .row = of.column,
                           .column = of.row,
                           .batch0 = 0,
                           .batch1 = 0,
                           .batch2 = 0};
  };
  abi::MatmulArgs args{};
  args.m = static_cast<abi::u32>(call.n);
  args.n = static_cast<abi::u32>(call.m);
  args.k = static_cast<abi::u32>(call.k);
  args.batches1 = args.sums = args.sums1 = args.splits = 1;
  args.batches = args.batches2 = static_cast<abi::u32>(call.blocks);
  args.alpha = 1.0f;
  args.maps = static_cast<abi::u32>(maps_start(problem));
  args.a = view(product.args.b);
  args.a.batch2 = product.list.b.block;
  args.b = view(product.args.a);
  args.result = view(product.args.result);
  return args;
}

std::vector<Define> constants(const Problem& problem, const SparseStage& stage) {
  const auto product = sparse_product(problem, stage);
  const abi::MatmulArgs args = product ? turned(problem, *product) : abi::MatmulArgs{};
  return {{"A_BY_TERMS", args.a.column == 1 ? 1U : 0U},
          {"B_BY_TERMS", args.b.row == 1 ? 1U : 0U},
          {"RESULT", problem.dtype == DType::kF16 ? 1U * HOPPER_F16 : 1U * HOPPER_BF16},
          {"FEATURES", 0},
          {"TURNED_RESULT", args.result.column == 1 ? 0U : 1U}};
}

std::uint64_t tiles_of(const SparseProblem& call) {
  return static_cast<std::uint64_t>(ceil_div(call.n, kColumns)) * ceil_div(call.m, kRows);
}

Pass product_pass(const SparseStage& stage) {
  Pass pass;
  pass.name = stage.name;
  pass.opencl = {
      .file = "matmul/hopper/sparse.cl", .entry = "sparse_hopper", .ptx_target = "sm_90a"};
  pass.axes = dtype_axes;
  // The sparse matrix is the left operand here.
  pass.bindings = {stage.b, stage.a, kScratch, stage.result};
  pass.constants = [stage](const Problem& problem, const Config&) {
    return constants(problem, stage);
  };
  pass.groups = [stage](const Problem& problem, const Config& config) {
    const auto product = sparse_product(problem, stage);
    if (!product || product->is_empty()) return Dim3{0, 0, 0};
    const std::uint64_t tiles = tiles_of(problem.as<SparseProblem>());
    return Dim3{
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(tiles, 1, config.at("GROUPS")))};
  };
  pass.args = [stage](const Problem& problem, const Config&) {
    const auto product = sparse_product(problem, stage);
    if (!product) return argument_bytes(abi::SparseHopperArgs{});
    const auto& call = problem.as<SparseProblem>();
    return argument_bytes(abi::SparseHopperArgs{.product = turned(problem, *product),
                                                .rows = static_cast<abi::u32>(call.block_n),
                                                .terms = static_cast<abi::u32>(call.block_k),
                                                .results = static_cast<abi::u32>(product->results),
                                                .blocks = static_cast<abi::u32>(call.blocks),
                                                .table = product->list.table});
  };
  return pass;
}

// Groups of the list that sorts, one for each result: each looks at all blocks, and where that is
// too much one group lists them, unsorted.
std::uint32_t sorting_groups(const SparseProduct& product) {
  constexpr std::uint64_t kMostLooks = std::uint64_t{1} << 24;
  const auto results = static_cast<std::uint64_t>(product.results);
  return results <= SPARSE_MOST_SORTED && results * product.list.blocks <= kMostLooks
             ? static_cast<std::uint32_t>(results)
             : 0;
}

// A list that counts blocks, and terms of the dense matrix.
Pass counting(Pass list, const SparseStage& stage, bool sorts) {
  if (sorts) {
    list.name = "sorted " + list.name;
    list.opencl = {.file = "matmul/hopper/sparse_list.cl", .entry = "sparse_hopper_list"};
    list.vulkan = {};
  }
  list.group_size = [sorts](const Config&) { return Dim3{sorts ? kSortItems : kListItems}; };
  list.groups = [stage, sorts](const Problem& problem, const Config&) {
    const auto product = sparse_product(problem, stage);
    if (!product) return Dim3{0, 0, 0};
    const std::uint32_t groups = sorting_groups(*product);
    if (sorts) return groups != 0 ? Dim3{groups} : Dim3{0, 0, 0};
    return groups != 0 ? Dim3{0, 0, 0} : Dim3{1};
  };
  list.args = [stage](const Problem& problem, const Config&) {
    const auto product = sparse_product(problem, stage);
    abi::SparseListArgs args = product ? product->list : abi::SparseListArgs{};
    const auto& call = problem.as<SparseProblem>();
    const auto terms = static_cast<abi::u32>(call.block_k);
    args.a = {call.on_left ? 0U : terms, call.on_left ? terms : 0U, 0};
    args.b = {0, 0, 1};
    return argument_bytes(args);
  };
  return list;
}

std::vector<Config> space(const Problem& /*problem*/, const DeviceProfile& profile) {
  const std::uint32_t groups =
      std::min<std::uint32_t>(kernel::compute_units_of(profile), kMostGroups);
  return {{{"BLOCK_N", kRows},
           {"STAGES", kStages},
           {"BAND", kBand},
           {"WG_X", kItems},
           {"GROUPS", groups}}};
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile,
                const SparseStage& stage) {
  if (config.at("BLOCK_N") != kRows || config.at("STAGES") < 2 || config.at("STAGES") > kStages)
    return "takes tiles of 256 rows, and has local memory for 2 or 3 stages";
  if (config.get("WG_X", 0) != kItems || config.at("GROUPS") == 0 ||
      config.at("GROUPS") > kMostGroups)
    return "takes at most " + std::to_string(kMostGroups) + " work-groups, of three warpgroups";
  if (config.at("BAND") == 0 || config.at("BAND") > 1024) return "takes bands of 1 to 1024 tiles";
  if (Refusal no = rejects_sparse(problem, profile)) return no;
  const auto product = sparse_product(problem, stage);
  if (!product || product->is_empty()) return std::nullopt;
  const auto& call = problem.as<SparseProblem>();
  if (call.block_n % kColumns != 0 || call.block_k % kTerms != 0)
    return "takes blocks of whole tiles: multiples of 128 columns and of 64 terms";
  const abi::MatmulArgs args = turned(problem, *product);
  if (product->a != problem.dtype || product->b != problem.dtype || call.output != problem.dtype ||
      !tensor_copies_take(args.a, problem.dtype, args.m, args.k, args.batches) ||
      !tensor_copies_take(args.b, problem.dtype, args.k, args.n, 1) ||
      !tensor_copies_take(args.result, problem.dtype, args.m, args.n, 1))
    return "takes operands of one type of 16 bits that are contiguous along an axis, with offsets "
           "and strides that are multiples of 16 bytes";
  if (tiles_of(call) >= std::uint64_t{1} << 31) return "counts tiles to 2^31";
  return std::nullopt;
}

}  // namespace

Way sparse_hopper_way(const SparseSlots& slots) {
  const SparseStage stage = forward_of(slots);
  Variant variant;
  variant.name = "hopper";
  variant.idea = "wgmma on tiles of blocks, which a counter hands out and one item copies";
  variant.needs = {.backends = {Backend::kOpenCL},
                   .features = Feature::kNvidiaPtx | Feature::kWgmma};
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = [stage](const Problem& problem, const Config& config,
                            const DeviceProfile& profile) {
    return rejects(problem, config, profile, stage);
  };
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return 4 * (maps_start(problem) + kMapFloats * config.at("GROUPS"));
  };
  variant.passes = sparse_passes(slots, product_pass);
  const Pass list = variant.passes.front();
  variant.passes.front() = counting(list, stage, false);
  variant.passes.insert(variant.passes.begin(), counting(list, stage, true));
  return {.variant = std::move(variant),
          .rule = {.why = "Hopper's matrix unit",
                   .when = [](const Problem&, const DeviceProfile& profile) {
                     return has(profile.features, Feature::kWgmma);
                   }}};
}

}  // namespace tessera::operations::matmul
