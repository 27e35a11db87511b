// SPDX-License-Identifier: Apache-2.0
// Panels of floats, sums in registers: processors through OpenCL. Factors of other types are packed
// as floats; or, where the processor has products for pairs of bf16 or fours of i8, as words of
// them.
#include <algorithm>
#include <string>

#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/matmul_core/arguments.hpp"
#include "operations/matmul_core/cpu/packing.hpp"
#include "operations/matmul_core/launch.hpp"

namespace tessera::operations::matmul {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/matmul_core/cpu/cpu.def"
  };
}

// Of products whose factors both have that type, in a variant that has it; others take floats.
Dots dots_of(const Product& product, Dots of_variant) {
  const DType dtype = of_variant == Dots::kBf16 ? DType::kBF16 : DType::kI8;
  const bool both = product.views[kA].present && product.views[kB].present &&
                    product.views[kA].dtype == dtype && product.views[kB].dtype == dtype;
  return both && product.blocks != MATMUL_BLOCKS_SCALED && few_rows(product) == FewRows::kNo
             ? of_variant
             : Dots::kNone;
}

Packing packing_of_product(const Product& product, std::uint32_t width, std::uint64_t scratch,
                           Dots of_variant) {
  return packing_of(product, width, scratch, dots_of(product, of_variant));
}

std::optional<Packing> packing_of_stage(const Problem& problem, const Stage& stage,
                                        const Config& config, Dots dots) {
  const auto product = product_of(problem, stage);
  if (!product || product->is_empty()) return std::nullopt;
  return packing_of_product(*product, config.at("VECTOR_WIDTH"), scratch_of_stages(problem), dots);
}

// Panels of an item: fewer where PANELS leave too few items for the processors to share evenly.
std::uint32_t panels_of(const Product& product, const Config& config) {
  constexpr std::uint64_t kItems = 64;
  const std::uint64_t panels = ceil_div(product.n, 2 * std::int64_t{config.at("VECTOR_WIDTH")});
  const std::uint64_t others = std::uint64_t{ceil_div(product.m, config.at("BLOCK_M"))} *
                               static_cast<std::uint64_t>(product.batches());
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(panels * others / kItems, 1, config.at("PANELS")));
}

std::uint64_t items_of(const Product& product, const Config& config) {
  const std::int64_t width = 2 * std::int64_t{config.at("VECTOR_WIDTH")};
  return std::uint64_t{ceil_div(product.m, config.at("BLOCK_M"))} *
         ceil_div(ceil_div(product.n, width), panels_of(product, config)) *
         static_cast<std::uint64_t>(product.batches());
}

Dim3 groups_of(std::uint64_t items) { return {static_cast<std::uint32_t>(items)}; }

// Are the sums the result, floats or integers, in contiguous rows? To floats a row may be added.
bool is_plain(const Product& product) {
  const View &result = product.views[kResult], &bias = product.views[kBias];
  const bool is_row = bias.dtype == DType::kF32 && bias.row == 0 && bias.column == 1;
  const bool alone =
      (!bias.present || (is_row && !product.whole)) &&
      std::ranges::none_of(std::array{kAddend, kGate, kResidual, kBeside, kScaleA, kScaleB},
                           [&](Role role) { return product.views[role].present; });
  const bool as_they_are =
      product.whole || (product.blocks == MATMUL_BLOCKS_NONE && result.dtype == DType::kF32);
  return alone && as_they_are && product.features == 0 && product.alpha == 1 && result.column == 1;
}

Pass pack_pass(const Stage& stage, Role role, Dots dots) {
  Pass pass;
  pass.name = stage.name + (role == kA ? " pack a" : " pack b");
  pass.opencl = {.file = "matmul/cpu/pack.cl", .entry = "matmul_pack"};
  pass.bindings = {stage.slots[role], kScratch};
  pass.specialized_on = std::vector<std::string>{"VECTOR_WIDTH", "FROM_TYPE", "DOT"};
  pass.constants = [stage, role, dots](const Problem& problem,
                                       const Config&) -> std::vector<Define> {
    const auto product = product_of(problem, stage);
    if (!product) return {};
    const Dots own = dots_of(*product, dots);
    return {{"FROM_TYPE", own == Dots::kNone ? dtype_axis(product->views[role].dtype) : 0U},
            {"DOT", static_cast<std::uint32_t>(own)}};
  };
  pass.groups = [stage, role, dots](const Problem& problem, const Config& config) {
    const auto packing = packing_of_stage(problem, stage, config, dots);
    return groups_of(!packing ? 0 : role == kA ? packing->a_groups : packing->b_groups);
  };
  pass.args = [stage, role, dots](const Problem& problem, const Config& config) {
    const auto packing = packing_of_stage(problem, stage, config, dots);
    if (!packing) return argument_bytes(abi::MatmulPackArgs{});
    return argument_bytes(role == kA ? packing->a_args : packing->b_args);
  };
  return pass;
}

