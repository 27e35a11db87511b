// SPDX-License-Identifier: Apache-2.0
// Arguments of the backward kernels, and the small passes around them.
#include "abi/shared.h"
#include "operations/attention_core/backward_launch.hpp"
#include "operations/attention_core/core/bias_gradient_args.h"
#include "operations/attention_core/core/delta.h"

namespace tessera::operations::attention {
namespace {

static_assert(kHelperItems % DELTA_LANES == 0);
constexpr std::uint32_t kMostGroups = 65535;  // in x, on any Vulkan device
constexpr Dim3 kNothing{0, 1, 1};

// Where what begins in the scratch buffer, in bytes.
struct BackwardScratch {
  std::uint64_t delta = 0, peaks = 0, ds = 0, partials = 0, end = 0;
};

bool has_peaks(const Problem& problem) {
  const AttentionProblem& call = call_of(problem);
  return !call.normalize || (call.features & POLICY_ADDS) != 0 ||
         problem.has(call.slots.sinks_gradient);
}

BackwardScratch scratch_of(const Problem& problem, const BackwardTiling& tiling) {
  const AttentionProblem& call = call_of(problem);
  constexpr std::uint64_t kAlignment = 64;
  BackwardScratch scratch;
  std::uint64_t end = scratch_of(problem, tiling.map).end;
  const auto reserve = [&](std::uint64_t floats) {
    const std::uint64_t begin = end;
    end = (end + 4 * floats + kAlignment - 1) / kAlignment * kAlignment;
    return begin;
  };
  const auto rows = static_cast<std::uint64_t>(call.batch * call.heads * call.q_len);
  scratch.delta = reserve(rows);
  if (has_peaks(problem)) scratch.peaks = reserve(4 * rows);
  if (problem.has(call.slots.bias_gradient))
    scratch.ds = reserve(rows * static_cast<std::uint64_t>(call.kv_len));
  scratch.partials = reserve(tiling.partial_floats);
  scratch.end = end;
  return scratch;
}

abi::AttentionBiasGradientArgs bias_gradient_arguments(const Problem& problem,
                                                       const BackwardTiling& tiling) {
  const AttentionProblem& call = call_of(problem);
  const TensorSpec spec = with_pair_axes(problem.spec(call.slots.bias_gradient));
  abi::AttentionBiasGradientArgs args{};
  args.ds = narrow(static_cast<std::int64_t>(scratch_of(problem, tiling).ds / 4));
  args.heads = narrow(call.heads);
  args.q_len = narrow(call.q_len);
  args.kv_len = narrow(call.kv_len);
  args.out_batch = narrow(spec.shape[0]);
  args.out_heads = narrow(spec.shape[1]);
  args.out_rows = narrow(spec.shape[2]);
  args.out_keys = narrow(spec.shape[3]);
  const auto ratio = [](std::int64_t whole, std::int64_t part) {
    return narrow(whole / std::max<std::int64_t>(part, 1));
  };
  args.batch_ratio = ratio(call.batch, spec.shape[0]);
  args.head_ratio = ratio(call.heads, spec.shape[1]);
  args.row_ratio = ratio(call.q_len, spec.shape[2]);
  args.key_ratio = ratio(call.kv_len, spec.shape[3]);
  args.offset = narrow(spec.offset);
  args.stride_batch = narrow(spec.strides[0]);
  args.stride_head = narrow(spec.strides[1]);
  args.stride_row = narrow(spec.strides[2]);
  args.stride_key = narrow(spec.strides[3]);
  args.wide = spec.dtype == DType::kF32 ? 1 : 0;
  // Items that share an element, more where it has more terms. Unless keys are summed, eight
  // neighbours stay in a group, to read 32 bytes at a time.
  const std::uint64_t terms =
      std::uint64_t{args.batch_ratio} * args.head_ratio * args.row_ratio * args.key_ratio;
  const std::uint32_t most = args.key_ratio > 1 ? kHelperItems : kHelperItems / 8;
  args.lanes = 1;
  while (args.lanes < most && std::uint64_t{args.lanes} * 16 < terms) args.lanes *= 2;
  return args;
}

abi::AttentionSinkGradientArgs sink_gradient_arguments(const Problem& problem,
                                                       const BackwardTiling& tiling) {
  const AttentionProblem& call = call_of(problem);
  const AttentionSlots& slots = call.slots;
  const TensorSpec sinks = with_rank(problem.spec(slots.sinks), 2),
                   gradient = with_rank(problem.spec(slots.sinks_gradient), 2);
  abi::AttentionSinkGradientArgs args{};
  args.delta = narrow(static_cast<std::int64_t>(scratch_of(problem, tiling).delta / 4));
  args.peaks = narrow(static_cast<std::int64_t>(scratch_of(problem, tiling).peaks / 16));
  args.normalize = call.normalize ? 1 : 0;
  args.batch = narrow(call.batch);
  args.heads = narrow(call.heads);
  args.q_len = narrow(call.q_len);
  args.kv_len = narrow(call.kv_len);
  args.group = narrow(call.heads / sinks.shape[0]);
  args.wide = sinks.dtype == DType::kF32 ? 1 : 0;
  args.sinks_offset = narrow(sinks.offset);
  args.sinks_stride_head = narrow(sinks.strides[0]);
  args.sinks_stride = narrow(sinks.strides[1]);
  args.offset = narrow(gradient.offset);
  args.stride_head = narrow(gradient.strides[0]);
  args.stride = narrow(gradient.strides[1]);
  return args;
}

}  // namespace

abi::AttentionBackwardCall backward_arguments(const Problem& problem,
                                              const BackwardTiling& tiling) {
  const AttentionSlots& slots = call_of(problem).slots;
  const BackwardScratch scratch = scratch_of(problem, tiling);
  const auto floats = [](std::uint64_t bytes) { return static_cast<abi::u32>(bytes / 4); };
  abi::AttentionBackwardCall args{};
  args.core = core_arguments(problem, tiling.map);
  args.core.splits = tiling.splits;
  args.policy = policy_arguments(problem, tiling.map);
  args.gradient.delta = floats(scratch.delta);
  args.gradient.peaks = static_cast<abi::u32>(scratch.peaks / 16);
  args.gradient.partials = floats(scratch.partials);
  args.gradient.ds = floats(scratch.ds);
  args.gradient.write_ds = problem.has(slots.bias_gradient) ? 1 : 0;
  const TensorSpec gradient = with_batch(problem.spec(slots.output_gradient)),
                   dq = with_batch(problem.spec(slots.query_gradient)),
                   dk = with_batch(problem.spec(slots.key_gradient)),
                   dv = with_batch(problem.spec(slots.value_gradient));
  args.gradient.do_offset = narrow(gradient.offset);
  args.gradient.do_stride_batch = narrow(gradient.strides[0]);
  args.gradient.do_stride_row = narrow(gradient.strides[1]);
  args.gradient.do_stride_head = narrow(gradient.strides[2]);
  args.gradient.dq_offset = narrow(dq.offset);
  args.gradient.dq_stride_batch = narrow(dq.strides[0]);
  args.gradient.dq_stride_row = narrow(dq.strides[1]);
  args.gradient.dq_stride_head = narrow(dq.strides[2]);
  args.gradient.dk_offset = narrow(dk.offset);
  args.gradient.dk_stride_batch = narrow(dk.strides[0]);
  args.gradient.dk_stride_row = narrow(dk.strides[1]);
  args.gradient.dk_stride_head = narrow(dk.strides[2]);
  args.gradient.dv_offset = narrow(dv.offset);
  args.gradient.dv_stride_batch = narrow(dv.strides[0]);
  args.gradient.dv_stride_row = narrow(dv.strides[1]);
  args.gradient.dv_stride_head = narrow(dv.strides[2]);
  return args;
}

std::uint64_t backward_scratch_bytes(const Problem& problem, const BackwardTiling& tiling) {
  return scratch_of(problem, tiling).end;
}

bool is_for(const Problem& problem, bool policies) { return call_of(problem).policies == policies; }

Pass backward_pass(const std::string& name, const BackwardTilingOf& tiling, bool policies) {
  Pass pass;
  pass.name = name + (policies ? "_policies" : "");
  pass.axes = [policies](const Problem& problem, const DeviceProfile&) -> std::vector<Define> {
    return {{"DTYPE", dtype_axis(problem.dtype)}, {"POLICY", policies ? 1U : 0U}};
  };
  pass.constants = shape_constants;
  pass.args = [tiling](const Problem& problem, const Config& config) {
    return argument_bytes(backward_arguments(problem, tiling(problem, config)));
  };
  return pass;
}

Pass delta_pass(const AttentionSlots& slots, const BackwardTilingOf& tiling) {
  Pass pass = helper_pass("delta");
  pass.specialized_on = std::vector<std::string>{"VALUE_DIM", "ALIGNED"};
  pass.bindings = {slots.output, slots.output_gradient, kScratch};
  pass.groups = [](const Problem& problem, const Config&) {
    return row_groups(problem, kHelperItems / DELTA_LANES);
  };
  pass.args = [tiling](const Problem& problem, const Config& config) {
    return argument_bytes(backward_arguments(problem, tiling(problem, config)));
  };
  return pass;
}

Pass peaks_pass(const AttentionSlots& slots, const BackwardTilingOf& tiling) {
  Pass pass = helper_pass("peaks");
  pass.specialized_on = std::vector<std::string>{"HEAD_DIM"};
  pass.bindings = {slots.query, slots.key, slots.log_sum_exp};
  for (const std::size_t slot : policy_bindings(slots)) pass.bindings.push_back(slot);
  pass.groups = [](const Problem& problem, const Config&) {
    return has_peaks(problem) ? row_groups(problem, 1) : kNothing;
  };
  pass.args = [tiling](const Problem& problem, const Config& config) {
    return argument_bytes(backward_arguments(problem, tiling(problem, config)));
  };
  return pass;
}

std::vector<Pass> policy_gradient_passes(const AttentionSlots& slots,
                                         const BackwardTilingOf& tiling) {
  Pass bias = helper_pass("bias_gradient");
  bias.bindings = {kScratch, slots.bias_gradient};
  bias.groups = [tiling](const Problem& problem, const Config& config) {
    const std::size_t slot = call_of(problem).slots.bias_gradient;
    if (!problem.has(slot)) return kNothing;
    const std::uint32_t lanes = bias_gradient_arguments(problem, tiling(problem, config)).lanes;
    return Dim3{
        std::min(ceil_div(problem.spec(slot).elements(), kHelperItems / lanes), kMostGroups), 1, 1};
  };
  bias.args = [tiling](const Problem& problem, const Config& config) {
    return argument_bytes(bias_gradient_arguments(problem, tiling(problem, config)));
  };

  Pass sinks = helper_pass("sink_gradient");
  sinks.bindings = {slots.sinks, kScratch, slots.sinks_gradient};
  sinks.groups = [](const Problem& problem, const Config&) {
    const std::size_t slot = call_of(problem).slots.sinks_gradient;
    if (!problem.has(slot)) return kNothing;
    const Shape shape = with_rank(problem.spec(slot), 2).shape;
    return Dim3{narrow(shape[1]), narrow(shape[0]), 1};
  };
  sinks.args = [tiling](const Problem& problem, const Config& config) {
    return argument_bytes(sink_gradient_arguments(problem, tiling(problem, config)));
  };
  return list_of(std::move(bias), std::move(sinks));
}

}  // namespace tessera::operations::attention
