// SPDX-License-Identifier: Apache-2.0
// How mean pooling is computed where.
#include <algorithm>
#include <string>

#include "abi/shared.h"
#include "kernel/gpu.hpp"
#include "kernel/option_access.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/pooling_core/launch.hpp"
#include "operations/pooling_core/problem.hpp"

namespace tessera::operations::pooling {
namespace {

std::vector<Tunable> lanes_tunables(bool backward) {
  if (backward) {
    return {
#include "operations/pooling_core/pool.def"
#include "operations/pooling_core/spread.def"
    };
  }
  return {
#include "operations/pooling_core/lanes.def"
#include "operations/pooling_core/pool.def"
  };
}

std::vector<Tunable> cpu_tunables(bool backward) {
  if (backward) {
    return {
#include "operations/pooling_core/cpu_spread.def"
#include "operations/pooling_core/pool.def"
    };
  }
  return {
#include "operations/pooling_core/cpu.def"
#include "operations/pooling_core/pool.def"
  };
}

// What every device takes along each axis of a launch; kernels step over the rest.
constexpr std::int64_t kMostGroups = 65535;

std::uint32_t group_count(std::int64_t wanted) {
  return static_cast<std::uint32_t>(std::min(wanted, kMostGroups));
}

const MeanPoolingProblem& call_of(const Problem& problem) {
  return problem.as<MeanPoolingProblem>();
}

// Vulkan devices may lack 16-bit storage.
Refusal rejects_problem(const Problem& problem, const DeviceProfile& profile) {
  if (problem.dtype != DType::kF32 && !has(profile.features, Feature::kStorage16)) {
    return std::string(to_string(problem.dtype)) + " needs storage16, which this device lacks";
  }
  return rejects_long_operands(problem, profile);
}

std::vector<Define> shape_constants(const Problem& problem, const Config& /*config*/) {
  return {{"MASKED", call_of(problem).pool == Pool::kMask ? 1U : 0U},
          {"ALIGNED", is_aligned(problem) ? 1U : 0U}};
}

std::vector<std::byte> pass_arguments(const Problem& problem, const Config& config) {
  return argument_bytes(arguments(problem, splits_of(config)));
}

Dim3 flat_group(const Config& config) { return {config.get("WG_X", 1) * config.get("WG_Y", 1)}; }

// Operands by what they are, which is what the kernels' parameters are ordered by. A chunk mean has
// no lengths and no mask, and the kernel does not read them then: cu_seqlens stands in their place.
struct Slots {
  std::size_t from, lengths, mask, cu_seqlens, to;
};

Slots slots_of(bool chunked) {
  if (chunked) return {kChunkFrom, kChunkCuSeqlens, kChunkCuSeqlens, kChunkCuSeqlens, kChunkTo};
  return {kSequenceFrom, kSequenceLengths, kSequenceMask, kSequenceCuSeqlens, kSequenceTo};
}

Pass new_pass(std::string name, std::vector<std::size_t> bindings) {
  Pass pass;
  pass.name = std::move(name);
  pass.bindings = std::move(bindings);
  pass.constants = shape_constants;
  pass.args = pass_arguments;
  return pass;
}

// Finds the chunks of packed sequences, or how many tokens a mask leaves; other calls skip it.
Pass prepare_pass(bool chunked, bool vulkan) {
  const Slots slots = slots_of(chunked);
  Pass pass = new_pass("prepare", {slots.mask, slots.cu_seqlens, kScratch});
  pass.opencl = {.file = "pooling/prepare.cl", .entry = "mean_prepare"};
  if (vulkan) pass.vulkan = {.file = "pooling/prepare.comp", .entry = "main"};
  pass.specialized_on = std::vector<std::string>{"MASKED"};
  pass.group_size = flat_group;
  pass.groups = [](const Problem& problem, const Config&) {
    if (scratch_of(problem, 1).prepared == 0) return Dim3{0, 0, 0};
    return Dim3{call_of(problem).pool == Pool::kMask ? group_count(call_of(problem).batch) : 1U};
  };
  return pass;
}

Pass main_pass(bool chunked, bool backward) {
  const Slots slots = slots_of(chunked);
  Pass pass = new_pass(backward ? "spread" : "sum", {slots.from, slots.lengths, slots.mask,
                                                     slots.cu_seqlens, slots.to, kScratch});
  pass.axes = dtype_axes;
  return pass;
}

// ---- lanes: any device --------------------------------------------------------------------------

std::int64_t tokens_of_row(const MeanPoolingProblem& call) {
  if (call.pool == Pool::kSequences)
    return ceil_div(call.tokens, std::max<std::int64_t>(call.rows, 1));
  return std::min(call.chunk, call.tokens);
}

std::uint32_t power_of_two(std::int64_t n, std::uint32_t most) {
  const std::uint64_t power =
      kernel::next_power_of_two(static_cast<std::uint64_t>(std::max<std::int64_t>(n, 1)));
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(power, most));
}

// A work-group of `items`, at most `most_columns` of them side by side, the others on tokens.
Config lanes_config(const Problem& problem, const DeviceProfile& profile, std::uint32_t items,
                    std::uint32_t most_columns) {
  const MeanPoolingProblem& call = call_of(problem);
  const std::int64_t columns = features_of(problem).columns();
  const std::uint32_t tokens_under_way = problem.dtype == DType::kF32 ? 4 : 8;
  const std::uint32_t x = power_of_two(columns, most_columns);
  if (call.backward) {
    const std::uint32_t y =
        std::min(items / x, power_of_two(ceil_div(call.tokens, tokens_under_way), items));
    return {{"WG_X", x}, {"WG_Y", y}, {"TOKENS", tokens_under_way}};
  }
  const std::int64_t tokens = tokens_of_row(call);
  const std::uint32_t y =
      std::min(items / x, power_of_two(ceil_div(tokens, tokens_under_way), items));
  // Few rows leave a GPU idle unless several work-groups share one; each must still have work for
  // all its items.
  std::uint32_t splits = 1;
  if (is_gpu(profile)) {
    const std::int64_t groups =
        std::max<std::int64_t>(1, std::int64_t{ceil_div(columns, x)} * call.batch * call.rows);
    const std::int64_t wanted = 8 * std::int64_t{kernel::compute_units_of(profile)};
    const std::int64_t most = tokens / (std::int64_t{y} * tokens_under_way);
    splits = power_of_two(std::min(wanted / groups, most), 64);
  }
  return {{"WG_X", x}, {"WG_Y", y}, {"TOKENS", tokens_under_way}, {"SPLITS", splits}};
}

std::vector<Config> lanes_space(const Problem& problem, const DeviceProfile& profile) {
  if (is_cpu(profile)) {
    std::vector<Config> space{lanes_config(problem, profile, 64, 16),
                              lanes_config(problem, profile, 32, 32)};
    if (!call_of(problem).backward) space.back().set("SPLITS", 4);
    return space;
  }
  std::vector<Config> space{
      lanes_config(problem, profile, 256, 32), lanes_config(problem, profile, 256, 64),
      lanes_config(problem, profile, 128, 32), lanes_config(problem, profile, 512, 64)};
  if (space.front().get("SPLITS", 1) > 1) {
    space.push_back(space.front());
    space.back().set("SPLITS", 1);
  }
  return space;
}

Refusal rejects_lanes(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (const Refusal no = rejects_problem(problem, profile)) return no;
  if (config.get("TOKENS", 1) > 64) {
    return "has TOKENS of more than the 64 that an item has registers for";
  }
  const MeanPoolingScratch scratch = scratch_of(problem, splits_of(config));
  if (scratch.bytes >= std::uint64_t{1} << 33) {
    return "has partial sums of " + std::to_string(scratch.bytes) +
           " bytes; its kernels count to 2^33";
  }
  return std::nullopt;
}

Variant lanes_variant(bool chunked, bool backward) {
  Variant variant;
  variant.name = "lanes";
  variant.idea =
      backward
          ? "a work-group is columns x tokens; an item writes consecutive tokens of four features"
          : "a work-group is columns x tokens; lanes meet in local memory, splits in scratch";
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = lanes_tunables(backward);
  variant.space = lanes_space;
  variant.rejects = rejects_lanes;
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return scratch_of(problem, splits_of(config)).bytes;
  };
  variant.local_bytes = [backward](const Problem&, const Config& config) -> std::uint64_t {
    const std::uint64_t items = flat_group(config).x;
    return backward ? 4 * items : 16 * items + 4 * config.get("WG_Y", 1);
  };
  Pass main = main_pass(chunked, backward);
  if (backward) {
    main.opencl = {.file = "pooling/backward.cl", .entry = "mean_backward"};
    main.vulkan = {.file = "pooling/backward.comp", .entry = "main"};
    main.groups = [](const Problem& problem, const Config& config) {
      const MeanPoolingProblem& call = call_of(problem);
      const std::int64_t block = std::int64_t{config.get("WG_Y", 1)} * config.at("TOKENS");
      return Dim3{ceil_div(features_of(problem).columns(), config.get("WG_X", 1)),
                  group_count(call.batch * ceil_div(call.tokens, block))};
    };
    variant.passes = list_of(prepare_pass(chunked, true), std::move(main));
    return variant;
  }
  const auto groups = [](const Problem& problem, std::uint32_t width, std::uint32_t splits) {
    const MeanPoolingProblem& call = call_of(problem);
    return Dim3{ceil_div(features_of(problem).columns(), width),
                group_count(call.batch * call.rows), splits};
  };
  main.opencl = {.file = "pooling/forward.cl", .entry = "mean_forward"};
  main.vulkan = {.file = "pooling/forward.comp", .entry = "main"};
  main.groups = [groups](const Problem& problem, const Config& config) {
    return groups(problem, config.get("WG_X", 1), splits_of(config));
  };
  Pass combine = new_pass("combine", {slots_of(chunked).to, kScratch});
  combine.axes = main.axes;
  combine.opencl = {.file = "pooling/forward.cl", .entry = "mean_combine"};
  combine.vulkan = {.file = "pooling/combine.comp", .entry = "main"};
  combine.group_size = flat_group;
  combine.groups = [groups](const Problem& problem, const Config& config) {
    if (splits_of(config) == 1) return Dim3{0, 0, 0};
    return groups(problem, flat_group(config).x, 1);
  };
  variant.passes = list_of(prepare_pass(chunked, true), std::move(main), std::move(combine));
  return variant;
}

