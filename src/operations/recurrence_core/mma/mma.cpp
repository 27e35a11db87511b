// SPDX-License-Identifier: Apache-2.0
// NVIDIA's GPUs from sm_80 on through OpenCL: chunks of 16 tokens by mma.sync, a state in
// registers.
#include "operations/recurrence_core/mma/mma.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/recurrence_core/launch.hpp"
#include "operations/recurrence_core/mma/geometry.h"

namespace tessera::operations::recurrence {
namespace {

constexpr std::int64_t kLeastTokens = 32, kMostSpans = 64;

const RecurrenceProblem& call_of(const Problem& problem) { return problem.as<RecurrenceProblem>(); }

// States of spans, in floats; then there are factors.
std::uint64_t span_states(const Problem& problem, const Config& config) {
  const std::int64_t units = units_of(call_of(problem), mma_columns(config));
  return static_cast<std::uint64_t>(mma_spans(config) * units * call_of(problem).key_dim *
                                    mma_columns(config));
}

abi::RecurArgs span_arguments(const Problem& problem, const Config& config) {
  abi::RecurArgs args = arguments_of(problem);
  add_mma_spans(problem, config, 0, args);
  args.boundaries = static_cast<abi::u32>(mma_span_bytes(problem, config) / 4);
  return args;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = rejects_mma_call(problem)) return no;
  if (Refusal no = rejects_mma_blocks(problem, config, profile, true)) return no;
  if (mma_spans(config) > 1 && call_of(problem).in_place)
    return "takes sequences in spans where no state is changed in place, for all spans may read "
           "what the last one would write";
  if (mma_span_bytes(problem, config) >= std::uint64_t{1} << 33)
    return "counts scratch memory to 2^33 bytes, and the call takes more";
  return rejects_recurrence(problem, profile);
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  constexpr std::array<MmaCut, 10> kCuts{{{128, 64, 2, 1},
                                          {128, 32, 2, 2},
                                          {128, 32, 2, 1},
                                          {64, 64, 2, 2},
                                          {64, 32, 2, 2},
                                          {128, 32, 1, 2},
                                          {128, 16, 2, 2},
                                          {64, 16, 2, 2},
                                          {64, 16, 1, 2},
                                          {16, 16, 1, 2}}};
  std::vector<Config> list;
  for (const MmaCut& cut : kCuts) {
    Config config = mma_config(problem, profile, cut);
    if (!rejects(problem, config, profile) && std::ranges::count(list, config) == 0)
      list.push_back(std::move(config));
  }
  // Blocks of fewer tokens where the first ones leave compute units idle: on an H200 4096 tokens of
  // 8 heads take gla 0.100 ms by 32 at once, 0.132 by 64.
  if (list.size() > 1 && mma_spans(list[1]) > mma_spans(list[0]) &&
      mma_spans(list[0]) * units_of(call_of(problem), mma_columns(list[0])) <
          kernel::compute_units_of(profile))
    std::swap(list[0], list[1]);
  return list;
}

Pass chunks_pass(const RecurrenceSlots& slots, bool outputs) {
  Pass pass;
  pass.name = outputs ? "forward" : "spans";
  pass.opencl = {.file = "recurrence/mma/forward.cl", .entry = "recurrence_mma"};
  pass.bindings = {slots.query, slots.key,           slots.value,  slots.g,           slots.gamma,
                   slots.gk,    slots.initial_state, slots.output, slots.final_state, kScratch};
  pass.axes = [outputs](const Problem& problem, const DeviceProfile& profile) {
    std::vector<Define> axes = dtype_axes(problem, profile);
    axes.push_back({"RECUR_OUTPUTS", outputs ? 1U : 0U});
    return axes;
  };
  pass.constants = mma_constants;
  pass.groups = [outputs](const Problem& problem, const Config& config) {
    return mma_span_groups(problem, config, outputs);
  };
  pass.args = [](const Problem& problem, const Config& config) {
    return argument_bytes(span_arguments(problem, config));
  };
  return pass;
}

}  // namespace

Refusal rejects_rows(const Problem& problem, std::size_t slot) {
  if (!problem.has(slot)) return std::nullopt;
  const TensorSpec& spec = problem.spec(slot);
  const std::int64_t chunk = 16 / static_cast<std::int64_t>(size_of(spec.dtype));
  if (spec.offset % chunk == 0 &&
      std::all_of(spec.strides.begin(), spec.strides.end() - 1,
                  [&](std::int64_t stride) { return stride % chunk == 0; }))
    return std::nullopt;
  return "takes rows that lie at multiples of 16 bytes";
}

std::vector<Tunable> mma_tunables() {
  return {
#include "operations/recurrence_core/mma/mma.def"
      {.id = 32, .name = "SPANS", .fallback = 1, .launch_only = true},
  };
}

std::vector<Define> mma_constants(const Problem& problem, const Config& /*config*/) {
  const std::size_t decays = key_decays(problem);
  const bool wide = decays != kNoOperand && problem.spec(decays).dtype == DType::kF32;
  return {{"KEY_DIM", static_cast<std::uint32_t>(call_of(problem).key_dim)},
          {"KEY_DECAYS", decays != kNoOperand ? 1U : 0U},
          {"WIDE_DECAYS", wide ? 1U : 0U}};
}

