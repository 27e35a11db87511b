// SPDX-License-Identifier: Apache-2.0
// attention/hopper/backward: NVIDIA's Hopper through OpenCL.
#include "operations/attention_core/hopper/backward.h"

#include <algorithm>
#include <utility>

#include "kernel/tunable_list.inc"
#include "operations/attention_core/backward_launch.hpp"
#include "operations/attention_core/hopper/backward_args.h"
#include "operations/attention_core/hopper/problem.hpp"

namespace tessera::operations::attention {
namespace {

constexpr std::uint32_t kMapItems = 128, kMostMapGroups = 64;
constexpr std::uint32_t kQueryItems = 256;
constexpr std::uint32_t kMostColumns = 128;
// Neighbours in the order of additions start one step apart, so few of them may run at a time;
// under a causal mask, where one of them ends as another begins, hardly any (H200).
constexpr std::uint32_t kNeighbours = 8, kCausalNeighbours = 2;

std::vector<Tunable> tunables() {
  return {
#include "operations/attention_core/hopper/backward.def"
      {.id = 31, .name = kHopperGroups, .fallback = 132, .launch_only = true},
  };
}

// One width for all rows: what is narrower is padded.
std::uint32_t columns(const Problem& problem) {
  return padded_columns(std::max(head_dim(problem), value_dim(problem)));
}

struct HopperBackwardGeometry {
  bool valid = false;
  std::uint32_t local_bytes = 0, block_k = 0;
  std::uint64_t counters = 0, dq_bytes = 0;  // where counters begin; of one tile
};

HopperBackwardGeometry geometry_of(const Problem& problem, const Config& config) {
  // backward.h's macros read these locals.
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/attention_core/hopper/backward.def"
  const std::uint32_t DIM = columns(problem);
  if (!(ATTN_HOPPER_BACKWARD_VALID)) return {};
  return {.valid = true,
          .local_bytes = ATTN_HOPPER_BACKWARD_LOCAL_BYTES,
          .block_k = ATTN_BLOCK_K,
          .counters = ATTN_HOPPER_BACKWARD_COUNTERS,
          .dq_bytes = 4 * ATTN_DQ_FLOATS};
}

std::uint64_t query_tiles(const Problem& problem, const Config& config) {
  const AttentionProblem& call = call_of(problem);
  return static_cast<std::uint64_t>(call.batch * call.heads) *
         ceil_div(call.q_len, config.at("BLOCK_Q"));
}

std::int64_t key_heads(const AttentionProblem& call) { return call.batch * call.kv_heads; }

std::uint32_t pieces_of_work(const Problem& problem, const Config& config) {
  const AttentionProblem& call = call_of(problem);
  return static_cast<std::uint32_t>(key_heads(call)) *
         ceil_div(call.kv_len, std::max(geometry_of(problem, config).block_k, 1U));
}

// Floats from the start of the kernels' part of the scratch buffer to the sums of dq.
std::uint64_t floats_before_sums(const Problem& problem, const Config& config) {
  constexpr std::uint64_t kAlignment = 128;
  const std::uint64_t bytes =
      geometry_of(problem, config).counters + 8 * query_tiles(problem, config);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment / 4;
}

BackwardTiling tiling(const Problem& problem, const Config& config) {
  return {
      .map = {.maps = false},
      .partial_floats = floats_before_sums(problem, config) +
                        query_tiles(problem, config) * geometry_of(problem, config).dq_bytes / 4};
}

std::uint32_t band_of(const AttentionProblem& call) {
  const Span rows = seeing_rows(call);
  std::uint32_t band = 0;
  if (rows.first + call.band_high < call.kv_len - 1) band |= HOPPER_BAND_HIGH;
  if (rows.end - 1 + call.band_low > 0) band |= HOPPER_BAND_LOW;
  return band;
}

std::vector<Define> constants(const Problem& problem, const Config& config) {
  const AttentionProblem& call = call_of(problem);
  const bool general = call.soft_cap > 0 || !folds_into_exponent(call.scale);
  std::vector<Define> defines = shape_constants(problem, config);
  std::erase_if(defines, [](const Define& define) { return define.name == "HEAD_DIM"; });
  defines.push_back({"DIM", columns(problem)});
  defines.push_back({"BAND", band_of(call)});
  defines.push_back({"GENERAL_SCORE", general ? 1U : 0U});
  return defines;
}

// As many as share the cache, in turns of about one size, but enough of them that few groups at a
// time add to the same rows.
std::uint32_t heads_at_once(const AttentionProblem& call, std::uint32_t groups) {
  const std::int64_t heads = std::max<std::int64_t>(key_heads(call), 1);
  const std::int64_t width = call.head_dim + call.value_dim;
  const std::int64_t bytes =
      call.group() * call.q_len * (4 * call.head_dim + 2 * width) + 2 * call.kv_len * width;
  const std::uint32_t neighbours =
      band_of(call) == HOPPER_BAND_HIGH ? kCausalNeighbours : kNeighbours;
  const std::int64_t most =
      std::clamp(std::max<std::int64_t>(kHopperCachedBytes / std::max<std::int64_t>(bytes, 1),
                                        ceil_div(groups, neighbours)),
                 std::int64_t{1}, heads);
  const std::int64_t turns = (heads + most - 1) / most;
  return ceil_div(heads, turns);
}

std::vector<std::byte> arguments(const Problem& problem, const Config& config) {
  const AttentionProblem& call = call_of(problem);
  const Span rows = seeing_rows(call), keys = seen_keys(call);
  const abi::AttentionBackwardCall plain = backward_arguments(problem, tiling(problem, config));
  abi::HopperBackwardCall args{};
  args.core = plain.core;
  args.gradient = plain.gradient;
  args.batch = narrow(call.batch);
  args.head_dim = head_dim(problem);
  args.value_dim = value_dim(problem);
  args.first_row = narrow(rows.first);
  args.rows = narrow(rows.count());
  args.first_key = narrow(keys.first);
  args.keys = narrow(keys.count());
  args.heads_at_once = heads_at_once(call, config.at(kHopperGroups));
  args.dq = plain.gradient.partials + static_cast<abi::u32>(floats_before_sums(problem, config));
  return argument_bytes(args);
}

Pass hopper_pass(const std::string& name, const std::string& kernel) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "attention/hopper/" + kernel + ".cl",
                 .entry = "attention_hopper_" + kernel,
                 .ptx_target = "sm_90a"};
  pass.axes = dtype_axes;
  pass.constants = constants;
  pass.args = arguments;
  return pass;
}