// ---- cpu: OpenCL on processors ------------------------------------------------------------------

std::int64_t cpu_blocks(const Problem& problem, std::uint32_t block) {
  const Features features = features_of(problem);
  return features.heads * ceil_div(features.dim, block);
}

std::vector<Config> cpu_space(const Problem& problem, const DeviceProfile& profile) {
  const MeanPoolingProblem& call = call_of(problem);
  if (call.backward) return {{{"BLOCK", 1024}, {"TOKENS", 32}}, {{"BLOCK", 256}, {"TOKENS", 128}}};
  // Wide blocks read longer pieces of each token, narrow ones give every core something to do: the
  // widest that do so come first, or else the narrowest.
  std::vector<Config> space, too_few;
  for (const std::uint32_t block : {1024U, 256U, 64U}) {
    const std::int64_t items = cpu_blocks(problem, block) * call.batch * call.rows;
    const bool enough = items >= 4 * std::int64_t{std::max(profile.compute_units, 1U)};
    (enough ? space : too_few).push_back({{"BLOCK", block}});
  }
  space.insert(space.end(), too_few.rbegin(), too_few.rend());
  return space;
}

Refusal rejects_cpu(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t block = config.at("BLOCK");
  if (block % 16 != 0)
    return "has a BLOCK of " + std::to_string(block) + ", which is no multiple of 16";
  // PoCL 3.1 crashes where an item's private memory reaches its worker's stack of 8 MiB.
  if (block > 65536)
    return "has a BLOCK of " + std::to_string(block) + ", more than 65536 features on a stack";
  return rejects_problem(problem, profile);
}