Pass product_pass(const Stage& stage, Dots dots) {
  Pass pass;
  pass.name = stage.name;
  pass.opencl = {.file = "matmul/cpu/product.cl", .entry = "matmul_product_cpu"};
  const auto& slots = stage.slots;
  pass.bindings = with_finish({slots[kA], slots[kB], kScratch}, stage);
  pass.specialized_on = std::vector<std::string>{"ROWS",   "BLOCK_M", "BLOCK_K", "VECTOR_WIDTH",
                                                 "PANELS", "BLOCKS",  "DOT"};
  pass.constants = [stage, dots](const Problem& problem, const Config&) -> std::vector<Define> {
    const auto product = product_of(problem, stage);
    if (!product) return {};
    return {{"BLOCKS", product->blocks},
            {"DOT", static_cast<std::uint32_t>(dots_of(*product, dots))}};
  };
  pass.groups = [stage, dots](const Problem& problem, const Config& config) {
    const auto packing = packing_of_stage(problem, stage, config, dots);
    return groups_of(
        packing && packing->few_rows == FewRows::kNo ? items_of(packing->product, config) : 0);
  };
  pass.args = [stage, dots](const Problem& problem, const Config& config) {
    const auto packing = packing_of_stage(problem, stage, config, dots);
    if (!packing) return argument_bytes(abi::MatmulArgs{});
    abi::MatmulArgs args = arguments_of(packing->product);
    args.packed_a = packing->a ? 1 : 0;
    args.packed_b = packing->b ? 1 : 0;
    args.panels = panels_of(packing->product, config);
    args.features |= is_plain(packing->product) ? MATMUL_PLAIN : 0U;
    return argument_bytes(args);
  };
  return pass;
}

// Rows that the kernels of few rows are built for.
std::uint32_t built_rows(const Product& product) {
  return product.m == 1 ? 1 : product.m <= 4 ? 4 : 8;
}

Pass few_rows_pass(const Stage& stage, Dots dots, FewRows kind) {
  const bool rows = kind == FewRows::kAlongRows;
  Pass pass;
  pass.name = stage.name + (rows ? " few rows along rows" : " few rows");
  pass.opencl = {.file = rows ? "matmul/cpu/columns.cl" : "matmul/cpu/rows.cl",
                 .entry = rows ? "matmul_columns_cpu" : "matmul_rows_cpu"};
  pass.bindings = with_finish({stage.slots[kB], kScratch}, stage);
  pass.specialized_on = std::vector<std::string>{"VECTOR_WIDTH", "FROM_TYPE", "FEW_ROWS"};
  pass.constants = [stage](const Problem& problem, const Config&) -> std::vector<Define> {
    const auto product = product_of(problem, stage);
    if (!product) return {};
    return {{"FROM_TYPE", dtype_axis(product->views[kB].dtype)},
            {"FEW_ROWS", built_rows(*product)}};
  };
  pass.groups = [stage, dots, kind](const Problem& problem, const Config& config) {
    const auto packing = packing_of_stage(problem, stage, config, dots);
    if (!packing || packing->few_rows != kind) return Dim3{0, 0, 0};
    const std::uint32_t vectors =
        kind == FewRows::kAlongRows ? 16 / built_rows(packing->product) : 2;
    const std::int64_t columns = std::int64_t{vectors} * config.at("VECTOR_WIDTH");
    return Dim3{ceil_div(packing->product.n, columns) *
                static_cast<std::uint32_t>(packing->product.batches())};
  };
  pass.args = [stage, dots](const Problem& problem, const Config& config) {
    const auto packing = packing_of_stage(problem, stage, config, dots);
    if (!packing) return argument_bytes(abi::MatmulArgs{});
    return argument_bytes(arguments_of(packing->product));
  };
  return pass;
}