Pass maps_pass(const AttentionSlots& slots) {
  Pass pass = hopper_pass("maps", "backward_maps");
  pass.bindings = {slots.query, slots.key, slots.value, slots.output_gradient, kScratch};
  pass.specialized_on = {"BLOCK_Q"};
  pass.group_size = [](const Config&) { return Dim3{kMapItems, 1, 1}; };
  pass.groups = [](const Problem& problem, const Config& config) {
    const auto floats = static_cast<std::int64_t>(floats_before_sums(problem, config));
    return Dim3{std::min(ceil_div(floats, 4 * kMapItems), kMostMapGroups), 1, 1};
  };
  return pass;
}

Pass sums_pass(const AttentionSlots& slots) {
  Pass pass = hopper_pass("sums", "backward");
  pass.bindings = {slots.query,           slots.key,         slots.value,
                   slots.output_gradient, slots.log_sum_exp, slots.key_gradient,
                   slots.value_gradient,  kScratch};
  pass.groups = [](const Problem& problem, const Config& config) {
    return Dim3{std::min(pieces_of_work(problem, config), config.at(kHopperGroups)), 1, 1};
  };
  return pass;
}

Pass queries_pass(const AttentionSlots& slots) {
  Pass pass = hopper_pass("queries", "backward_queries");
  pass.opencl.ptx_target = {};
  pass.bindings = {slots.query,       slots.key, slots.value,         slots.output_gradient,
                   slots.log_sum_exp, kScratch,  slots.query_gradient};
  pass.specialized_on = {"BLOCK_Q", "DIM"};
  pass.group_size = [](const Config&) { return Dim3{kQueryItems, 1, 1}; };
  pass.groups = [](const Problem& problem, const Config& config) {
    return row_groups(problem, config.at("BLOCK_Q"));
  };
  return pass;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const AttentionProblem& call = call_of(problem);
  const AttentionSlots& slots = call.slots;
  if (const Refusal no = rejects_policies(problem)) return no;
  if (head_dim(problem) > kMostColumns || value_dim(problem) > kMostColumns) {
    return "takes dims up to 128, not " + std::to_string(head_dim(problem)) + " and " +
           std::to_string(value_dim(problem));
  }
  if (seeing_rows(call).count() <= 0) return "wants at least one row that sees a key";
  if (const Refusal no =
          rejects_layout(problem, {slots.query, slots.key, slots.value, slots.output_gradient,
                                   slots.query_gradient, slots.key_gradient, slots.value_gradient}))
    return no;
  const HopperBackwardGeometry geometry = geometry_of(problem, config);
  if (!geometry.valid) return "has no such tiles (operations/attention_core/hopper/backward.h)";
  if (const Refusal no = rejects_local_bytes(geometry.local_bytes)) return no;
  return rejects_long_offsets(problem, profile,
                              backward_scratch_bytes(problem, tiling(problem, config)));
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const std::uint32_t block_q = columns(problem) <= 64 ? 128 : 64;
  std::vector<Config> configs = {{{"WG_X", 384}, {"BLOCK_Q", block_q}, {"STAGES", 2}},
                                 {{"WG_X", 384}, {"BLOCK_Q", block_q}, {"STAGES", 3}}};
  set_groups(configs, profile);
  return configs;
}

Variant hopper_backward_variant(const AttentionSlots& slots) {
  Variant variant;
  variant.name = "hopper";
  variant.idea =
      "wgmma, all five products in one kernel; dq is added in the order of keys, no atomics";
  variant.needs = {.backends = {Backend::kOpenCL},
                   .features = Feature::kNvidiaPtx | Feature::kWgmma};
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.rounds_factors = true;
  variant.tunables = tunables();
  variant.passes =
      list_of(maps_pass(slots), delta_pass(slots, tiling), sums_pass(slots), queries_pass(slots));
  variant.space = space;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return backward_scratch_bytes(problem, tiling(problem, config));
  };
  variant.rejects = rejects;
  return variant;
}

bool prefers_hopper_backward(const Problem& problem, const DeviceProfile& profile) {
  return has(profile.features, Feature::kWgmma) && problem.dtype != DType::kF32 &&
         call_of(problem).q_len >= 64 && call_of(problem).kv_len >= 64;
}

}  // namespace

Way hopper_backward(const AttentionSlots& slots) {
  return {.variant = hopper_backward_variant(slots),
          .rule = {.why = "Hopper's matrix unit, where its tiles are filled",
                   .when = prefers_hopper_backward}};
}

}  // namespace tessera::operations::attention
