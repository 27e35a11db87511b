// SPDX-License-Identifier: Apache-2.0
// moe_ffn on NVIDIA's Hopper through OpenCL: the first product gates its own sums.
#include <utility>
#include <vector>

#include "operations/grouped_core/gated.hpp"
#include "operations/moe/ffn/calls.hpp"

namespace tessera::operations::moe {
namespace {

// Behind what the gated product keeps.
FfnPlaces places_behind(const Problem& problem) {
  constexpr std::uint64_t kAlignment = 256;
  const std::uint64_t bytes = matmul::gated_scratch(problem.as<FfnProblem>().experts);
  return ffn_places(problem, (bytes + kAlignment - 1) / kAlignment * kAlignment, false);
}

matmul::GatedCall gated_call(const Problem& problem) {
  return {.product = FfnCalls(problem, places_behind(problem)).gate(),
          .activation = problem.as<FfnProblem>().activation};
}

}  // namespace

Way ffn_hopper_way(const FfnSlots& slots) {
  Way way = matmul::gated_hopper_way(
      gated_call, {.lhs = kScratch, .rhs = slots.gate_up, .sizes = kScratch, .output = kScratch});
  Variant& variant = way.variant;
  variant.name = "hopper";
  variant.idea = "as calls, but sums of gate and up meet in the registers of their product";
  std::vector<Step> gated;
  for (const Pass& pass : variant.passes) gated.emplace_back(LaunchStep{.pass = pass.name});
  variant.steps = [gated](const Problem& problem, const Config&) {
    return FfnCalls(problem, places_behind(problem)).forward(gated);
  };
  variant.passes.push_back(sizes_pass(slots, places_behind));
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    return places_behind(problem).bytes;
  };
  variant.rejects = [product_rejects = std::move(variant.rejects)](
                        const Problem& problem, const Config& config,
                        const DeviceProfile& profile) -> Refusal {
    if (!problem.as<FfnProblem>().gated) return "takes experts with a gate";
    if (Refusal no = rejects_ffn(problem, profile, places_behind(problem))) return no;
    return product_rejects(problem, config, profile);
  };
  return way;
}

}  // namespace tessera::operations::moe
