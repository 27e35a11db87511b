// SPDX-License-Identifier: Apache-2.0
// NVIDIA's Hopper through OpenCL: 16-bit operands by tensor copies and wgmma.
#include <algorithm>
#include <string>

#include "kernel/gpu.hpp"
#include "kernel/tunable_list.hpp"
#include "operations/common/launch.hpp"
#include "operations/matmul_core/arguments.hpp"
#include "operations/matmul_core/hopper/geometry.h"
#include "operations/matmul_core/launch.hpp"
#include "operations/matmul_core/matrix_units.hpp"

namespace tessera::operations::matmul {
namespace {

constexpr std::int64_t kMultiple = 8;      // elements: copies want 16 bytes
constexpr std::int64_t kLeastTerms = 512;  // of a share
constexpr std::uint32_t kItems = 384, kMapItems = 32;
constexpr std::uint32_t kLocalBytes = 227 * 1024;
constexpr std::int64_t kLeastRows = 64, kLeastColumns = 64;  // below, most of a tile is empty

std::vector<Tunable> tunables() {
  return {
#include "operations/matmul_core/hopper/hopper.def"
#include "operations/matmul_core/sums.def"
      {.id = 31, .name = "GROUPS", .fallback = 132, .launch_only = true},
  };
}

// By tensor copies: contiguous along one axis, whatever else lies at multiples of 16 bytes.
bool copies(const Product& product, Role role, std::int64_t rows, std::int64_t columns) {
  const View& view = product.views[role];
  const bool by_columns = view.column == 1;
  if (!by_columns && view.row != 1) return false;
  const std::int64_t lines = by_columns ? rows : columns,
                     step = by_columns ? view.row : view.column;
  if (view.offset % kMultiple != 0 || (lines > 1 && (step % kMultiple != 0 || step == 0)))
    return false;
  return std::ranges::all_of(
      product.axes, [&](const OuterAxis& axis) { return axis.steps[role] % kMultiple == 0; });
}

bool takes(const Problem& problem, const Product& product) {
  if (product.views[kA].dtype != problem.dtype || product.views[kB].dtype != problem.dtype)
    return false;
  constexpr std::size_t kMostAxes = 2;
  return product.axes.size() <= kMostAxes && product.sums() == 1 &&
         copies(product, kA, product.m, product.k) && copies(product, kB, product.k, product.n);
}

std::uint64_t tiles_of(const Product& product, const Config& config) {
  return std::uint64_t{ceil_div(product.m, HOPPER_ROWS)} *
         ceil_div(product.n, config.at("BLOCK_N")) * static_cast<std::uint64_t>(product.batches());
}

std::uint32_t splits(const Product& product, const Config& config) {
  return filling_splits(product, tiles_of(product, config), config.at("GROUPS"), kLeastTerms);
}

bool is_plain(const Problem& problem, const Product& product, const Config& config) {
  for (const Role role : {kBias, kAddend, kGate, kResidual, kBeside}) {
    if (product.views[role].present) return false;
  }
  return product.features == 0 && product.views[kResult].dtype == problem.dtype &&
         product.views[kResult].column == 1 && splits(product, config) == 1 &&
         copies(product, kResult, product.m, product.n);
}

std::vector<Define> constants(const Problem& problem, const Stage& stage, const Config& config) {
  const auto product = product_with_terms(problem, stage);
  if (!product) return {{"A_BY_TERMS", 1}, {"B_BY_TERMS", 1}, {"PLAIN", 0}};
  return {{"A_BY_TERMS", product->views[kA].column == 1 ? 1U : 0U},
          {"B_BY_TERMS", product->views[kB].row == 1 ? 1U : 0U},
          {"PLAIN", is_plain(problem, *product, config) ? 1U : 0U}};
}

std::vector<std::byte> arguments(const Problem& problem, const Stage& stage, const Config& config) {
  const auto product = product_with_terms(problem, stage);
  if (!product) return argument_bytes(abi::MatmulArgs{});
  abi::MatmulArgs args = arguments_of(*product);
  args.splits = splits(*product, config);
  args.maps = static_cast<abi::u32>(own_start(problem));
  args.partial = static_cast<abi::u32>(partial_start(problem, HOPPER_MAPS_FLOATS));
  return argument_bytes(args);
}

// Work-groups that stay: no more than all have the same number of tiles.
std::uint32_t groups_of(const Product& product, const Config& config) {
  const std::uint64_t units = tiles_of(product, config) * splits(product, config);
  const std::uint64_t turns = (units + config.at("GROUPS") - 1) / config.at("GROUPS");
  return static_cast<std::uint32_t>((units + turns - 1) / turns);
}

Pass new_pass(const Stage& stage, const std::string& name, const char* file, const char* entry) {
  Pass pass;
  pass.name = stage.name + name;
  pass.opencl = {.file = file, .entry = entry, .ptx_target = "sm_90a"};
  pass.axes = dtype_axes;
  pass.specialized_on =
      std::vector<std::string>{"BLOCK_N", "STAGES", "A_BY_TERMS", "B_BY_TERMS", "PLAIN"};
  pass.constants = [stage](const Problem& problem, const Config& config) {
    return constants(problem, stage, config);
  };
  pass.args = [stage](const Problem& problem, const Config& config) {
    return arguments(problem, stage, config);
  };
  return pass;
}

std::vector<Pass> passes_of(const Stage& stage) {
  if (!multiplies(stage)) {
    if (stage.step == Step::kGradBias) return sums_passes(stage, HOPPER_MAPS_FLOATS);
    return {combine_pass(stage, splits, HOPPER_MAPS_FLOATS)};
  }
  const auto& slots = stage.slots;
  Pass maps = new_pass(stage, " maps", "matmul/hopper/maps.cl", "matmul_hopper_maps");
  maps.bindings = {slots[kA], slots[kB], slots[kResult], kScratch};
  maps.group_size = [](const Config&) { return Dim3{kMapItems}; };
  maps.groups = [stage](const Problem& problem, const Config&) {
    return product_with_terms(problem, stage) ? Dim3{1} : Dim3{0, 0, 0};
  };
  Pass pass = new_pass(stage, "", "matmul/hopper/product.cl", "matmul_hopper");
  pass.bindings = with_finish({kScratch}, stage);
  pass.groups = [stage](const Problem& problem, const Config& config) {
    const auto product = product_with_terms(problem, stage);
    return product ? Dim3{groups_of(*product, config)} : Dim3{0, 0, 0};
  };
  return {std::move(maps), std::move(pass), combine_pass(stage, splits, HOPPER_MAPS_FLOATS)};
}

// Wide tiles first, but for products that have too few of them.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const std::uint32_t groups = kernel::compute_units_of(profile);
  const auto config = [&](std::uint32_t block_n, std::uint32_t stages) {
    return Config{{"BLOCK_N", block_n}, {"STAGES", stages}, {"WG_X", kItems}, {"GROUPS", groups}};
  };
  std::vector<Config> list{config(256, 3), config(128, 4)};
  const bool few = std::ranges::any_of(products_of(problem, true), [&](const Product& product) {
    return product.k > 0 && product.m >= kLeastRows && tiles_of(product, list[0]) * 4 < 3 * groups;
  });
  if (few) std::swap(list[0], list[1]);
  return list;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t BLOCK_N = config.at("BLOCK_N"), STAGES = config.at("STAGES");
  if (BLOCK_N != 128 && BLOCK_N != 256) return "takes tiles of 128 or 256 columns";
  if (STAGES < 2 || HOPPER_LOCAL_BYTES > kLocalBytes)
    return "needs " + std::to_string(HOPPER_LOCAL_BYTES) +
           " bytes of work-group memory, and Hopper has " + std::to_string(kLocalBytes);
  if (config.get("WG_X", 0) != kItems || config.at("GROUPS") == 0)
    return "takes work-groups of three warpgroups";
  if (Refusal no = rejects_products(problem, profile)) return no;
  if (Refusal no = rejects_sums(problem, config, splits, HOPPER_MAPS_FLOATS)) return no;
  const MatmulSlots& slots = problem.as<MatmulProblem>().slots;
  for (const Stage& stage : stages(slots, true)) {
    const auto product = product_with_terms(problem, stage);
    if (!product || !multiplies(stage)) continue;
    if (!takes(problem, *product))
      return "takes operands of one 16-bit type that are contiguous along an axis, with offsets "
             "and "
             "strides that are multiples of 8 elements, and at most two axes of batches";
    if (tiles_of(*product, config) * splits(*product, config) >= std::uint64_t{1} << 31)
      return "counts tiles to 2^31";
  }
  return std::nullopt;
}

bool prefers_hopper(const Problem& problem, const DeviceProfile& profile) {
  const auto& call = problem.as<MatmulProblem>();
  const std::int64_t rows = rows_of_batches(call);
  return has(profile.features, Feature::kWgmma) && rows >= kLeastRows &&
         call.columns >= kLeastColumns && call.k >= kLeastColumns;
}

}  // namespace

Way hopper_way(const MatmulSlots& slots) {
  Variant variant;
  variant.name = "hopper";
  variant.idea = "wgmma on tiles that one item copies, two warpgroups of 64 rows";
  variant.needs = {.backends = {Backend::kOpenCL},
                   .features = Feature::kNvidiaPtx | Feature::kWgmma};
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.rounds_factors = slots.backward();
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return scratch_with_sums(problem, config, splits, HOPPER_MAPS_FLOATS);
  };
  for (const Stage& stage : stages(slots, true)) {
    for (Pass& pass : passes_of(stage)) variant.passes.push_back(std::move(pass));
  }
  return {.variant = std::move(variant),
          .rule = {.why = "Hopper's matrix unit, where its tiles are filled",
                   .when = prefers_hopper,
                   .config = [](const Problem& problem, const DeviceProfile& profile) {
                     return space(problem, profile).front();
                   }}};
}

}  // namespace tessera::operations::matmul
