// SPDX-License-Identifier: Apache-2.0
// GGUF's blocks, each by an item: every device.
#include <algorithm>
#include <string>
#include <utility>

#include "operations/common/launch.hpp"
#include "operations/quantise/problem.hpp"

namespace tessera::operations::quantised {
namespace {

Refusal rejects(const Problem& problem, const Config&, const DeviceProfile& profile) {
  if (problem.as<CodesProblem>().layout == Layout::kPlain)
    return "takes blocks that hold their scales";
  return rejects_matrices(problem, profile);
}

std::vector<Config> space(const Problem&, const DeviceProfile&) { return {{{"WG_X", 64}}}; }

Way gguf_way(const std::string& name, std::vector<std::size_t> bindings) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "quantised/gguf/" + name + ".cl", .entry = "gguf_" + name};
  pass.vulkan = {.file = "quantised/gguf/" + name + ".comp", .entry = "main"};
  pass.bindings = std::move(bindings);
  pass.axes = storage_axes;
  pass.groups = [](const Problem& problem, const Config& config) {
    constexpr std::int64_t kMostGroups = 16384;
    const std::int64_t blocks = problem.as<CodesProblem>().blocks(), items = config.group().x;
    return Dim3{static_cast<std::uint32_t>(std::min((blocks + items - 1) / items, kMostGroups))};
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(codes_arguments(problem));
  };
  Variant variant;
  variant.name = "gguf";
  variant.idea = "an item for each of GGUF's blocks";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.passes = list_of(std::move(pass));
  variant.space = space;
  variant.rejects = rejects;
  return {.variant = std::move(variant),
          .rule = {.why = "blocks hold their scales",
                   .when = [](const Problem& problem, const DeviceProfile&) {
                     return problem.as<CodesProblem>().layout != Layout::kPlain;
                   }}};
}

}  // namespace

Way gguf_quantise_way() {
  const CodesSlots at = quantise_slots();
  return gguf_way("quantise", {at.floats, at.codes, at.scale});
}

Way gguf_dequantise_way() {
  const CodesSlots at = dequantise_slots();
  return gguf_way("dequantise", {at.codes, at.floats});
}

}  // namespace tessera::operations::quantised
