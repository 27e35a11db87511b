// SPDX-License-Identifier: Apache-2.0
// Few rows at the speed of memory: any GPU, any of the formats.
#include <algorithm>
#include <string>

#include "base/vendor_ids.hpp"
#include "kernel/config_order.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/quantised_core/problem.hpp"

namespace tessera::operations::quantised {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/quantised_core/rows/rows.def"
  };
}

// Rows of output that a work-group owns.
std::uint32_t rows_of(const Problem& problem) {
  const std::int64_t m = problem.as<QuantisedProblem>().m;
  return m <= 1 ? 1 : m <= 2 ? 2 : m <= 4 ? 4 : 8;
}

Config make_config(std::uint32_t columns, std::uint32_t items) {
  return {{"COLUMNS", columns}, {"WG_X", items}};
}

// As many items as a row has chunks, so far as that fills work-groups.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  if (is_cpu(profile)) return {make_config(2, 16)};  // they only check this kernel
  std::vector<Config> list{make_config(4, 64),  make_config(4, 128), make_config(2, 64),
                           make_config(2, 128), make_config(4, 32),  make_config(2, 256)};
  // Sums of 8 rows and 4 columns are too many for 128 registers: ANV spilled 1 to 20 of them.
  if (profile.vendor_id == kVendorIntel && rows_of(problem) == 8)
    list = {make_config(2, 64), make_config(2, 128), make_config(2, 32)};
  const std::int64_t chunks = problem.as<QuantisedProblem>().k / QUANT_CHUNK;
  kernel::put_first(list, [&](const Config& config) {
    return config.group().x <= std::max<std::int64_t>(chunks, 32);
  });
  return list;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t items = config.group().x, columns = config.at("COLUMNS");
  if ((items & (items - 1)) != 0)
    return "has " + std::to_string(items) + " items in a work-group, no power of two";
  if (columns == 0 || columns > 8) return "takes 1 to 8 columns at a time";
  return rejects_quantised(problem, profile);
}

Pass product_pass() {
  Pass pass;
  pass.name = "product";
  pass.opencl = {.file = "quantised/rows/product.cl", .entry = "quantised_product"};
  pass.vulkan = {.file = "quantised/rows/product.comp", .entry = "main"};
  pass.bindings = {kInput, kWeight, kScale, kZero, kInputScale, kOutput};
  pass.axes = storage_axes;
  pass.constants = [](const Problem& problem, const Config&) -> std::vector<Define> {
    return {{"ROWS", rows_of(problem)},
            {"INPUT_TYPE", dtype_axis(problem.spec(kInput).dtype)},
            {"FORMAT", format_of(problem)}};
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    return groups_of_tiles(problem, rows_of(problem), config.at("COLUMNS"));
  };
  pass.args = product_arguments;
  return pass;
}

}  // namespace

Way rows_way() {
  Variant variant;
  variant.name = "rows";
  variant.idea = "chunks of 32 weights straight to registers, sums of items as a tree";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16, DType::kI8};
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.local_bytes = [](const Problem& problem, const Config& config) {
    return std::uint64_t{4} * rows_of(problem) * config.at("COLUMNS") * config.group().x;
  };
  variant.passes = list_of(product_pass());
  return {.variant = std::move(variant),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; }}};
}

}  // namespace tessera::operations::quantised