std::vector<Config> space(const Problem&, const DeviceProfile& profile) {
  const std::uint32_t width = vector_width(profile);
  const auto config = [&](std::uint32_t rows, std::uint32_t block_m, std::uint32_t block_k) {
    return Config{{"ROWS", rows},
                  {"BLOCK_M", block_m},
                  {"BLOCK_K", block_k},
                  {"VECTOR_WIDTH", width},
                  {"PANELS", 8}};
  };
  // Measured with AVX2: 12 sums of vectors in registers take 74 % of FMA, 8 of them 58.
  if (width < 16) return {config(6, 96, 256), config(4, 64, 256)};
  return {config(8, 64, 512), config(8, 64, 256), config(12, 96, 384)};
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile,
                Dots dots) {
  const std::uint32_t width = config.at("VECTOR_WIDTH");
  const std::uint32_t rows = config.at("ROWS"), block = config.at("BLOCK_M");
  if (Refusal no = rejects_vector_width(config)) return no;
  if (dots != Dots::kNone && width != 16)
    return "takes vectors of 16 words, and VECTOR_WIDTH is " + std::to_string(width);
  if (rows == 0 || rows > 16 || block == 0 || block % rows != 0)
    return "takes blocks of whole tiles of 1 to 16 rows";
  if (config.at("BLOCK_K") == 0 || config.at("PANELS") == 0)
    return "takes at least one term and one panel at a time";
  constexpr std::uint32_t kExact = 1024;  // products of i8 whose sum is a whole number of float
  if (problem.dtype == DType::kI8 && config.at("BLOCK_K") > kExact)
    return "takes at most " + std::to_string(kExact) + " terms of i8 at a time";
  if (Refusal no = rejects_private_bytes(std::uint64_t{8} * block * width * config.at("PANELS")))
    return no;
  if (Refusal no = rejects_products(problem, profile)) return no;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
  for (const Product& product : products_of(problem)) {
    const Packing packing = packing_of_product(product, width, scratch_of_stages(problem), dots);
    if (packing.floats + scratch_of_stages(problem) >= kMost)
      return "counts elements to 2^31, and the packed matrices have more";
    if (std::max({packing.a_groups, packing.b_groups, items_of(product, config)}) >= kMost)
      return "counts items to 2^31";
  }
  return std::nullopt;
}

Way new_way(const MatmulSlots& slots, Dots dots) {
  Variant variant;
  variant.needs = opencl_cpu();
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = [dots](const Problem& problem, const Config& config,
                           const DeviceProfile& profile) {
    return rejects(problem, config, profile, dots);
  };
  variant.scratch_bytes = [dots](const Problem& problem, const Config& config) {
    std::uint64_t floats = 0;
    for (const Product& product : products_of(problem))
      floats =
          std::max(floats, packing_of_product(product, config.at("VECTOR_WIDTH"), 0, dots).floats);
    return 4 * (scratch_of_stages(problem) + floats);
  };
  if (slots.backward()) variant.passes.push_back(ones_pass());
  for (const Stage& stage : stages(slots)) {
    variant.passes.push_back(pack_pass(stage, kA, dots));
    variant.passes.push_back(pack_pass(stage, kB, dots));
    variant.passes.push_back(product_pass(stage, dots));
    for (const FewRows kind : {FewRows::kAlongColumns, FewRows::kAlongRows})
      variant.passes.push_back(few_rows_pass(stage, dots, kind));
  }
  return {.variant = std::move(variant),
          .rule = {.when = [](const Problem&, const DeviceProfile& profile) {
            return is_opencl_cpu(profile);
          }}};
}

// Does the call have such a product, on a processor that multiplies words?
auto when_dots(Dots dots, Feature feature) {
  return [dots, feature](const Problem& problem, const DeviceProfile& profile) {
    return is_opencl_cpu(profile) && has(profile.features, feature) &&
           std::ranges::any_of(products_of(problem), [&](const Product& product) {
             return dots_of(product, dots) != Dots::kNone;
           });
  };
}

}  // namespace

Way cpu_way(const MatmulSlots& slots) {
  Way way = new_way(slots, Dots::kNone);
  way.variant.name = "cpu";
  way.variant.idea = "an item multiplies rows with packed panels, tile by tile in registers";
  way.variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  if (!slots.backward())
    way.variant.dtypes.insert(way.variant.dtypes.end(), {DType::kI8, DType::kE4M3FN, DType::kE5M2});
  way.rule.why = "processors want panels of vectors, and no local memory";
  return way;
}

Way cpu_bf16_way(const MatmulSlots& slots) {
  Way way = new_way(slots, Dots::kBf16);
  way.variant.name = "cpu_bf16";
  way.variant.idea = "as cpu, but of pairs of bf16, by AVX512_BF16";
  way.variant.needs.features = Feature::kCpuBf16Dot;
  way.variant.precision = Precision::kHigh;  // the instruction takes subnormal numbers for 0
  way.variant.dtypes = {DType::kBF16};
  way.rule.why = "this processor multiplies pairs of bf16 faster than floats";
  way.rule.when = when_dots(Dots::kBf16, Feature::kCpuBf16Dot);
  return way;
}

Way cpu_i8_way(const MatmulSlots& slots) {
  Way way = new_way(slots, Dots::kI8);
  way.variant.name = "cpu_i8";
  way.variant.idea = "as cpu, but of fours of i8, by AVX512_VNNI";
  way.variant.needs.features = Feature::kIntegerDot;
  way.variant.dtypes = {DType::kI8};
  way.rule.why = "this processor multiplies fours of i8 faster than floats";
  way.rule.when = when_dots(Dots::kI8, Feature::kIntegerDot);
  return way;
}

}  // namespace tessera::operations::matmul