Variant cpu_variant(bool chunked, bool backward) {
  Variant variant;
  variant.name = "cpu";
  variant.idea = backward
                     ? "an item rounds a row once and copies it to its tokens"
                     : "an item adds its features of one token after the other, in vectors of 16";
  variant.needs = opencl_cpu();
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = cpu_tunables(backward);
  variant.space = cpu_space;
  variant.rejects = rejects_cpu;
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    return scratch_of(problem, 1).bytes;
  };
  Pass main = main_pass(chunked, backward);
  // Nothing on ALIGNED: vectors of 16 are loaded from anywhere.
  if (backward) {
    main.opencl = {.file = "pooling/cpu_backward.cl", .entry = "mean_backward_cpu"};
    main.specialized_on = std::vector<std::string>{"BLOCK", "TOKENS", "MASKED"};
  } else {
    main.opencl = {.file = "pooling/cpu_forward.cl", .entry = "mean_forward_cpu"};
    main.specialized_on = std::vector<std::string>{"BLOCK", "MASKED"};
  }
  main.groups = [backward](const Problem& problem, const Config& config) {
    const MeanPoolingProblem& call = call_of(problem);
    const std::int64_t shares =
        backward ? std::int64_t{ceil_div(call.tokens, config.at("TOKENS"))} : call.rows;
    return Dim3{static_cast<std::uint32_t>(cpu_blocks(problem, config.at("BLOCK"))),
                group_count(call.batch * shares)};
  };
  variant.passes = list_of(prepare_pass(chunked, false), std::move(main));
  return variant;
}

}  // namespace

std::vector<Way> mean_pooling_ways(bool chunked, bool backward) {
  return {
      {.variant = cpu_variant(chunked, backward),
       .rule = {.why = "processors want whole vectors in one item, and no local memory",
                .when = [](const Problem&, const DeviceProfile& p) { return is_opencl_cpu(p); }}},
      {.variant = lanes_variant(chunked, backward),
       .rule = {.why = "runs everywhere",
                .when = [](const Problem&, const DeviceProfile&) { return true; }}}};
}

}  // namespace tessera::operations::pooling
