// SPDX-License-Identifier: Apache-2.0
// Few rows at the speed of memory through Vulkan: plain layouts whose rows lie by 16 bytes.
#include <algorithm>
#include <string>
#include <vector>

#include "base/vendor_ids.hpp"
#include "kernel/gpu.hpp"
#include "kernel/tunable_list.hpp"
#include "operations/common/launch.hpp"
#include "operations/quantised_core/problem.hpp"

namespace tessera::operations::quantised {
namespace {

constexpr std::int64_t kMostRows = 4;

std::vector<Tunable> tunables() {
  return {
#include "operations/quantised_core/lanes/lanes.def"
  };
}

// Rows of output that a work-group owns.
std::uint32_t rows_of(const Problem& problem) {
  const std::int64_t m = problem.as<QuantisedProblem>().m;
  return m <= 1 ? 1 : m <= 2 ? 2 : 4;
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const auto config = [](std::uint32_t columns, std::uint32_t items) {
    return Config{{"COLUMNS", columns}, {"WG_X", items}};
  };
  if (is_cpu(profile)) return {config(1, 8)};  // they only check this kernel
  const std::uint32_t rows = rows_of(problem);
  const bool nibbles = format_of(problem) == QUANT_NIBBLES;
  // Sums of four rows are many registers, and so are bytes that are on their way.
  if (rows == 4) return {config(2, 64), config(2, 128), config(2, 32)};
  std::vector<Config> list{config(4, 64),  config(4, 32),  config(2, 64),
                           config(4, 128), config(2, 128), config(2, 32)};
  // As measured on an H200: columns share input of one row, so many of them that work-groups of a
  // sub-group, 16 of which a compute unit takes at a time, end together.
  if (rows == 1 && nibbles && profile.vendor_id == kVendorNvidia) {
    const std::int64_t slots = std::int64_t{16} * kernel::compute_units_of(profile);
    const std::int64_t n = problem.as<QuantisedProblem>().n;
    const auto work = [&](std::uint32_t columns) {
      constexpr std::int64_t kInput = 2;  // as much work as for so many columns
      return ceil_div(ceil_div(n, columns), slots) * (columns + kInput);
    };
    std::vector<std::uint32_t> columns{8, 7, 6, 5, 4};
    std::ranges::stable_sort(columns, {}, work);
    for (const std::uint32_t count : columns) list.push_back(config(count, 32));
    std::ranges::rotate(list, list.end() - static_cast<std::ptrdiff_t>(columns.size()));
  }
  // 128 registers to an item, or 64 of twice the length.
  if (rows == 2 && !nibbles && profile.vendor_id == kVendorIntel)
    list = {config(2, 64), config(2, 128), config(2, 32)};
  return list;
}

Refusal rejects_call(const Problem& problem) {
  const auto& call = problem.as<QuantisedProblem>();
  if (Refusal no = rejects_blocks_and_codes(problem)) return no;
  if (call.m > kMostRows) return "takes at most 4 rows";
  const abi::QuantArgs args = arguments_of(problem);
  const std::uint32_t per_16_bytes = problem.spec(kInput).dtype == DType::kF32 ? 4 : 8;
  if ((args.features & QUANT_ALIGNED) == 0 || args.k % QUANT_CHUNK != 0 ||
      args.input_offset % per_16_bytes != 0 || args.input_row % per_16_bytes != 0)
    return "takes rows of input and of weights that lie at multiples of 16 bytes, and terms that "
           "are a multiple of 32";
  return std::nullopt;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t items = config.group().x, columns = config.at("COLUMNS");
  if ((items & (items - 1)) != 0)
    return "has " + std::to_string(items) + " items in a work-group, no power of two";
  if (columns == 0 || columns > 8) return "takes 1 to 8 columns at a time";
  if (Refusal no = rejects_quantised(problem, profile)) return no;
  return rejects_call(problem);
}

Pass product_pass() {
  Pass pass;
  pass.name = "product";
  pass.vulkan = {.file = "quantised/lanes/product.comp", .entry = "main"};
  pass.bindings = {kInput, kWeight, kScale, kZero, kOutput};
  pass.axes = storage_axes;
  pass.constants = [](const Problem& problem, const Config&) -> std::vector<Define> {
    return {{"ROWS", rows_of(problem)},
            {"INPUT_TYPE", dtype_axis(problem.spec(kInput).dtype)},
            {"FORMAT", format_of(problem)},
            {"GROUP", group_of(problem)},
            {"SCALE_TYPE", dtype_axis(problem.spec(kScale).dtype)},
            {"ZEROS", problem.has(kZero) ? 1U : 0U}};
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    return groups_of_tiles(problem, rows_of(problem), config.at("COLUMNS"));
  };
  pass.args = product_arguments;
  return pass;
}

}  // namespace

Way lanes_way() {
  Variant variant;
  variant.name = "lanes";
  variant.idea =
      "chunks of 32 weights straight to registers, whose bits become floats where they lie";
  variant.needs = {.backends = {Backend::kVulkan}, .features = Feature::kSubgroupArithmetic};
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = [](const Problem& problem, const Config& config) {
    return std::uint64_t{4} * rows_of(problem) * config.at("COLUMNS") * config.group().x;
  };
  variant.passes = {product_pass()};
  return {.variant = std::move(variant),
          .rule = {.why = "few rows, and weights that lie by 16 bytes",
                   .when =
                       [](const Problem& problem, const DeviceProfile& profile) {
                         return profile.backend == Backend::kVulkan && !is_cpu(profile) &&
                                !rejects_quantised(problem, profile) && !rejects_call(problem);
                       },
                   .config =
                       [](const Problem& problem, const DeviceProfile& profile) {
                         return space(problem, profile).front();
                       }}};
}

}  // namespace tessera::operations::quantised
