// SPDX-License-Identifier: Apache-2.0
// Few rows at the speed of memory through Vulkan: plain layouts whose rows lie by 16 bytes.
#include <algorithm>
#include <string>
#include <vector>

#include "base/vendor_ids.hpp"
#include "kernel/tunable_list.inc"
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
  // Columns share input, and sums of four rows are many registers, as are bytes that are on their
  // way.
  std::vector<Config> list{config(4, 64),  config(4, 32),  config(2, 64),
                           config(4, 128), config(2, 128), config(2, 32)};
  if (rows == 4) list = {config(2, 64), config(2, 128), config(2, 32)};
  // 128 registers to an item, or 64 of twice the length.
  if (rows == 2 && !nibbles && profile.vendor_id == kVendorIntel)
    list = {config(2, 64), config(2, 128), config(2, 32)};
  // As measured on an H200.
  if (nibbles && profile.vendor_id == kVendorNvidia)
    list.insert(list.begin(), rows == 4 ? config(4, 64) : config(8, 32));
  return list;
}

Refusal rejects_call(const Problem& problem) {
  const auto& call = problem.as<QuantisedProblem>();
  if (Refusal no = rejects_blocks_and_codes(problem)) return no;
  if (call.m > kMostRows) return "takes at most 4 rows";
  return rejects_rows_off_vectors(problem);
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t items = config.group().x, columns = config.at("COLUMNS");
  if ((items & (items - 1)) != 0)
    return "has " + std::to_string(items) + " items in a work-group, no power of two";
  if (columns == 0 || columns > 8) return "takes 1 to 8 columns at a time";
  if (items % (columns * rows_of(problem)) != 0)
    return "adds up sums of all items by as many items for each sum";
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
    std::vector<Define> list = weight_constants(problem);
    list.push_back({"ROWS", rows_of(problem)});
    list.push_back({"INPUT_TYPE", dtype_axis(problem.spec(kInput).dtype)});
    return list;
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
  variant.needs = {.backends = {Backend::kVulkan}};
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = [](const Problem& problem, const Config& config) {
    const std::uint64_t sums = std::uint64_t{rows_of(problem)} * config.at("COLUMNS");
    return 4 * (sums + 2) * config.group().x;
  };
  variant.passes = list_of(product_pass());
  return {.variant = std::move(variant),
          .rule = {.why = "few rows, and weights that lie by 16 bytes",
                   .when = [](const Problem& problem, const DeviceProfile& profile) {
                     return profile.backend == Backend::kVulkan && !is_cpu(profile) &&
                            !rejects_quantised(problem, profile) && !rejects_call(problem);
                   }}};
}

}  // namespace tessera::operations::quantised
