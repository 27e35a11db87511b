// SPDX-License-Identifier: Apache-2.0
// attention/mma_backward_keys and attention/mma_backward_queries: NVIDIA's GPUs from sm_80 on
// through OpenCL.
#include <algorithm>
#include <utility>

#include "kernel/tunable_list.hpp"
#include "operations/attention/backward_launch.hpp"
#include "operations/attention/mma_backward.h"

namespace tessera::operations {
namespace {

std::vector<Tunable> tunables() {
  return {
#include "operations/attention/mma_backward.def"
  };
}

struct Geometry {
  bool valid = false;
  std::uint32_t own_keys = 0, own_rows = 0;  // of a group
  std::uint32_t local_bytes = 0;             // of the kernel that takes more
  std::uint32_t registers = 0;               // of one item, for matrices; the same
};

Geometry geometry_of(const Problem& problem, const Config& config) {
  // The macros read these names.
  const std::uint32_t WG_X = config.get("WG_X", 0);
  const std::uint32_t KEY_TILES = config.get("KEY_TILES", 0);
  const std::uint32_t KEY_STEP = config.get("KEY_STEP", 0);
  const std::uint32_t QUERY_TILES = config.get("QUERY_TILES", 0);
  const std::uint32_t QUERY_STEP = config.get("QUERY_STEP", 0);
  const std::uint32_t HEAD_DIM = head_dim(problem);
  const std::uint32_t VALUE_DIM = value_dim(problem);
  constexpr std::uint32_t ELEMENT_BYTES = 2;
  constexpr std::uint32_t kMost = 4096;  // keeps every product below in 32 bits
  if (KEY_STEP > kMost || QUERY_STEP > kMost || !(MMA_BACKWARD_VALID)) return {};
  return {
      .valid = true,
      .own_keys = MMA_OWN(KEY_TILES),
      .own_rows = MMA_OWN(QUERY_TILES),
      .local_bytes = std::max(MMA_BACKWARD_BYTES(KEY_TILES, KEY_STEP),
                              MMA_BACKWARD_BYTES(QUERY_TILES, QUERY_STEP)),
      .registers = std::max(MMA_BACKWARD_REGISTERS(KEY_TILES, KEY_STEP, HEAD_STEPS + VALUE_STEPS),
                            MMA_BACKWARD_REGISTERS(QUERY_TILES, QUERY_STEP, HEAD_STEPS))};
}

// No map: groups look at the rows' intervals instead.
BackwardTiling tiling(const Problem& /*problem*/, const Config& /*config*/) {
  return {.map = {.maps = false}};
}

std::vector<Define> constants(const Problem& problem, const Config& /*config*/) {
  const AttentionProblem& call = call_of(problem);
  return {{"HEAD_DIM", head_dim(problem)},
          {"VALUE_DIM", value_dim(problem)},
          {"ALIGNED", is_aligned(problem, 8) ? 1U : 0U},
          {"GENERAL_SCORE", call.policies || call.soft_cap > 0 ? 1U : 0U}};
}

Pass mma_pass(const AttentionSlots& slots, const std::string& kernel, bool policies) {
  Pass pass = backward_pass(kernel, tiling, policies);
  pass.opencl = {.file = "attention/mma_backward_" + kernel + ".cl",
                 .entry = "attention_mma_backward_" + kernel};
  pass.constants = constants;
  pass.bindings = {slots.query, slots.key, slots.value, slots.output_gradient, slots.log_sum_exp};
  return pass;
}

// The scratch buffer, and the operands of the policies behind it.
void bind_scratch(Pass& pass, const AttentionSlots& slots, bool policies) {
  std::vector<std::size_t> bindings = policy_bindings(slots);
  if (!policies) bindings = {kScratch};
  pass.bindings.insert(pass.bindings.end(), bindings.begin(), bindings.end());
}

Pass keys_pass(const AttentionSlots& slots, bool policies) {
  Pass pass = mma_pass(slots, "keys", policies);
  pass.bindings.push_back(slots.key_gradient);
  pass.bindings.push_back(slots.value_gradient);
  bind_scratch(pass, slots, policies);
  pass.groups = [policies](const Problem& problem, const Config& config) {
    const AttentionProblem& call = call_of(problem);
    if (!is_for(problem, policies)) return Dim3{0, 1, 1};
    return Dim3{ceil_div(call.kv_len, geometry_of(problem, config).own_keys),
                static_cast<std::uint32_t>(call.kv_heads), static_cast<std::uint32_t>(call.batch)};
  };
  return pass;
}

Pass queries_pass(const AttentionSlots& slots, bool policies) {
  Pass pass = mma_pass(slots, "queries", policies);
  pass.bindings.push_back(slots.query_gradient);
  bind_scratch(pass, slots, policies);
  pass.groups = [policies](const Problem& problem, const Config& config) {
    return is_for(problem, policies) ? row_groups(problem, geometry_of(problem, config).own_rows)
                                     : Dim3{0, 1, 1};
  };
  return pass;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& /*profile*/) {
  const AttentionProblem& call = call_of(problem);
  if (problem.has(call.slots.bias_gradient)) return "leaves no gradients of a bias";
  if ((call.features & POLICY_UNNORMALIZED) != 0)
    return "takes outputs that are divided by the sum of their weights";
  const Geometry geometry = geometry_of(problem, config);
  if (!geometry.valid) return "has no such tiles (operations/attention/mma_backward.h)";
  if (geometry.registers > MMA_MOST_REGISTERS) {
    return "needs " + std::to_string(geometry.registers) + " registers for matrices, and has " +
           std::to_string(MMA_MOST_REGISTERS);
  }
  if (geometry.local_bytes > MMA_MOST_LOCAL_BYTES) {
    return "needs " + std::to_string(geometry.local_bytes) + " bytes of work-group memory, and " +
           std::to_string(MMA_MOST_LOCAL_BYTES) + " are everywhere";
  }
  return rejects_long_offsets(problem, backward_scratch_bytes(problem, tiling(problem, config)));
}

Config make_config(std::uint32_t items, std::uint32_t key_tiles, std::uint32_t key_step,
                   std::uint32_t query_tiles, std::uint32_t query_step) {
  return {{"WG_X", items},
          {"KEY_TILES", key_tiles},
          {"KEY_STEP", key_step},
          {"QUERY_TILES", query_tiles},
          {"QUERY_STEP", query_step}};
}

// Most promising first. Policies need registers of their own.
std::vector<Config> space(const Problem& problem, const DeviceProfile& /*profile*/) {
  const Config small = make_config(128, 1, 32, 1, 32);
  if (call_of(problem).policies) return {small};
  if (std::max(head_dim(problem), value_dim(problem)) <= 64) {
    return {make_config(128, 2, 32, 2, 32), make_config(128, 2, 32, 2, 64),
            make_config(128, 1, 64, 2, 32), small};
  }
  return {make_config(128, 1, 64, 2, 32), make_config(128, 1, 32, 2, 32), small};
}

}  // namespace

Variant mma_backward_variant(const AttentionSlots& slots) {
  Variant variant;
  variant.name = "mma";
  variant.idea =
      "mma.sync; dk and dv by a group per tile of keys, dq by one per tile of queries, no atomics";
  variant.needs = {.backends = {Backend::kOpenCL},
                   .features = Feature::kNvidiaPtx | Feature::kMmaSync};
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.tunables = tunables();
  variant.rounds_factors = true;
  variant.passes = {rows_pass(slots),        delta_pass(slots, tiling),
                    keys_pass(slots, false), queries_pass(slots, false),
                    keys_pass(slots, true),  queries_pass(slots, true)};
  for (Pass& pass : policy_gradient_passes(slots, tiling))
    variant.passes.push_back(std::move(pass));
  variant.space = space;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return backward_scratch_bytes(problem, tiling(problem, config));
  };
  variant.rejects = rejects;
  return variant;
}

bool prefers_mma_backward(const Problem& problem, const DeviceProfile& profile) {
  return has(profile.features, Feature::kMmaSync) && problem.dtype != DType::kF32 &&
         call_of(problem).q_len >= 16;
}

Config default_mma_backward_config(const Problem& problem, const DeviceProfile& profile) {
  return space(problem, profile).front();
}

}  // namespace tessera::operations
