// SPDX-License-Identifier: Apache-2.0
// Rows of weights through vectors: processors through OpenCL.
#include <algorithm>
#include <string>

#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/quantised_core/problem.hpp"

namespace tessera::operations::quantised {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/quantised_core/cpu/cpu.def"
  };
}

std::uint32_t rows_of(const Problem& problem) {
  return problem.as<QuantisedProblem>().m <= 1 ? 1 : 4;
}

std::uint64_t items_of(const Problem& problem, const Config& config) {
  const auto& call = problem.as<QuantisedProblem>();
  return std::uint64_t{ceil_div(call.m, rows_of(problem))} * ceil_div(call.n, config.at("COLUMNS"));
}

// Signed bytes without zero points.
bool has_plain_bytes(const Problem& problem) {
  const std::uint32_t format = format_of(problem);
  if (format == QUANT_Q8_0) return true;
  return format == QUANT_BYTES && problem.spec(kWeight).dtype == DType::kI8 && !problem.has(kZero);
}

// Many columns, for which rows of input are made floats once, where that leaves enough items.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  constexpr std::uint64_t kItems = 64;
  const std::uint32_t width = vector_width(profile);
  const auto config = [width](std::uint32_t columns) {
    return Config{{"VECTOR_WIDTH", width}, {"COLUMNS", columns}};
  };
  if (items_of(problem, config(64)) < kItems) return {config(16), config(64)};
  return {config(64), config(16)};
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t columns = config.at("COLUMNS");
  if (Refusal no = rejects_vector_width(config)) return no;
  if (columns == 0 || columns > 256) return "takes 1 to 256 columns at a time";
  if (items_of(problem, config) >= std::uint64_t{1} << 31) return "counts items to 2^31";
  return rejects_quantised(problem, profile);
}

}  // namespace

Way cpu_way() {
  Pass pass;
  pass.name = "product";
  pass.opencl = {.file = "quantised/cpu/product.cl", .entry = "quantised_product_cpu"};
  pass.bindings = {kInput, kWeight, kScale, kZero, kInputScale, kOutput};
  pass.constants = [](const Problem& problem, const Config&) -> std::vector<Define> {
    return {{"ROWS", rows_of(problem)},
            {"INPUT_TYPE", dtype_axis(problem.spec(kInput).dtype)},
            {"FORMAT", format_of(problem)},
            {"CENTRED", has_plain_bytes(problem) ? 1U : 0U}};
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    return Dim3{static_cast<std::uint32_t>(items_of(problem, config))};
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(arguments_of(problem));
  };
  Variant variant;
  variant.name = "cpu";
  variant.idea = "an item decodes rows of weights by vectors, once for four rows of input";
  variant.needs = opencl_cpu();
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16, DType::kI8};
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.passes = list_of(std::move(pass));
  return {.variant = std::move(variant),
          .rule = {.why = "processors want vectors, and no local memory",
                   .when = [](const Problem&, const DeviceProfile& profile) {
                     return is_opencl_cpu(profile);
                   }}};
}

}  // namespace tessera::operations::quantised
