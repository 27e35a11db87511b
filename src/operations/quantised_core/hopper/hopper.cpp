// SPDX-License-Identifier: Apache-2.0
// Hopper's matrix unit through OpenCL, at most 64 rows: weights of 4 bits become operand A in
// registers, input is operand B.
#include <algorithm>
#include <string>
#include <vector>

#include "kernel/gpu.hpp"
#include "kernel/tunable_list.hpp"
#include "operations/common/launch.hpp"
#include "operations/quantised_core/hopper/geometry.h"
#include "operations/quantised_core/problem.hpp"

namespace tessera::operations::quantised {
namespace {

constexpr std::uint32_t kLocalBytes = 227 * 1024;  // what a work-group may have
constexpr std::int64_t kMostRows = 64, kFewRows = 16;
constexpr std::uint32_t kScaledTerms = 128;  // by one scale at least

std::vector<Tunable> tunables() {
  return {
#include "operations/quantised_core/hopper/hopper.def"
  };
}

std::uint32_t rows_of(const Problem& problem) {
  const std::int64_t m = problem.as<QuantisedProblem>().m;
  return m <= 16 ? 16 : m <= 32 ? 32 : 64;
}

// Chunks of 32 terms that share a scale; 0 where a row has one.
std::uint32_t group_of(const Problem& problem) {
  if (problem.spec(kScale).shape.back() == 1) return 0;
  return static_cast<std::uint32_t>(problem.as<QuantisedProblem>().group / QUANT_CHUNK);
}

std::vector<Define> constants(const Problem& problem, const Config& /*config*/) {
  return {{"ROWS", rows_of(problem)},
          {"GROUP", group_of(problem)},
          {"SCALE_TYPE", dtype_axis(problem.spec(kScale).dtype)},
          {"ZEROS", problem.has(kZero) ? 1U : 0U}};
}

struct HopperGeometry {
  bool valid = false;
  std::uint32_t columns = 1, local_bytes = 0;
};

// geometry.h's macros read the locals here.
HopperGeometry geometry_of(const Problem& problem, const Config& config) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/quantised_core/hopper/hopper.def"
  const Number ROWS = rows_of(problem);
  if (!(QUANT_HOPPER_VALID)) return {};
  return {.valid = true, .columns = QUANT_HOPPER_COLUMNS, .local_bytes = QUANT_HOPPER_LOCAL_BYTES};
}

std::uint32_t groups_of(const Problem& problem, const Config& config) {
  return ceil_div(problem.as<QuantisedProblem>().n, geometry_of(problem, config).columns);
}

// Many columns share input; but not so many that multiprocessors are left without any.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const std::uint32_t units = kernel::compute_units_of(profile);
  std::vector<Config> list;
  for (const std::uint32_t items : {512, 256, 128}) {
    const std::uint32_t stages = rows_of(problem) == 64 ? 3 : 4;
    list.push_back({{"STAGES", stages}, {"WG_X", items}});
  }
  std::ranges::stable_partition(
      list, [&](const Config& config) { return 4 * groups_of(problem, config) >= 3 * units; });
  return list;
}

Refusal rejects_call(const Problem& problem) {
  const auto& call = problem.as<QuantisedProblem>();
  if (call.layout != Layout::kPlain) return "takes plain layouts, and no blocks with scales";
  if (format_of(problem) != QUANT_NIBBLES) return "takes weights of 4 bits";
  if (problem.has(kInputScale)) return "takes no codes as input";
  if (call.m > kMostRows) return "takes at most 64 rows";
  const abi::QuantArgs args = arguments_of(problem);
  if ((args.features & QUANT_ALIGNED) == 0 || args.k % QUANT_CHUNK != 0 ||
      args.input_offset % 8 != 0 || args.input_row % 8 != 0)
    return "takes rows of input and of weights that lie at multiples of 16 bytes, and terms that "
           "are a multiple of 32";
  // A row's only scale counts as one of them.
  if (group_of(problem) * QUANT_CHUNK % kScaledTerms != 0)
    return "takes scales of multiples of 128 terms";
  return std::nullopt;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = rejects_quantised(problem, profile)) return no;
  if (Refusal no = rejects_call(problem)) return no;
  const HopperGeometry geometry = geometry_of(problem, config);
  if (!geometry.valid) return "has no such steps (operations/quantised_core/hopper/geometry.h)";
  if (geometry.local_bytes > kLocalBytes)
    return "needs " + std::to_string(geometry.local_bytes) +
           " bytes of work-group memory, and has " + std::to_string(kLocalBytes);
  return std::nullopt;
}

Pass product_pass() {
  Pass pass;
  pass.name = "product";
  pass.opencl = {.file = "quantised/hopper/product.cl", .entry = "quantised_hopper"};
  pass.bindings = {kInput, kWeight, kScale, kZero, kOutput};
  pass.axes = dtype_axes;
  pass.constants = constants;
  pass.groups = [](const Problem& problem, const Config& config) {
    return Dim3{groups_of(problem, config)};
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(arguments_of(problem));
  };
  return pass;
}

bool prefers_hopper(const Problem& problem, const DeviceProfile& profile) {
  return has(profile.features, Feature::kWgmma) && problem.as<QuantisedProblem>().m > kFewRows &&
         (problem.dtype == DType::kF16 || problem.dtype == DType::kBF16) &&
         !rejects_quantised(problem, profile) && !rejects_call(problem);
}

}  // namespace

Way hopper_way() {
  Variant variant;
  variant.name = "hopper";
  variant.idea = "at most 64 rows: weights become operand A of wgmma in registers, input is B";
  variant.needs = {.backends = {Backend::kOpenCL},
                   .features = Feature::kNvidiaPtx | Feature::kWgmma};
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.passes = {product_pass()};
  return {.variant = std::move(variant),
          .rule = {.why = "Hopper's matrix unit, and one read of weights of 4 bits",
                   .when = prefers_hopper,
                   .config = [](const Problem& problem, const DeviceProfile& profile) {
                     return space(problem, profile).front();
                   }}};
}

}  // namespace tessera::operations::quantised
