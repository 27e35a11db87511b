// SPDX-License-Identifier: Apache-2.0
// moe_ffn and its gradients as calls of the operations that they are made of.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/moe/ffn/calls.hpp"

namespace tessera::operations::moe {
namespace {

FfnPlaces places_of(const Problem& problem) { return ffn_places(problem, 0, true); }

Pass gate_pass(const std::string& name, bool backward) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "moe/ffn/gate.cl", .entry = "moe_gate"};
  pass.vulkan = {.file = "moe/ffn/gate.comp", .entry = "main"};
  pass.bindings = {kScratch, kScratch};
  pass.axes = storage_axes;
  pass.constants = [backward](const Problem&, const Config&) {
    return std::vector<Define>{{"BACKWARD", backward ? 1U : 0U}};
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    constexpr std::int64_t kMostGroups = 16384;
    const auto& call = problem.as<FfnProblem>();
    const std::int64_t eights = call.rows * ((call.inner + 7) / 8), items = config.group().x;
    return Dim3{static_cast<std::uint32_t>(std::min((eights + items - 1) / items, kMostGroups))};
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(ffn_arguments(problem, places_of(problem)));
  };
  return pass;
}

std::vector<Step> steps(const Problem& problem, const Config& /*config*/) {
  FfnCalls calls(problem, places_of(problem));
  std::vector<Step> gated{calls.gate_up(), LaunchStep{.pass = "gate"}};
  return problem.as<FfnProblem>().slots.backward() ? calls.backward(std::move(gated))
                                                   : calls.forward(std::move(gated));
}

}  // namespace

Way ffn_way(const FfnSlots& slots) {
  Variant variant;
  variant.name = "calls";
  variant.idea = "route, dispatch, grouped products and combine, one after the other";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = {
#include "operations/moe/ffn/ffn.def"
  };
  variant.passes = list_of(sizes_pass(slots, places_of), gate_pass("gate", false));
  if (slots.backward()) variant.passes.push_back(gate_pass("gate_backward", true));
  variant.steps = steps;
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    return places_of(problem).bytes;
  };
  const auto space = [](const Problem&, const DeviceProfile&) {
    return std::vector<Config>{{{"WG_X", 64}}};
  };
  variant.space = space;
  variant.rejects = [](const Problem& problem, const Config&, const DeviceProfile& profile) {
    return rejects_ffn(problem, profile, places_of(problem));
  };
  return {.variant = std::move(variant),
          .rule = {.why = "runs everywhere",
                   .when = [](const Problem&, const DeviceProfile&) { return true; }}};
}

}  // namespace tessera::operations::moe