std::int64_t mma_columns(const Config& config) { return config.group().x / 2; }

std::int64_t mma_spans(const Config& config) {
  return std::max<std::int64_t>(config.get("SPANS", 1), 1);
}

Dim3 mma_span_groups(const Problem& problem, const Config& config, bool last) {
  const std::int64_t spans = mma_spans(config) - (last ? 0 : 1);
  if (spans == 0) return {0, 0, 0};
  return groups_of(spans * units_of(call_of(problem), mma_columns(config)));
}

std::uint32_t mma_local_bytes(const Problem& problem, const Config& config, bool outputs) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/recurrence_core/mma/mma.def"
  const std::vector<Define> numbers = mma_constants(problem, config);
  const std::uint32_t KEY_DIM = numbers[0].value, KEY_DECAYS = numbers[1].value,
                      WIDE_DECAYS = numbers[2].value;
  return RECUR_MMA_VALID ? RECUR_MMA_LOCAL_BYTES(outputs) : 0;
}

std::uint64_t mma_span_bytes(const Problem& problem, const Config& config) {
  if (mma_spans(config) == 1) return 0;
  const std::int64_t units = units_of(call_of(problem), mma_columns(config));
  const auto factors =
      static_cast<std::uint64_t>(mma_spans(config) * units * (call_of(problem).key_dim + 4));
  return 4 * (span_states(problem, config) + factors);
}

void add_mma_spans(const Problem& problem, const Config& config, std::uint64_t begin,
                   abi::RecurArgs& args) {
  args.spans = static_cast<abi::u32>(mma_spans(config));
  args.span_states = static_cast<abi::u32>(begin);
  args.span_factors = static_cast<abi::u32>(begin + span_states(problem, config));
}

Refusal rejects_mma_blocks(const Problem& problem, const Config& config,
                           const DeviceProfile& profile, bool outputs) {
  const std::uint32_t bytes = mma_local_bytes(problem, config, outputs);
  if (bytes == 0) return "has no such blocks (operations/recurrence_core/mma/geometry.h)";
  return kernel::rejects_nvidia_bytes(bytes, profile);
}

Refusal rejects_mma_call(const Problem& problem) {
  const RecurrenceProblem& call = call_of(problem);
  const RecurrenceSlots& slots = call.slots;
  if (Refusal no = rejects_chunks_by_matrices(problem)) return no;
  for (const std::size_t slot : {slots.query, slots.key, slots.value, slots.output,
                                 slots.grad_output, slots.grad_value, key_decays(problem)}) {
    if (Refusal no = rejects_rows(problem, slot)) return no;
  }
  return std::nullopt;
}

Config mma_config(const Problem& problem, const DeviceProfile& profile, const MmaCut& cut) {
  const RecurrenceProblem& call = call_of(problem);
  const auto columns =
      static_cast<std::uint32_t>(std::min<std::int64_t>(cut.columns, call.value_dim));
  Config config{{"WG_X", 2 * columns}, {"TOKENS", cut.tokens}, {"STAGES", cut.stages}};
  const std::int64_t units = std::max<std::int64_t>(units_of(call, columns), 1);
  const std::int64_t wanted = std::int64_t{cut.busy} * kernel::compute_units_of(profile) / units;
  // Spans of eight blocks and more.
  const std::int64_t most = call.tokens /
                            std::max<std::int64_t>(call.packed ? call.sequences : 1, 1) /
                            (std::int64_t{8} * cut.tokens);
  const std::int64_t spans = call.in_place ? 1 : std::min({wanted, most, std::int64_t{kMostSpans}});
  config.set("SPANS", static_cast<std::uint32_t>(std::max<std::int64_t>(spans, 1)));
  return config;
}

Way new_mma_way(Variant variant, MmaSpace space) {
  variant.name = "mma";
  variant.needs = {.backends = {Backend::kOpenCL},
                   .features = Feature::kNvidiaPtx | Feature::kMmaSync};
  variant.rounds_factors = true;
  variant.space = space;
  const std::vector<DType> dtypes = variant.dtypes;
  const auto prefers = [dtypes, space](const Problem& problem, const DeviceProfile& profile) {
    const RecurrenceProblem& call = call_of(problem);
    const std::int64_t sequences = std::max<std::int64_t>(call.packed ? call.sequences : 1, 1);
    return has(profile.features, Feature::kMmaSync) && call.tokens / sequences >= kLeastTokens &&
           std::ranges::count(dtypes, problem.dtype) != 0 && !space(problem, profile).empty();
  };
  return Way{.variant = std::move(variant),
             .rule = {.why = "matrix instructions, for chunks of tokens", .when = prefers}};
}

std::optional<Way> mma_way(const RecurrenceSlots& slots) {
  if (slots.delta()) return mma_delta_way(slots);
  if (slots.backward()) return mma_backward_way(slots);
  Variant variant;
  variant.idea = "chunks of 16 tokens by mma.sync, a state in the registers of a work-group";
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.tunables = mma_tunables();
  variant.rejects = rejects;
  variant.passes = list_of(boundaries_pass(slots, mma_span_bytes), chunks_pass(slots, false),
                           chunks_pass(slots, true));
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return mma_span_bytes(problem, config) + boundaries_bytes(problem);
  };
  return new_mma_way(std::move(variant), space);
}

}  // namespace tessera::operations::recurrence
