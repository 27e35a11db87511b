// SPDX-License-Identifier: Apache-2.0
// NVIDIA's Hopper through OpenCL: operands of 32, 16 or 8 bits by tensor copies and wgmma. Floats
// are a variant of their own, which takes each factor as it is: with it nothing is rounded.
#include <algorithm>
#include <string>

#include "base/tensors/checked.hpp"
#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/matmul_core/arguments.hpp"
#include "operations/matmul_core/hopper/geometry.h"
#include "operations/matmul_core/launch.hpp"
#include "operations/matmul_core/matrix_units.hpp"

namespace tessera::operations::matmul {
namespace {

constexpr std::int64_t kCopied = 16;       // bytes: offsets and strides are multiples of it
constexpr std::int64_t kLeastTerms = 512;  // of a share
constexpr std::uint32_t kItems = 384, kItemsOfBlocks = 512;
constexpr std::uint64_t kMapsFloats = HOPPER_MOST_GROUPS * HOPPER_MAPS_FLOATS;
constexpr std::int64_t kLeastRows = 64, kLeastColumns = 64;  // below, most of a tile is empty

std::vector<Tunable> tunables() {
  return {
#include "operations/matmul_core/hopper/hopper.def"
#include "operations/matmul_core/sums.def"
      {.id = 31, .name = "GROUPS", .fallback = 132, .launch_only = true},
  };
}

constexpr std::uint32_t kSplitItems = 256;

bool is_float8(DType dtype) { return dtype == DType::kE4M3FN || dtype == DType::kE5M2; }

// By tensor copies: contiguous along one axis, whatever else lies at multiples of 16 bytes.
bool copies(const Product& product, Role role, std::int64_t rows, std::int64_t columns) {
  const View& view = product.views[role];
  const std::int64_t multiple = kCopied / static_cast<std::int64_t>(size_of(view.dtype));
  const bool by_columns = view.column == 1;
  if (!by_columns && view.row != 1) return false;
  const std::int64_t lines = by_columns ? rows : columns,
                     step = by_columns ? view.row : view.column;
  if (view.offset % multiple != 0 || (lines > 1 && (step % multiple != 0 || step == 0)))
    return false;
  return std::ranges::all_of(
      product.axes, [&](const OuterAxis& axis) { return axis.steps[role] % multiple == 0; });
}

bool has_blocks(const Product& product) { return product.blocks == MATMUL_BLOCKS_SCALED; }

std::uint32_t blocks_of(const Product& product) {
  if (!has_blocks(product)) return 0;
  return (product.views[kScaleA].present ? HOPPER_BLOCKS_OF_A : 0U) |
         (product.views[kScaleB].present ? HOPPER_BLOCKS_OF_B : 0U);
}

// One scale of b for all columns of a tile that has as many as a block.
bool is_scaled_by_tiles(const Product& product) {
  const View& scale = product.views[kScaleB];
  return !scale.present || scale.column == 0 || product.scale_columns == MATMUL_BLOCK;
}

bool has_limited_axes(const Product& product) {
  constexpr std::size_t kMostAxes = 2;
  return product.axes.size() <= kMostAxes && product.sums() == 1;
}

// Of hopper_f32, whose factors are floats or have 16 bits. b is read from scratch, where a pass
// before the product leaves its parts.
bool takes_floats(const Stage& stage) { return !stage.rounds; }
bool takes_floats(const Product& product) {
  return has_limited_axes(product) && copies(product, kA, product.m, product.k);
}
bool has_floats(const Product& product) {
  return product.views[kA].dtype == DType::kF32 || product.views[kB].dtype == DType::kF32;
}

bool takes(const Problem& problem, const Product& product) {
  const DType b = product.views[kB].dtype;
  const bool floats8 = is_float8(problem.dtype) && is_float8(b);
  if (product.views[kA].dtype != problem.dtype || (b != problem.dtype && !floats8)) return false;
  // Bytes are multiplied as they lie, and scaled when all of them, or those of a block, are added
  // up.
  const bool by_terms = product.views[kA].column == 1 && product.views[kB].row == 1;
  if (is_eight_bits(problem.dtype) && !by_terms) return false;
  if (has_blocks(product) && (!floats8 || !is_scaled_by_tiles(product))) return false;
  return has_limited_axes(product) && copies(product, kA, product.m, product.k) &&
         copies(product, kB, product.k, product.n);
}

// Matrices of b that batches do not share.
std::int64_t matrices_of_b(const Product& product) {
  std::int64_t count = 1;
  for (const OuterAxis& axis : product.axes) count *= axis.steps[kB] != 0 ? axis.size : 1;
  return count;
}

std::uint64_t parts_floats(const Product& product) {
  const std::uint64_t PARTS = product.views[kB].dtype == DType::kF32 ? 2 : 1;
  return static_cast<std::uint64_t>(matrices_of_b(product) * product.n) *
         HOPPER_PARTS_PITCH(static_cast<std::uint64_t>(product.k));
}

std::uint64_t tiles_of(const Product& product, const Config& config) {
  const std::uint32_t WARPGROUPS = config.at("WG_X") / 128 - 1;
  return std::uint64_t{ceil_div(product.m, HOPPER_ROWS)} *
         ceil_div(product.n, config.at("BLOCK_N")) * static_cast<std::uint64_t>(product.batches());
}

std::uint32_t splits(const Product& product, const Config& config) {
  if (product.views[kA].dtype == DType::kI8) return 1;  // shares are floats
  return filling_splits(product, tiles_of(product, config), config.at("GROUPS"), kLeastTerms);
}

// Behind all else in scratch, in floats.
std::uint64_t parts_start(const Problem& problem, const Config& config) {
  constexpr std::uint64_t kAlignment = 32;  // 128 bytes
  const std::uint64_t bytes = scratch_with_sums(problem, config, splits, kMapsFloats);
  return (bytes / 4 + kAlignment - 1) / kAlignment * kAlignment;
}

std::uint64_t scratch_with_parts(const Problem& problem, const Config& config) {
  std::uint64_t floats = 0;
  for (const Product& product : multiplied(problem, false))
    floats = std::max(floats, parts_floats(product));
  return 4 * (parts_start(problem, config) + floats);
}

// Pairs of neighbours along rows, the same for all rows.
bool is_bias_by_columns(const Product& product) {
  const View& bias = product.views[kBias];
  return bias.dtype == product.views[kResult].dtype && bias.column == 1 && bias.row == 0 &&
         bias.offset % 2 == 0 && product.n % 2 == 0 &&
         std::ranges::all_of(product.axes,
                             [](const OuterAxis& axis) { return axis.steps[kBias] % 2 == 0; });
}

bool is_direct(const Product& product, const Config& config) {
  constexpr abi::u32 kNever = MATMUL_GRADIENT | MATMUL_ADDEND | MATMUL_BESIDE;
  const auto& views = product.views;
  const bool paired = (product.features & MATMUL_PAIRED) != 0;
  const std::int64_t columns = paired ? product.n / 2 : product.n;
  const auto leaves = [&](Role role) {
    return views[role].column == 1 && copies(product, role, product.m, columns);
  };
  const bool joins = views[kGate].present || views[kResidual].present;
  const Role joining = views[kGate].present ? kGate : kResidual;
  if ((arguments_of(product).features & kNever) != 0 || splits(product, config) != 1 ||
      !leaves(kResult) || (paired && config.at("BLOCK_N") != 256))
    return false;
  if (size_of(views[kResult].dtype) == 4)
    return product.features == 0 && !views[kBias].present && !joins;
  if (views[kGate].present && views[kResidual].present) return false;
  if (joins && (views[joining].dtype != views[kResult].dtype || !leaves(joining))) return false;
  return !views[kBias].present || is_bias_by_columns(product);
}

std::uint32_t result_of(const Product& product, const Stage& stage, const Config& config) {
  if (takes_floats(stage) || !is_direct(product, config)) return HOPPER_ANY_RESULT;
  const DType dtype = product.views[kResult].dtype;
  return dtype == DType::kF16 ? HOPPER_F16 : dtype == DType::kBF16 ? HOPPER_BF16 : HOPPER_WORDS;
}

// Programs of hopper_f32 are those of floats, whatever the call's type.
std::vector<Define> float_axes(const Problem& /*problem*/, const DeviceProfile& /*profile*/) {
  return {{"DTYPE", dtype_axis(DType::kF32)}};
}

std::vector<Define> constants(const Problem& problem, const Stage& stage, const Config& config) {
  constexpr abi::u32 kFeatures = MATMUL_ACTIVATION | MATMUL_PAIRED | MATMUL_BIAS | MATMUL_GATE |
                                 MATMUL_RESIDUAL | MATMUL_SCALE_A | MATMUL_SCALE_B | MATMUL_WHOLE;
  const auto product = product_with_terms(problem, stage);
  if (!product)
    return {{"A_TYPE", 0},     {"B_TYPE", 0},     {"BLOCKS", 0},
            {"A_BY_TERMS", 1}, {"B_BY_TERMS", 1}, {"RESULT", HOPPER_ANY_RESULT},
            {"FEATURES", 0}};
  const std::uint32_t result = result_of(*product, stage, config);
  abi::u32 features = result == HOPPER_ANY_RESULT ? 0 : arguments_of(*product).features & kFeatures;
  const View& scale = product->views[kScaleB];
  if ((features & MATMUL_SCALE_B) != 0 && scale.column == 0) features |= HOPPER_ONE_SCALE_B;
  if (has_blocks(*product)) features &= ~(MATMUL_SCALE_A | MATMUL_SCALE_B | HOPPER_ONE_SCALE_B);
  return {{"A_TYPE", dtype_axis(product->views[kA].dtype)},
          {"B_TYPE", dtype_axis(product->views[kB].dtype)},
          {"BLOCKS", blocks_of(*product)},
          {"A_BY_TERMS", product->views[kA].column == 1 ? 1U : 0U},
          {"B_BY_TERMS", takes_floats(stage) || product->views[kB].row == 1 ? 1U : 0U},
          {"RESULT", result},
          {"FEATURES", features}};
}

std::vector<std::byte> arguments(const Problem& problem, const Stage& stage, const Config& config) {
  const auto product = product_with_terms(problem, stage);
  if (!product) return argument_bytes(abi::MatmulArgs{});
  abi::MatmulArgs args = arguments_of(*product);
  args.splits = splits(*product, config);
  args.maps = static_cast<abi::u32>(own_start(problem));
  args.partial = static_cast<abi::u32>(partial_start(problem, kMapsFloats));
  if (takes_floats(stage)) args.packed_b = static_cast<abi::u32>(parts_start(problem, config));
  return argument_bytes(args);
}

// Work-groups that stay: no more than all have the same number of tiles.
std::uint32_t groups_of(const Product& product, const Config& config) {
  const std::uint64_t units = tiles_of(product, config) * splits(product, config);
  const std::uint64_t turns = (units + config.at("GROUPS") - 1) / config.at("GROUPS");
  return static_cast<std::uint32_t>((units + turns - 1) / turns);
}

Pass split_pass(const Stage& stage) {
  Pass pass;
  pass.name = stage.name + " split";
  pass.opencl = {.file = "matmul/hopper/split.cl", .entry = "matmul_split"};
  pass.axes = float_axes;
  pass.bindings = {stage.slots[kB], kScratch};
  pass.specialized_on = std::vector<std::string>{"A_TYPE", "B_TYPE", "A_BY_TERMS"};
  pass.constants = [stage](const Problem& problem, const Config& config) {
    return constants(problem, stage, config);
  };
  pass.group_size = [](const Config&) { return Dim3{kSplitItems}; };
  pass.groups = [stage](const Problem& problem, const Config&) {
    constexpr std::uint64_t kMostGroups = 65535;
    const auto product = product_with_terms(problem, stage);
    if (!product) return Dim3{0, 0, 0};
    const std::uint64_t units = static_cast<std::uint64_t>(matrices_of_b(*product)) *
                                ceil_div(product->n, HOPPER_SPLIT_COLUMNS) *
                                ceil_div(product->k, HOPPER_PART_TERMS);
    return Dim3{static_cast<std::uint32_t>(std::min(units, kMostGroups))};
  };
  pass.args = [stage](const Problem& problem, const Config& config) {
    return arguments(problem, stage, config);
  };
  return pass;
}

std::vector<Pass> passes_of(const Stage& stage) {
  if (!multiplies(stage)) {
    if (stage.step == Step::kGradBias) return sums_passes(stage, kMapsFloats);
    return list_of(combine_pass(stage, splits, kMapsFloats));
  }
  Pass pass;
  pass.name = stage.name;
  pass.opencl = {
      .file = "matmul/hopper/product.cl", .entry = "matmul_hopper", .ptx_target = "sm_90a"};
  pass.axes = takes_floats(stage) ? float_axes : dtype_axes;
  pass.specialized_on =
      std::vector<std::string>{"BLOCK_N",    "STAGES",     "A_TYPE", "B_TYPE",  "BLOCKS",
                               "A_BY_TERMS", "B_BY_TERMS", "RESULT", "FEATURES"};
  pass.constants = [stage](const Problem& problem, const Config& config) {
    return constants(problem, stage, config);
  };
  pass.args = [stage](const Problem& problem, const Config& config) {
    return arguments(problem, stage, config);
  };
  pass.bindings = with_finish({stage.slots[kA], stage.slots[kB], kScratch}, stage);
  pass.groups = [stage](const Problem& problem, const Config& config) {
    const auto product = product_with_terms(problem, stage);
    return product ? Dim3{groups_of(*product, config)} : Dim3{0, 0, 0};
  };
  Pass combine = combine_pass(stage, splits, kMapsFloats);
  if (!takes_floats(stage)) return list_of(std::move(pass), std::move(combine));
  return list_of(split_pass(stage), std::move(pass), std::move(combine));
}

// Wide tiles first, but for products that have too few of them.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile, bool floats) {
  const std::uint32_t groups =
      std::min<std::uint32_t>(kernel::compute_units_of(profile), HOPPER_MOST_GROUPS);
  const auto config = [&](std::uint32_t block_n, std::uint32_t stages,
                          std::uint32_t items = kItems) {
    return Config{{"BLOCK_N", block_n}, {"STAGES", stages}, {"WG_X", items}, {"GROUPS", groups}};
  };
  const std::vector<Product> products = products_of(problem, true);
  if (std::ranges::any_of(products, has_blocks)) return {config(MATMUL_BLOCK, 4, kItemsOfBlocks)};
  std::vector<Config> list{config(256, 3), config(128, 4), config(64, 8)};
  if (floats) list = {config(128, 4), config(64, 6)};
  const auto few = [&](const Config& config) {
    return std::ranges::any_of(products, [&](const Product& product) {
      return product.k > 0 && product.m >= kLeastRows && tiles_of(product, config) * 4 < 3 * groups;
    });
  };
  const auto wide = std::ranges::find_if_not(list, few);
  std::iter_swap(list.begin(), wide == list.end() ? wide - 1 : wide);
  return list;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile,
                bool floats) {
  const std::uint32_t BLOCK_N = config.at("BLOCK_N"), STAGES = config.at("STAGES");
  const std::uint32_t items = config.get("WG_X", 0), WARPGROUPS = items / 128 - 1;
  const std::uint32_t FLOATS = floats ? 1 : 0, NARROW_A = 0;  // as wide as factors may be
  const std::uint32_t PARTS = floats ? 2 : 1;
  if (items != kItems && items != kItemsOfBlocks)
    return "takes work-groups of three warpgroups, or four for scales of blocks";
  if (BLOCK_N != 64 && BLOCK_N != 128 && BLOCK_N != 256)
    return "takes tiles of 64, 128 or 256 columns";
  if (floats && BLOCK_N == 256) return "takes tiles of 64 or 128 columns of floats";
  if (STAGES < 2 || HOPPER_LOCAL_BYTES > kernel::kHopperLocalBytes)
    return "needs " + std::to_string(HOPPER_LOCAL_BYTES) +
           " bytes of work-group memory, and Hopper has " +
           std::to_string(kernel::kHopperLocalBytes);
  if (config.at("GROUPS") == 0 || config.at("GROUPS") > HOPPER_MOST_GROUPS)
    return "takes at most " + std::to_string(HOPPER_MOST_GROUPS) + " work-groups";
  if (Refusal no = rejects_products(problem, profile)) return no;
  if (Refusal no = rejects_sums(problem, config, splits, kMapsFloats)) return no;
  const MatmulSlots& slots = problem.as<MatmulProblem>().slots;
  if (floats && std::ranges::none_of(multiplied(problem, false), has_floats))
    return "takes floats, on one side at least";
  for (const Stage& stage : stages(slots, !floats)) {
    const auto product = product_with_terms(problem, stage);
    if (!product || !multiplies(stage)) continue;
    if (floats && !takes_floats(*product))
      return "takes rows that are contiguous along an axis, with offsets and strides that are "
             "multiples of 16 bytes, and at most two axes of batches";
    if (!floats && !takes(problem, *product))
      return "takes operands of one type that are contiguous along an axis, of 8 bits along the "
             "terms, with offsets and strides that are multiples of 16 bytes, at most two axes of "
             "batches, "
             "and scales of blocks of terms only of 8-bit floats, with those of b for 128 columns";
    if (has_blocks(*product) != (items == kItemsOfBlocks) ||
        (has_blocks(*product) && BLOCK_N != MATMUL_BLOCK))
      return "takes scales of blocks of terms by tiles of 128 columns and three warpgroups that "
             "multiply, and nothing else by them";
    if (tiles_of(*product, config) * splits(*product, config) >= std::uint64_t{1} << 31)
      return "counts tiles to 2^31";
  }
  if (floats && scratch_with_parts(problem, config) / 4 >= std::uint64_t{1} << 31)
    return "counts elements to 2^31, and the parts of floats are more";
  return std::nullopt;
}

bool prefers_hopper(const Problem& problem, const DeviceProfile& profile) {
  const auto& call = problem.as<MatmulProblem>();
  const std::int64_t rows = product_rows(call);
  return has(profile.features, Feature::kWgmma) && rows >= kLeastRows &&
         call.columns >= kLeastColumns && call.k >= kLeastColumns;
}

// Splitting b pays where its parts meet rows enough. On an H200 `mma` is faster with 64 rows and at
// 512^3, slower with 128 rows, with 64 terms and at 1024 x 256 x 1024. Factors of two types are
// nothing that `mma` takes.
bool prefers_hopper_f32(const Problem& problem, const DeviceProfile& profile) {
  constexpr std::int64_t kLeast = 128, kLeastTerms = 64;
  constexpr std::int64_t kLeastProducts = std::int64_t{1} << 28;
  return has(profile.features, Feature::kWgmma) &&
         std::ranges::all_of(multiplied(problem, false), [](const Product& product) {
           if (product.views[kA].dtype != product.views[kB].dtype)
             return product.m >= kLeastRows && product.n >= kLeastColumns &&
                    product.k >= kLeastTerms;
           return product.m >= kLeast && product.n >= kLeast && product.k >= kLeastTerms &&
                  saturating_mul(saturating_mul(product.m, product.n),
                                 saturating_mul(product.k, product.batches())) >= kLeastProducts;
         });
}

Way new_way(const MatmulSlots& slots, bool floats = false) {
  Variant variant;
  variant.name = "hopper";
  variant.idea = "wgmma on tiles that one item copies, two warpgroups of 64 rows";
  variant.needs = {.backends = {Backend::kOpenCL},
                   .features = Feature::kNvidiaPtx | Feature::kWgmma};
  variant.tunables = tunables();
  variant.space = [floats](const Problem& problem, const DeviceProfile& profile) {
    return space(problem, profile, floats);
  };
  variant.rejects = [floats](const Problem& problem, const Config& config,
                             const DeviceProfile& profile) {
    return rejects(problem, config, profile, floats);
  };
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return scratch_with_sums(problem, config, splits, kMapsFloats);
  };
  for (const Stage& stage : stages(slots, !floats)) {
    for (Pass& pass : passes_of(stage)) variant.passes.push_back(std::move(pass));
  }
  return {
      .variant = std::move(variant),
      .rule = {.why = "Hopper's matrix unit, where its tiles are filled", .when = prefers_hopper}};
}

}  // namespace

Way hopper_way(const MatmulSlots& slots) {
  Way way = new_way(slots);
  way.variant.dtypes = {DType::kF16, DType::kBF16};
  if (!slots.backward()) way.variant.dtypes.push_back(DType::kI8);
  way.variant.rounds_factors = slots.backward();
  return way;
}

Way hopper_f32_way(const MatmulSlots& slots) {
  Way way = new_way(slots, true);
  way.variant.name = "hopper_f32";
  way.variant.idea =
      "as hopper, of floats as three products of tf32, two with 16 bits; a pass splits b before";
  way.variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  way.variant.scratch_bytes = scratch_with_parts;
  way.rule.why = "Hopper's matrix unit, where splitting b pays";
  way.rule.when = prefers_hopper_f32;
  return way;
}

Way hopper_fp8_way(const MatmulSlots& slots) {
  Way way = new_way(slots);
  way.variant.name = "hopper_fp8";
  way.variant.idea = "as hopper, of 8-bit floats, whose products the matrix unit adds in 14 bits";
  way.variant.dtypes = {DType::kE4M3FN, DType::kE5M2};
  way.variant.rounds_factors = true;
  way.variant.precision = Precision::kDefault;
  return way;
}

}  // namespace tessera::operations::matmul
