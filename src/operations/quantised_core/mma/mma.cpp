// SPDX-License-Identifier: Apache-2.0
// NVIDIA's GPUs from sm_80 on through OpenCL: weights become numbers of the type of input in
// registers, and mma.sync multiplies.
#include <algorithm>
#include <vector>

#include "kernel/config_order.hpp"
#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/quantised_core/mma/geometry.h"
#include "operations/quantised_core/mma/launch.hpp"

namespace tessera::operations::quantised {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/quantised_core/mma/mma.def"
  };
}

// Rows of output that a work-group takes at once.
std::uint32_t rows_of(const Problem& problem) {
  const std::int64_t m = problem.as<QuantisedProblem>().m;
  return m <= 8 ? 8 : m <= 16 ? 16 : m <= 32 ? 32 : 64;
}

struct MmaGeometry {
  bool valid = false;
  std::uint32_t columns = 1, local_bytes = 0;
};

// geometry.h's macros read the locals here.
MmaGeometry geometry_of(const Problem& problem, const Config& config) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/quantised_core/mma/mma.def"
  const Number ROWS = rows_of(problem), FORMAT = format_of(problem);
  if (!(QUANT_MMA_VALID)) return {};
  return {.valid = true, .columns = QUANT_MMA_COLUMNS, .local_bytes = QUANT_MMA_LOCAL_BYTES};
}

std::uint64_t groups_of(const Problem& problem, const Config& config) {
  const auto& call = problem.as<QuantisedProblem>();
  return std::uint64_t{ceil_div(call.n, geometry_of(problem, config).columns)} *
         ceil_div(call.m, rows_of(problem));
}

struct Cut {
  std::uint32_t tiles, warps_n, warps_k, stages, input_local;
};

// As measured on an H200: few rows stream weights through many small work-groups; more of them
// share input in local memory, by as many columns as leave a work-group for each core.
std::vector<Cut> cuts_of(const Problem& problem) {
  const std::uint32_t rows = rows_of(problem);
  if (rows == 8 && format_of(problem) == QUANT_BYTES)
    return {{1, 1, 8, 4, 0}, {1, 2, 4, 4, 0}, {1, 1, 4, 4, 0}};
  if (rows == 8) return {{1, 1, 4, 4, 0}, {1, 2, 4, 4, 0}, {1, 1, 8, 4, 0}};
  if (rows == 16) return {{1, 8, 1, 4, 1}, {1, 4, 4, 3, 1}, {1, 4, 2, 3, 1}, {1, 4, 1, 2, 1}};
  if (rows == 32) return {{2, 8, 1, 3, 1}, {2, 4, 2, 2, 1}, {1, 8, 1, 2, 1}, {1, 4, 1, 2, 1}};
  // Of nibbles with zeros two tiles spill, and one was as fast: 0.066 ms and 0.067 for 512 rows,
  // 4096 columns and terms. Of bytes two took 0.064, one 0.072.
  if (format_of(problem) == QUANT_NIBBLES && problem.has(kZero))
    return {{1, 8, 1, 2, 1}, {2, 4, 2, 2, 1}, {1, 4, 1, 2, 1}, {2, 8, 1, 3, 1}};
  return {{2, 8, 1, 3, 1}, {1, 8, 1, 2, 1}, {2, 4, 2, 2, 1}, {1, 4, 1, 2, 1}};
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const std::uint32_t units = kernel::compute_units_of(profile);
  std::vector<Config> list;
  for (const Cut& cut : cuts_of(problem)) {
    Config config{{"TILES", cut.tiles},
                  {"WARPS_N", cut.warps_n},
                  {"WARPS_K", cut.warps_k},
                  {"STAGES", cut.stages},
                  {"INPUT_LOCAL", cut.input_local},
                  {"WG_X", 32 * cut.warps_n * cut.warps_k}};
    if (geometry_of(problem, config).local_bytes <= kernel::nvidia_local_bytes(profile))
      list.push_back(std::move(config));
  }
  kernel::put_first(list,
                    [&](const Config& config) { return groups_of(problem, config) >= units; });
  return list;
}

// The kernel reads 16 bytes of a row at once.
bool lies_by_chunks(const Problem& problem) {
  const abi::QuantArgs args = arguments_of(problem);
  const bool aligned = (args.features & QUANT_ALIGNED) != 0;
  return aligned && args.k % 8 == 0 && args.input_offset % 8 == 0 && args.input_row % 8 == 0;
}

Refusal rejects_call(const Problem& problem) {
  if (Refusal no = rejects_blocks_and_codes(problem)) return no;
  if (!lies_by_chunks(problem))
    return "takes rows of input and of weights that lie at multiples of 16 bytes, and terms that "
           "are a multiple of 8";
  return std::nullopt;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = rejects_quantised(problem, profile)) return no;
  if (Refusal no = rejects_call(problem)) return no;
  const MmaGeometry geometry = geometry_of(problem, config);
  if (!geometry.valid) return "has no such tiles (operations/quantised_core/mma/geometry.h)";
  return kernel::rejects_nvidia_bytes(geometry.local_bytes, profile);
}

Pass product_pass() {
  Pass pass;
  pass.name = "product";
  pass.opencl = {.file = "quantised/mma/product.cl", .entry = "quantised_mma"};
  pass.bindings = {kInput, kWeight, kScale, kZero, kOutput};
  pass.axes = dtype_axes;
  pass.constants = [](const Problem& problem, const Config&) {
    return constants(problem, rows_of(problem));
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    return Dim3{static_cast<std::uint32_t>(groups_of(problem, config))};
  };
  pass.args = product_arguments;
  return pass;
}

bool prefers_mma(const Problem& problem, const DeviceProfile& profile) {
  return takes(problem, profile, Feature::kMmaSync, rejects_call);
}

}  // namespace

Way mma_way() {
  Variant variant;
  variant.name = "mma";
  variant.idea = "weights become numbers in registers, mma.sync; copies of weights run ahead";
  variant.tunables = tunables();
  variant.rejects = rejects;
  variant.passes = list_of(product_pass());
  return new_way(std::move(variant), Feature::kMmaSync, space,
                 "matrix instructions, and weights at the speed of memory", prefers_mma);
}

}  // namespace tessera::operations::quantised
