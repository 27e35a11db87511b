// SPDX-License-Identifier: Apache-2.0
// The passes that variants of attention share.
#include "abi/shared.h"
#include "operations/attention_core/core/combine.h"
#include "operations/attention_core/core/rows_args.h"
#include "operations/attention_core/core/spans_args.h"
#include "operations/attention_core/core/weights_args.h"
#include "operations/attention_core/core/work.h"
#include "operations/attention_core/launch.hpp"
#include "operations/common/boundaries.hpp"

namespace tessera::operations::attention {
namespace {

constexpr std::uint32_t kCombineFeatures = COMBINE_FEATURES;
constexpr Dim3 kNothing{0, 1, 1};

abi::AttentionRowsArgs rows_arguments(const Problem& problem) {
  const AttentionProblem& call = call_of(problem);
  const AttentionSlots& slots = call.slots;
  abi::AttentionRowsArgs args{};
  args.batch = narrow(call.batch);
  args.q_len = narrow(call.q_len);
  args.kv_len = narrow(call.kv_len);
  args.sequences = narrow(call.sequences);
  args.band_low = static_cast<abi::i32>(call.band_low);
  args.band_high = static_cast<abi::i32>(call.band_high);
  args.chunk = narrow(call.chunk);
  if (call.bottom_right) args.features |= ROWS_BOTTOM_RIGHT;
  if (call.sequences > 0) {
    args.features |= ROWS_SEQUENCES | (call.packed ? ROWS_PACKED : 0);
    args.cu_q_offset = narrow(problem.spec(slots.cum_seqlens_q).offset);
    args.cu_q_stride = narrow(problem.spec(slots.cum_seqlens_q).strides[0]);
    args.cu_k_offset = narrow(problem.spec(slots.cum_seqlens_k).offset);
    args.cu_k_stride = narrow(problem.spec(slots.cum_seqlens_k).strides[0]);
  }
  if (problem.has(slots.q_lengths)) {
    args.features |= ROWS_Q_LENGTHS;
    args.q_lengths_offset = narrow(problem.spec(slots.q_lengths).offset);
    args.q_lengths_stride = narrow(problem.spec(slots.q_lengths).strides[0]);
  }
  if (problem.has(slots.kv_lengths)) {
    args.features |= ROWS_KV_LENGTHS;
    args.kv_lengths_offset = narrow(problem.spec(slots.kv_lengths).offset);
    args.kv_lengths_stride = narrow(problem.spec(slots.kv_lengths).strides[0]);
  }
  if (problem.has(slots.q_segments)) {
    const TensorSpec spec = with_rank(problem.spec(slots.q_segments), 2);
    args.features |= ROWS_SEGMENTS;
    args.segments_offset = narrow(spec.offset);
    args.segments_stride_batch = narrow(spec.strides[0]);
    args.segments_stride_row = narrow(spec.strides[1]);
  }
  if (problem.has(slots.q_positions)) {
    const TensorSpec spec = with_rank(problem.spec(slots.q_positions), 2);
    args.features |= ROWS_POSITIONS;
    args.positions_offset = narrow(spec.offset);
    args.positions_stride_batch = narrow(spec.strides[0]);
    args.positions_stride_row = narrow(spec.strides[1]);
  }
  return args;
}

abi::AttentionCall call_arguments(const Problem& problem, const AttentionTiling& tiling) {
  return {.core = core_arguments(problem, tiling), .policy = policy_arguments(problem, tiling)};
}

// What the work list needs of them: sequences in pages have where they begin in the scratch buffer.
abi::AttentionRowsArgs work_rows(const Problem& problem, const AttentionTiling& tiling) {
  const AttentionProblem& call = call_of(problem);
  if (!call.is_paged()) return rows_arguments(problem);
  abi::AttentionRowsArgs args{};
  args.q_len = narrow(call.q_len);
  args.sequences = narrow(call.sequences);
  args.cu_q_offset = static_cast<abi::u32>(scratch_of(problem, tiling).begins / 4);
  args.cu_q_stride = 1;
  return args;
}

void append(std::vector<std::size_t>& bindings, const std::vector<std::size_t>& more) {
  bindings.insert(bindings.end(), more.begin(), more.end());
}

}  // namespace

Dim3 row_groups(const Problem& problem, std::int64_t rows) {
  const AttentionProblem& call = call_of(problem);
  return {ceil_div(call.q_len, rows), narrow(call.heads), narrow(call.batch)};
}

Dim3 listed_groups(const Problem& problem, const AttentionTiling& tiling, std::int64_t rows) {
  Dim3 groups = row_groups(problem, rows);
  if (tiling.listed > 0) groups.x = listed_items(problem, tiling);
  return groups;
}

Pass helper_pass(const std::string& name) {
  Pass pass;
  pass.name = name;
  pass.opencl = {.file = "attention/core/" + name + ".cl", .entry = "attention_" + name};
  pass.vulkan = {.file = "attention/core/" + name + ".comp", .entry = "main"};
  pass.axes = dtype_axes;
  pass.constants = shape_constants;
  pass.specialized_on = std::vector<std::string>{};
  pass.group_size = [](const Config&) { return Dim3{kHelperItems, 1, 1}; };
  return pass;
}

Pass rows_pass(const AttentionSlots& slots) {
  Pass pass = helper_pass("rows");
  pass.axes = {};
  pass.bindings = {kScratch,         slots.cum_seqlens_q, slots.cum_seqlens_k, slots.q_lengths,
                   slots.kv_lengths, slots.q_segments,    slots.q_positions};
  pass.groups = [](const Problem& problem, const Config&) {
    const AttentionProblem& call = call_of(problem);
    return call.policies ? Dim3{ceil_div(call.batch * call.q_len, kHelperItems), 1, 1} : kNothing;
  };
  pass.args = [](const Problem& problem, const Config&) {
    return argument_bytes(rows_arguments(problem));
  };
  return pass;
}

namespace {

Pass starts_pass(const AttentionSlots& slots, const Tiling& tiling) {
  return boundaries_pass(slots.query_start_loc, slots.num_seqs,
                         [tiling](const Problem& problem, const Config& config) {
                           return Boundaries{
                               .tokens = call_of(problem).q_len,
                               .result = scratch_of(problem, tiling(problem, config)).begins,
                               .outside = PAGES_BAD_START,
                               .decreases = PAGES_BAD_START};
                         });
}

Pass table_of_pages_pass(const AttentionSlots& slots, const Tiling& tiling) {
  Pass pass = helper_pass("pages");
  pass.group_size = [](const Config&) { return Dim3{kListItems, 1, 1}; };
  pass.axes = {};
  pass.bindings = {kScratch, slots.block_tables, slots.context_lens,
                   kScratch, slots.num_seqs,     slots.distribution,
                   kErrors};
  pass.errors_at = offsetof(abi::AttentionPagesArgs, errors);
  pass.groups = [](const Problem& problem, const Config&) {
    const AttentionProblem& call = call_of(problem);
    return Dim3{narrow(call.paged.sequences) + (call.packed ? 1 : 0), 1, 1};
  };
  pass.args = [tiling](const Problem& problem, const Config& config) {
    const AttentionProblem& call = call_of(problem);
    const AttentionSlots& slots = call.slots;
    abi::AttentionPagesArgs args{};
    args.pages = page_arguments(problem);
    args.sequences = narrow(call.paged.sequences);
    args.per_sequence = narrow(call.paged.per_sequence);
    args.rows = narrow(call.batch * call.q_len);
    args.starts = call.packed ? 1 : 0;
    args.begins = static_cast<abi::u32>(scratch_of(problem, tiling(problem, config)).begins / 4);
    args.band_low = static_cast<abi::i32>(call.band_low);
    args.lengths_offset = narrow(problem.spec(slots.context_lens).offset);
    args.lengths_stride = narrow(problem.spec(slots.context_lens).strides[0]);
    if (call.packed) {
      args.count_offset = narrow(problem.spec(slots.num_seqs).offset);
    }
    if (problem.has(slots.distribution)) {
      const TensorSpec& ends = problem.spec(slots.distribution);
      args.ends = narrow(ends.shape[0]);
      args.ends_offset = narrow(ends.offset);
      args.ends_stride = narrow(ends.strides[0]);
    }
    return argument_bytes(args);
  };
  return pass;
}

}  // namespace

std::vector<Pass> pages_passes(const AttentionSlots& slots, const Tiling& tiling) {
  Pass table = table_of_pages_pass(slots, tiling);
  if (slots.query_start_loc == kNoOperand) return list_of(std::move(table));
  return list_of(starts_pass(slots, tiling), std::move(table));
}

Pass spans_pass(const AttentionSlots& slots, const Tiling& tiling) {
  Pass pass = helper_pass("spans");
  pass.axes = {};
  pass.bindings = {kScratch, slots.sequence_start, slots.sequence_end, kErrors,
                   slots.position_bias};
  pass.errors_at = offsetof(abi::AttentionSpansArgs, errors);
  pass.groups = [](const Problem& problem, const Config&) {
    const AttentionProblem& call = call_of(problem);
    const std::int64_t heads = heads_of_position_bias(problem);
    const std::int64_t items = std::max(call.batch, heads > 0 ? call.kv_len : 0);
    return Dim3{ceil_div(items, kHelperItems), narrow(std::max<std::int64_t>(heads, 1)), 1};
  };
  pass.args = [tiling](const Problem& problem, const Config& config) {
    const AttentionProblem& call = call_of(problem);
    const TensorSpec &starts = problem.spec(call.slots.sequence_start),
                     &ends = problem.spec(call.slots.sequence_end);
    abi::AttentionSpansArgs args{};
    args.batch = narrow(call.batch);
    args.kv_len = narrow(call.kv_len);
    args.band_low = static_cast<abi::i32>(call.band_low);
    args.starts_offset = narrow(starts.offset);
    args.starts_stride = narrow(starts.strides[0]);
    args.ends_offset = narrow(ends.offset);
    args.ends_stride = narrow(ends.strides[0]);
    args.heads = narrow(heads_of_position_bias(problem));
    if (args.heads == 0) return argument_bytes(args);
    const TensorSpec spec = with_rank(problem.spec(call.slots.position_bias), 2);
    args.biases = narrow(spec.shape[1]);
    args.type = dtype_axis(spec.dtype);
    args.biases_offset = narrow(spec.offset);
    args.biases_stride_head = narrow(spec.strides[0]);
    args.biases_stride = narrow(spec.strides[1]);
    args.to = static_cast<abi::u32>(scratch_of(problem, tiling(problem, config)).biases / 4);
    return argument_bytes(args);
  };
  return pass;
}

Pass map_pass(const AttentionSlots& slots, const Tiling& tiling) {
  Pass pass = helper_pass("map");
  pass.bindings = policy_bindings(slots);
  pass.groups = [tiling](const Problem& problem, const Config& config) {
    const abi::AttentionPolicyArgs args = policy_arguments(problem, tiling(problem, config));
    const AttentionProblem& call = call_of(problem);
    if ((args.features & POLICY_MAP) == 0) return kNothing;
    return Dim3{args.map_stride_row, ceil_div(call.q_len, args.map_rows),
                narrow(call.batch) * args.map_heads};
  };
  pass.args = [tiling](const Problem& problem, const Config& config) {
    return argument_bytes(call_arguments(problem, tiling(problem, config)));
  };
  return pass;
}

Pass work_pass(const AttentionSlots& slots, const Tiling& tiling) {
  Pass pass = helper_pass("work");
  pass.axes = {};
  const bool paged = slots.block_tables != kNoOperand;
  pass.bindings = {kScratch, paged ? kScratch : slots.cum_seqlens_q};
  pass.group_size = [](const Config&) { return Dim3{kListItems, 1, 1}; };
  pass.groups = [tiling](const Problem& problem, const Config& config) {
    return tiling(problem, config).listed > 0 ? Dim3{1, 1, 1} : kNothing;
  };
  pass.args = [tiling](const Problem& problem, const Config& config) {
    const AttentionTiling cut = tiling(problem, config);
    return argument_bytes(
        abi::AttentionWorkArgs{.rows = work_rows(problem, cut),
                               .pack = cut.pack,
                               .tile = cut.listed,
                               .list = static_cast<abi::u32>(scratch_of(problem, cut).map / 16),
                               .least_rows = cut.least_rows,
                               .most_rows = cut.most_rows});
  };
  return pass;
}

Pass weights_pass(const AttentionSlots& slots, const Tiling& tiling) {
  Pass pass = helper_pass("weights");
  pass.bindings = {slots.query, slots.key, slots.log_sum_exp, slots.weights};
  append(pass.bindings, policy_bindings(slots));
  pass.groups = [](const Problem& problem, const Config&) {
    const AttentionProblem& call = call_of(problem);
    if (!problem.has(call.slots.weights)) return kNothing;
    return Dim3{ceil_div(call.kv_len, kHelperItems), ceil_div(call.q_len, ATTN_WEIGHTS_ROWS),
                narrow(call.batch * call.heads)};
  };
  pass.args = [tiling](const Problem& problem, const Config& config) {
    const AttentionTiling cut = tiling(problem, config);
    abi::AttentionWeightsCall args{};
    args.core = core_arguments(problem, cut);
    args.policy = policy_arguments(problem, cut);
    const TensorSpec& spec = problem.spec(call_of(problem).slots.weights);
    args.head_dim = head_dim(problem);
    args.w_offset = narrow(spec.offset);
    args.w_stride_batch = narrow(spec.strides[0]);
    args.w_stride_head = narrow(spec.strides[1]);
    args.w_stride_row = narrow(spec.strides[2]);
    return argument_bytes(args);
  };
  return pass;
}

// With sinks or without: what a split leaves is the same for all other policies.
Pass combine_pass(const AttentionSlots& slots, const Tiling& tiling, bool sinks) {
  Pass pass = helper_pass("combine");
  if (sinks) pass.name = "combine_sinks";
  pass.specialized_on = {"VALUE_DIM"};
  pass.bindings = {slots.output, slots.log_sum_exp};
  if (sinks) {
    append(pass.bindings, policy_bindings(slots));
  } else {
    pass.bindings.push_back(kScratch);
  }
  pass.axes = [sinks](const Problem& problem, const DeviceProfile&) -> std::vector<Define> {
    return {{"DTYPE", dtype_axis(problem.dtype)}, {"POLICY", sinks ? 1U : 0U}};
  };
  pass.groups = [tiling, sinks](const Problem& problem, const Config& config) {
    const AttentionProblem& call = call_of(problem);
    if (tiling(problem, config).splits <= 1 || ((call.features & POLICY_SINKS) != 0) != sinks)
      return kNothing;
    const std::int64_t parts = ceil_div(call.value_dim, kCombineFeatures);
    return Dim3{ceil_div(call.q_len * parts, kHelperItems), narrow(call.heads), narrow(call.batch)};
  };
  pass.args = [tiling](const Problem& problem, const Config& config) {
    return argument_bytes(call_arguments(problem, tiling(problem, config)));
  };
  return pass;
}

// The kernel of calls with a band and a cap at most.
Pass plain_pass(const AttentionSlots& slots, const ForwardKernel& kernel) {
  Pass pass;
  pass.name = "plain";
  if (!kernel.opencl.empty()) pass.opencl = {.file = kernel.opencl, .entry = kernel.entry};
  if (!kernel.vulkan.empty()) pass.vulkan = {.file = kernel.vulkan, .entry = "main"};
  pass.bindings = {slots.query, slots.key, slots.value, slots.output, slots.log_sum_exp, kScratch};
  pass.constants = kernel.constants;
  pass.axes = [axes = kernel.axes](const Problem& problem, const DeviceProfile& profile) {
    std::vector<Define> all = axes(problem, profile);
    all.push_back({"POLICY", 0});
    return all;
  };
  pass.groups = [groups = kernel.groups, tiling = kernel.tiling](const Problem& problem,
                                                                 const Config& config) {
    if (call_of(problem).policies) return kNothing;
    Dim3 count = groups(problem, config);
    count.x *= tiling(problem, config).splits;
    return count;
  };
  pass.args = [tiling = kernel.tiling](const Problem& problem, const Config& config) {
    return argument_bytes(core_arguments(problem, tiling(problem, config)));
  };
  return pass;
}

Pass policies_pass(const AttentionSlots& slots, const ForwardKernel& kernel, bool codes) {
  const bool paged = slots.block_tables != kNoOperand;
  Pass pass;
  pass.name = codes ? "codes" : paged ? "paged" : "policies";
  if (slots.value == slots.value_pages) pass.name += "_apart";
  if (!kernel.opencl.empty()) pass.opencl = {.file = kernel.opencl, .entry = kernel.entry};
  if (!kernel.vulkan.empty()) pass.vulkan = {.file = kernel.vulkan, .entry = "main"};
  pass.bindings = {slots.query, slots.key, slots.value, slots.output, slots.log_sum_exp};
  append(pass.bindings, policy_bindings(slots));
  if (paged || codes) pass.bindings.push_back(slots.block_tables);
  if (codes) append(pass.bindings, {slots.key_scale, slots.value_scale});
  pass.constants = kernel.constants;
  pass.axes = [axes = kernel.axes, paged, codes, lists = kernel.lists](
                  const Problem& problem, const DeviceProfile& profile) {
    std::vector<Define> all = axes(problem, profile);
    all.push_back({"POLICY", 1});
    if (paged || codes) all.push_back({"PAGED", paged ? 1U : 0U});
    if (lists && !paged && !codes && lists(problem)) all.push_back({"LISTED", 1});
    if (codes) all.push_back({"CODES", 1});
    return all;
  };
  pass.groups = [groups = kernel.groups, tiling = kernel.tiling, codes, value = slots.value](
                    const Problem& problem, const Config& config) {
    const AttentionProblem& call = call_of(problem);
    if (!call.policies || call.has_codes() != codes || call.slots.value != value) return kNothing;
    Dim3 count = groups(problem, config);
    count.x *= tiling(problem, config).splits;
    return count;
  };
  pass.args = [tiling = kernel.tiling, paged, codes](const Problem& problem, const Config& config) {
    const AttentionTiling cut = tiling(problem, config);
    const abi::AttentionArgs core = core_arguments(problem, cut);
    const abi::AttentionPolicyArgs policy = policy_arguments(problem, cut);
    if (!paged && !codes) return argument_bytes(abi::AttentionCall{.core = core, .policy = policy});
    const abi::AttentionPages pages = paged ? page_arguments(problem) : abi::AttentionPages{};
    if (!codes) {
      return argument_bytes(
          abi::AttentionPagedCall{.core = core, .policy = policy, .pages = pages});
    }
    return argument_bytes(
        abi::AttentionCodesCall{.core = core,
                                .policy = policy,
                                .pages = pages,
                                .key_scales = scale_arguments(key_scales(problem)),
                                .value_scales = scale_arguments(value_scales(problem))});
  };
  return pass;
}

namespace {

// Between the passes that find keys in pages and merge.
std::vector<Pass> paged_passes(const AttentionSlots& slots, const ForwardKernel& kernel) {
  std::vector<AttentionSlots> pools{slots};
  if (slots.value_pages != kNoOperand) pools.push_back(with_pools_apart(slots));
  std::vector<Pass> passes = pages_passes(slots, kernel.tiling);
  if (slots.query_start_loc != kNoOperand) passes.push_back(work_pass(slots, kernel.tiling));
  for (const AttentionSlots& of : pools) {
    passes.push_back(policies_pass(of, kernel, false));
    if (kernel.takes_codes) passes.push_back(policies_pass(of, kernel, true));
  }
  passes.push_back(combine_pass(slots, kernel.tiling, false));
  passes.push_back(combine_pass(slots, kernel.tiling, true));
  return passes;
}

}  // namespace

std::vector<Pass> forward_passes(const AttentionSlots& slots, const ForwardKernel& kernel) {
  if (slots.block_tables != kNoOperand) return paged_passes(slots, kernel);
  const bool spans = slots.sequence_start != kNoOperand;
  std::vector<Pass> passes = list_of(
      spans ? spans_pass(slots, kernel.tiling) : rows_pass(slots), map_pass(slots, kernel.tiling),
      plain_pass(slots, kernel), policies_pass(slots, kernel, false),
      combine_pass(slots, kernel.tiling, false), combine_pass(slots, kernel.tiling, true));
  if (kernel.takes_codes && slots.key_scale != kNoOperand)
    passes.insert(passes.end() - 2, policies_pass(slots, kernel, true));
  if (!kernel.takes_policies) passes = list_of(plain_pass(slots, kernel));
  const bool lists = kernel.takes_list || kernel.lists;
  if (lists && slots.cum_seqlens_q != kNoOperand)
    passes.insert(passes.begin() + 1, work_pass(slots, kernel.tiling));
  if (slots.weights != kNoOperand) passes.push_back(weights_pass(slots, kernel.tiling));
  return passes;
}

Variant forward_variant(const AttentionSlots& slots, std::string name, std::string idea,
                        std::vector<Tunable> tunables, const ForwardKernel& kernel) {
  Variant variant;
  variant.name = std::move(name);
  variant.idea = std::move(idea);
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = std::move(tunables);
  variant.passes = forward_passes(slots, kernel);
  variant.scratch_bytes = [tiling = kernel.tiling](const Problem& problem, const Config& config) {
    return scratch_of(problem, tiling(problem, config)).end;
  };
  return variant;
}

}  // namespace tessera::operations::attention
