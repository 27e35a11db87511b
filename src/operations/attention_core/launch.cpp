// SPDX-License-Identifier: Apache-2.0
#include "operations/attention_core/launch.hpp"

#include <algorithm>
#include <array>
#include <numbers>

#include "abi/shared.h"
#include "kernel/gpu.hpp"
#include "operations/attention_core/core/work.h"
#include "operations/attention_core/dropout.hpp"

namespace tessera::operations::attention {

bool is_aligned(const Problem& problem, std::int64_t elements) {
  const AttentionSlots& slots = call_of(problem).slots;
  const auto is_multiple = [elements](std::int64_t n) { return n % elements == 0; };
  for (const std::size_t slot :
       {slots.query, slots.key, slots.value, slots.output, slots.output_gradient,
        slots.query_gradient, slots.key_gradient, slots.value_gradient}) {
    if (!problem.has(slot)) continue;
    const TensorSpec& spec = problem.spec(slot);
    const bool ok = is_multiple(spec.offset) && is_multiple(spec.shape.back()) &&
                    std::all_of(spec.strides.begin(), spec.strides.end() - 1, is_multiple);
    if (!ok) return false;
  }
  return true;
}

bool folds_into_exponent(double factor) {
  constexpr double kLeast = 0x1p-20, kMost = 0x1p20;
  const double scale = factor * std::numbers::log2e;
  return scale >= kLeast && scale <= kMost;
}

namespace {

// Query heads that share one of `heads`; all of them where there is just one.
abi::u32 heads_per(const AttentionProblem& call, std::int64_t heads) {
  return narrow(std::max<std::int64_t>(call.heads / std::max<std::int64_t>(heads, 1), 1));
}

// All zero but for the group, which kernels divide by, where the call has no such operand.
abi::AttentionPairArgs pair_arguments(const Problem& problem, std::size_t slot) {
  const AttentionProblem& call = call_of(problem);
  if (!problem.has(slot)) return {0, 0, 0, 0, 0, heads_per(call, 1)};
  const TensorSpec spec = with_pair_axes(problem.spec(slot));
  return {narrow(spec.offset),     narrow(spec.strides[0]), narrow(spec.strides[1]),
          narrow(spec.strides[2]), narrow(spec.strides[3]), heads_per(call, spec.shape[1])};
}

}  // namespace

std::vector<Define> shape_constants(const Problem& problem, const Config& /*config*/) {
  return {{"HEAD_DIM", head_dim(problem)},
          {"VALUE_DIM", value_dim(problem)},
          {"ALIGNED", is_aligned(problem, 4) ? 1U : 0U}};
}

std::uint32_t code_type(const Problem& problem) {
  return call_of(problem).has_codes() ? dtype_axis(call_of(problem).stored) : 0;
}

std::vector<Define> code_constants(const Problem& problem, const Config& config) {
  std::vector<Define> constants = shape_constants(problem, config);
  constants.push_back({"CODE_TYPE", code_type(problem)});
  return constants;
}

std::uint32_t vector_elements(const Problem& problem) {
  return is_aligned(problem, 8) ? 8 : is_aligned(problem, 4) ? 4 : 1;
}

bool is_listed(const Problem& problem) {
  const AttentionProblem& call = call_of(problem);
  return call.packed && (call.is_paged() || (call.features & POLICY_HIDES) == 0);
}

Refusal rejects_list(const Problem& problem, const AttentionTiling& tiling,
                     const DeviceProfile& profile) {
  if (tiling.listed == 0) return std::nullopt;
  const std::int64_t rounds = ceil_div(call_of(problem).sequences, kListItems);
  const std::int64_t tiles = rounds + ceil_div(listed_items(problem, tiling), kListItems);
  constexpr std::int64_t kSearch = 7;  // and each of two scans
  return rejects_rounds(2 * kSearch * rounds + tiles * (kSearch + 1 + tiling.listed / tiling.pack),
                        profile);
}

std::uint32_t listed_items(const Problem& problem, const AttentionTiling& tiling) {
  const AttentionProblem& call = call_of(problem);
  const std::int64_t rows = call.q_len * tiling.pack;
  const std::int64_t items = std::min(rows, rows / tiling.listed + call.sequences);
  if (tiling.most_rows >= call.q_len) return narrow(items);
  const std::int64_t most = std::int64_t{tiling.most_rows} * tiling.pack;
  return narrow(std::min<std::int64_t>(items, call.sequences * ceil_div(most, tiling.listed)));
}

std::int64_t rows_of_sequence(const Problem& problem) {
  const AttentionProblem& call = call_of(problem);
  return call.packed ? ceil_div(call.q_len, std::max<std::int64_t>(call.sequences, 1)) : call.q_len;
}

std::int64_t rows_that_share_keys(const Problem& problem) {
  return call_of(problem).is_paged() ? rows_of_sequence(problem) : call_of(problem).q_len;
}

std::int64_t keys_of_sequence(const Problem& problem) {
  const AttentionProblem& call = call_of(problem);
  if (call.is_paged()) return call.paged.expected_keys;
  return call.packed ? ceil_div(call.kv_len, std::max<std::int64_t>(call.sequences, 1))
                     : call.kv_len;
}

std::int64_t heads_of_position_bias(const Problem& problem) {
  const std::size_t slot = call_of(problem).slots.position_bias;
  if (!problem.has(slot) || problem.spec(slot).shape.back() == 0) return 0;
  return with_rank(problem.spec(slot), 2).shape[0];
}

AttentionScratch scratch_of(const Problem& problem, const AttentionTiling& tiling) {
  const AttentionProblem& call = call_of(problem);
  AttentionScratch scratch;
  const auto unsign = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  if (call.policies) scratch.map = 16 * unsign(call.batch * call.q_len);
  scratch.begins = scratch.map;
  if (call.is_paged() && call.packed) scratch.map += 16 * unsign(call.sequences / 4 + 1);
  scratch.map += 16 * unsign(tiling.behind);
  if ((call.features & POLICY_HIDES) != 0 && tiling.maps && tiling.pack == 1) {
    const std::int64_t heads = call.heads / pair_arguments(problem, call.slots.mask).group;
    scratch.map_words = unsign(call.batch * heads) * ceil_div(call.q_len, tiling.rows) *
                        ceil_div(call.kv_len, tiling.keys);
  }
  constexpr std::uint64_t kAlignment = 64;
  if (tiling.listed > 0) scratch.list = 16 + 32 * unsign(listed_items(problem, tiling));
  scratch.partials = (scratch.map + 4 * scratch.map_words + scratch.list + kAlignment - 1) /
                     kAlignment * kAlignment;
  scratch.end = scratch.partials;
  if (tiling.splits > 1) {
    scratch.end += 4 * tiling.splits * unsign(call.batch * call.heads * call.q_len) *
                   unsign(call.value_dim + 2);
  }
  if (const std::int64_t heads = heads_of_position_bias(problem); heads > 0) {
    scratch.biases = scratch.end;
    scratch.end += 4 * unsign(heads * call.kv_len);
  }
  return scratch;
}

abi::AttentionArgs core_arguments(const Problem& problem, const AttentionTiling& tiling) {
  const AttentionProblem& call = call_of(problem);
  const AttentionSlots& slots = call.slots;
  const TensorSpec q = query_rows(problem), k = key_rows(problem), v = value_rows(problem),
                   o = output_rows(problem);
  abi::AttentionArgs args{};
  args.q_len = narrow(call.q_len);
  args.kv_len = narrow(call.kv_len);
  args.heads = narrow(call.heads);
  args.group = narrow(call.group());
  args.band_low = static_cast<abi::i32>(call.band_low);
  args.band_high = static_cast<abi::i32>(call.band_high);
  args.scale = static_cast<float>(call.scale);
  args.soft_cap = static_cast<float>(call.soft_cap);
  args.pack = tiling.pack;
  args.splits = tiling.splits;
  args.partials = static_cast<abi::u32>(scratch_of(problem, tiling).partials / 4);
  args.q_offset = narrow(q.offset);
  args.q_stride_batch = narrow(q.strides[0]);
  args.q_stride_row = narrow(q.strides[1]);
  args.q_stride_head = narrow(q.strides[2]);
  args.k_offset = narrow(k.offset);
  args.k_stride_batch = narrow(k.strides[0]);
  args.k_stride_row = narrow(k.strides[1]);
  args.k_stride_head = narrow(k.strides[2]);
  args.v_offset = narrow(v.offset);
  args.v_stride_batch = narrow(v.strides[0]);
  args.v_stride_row = narrow(v.strides[1]);
  args.v_stride_head = narrow(v.strides[2]);
  args.o_offset = narrow(o.offset);
  args.o_stride_batch = narrow(o.strides[0]);
  args.o_stride_row = narrow(o.strides[1]);
  args.o_stride_head = narrow(o.strides[2]);
  if (problem.has(slots.log_sum_exp)) {
    const TensorSpec lse = with_rank(problem.spec(slots.log_sum_exp), 3);
    args.write_lse = 1;
    args.lse_offset = narrow(lse.offset);
    args.lse_stride_batch = narrow(lse.strides[call.rowless ? 1 : 0]);
    args.lse_stride_head = narrow(lse.strides[call.rowless ? 2 : 1]);
  }
  return args;
}

abi::AttentionScales scale_arguments(const TensorSpec& scales) {
  return {.offset = narrow(scales.offset),
          .stride_batch = narrow(scales.strides[0]),
          .stride_row = narrow(scales.strides[1]),
          .stride_head = narrow(scales.strides[2])};
}

abi::AttentionPolicyArgs policy_arguments(const Problem& problem, const AttentionTiling& tiling) {
  const AttentionProblem& call = call_of(problem);
  const AttentionSlots& slots = call.slots;
  const AttentionScratch scratch = scratch_of(problem, tiling);
  abi::AttentionPolicyArgs args{};
  args.features = call.features;
  args.mask = pair_arguments(problem, slots.mask);
  args.bias = pair_arguments(problem, slots.bias);
  if (const std::int64_t heads = heads_of_position_bias(problem); heads > 0) {
    args.bias = {.offset = static_cast<abi::u32>(scratch.biases / 4),
                 .stride_batch = 0,
                 .stride_head = narrow(call.kv_len),
                 .stride_row = 0,
                 .stride_key = 1,
                 .group = heads_per(call, heads)};
  }
  args.sinks_group = heads_per(call, 1);
  args.map_heads = narrow(call.heads) / args.mask.group;
  args.map_rows = tiling.rows;
  args.map_keys = tiling.keys;
  if (scratch.map_words > 0) {
    args.features |= POLICY_MAP;
    args.map = static_cast<abi::u32>(scratch.map / 4);
    args.map_stride_row = ceil_div(call.kv_len, tiling.keys);
    args.map_stride_head = args.map_stride_row * ceil_div(call.q_len, tiling.rows);
    args.map_stride_batch = args.map_stride_head * args.map_heads;
  }
  if (tiling.listed > 0) {
    args.features |= POLICY_WORK;
    args.map = static_cast<abi::u32>(scratch.map / 16);
  }
  if (problem.has(slots.alibi_slopes)) {
    const TensorSpec spec = with_rank(problem.spec(slots.alibi_slopes), 2);
    args.slopes_offset = narrow(spec.offset);
    args.slopes_stride_batch = narrow(spec.strides[0]);
    args.slopes_stride_head = narrow(spec.strides[1]);
  }
  if (problem.has(slots.sinks)) {
    const TensorSpec spec = with_rank(problem.spec(slots.sinks), 2);
    args.sinks = narrow(spec.shape[1]);
    args.sinks_offset = narrow(spec.offset);
    args.sinks_stride_head = narrow(spec.strides[0]);
    args.sinks_stride = narrow(spec.strides[1]);
    args.sinks_group = heads_per(call, spec.shape[0]);
  }
  if (problem.has(slots.kv_segments)) {
    const TensorSpec spec = with_rank(problem.spec(slots.kv_segments), 2);
    args.kv_segments_offset = narrow(spec.offset);
    args.kv_segments_stride_batch = narrow(spec.strides[0]);
    args.kv_segments_stride_key = narrow(spec.strides[1]);
  }
  if (problem.has(slots.kv_positions)) {
    const TensorSpec spec = with_rank(problem.spec(slots.kv_positions), 2);
    args.kv_positions_offset = narrow(spec.offset);
    args.kv_positions_stride_batch = narrow(spec.strides[0]);
    args.kv_positions_stride_key = narrow(spec.strides[1]);
    args.reach_left = static_cast<abi::u32>(call.window_left);
    args.reach_right = call.causal ? 0 : static_cast<abi::u32>(call.window_right);
    args.chunk = narrow(call.chunk);
  }
  args.dropout_threshold = dropout_threshold(call.dropout);
  args.dropout_factor = static_cast<float>(1 / (1 - call.dropout));
  args.seed_low = static_cast<abi::u32>(call.seed);
  args.seed_high = static_cast<abi::u32>(call.seed >> 32);
  return args;
}

std::vector<std::size_t> policy_bindings(const AttentionSlots& slots) {
  const bool first = slots.position_bias != kNoOperand;
  return {kScratch,           slots.mask,  first ? kScratch : slots.bias,
          slots.alibi_slopes, slots.sinks, slots.kv_segments,
          slots.kv_positions};
}

std::uint32_t filling_splits(const Problem& problem, const DeviceProfile& profile, Dim3 groups,
                             std::uint32_t keys) {
  const AttentionProblem& call = call_of(problem);
  if (call.splits > 0) return static_cast<std::uint32_t>(call.splits);
  const std::uint64_t have =
      std::max<std::uint64_t>(std::uint64_t{groups.x} * groups.y * groups.z, 1);
  const std::uint64_t wanted = 2 * std::uint64_t{kernel::compute_units_of(profile)};
  const std::int64_t longest = call.is_paged() ? call.paged.expected_keys : call.kv_len;
  const std::uint64_t most =
      std::max<std::uint64_t>(static_cast<std::uint64_t>(longest) / (4 * keys), 1);
  const bool few = is_gpu(profile) && 2 * have <= wanted;
  return few ? static_cast<std::uint32_t>(std::min({wanted / have, most, std::uint64_t{64}})) : 1;
}

std::uint32_t splits_of_few_rows(const Problem& problem, const DeviceProfile& profile, Dim3 groups,
                                 std::uint32_t many) {
  constexpr std::uint32_t kFew = 2;                              // groups of a compute unit
  constexpr std::uint32_t kShortSplit = 256, kLongSplit = 1024;  // keys
  const std::uint32_t have = std::max(groups.x * groups.y * groups.z, 1U);
  const std::uint32_t units = is_gpu(profile) ? kernel::compute_units_of(profile) : 1;
  // Of packed sequences an average, which is rounded where it is compared.
  const std::uint32_t keys =
      narrow(keys_of_sequence(problem)) + (call_of(problem).packed ? kLongSplit / 2 : 0);
  const std::uint32_t filled = std::min(ceil_div(kFew * units, have), keys / kShortSplit);
  const std::uint32_t even = std::min(ceil_div(many * units, have), keys / kLongSplit);
  return std::max({filled, even, 1U});
}

Refusal rejects_splits(const Problem& problem, const Config& config) {
  const std::int64_t pinned = call_of(problem).splits;
  if (pinned == 0 || pinned == splits_of(config)) return std::nullopt;
  return "SPLITS is " + std::to_string(splits_of(config)) + ", and num_splits of this call " +
         std::to_string(pinned);
}

Refusal rejects_far_keys(const Problem& problem) {
  const AttentionProblem& call = call_of(problem);
  const auto far = [&](const TensorSpec& spec, std::size_t axis) {
    // A single row's stride is never used, and may be any.
    const auto most = (std::int64_t{1} << 35) / static_cast<std::int64_t>(bits_of(spec.dtype));
    return spec.shape[axis] > 1 && spec.strides[axis] >= most;
  };
  for (const auto& [slot, spec] : {std::pair{call.slots.key, key_rows(problem)},
                                   std::pair{call.slots.value, value_rows(problem)}}) {
    if (far(spec, 1) || (call.is_paged() && far(spec, 0))) {
      return problem.operation->operands[slot].name + " " + spec.to_string() + " has " +
             (far(spec, 1) ? "rows" : "pages") + " 2^32 bytes apart";
    }
  }
  return std::nullopt;
}

Refusal rejects_long_offsets(const Problem& problem, const DeviceProfile& profile,
                             std::uint64_t scratch_bytes) {
  constexpr std::uint64_t kMostScratch = std::uint64_t{1} << 34;  // 2^32 floats
  const AttentionSlots& slots = call_of(problem).slots;
  const std::array wide{slots.query,           slots.key,
                        slots.value,           slots.output,
                        slots.output_gradient, slots.query_gradient,
                        slots.key_gradient,    slots.value_gradient};
  if (const Refusal no = rejects_long_operands(problem, profile, wide)) return no;
  if (scratch_bytes < kMostScratch) return std::nullopt;
  return "takes " + std::to_string(scratch_bytes) +
         " bytes of scratch; its kernels count to 2^32 floats";
}

}  // namespace tessera::operations::attention
