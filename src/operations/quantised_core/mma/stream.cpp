// SPDX-License-Identifier: Apache-2.0
// NVIDIA's GPUs from sm_80 on through OpenCL, at most 16 rows: weights straight to registers, some
// steps ahead and without an end between blocks of columns; mma.sync multiplies.
#include "operations/quantised_core/mma/stream.h"

#include <algorithm>
#include <string>
#include <vector>

#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/quantised_core/mma/launch.hpp"

namespace tessera::operations::quantised {
namespace {

constexpr std::int64_t kMostRows = 16, kFewRows = 8, kColumns = 16;

std::vector<Tunable> tunables() {
  std::vector<Tunable> list{
#include "operations/quantised_core/mma/stream.def"
  };
  list.push_back({.id = 31, .name = "GROUPS", .fallback = 132, .launch_only = true});
  return list;
}

std::uint32_t rows_of(const Problem& problem) {
  const std::int64_t m = problem.as<QuantisedProblem>().m;
  return m <= 1 ? 1 : m <= 2 ? 2 : m <= 4 ? 4 : m <= 8 ? 8 : 16;
}

std::uint64_t local_bytes_of(const Problem& problem, const Config& config) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/quantised_core/mma/stream.def"
  const Number ROWS = rows_of(problem), FORMAT = format_of(problem);
  if (!(QUANT_STREAM_VALID)) return 0;
  return QUANT_STREAM_LOCAL_BYTES;
}

// Of all input, or what there is room for, in few sizes, so that few programs do.
std::uint32_t input_bytes(const Problem& problem, const DeviceProfile& profile) {
  const std::uint32_t FORMAT = format_of(problem);
  const auto k = static_cast<std::uint64_t>(problem.as<QuantisedProblem>().k);
  const std::uint64_t bytes =
      2 * rows_of(problem) * (ceil_div(k, QUANT_STREAM_TERMS) * QUANT_STREAM_TERMS);
  std::uint32_t size = 8192;
  while (size < bytes && 3 * size <= kernel::nvidia_local_bytes(profile)) size *= 2;
  return size;
}

// `per_unit`: work-groups that a compute unit has at once; each goes on from columns to columns.
struct Cut {
  std::uint32_t warps, ahead, per_unit;
};

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const std::uint32_t units = std::max(kernel::compute_units_of(profile), 1U);
  std::vector<Config> list;
  // As measured on an H200: one row in two work-groups, more of them share input in one.
  std::vector<Cut> cuts{Cut{8, 2, 2}, Cut{16, 2, 1}, Cut{8, 3, 2}, Cut{8, 1, 2}};
  if (rows_of(problem) > 1) std::swap(cuts[0], cuts[1]);
  for (const Cut& cut : cuts) {
    Config config{{"WARPS", cut.warps},
                  {"AHEAD", cut.ahead},
                  {"WG_X", 32 * cut.warps},
                  {"X_BYTES", input_bytes(problem, profile)}};
    const std::uint64_t bytes = local_bytes_of(problem, config);
    if (bytes == 0 || bytes > kernel::nvidia_local_bytes(profile)) continue;
    const std::uint64_t fit =
        std::clamp<std::uint64_t>(kernel::nvidia_local_bytes(profile) / bytes, 1, cut.per_unit);
    config.set("GROUPS", static_cast<std::uint32_t>(units * fit));
    list.push_back(std::move(config));
  }
  return list;
}

Refusal rejects_call(const Problem& problem) {
  const auto& call = problem.as<QuantisedProblem>();
  if (Refusal no = rejects_blocks_and_codes(problem)) return no;
  if (call.m > kMostRows) return "takes at most 16 rows";
  if (call.k == 0) return "takes at least one term";
  const abi::QuantArgs args = arguments_of(problem);
  const std::uint32_t FORMAT = format_of(problem), of_16_bytes = QUANT_STREAM_TERMS / 8;
  if ((args.features & QUANT_ALIGNED) == 0 || args.k % of_16_bytes != 0 ||
      args.input_offset % 8 != 0 || args.input_row % 8 != 0)
    return "takes rows of input and of weights that lie at multiples of 16 bytes, and as many "
           "weights of each";
  // A row's only scale counts as one of them.
  if (group_of(problem) * QUANT_CHUNK % (QUANT_STREAM_TERMS / 2) != 0)
    return "takes scales of multiples of " + std::to_string(QUANT_STREAM_TERMS / 2) + " terms";
  return std::nullopt;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = rejects_quantised(problem, profile)) return no;
  if (Refusal no = rejects_call(problem)) return no;
  const std::uint64_t bytes = local_bytes_of(problem, config);
  if (bytes == 0) return "has no such warps or steps (operations/quantised_core/mma/stream.h)";
  if (config.get("GROUPS", 1) == 0) return "needs a work-group";
  return kernel::rejects_nvidia_bytes(bytes, profile);
}

Pass product_pass() {
  Pass pass;
  pass.name = "product";
  pass.opencl = {.file = "quantised/mma/stream.cl", .entry = "quantised_stream"};
  pass.bindings = {kInput, kWeight, kScale, kZero, kOutput};
  pass.axes = dtype_axes;
  pass.constants = [](const Problem& problem, const Config&) {
    return constants(problem, rows_of(problem));
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    const std::int64_t blocks = ceil_div(problem.as<QuantisedProblem>().n, kColumns);
    return Dim3{static_cast<std::uint32_t>(std::min<std::int64_t>(blocks, config.at("GROUPS")))};
  };
  pass.args = product_arguments;
  return pass;
}

bool prefers_stream(const Problem& problem, const DeviceProfile& profile) {
  return problem.as<QuantisedProblem>().m <= kFewRows &&
         takes(problem, profile, Feature::kMmaSync, rejects_call) &&
         !space(problem, profile).empty();
}

}  // namespace

Way stream_way() {
  Variant variant;
  variant.name = "stream";
  variant.idea = "few rows: weights straight to registers without an end between columns, mma.sync";
  variant.tunables = tunables();
  variant.rejects = rejects;
  variant.passes = list_of(product_pass());
  return new_way(std::move(variant), Feature::kMmaSync, space,
                 "few rows of input, and weights at the speed of memory", prefers_stream);
}

}  // namespace tessera::operations::quantised
