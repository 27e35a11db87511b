// SPDX-License-Identifier: Apache-2.0
// Matrix units through Vulkan, of any vendor: tiles of one group, from the work list.
#include <algorithm>
#include <array>
#include <string>

#include "base/vendor_ids.hpp"
#include "kernel/config_order.hpp"
#include "kernel/gpu.hpp"
#include "kernel/matrices.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/cooperative_tiles.hpp"
#include "operations/common/launch.hpp"
#include "operations/grouped_core/stages.hpp"

namespace tessera::operations::matmul {
namespace {

std::vector<Tunable> tunables() {
  std::vector<Tunable> list = cooperative_tunables();
  const std::vector<Tunable> more{
#include "operations/grouped_core/cooperative/grouped.def"
  };
  list.insert(list.end(), more.begin(), more.end());
  return list;
}

std::uint32_t rows_of(const Config& config) { return config.at("BLOCK_M"); }

// Nothing where nothing is multiplied.
std::optional<GroupedProduct> product_with_terms(const Problem& problem,
                                                 const GroupedStage& stage) {
  auto product = grouped_product(problem, stage);
  if (product && (product->is_empty() || product->k == 0)) return std::nullopt;
  return product;
}

// An operand as lines that are contiguous. Aligned: vectors of eight elements are whole, wherever a
// group begins; terms of other groups are cleared where lines run along ragged ones.
struct Lines {
  bool exist = true, by_terms = true, aligned = true;
};

Lines lines_of(const abi::GroupedView& view, std::uint32_t term_step, std::uint32_t across_step,
               std::int64_t terms, std::int64_t across, bool is_cut) {
  constexpr std::int64_t kVector = 8;
  const bool by_terms = term_step == 1;
  const std::uint32_t step = by_terms ? across_step : term_step;
  const std::int64_t length = by_terms ? terms : across;
  const bool aligned = view.offset % kVector == 0 && step % kVector == 0 &&
                       view.group % kVector == 0 && length % kVector == 0;
  return {.exist = by_terms || across_step == 1,
          .by_terms = by_terms,
          .aligned = aligned && (by_terms || !is_cut)};
}

Lines lines_of_a(const GroupedProduct& product, bool over_terms) {
  const abi::GroupedView& a = product.args.a;
  return lines_of(a, a.column, a.row, product.k, product.m, !over_terms);
}

Lines lines_of_b(const GroupedProduct& product) {
  const abi::GroupedView& b = product.args.b;
  return lines_of(b, b.row, b.column, product.k, product.n, false);
}

std::vector<Define> constants(const Problem& problem, const GroupedStage& stage) {
  const auto product = product_with_terms(problem, stage);
  const Lines a = product ? lines_of_a(*product, stage.over_terms) : Lines{};
  const Lines b = product ? lines_of_b(*product) : Lines{};
  return {{"A_BY_TERMS", a.by_terms ? 1U : 0U},
          {"B_BY_TERMS", b.by_terms ? 1U : 0U},
          {"ALIGNED", a.aligned && b.aligned ? 1U : 0U},
          {"RAGGED", static_cast<std::uint32_t>(stage.over_terms ? GROUPED_TERMS : GROUPED_ROWS)}};
}

// Of the groups whose sizes nobody here knows, at most.
std::uint64_t tiles_of(const Problem& problem, const GroupedStage& stage,
                       const GroupedProduct& product, const Config& config) {
  const std::uint64_t blocks = stage.over_terms ? ceil_div(product.m, rows_of(config)) : 1;
  return grouped_items(problem, stage, rows_of(config)) * blocks *
         ceil_div(product.n, config.at("BLOCK_N"));
}

Pass product_pass(const GroupedStage& stage) {
  Pass pass;
  pass.name = stage.name;
  pass.vulkan = {.file = "matmul/cooperative/grouped.comp", .entry = "main"};
  pass.axes = dtype_axes;
  pass.constants = [stage](const Problem& problem, const Config&) {
    return constants(problem, stage);
  };
  pass.groups = [stage](const Problem& problem, const Config& config) {
    const auto product = grouped_product(problem, stage);
    if (!product || product->is_empty()) return Dim3{0, 0, 0};
    return groups_of_units(tiles_of(problem, stage, *product, config));
  };
  pass.args = [stage](const Problem& problem, const Config&) {
    const auto product = grouped_product(problem, stage);
    return argument_bytes(product ? product->args : abi::GroupedArgs{});
  };
  return pass;
}

// Large tiles first, but for groups that do not fill half of one and for calls that have fewer
// tiles than the device takes at a time: of those the smallest.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const auto& call = problem.as<GroupedProblem>();
  const std::uint32_t fill = is_cpu(profile) ? 1 : kernel::compute_units_of(profile);
  const std::vector<GroupedStage> stages = grouped_stages(call.slots);
  const std::int64_t mean = call.m / std::max<std::int64_t>(call.held, 1);
  std::vector<Config> list = cooperative_cuts(problem, profile);
  if (profile.vendor_id == kVendorNvidia) {
    // The last tile of a group is half empty. Of 256 rows each, tiles of 64 rows were 4 % faster on
    // an H200, of 512 as fast.
    constexpr std::array kLow{CooperativeCut{64, 128, 64, 32, 64}};
    constexpr std::int64_t kFewRows = 384;
    const bool few = mean < kFewRows && std::ranges::none_of(stages, [&](const auto& stage) {
                       return stage.over_terms && product_with_terms(problem, stage);
                     });
    const std::vector<Config> low = cooperative_configs(problem, profile, kLow);
    list.insert(few ? list.begin() : list.end(), low.begin(), low.end());
  }
  const auto others = kernel::put_first(list, [&](const Config& config) {
    return std::ranges::all_of(stages, [&](const GroupedStage& stage) {
      const auto product = product_with_terms(problem, stage);
      if (!product) return true;
      const std::int64_t rows = stage.over_terms ? product->m : mean;
      return 2 * rows >= rows_of(config) && tiles_of(problem, stage, *product, config) >= fill;
    });
  });
  kernel::sort_configs(others, rows_of);
  return list;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = rejects_cooperative_cut(problem, config, profile)) return no;
  if (Refusal no = rejects_grouped(problem, profile, rows_of(config))) return no;
  for (const GroupedStage& stage : grouped_stages(problem.as<GroupedProblem>().slots)) {
    const auto product = grouped_product(problem, stage);
    if (product && tiles_of(problem, stage, *product, config) >= std::uint64_t{1} << 31)
      return "counts tiles to 2^31";
    if (!product_with_terms(problem, stage)) continue;
    if (product->dtypes[kLeft] != problem.dtype || product->dtypes[kRight] != problem.dtype ||
        !lines_of_a(*product, stage.over_terms).exist || !lines_of_b(*product).exist)
      return "takes operands of one type that are contiguous along an axis";
  }
  return std::nullopt;
}

bool prefers_cooperative(const Problem& problem, const DeviceProfile& profile) {
  constexpr std::int64_t kLeastRows = 9, kLeastColumns = 32;  // below, most of a tile is empty
  const auto& call = problem.as<GroupedProblem>();
  return profile.backend == Backend::kVulkan && call.m >= kLeastRows && call.n >= kLeastColumns &&
         call.k >= kLeastColumns && !space(problem, profile).empty();
}

}  // namespace

Way grouped_cooperative_way(const GroupedSlots& slots) {
  Variant variant;
  variant.name = "cooperative";
  variant.idea = "a work list of tiles of one group; cooperative matrices, tiles in local memory";
  variant.needs = kernel::matrix_needs();
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = [](const Problem&, const Config& config) {
    return cooperative_local_bytes(config);
  };
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return grouped_scratch(problem, rows_of(config));
  };
  variant.passes = grouped_passes(slots, rows_of, product_pass);
  return {.variant = std::move(variant),
          .rule = {.why = "the device's matrix unit", .when = prefers_cooperative}};
}

}  // namespace tessera::operations::matmul
