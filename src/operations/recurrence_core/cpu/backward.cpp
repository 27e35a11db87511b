// SPDX-License-Identifier: Apache-2.0
// Gradients by chunks of 16 tokens, or single ones, on processors through OpenCL.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/recurrence_core/cpu/cpu.hpp"
#include "operations/recurrence_core/gradients.hpp"
#include "operations/recurrence_core/launch.hpp"

namespace tessera::operations::recurrence {
namespace {

constexpr std::uint32_t kChunk = 16, kSegment = 128, kItems = 8;
constexpr std::int64_t kMostKept = std::int64_t{256} << 20;  // bytes of states

const RecurrenceProblem& call_of(const Problem& problem) { return problem.as<RecurrenceProblem>(); }

std::vector<Tunable> tunables() {
  return {
#include "operations/recurrence_core/cpu/cpu.def"
      {.id = 31, .name = "SEGMENT", .fallback = kSegment, .launch_only = true},
      {.id = 33, .name = "ITEMS", .fallback = kItems, .launch_only = true},
  };
}

std::int64_t items_of(const Problem& problem, const Config& config) {
  return std::min<std::int64_t>(units_of(call_of(problem), cpu_columns(config)),
                                config.get("ITEMS", kItems));
}

std::int64_t state_vectors(const Problem& problem, std::int64_t columns) {
  return columns * cpu_key_block(problem) / 4;
}

// Of the states before segments. Sequences that lie one behind the other have a segment more each
// than their tokens together.
std::int64_t kept_vectors(const Problem& problem, std::int64_t columns, std::int64_t segment) {
  const RecurrenceProblem& call = call_of(problem);
  const std::int64_t segments = call.batch * call.tokens / segment + call.sequences + 1;
  return segments * call.heads * ceil_div(call.value_dim, columns) *
         state_vectors(problem, columns);
}

// Where each part of scratch begins, in vectors of four floats.
struct Scratch {
  std::uint64_t kept = 0, inner = 0, dquery_shares = 0, dkey_shares = 0, decay_shares = 0;
  std::uint64_t sums = 0, boundaries = 0, end = 0;
};

Scratch scratch_of(const Problem& problem, const Config& config) {
  const RecurrenceProblem& call = call_of(problem);
  const std::int64_t segment = config.at("SEGMENT"), columns = cpu_columns(config),
                     tiles = ceil_div(call.value_dim, columns),
                     state = state_vectors(problem, columns);
  const std::int64_t shares = tiles > 1 ? tiles * rows_of(call) * ceil_div(call.key_dim, 4) : 0;
  const bool decay = wants(problem, RECUR_GRAD_DECAY);
  Scratch scratch;
  const auto add = [&](std::int64_t vectors) {
    const std::uint64_t begin = scratch.end;
    scratch.end += static_cast<std::uint64_t>(vectors + 3) / 4 * 4;  // whole cache lines
    return begin;
  };
  scratch.kept = add(kept_vectors(problem, columns, segment));
  scratch.inner = add(items_of(problem, config) * (segment / kChunk + 2) * state);
  scratch.dquery_shares = add(shares);
  scratch.dkey_shares = add(shares);
  scratch.decay_shares = add(decay ? shares : 0);
  scratch.sums = add(decay ? ceil_div(rows_of(call), 4) : 0);
  scratch.boundaries = add(call.packed ? call.sequences / 4 + 1 : 0);
  return scratch;
}

std::vector<std::byte> arguments(const Problem& problem, const Config& config) {
  const Scratch scratch = scratch_of(problem, config);
  const auto narrow = [](std::uint64_t value) { return static_cast<abi::u32>(value); };
  abi::RecurArgs args = arguments_of(problem);
  args.segment = config.at("SEGMENT");
  args.tiles = ceil_div(call_of(problem).value_dim, cpu_columns(config));
  args.kept = narrow(scratch.kept);
  args.inner = narrow(scratch.inner);
  args.dquery_shares = narrow(scratch.dquery_shares);
  args.dkey_shares = narrow(scratch.dkey_shares);
  args.decay_shares = narrow(scratch.decay_shares);
  args.sums = narrow(scratch.sums);
  args.boundaries = narrow(4 * scratch.boundaries);
  return argument_bytes(args);
}

// A segment of one chunk has its states made once, and takes the most memory for them; states of a
// longer one, of which items go through one at a time, stay in the second cache.
std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  const bool wide = vector_width(profile) >= 16;
  const std::int64_t whole = ceil_div(std::max<std::int64_t>(call_of(problem).tokens, 1), kChunk);
  std::vector<Config> list;
  for (const std::uint32_t panels : cpu_panels(problem, profile)) {
    std::uint32_t fits = kChunk;
    while (fits < kSegment &&
           16 * kept_vectors(problem, std::int64_t{32} * panels, fits) > kMostKept)
      fits *= 2;
    for (const std::uint32_t segment : {fits, kSegment}) {
      Config config{
          {"PANELS", panels},
          {"TILE_ROWS", wide ? 16U : 4U},
          {"TILE_VECTORS", wide ? 2U : 1U},
          {"SEGMENT", static_cast<std::uint32_t>(std::min<std::int64_t>(segment, kChunk * whole))},
          {"ITEMS", 4 * std::max(profile.compute_units, 1U)}};
      if (std::ranges::count(list, config) == 0) list.push_back(std::move(config));
    }
  }
  return list;
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  const std::uint32_t panels = config.at("PANELS");
  if (panels != 1 && panels != 2 && panels != 4)
    return "takes 1, 2 or 4 panels, and PANELS is " + std::to_string(panels);
  const std::uint32_t rows = config.at("TILE_ROWS"), vectors = config.at("TILE_VECTORS");
  if ((rows != 4 && rows != 8 && rows != 16) || (vectors != 1 && vectors != 2))
    return "holds sums of 4, 8 or 16 rows, and scores of 1 or 2 vectors, and TILE_ROWS is " +
           std::to_string(rows) + ", TILE_VECTORS " + std::to_string(vectors);
  const std::uint32_t segment = config.at("SEGMENT");
  if (segment == 0 || segment % kChunk != 0)
    return "takes segments of whole chunks of 16 tokens, and SEGMENT is " + std::to_string(segment);
  if (config.at("ITEMS") == 0) return "takes at least one work-item, and ITEMS is 0";
  if (problem.has(call_of(problem).slots.gv))
    return "takes chunks of tokens, where no value dim decays by itself";
  if (scratch_of(problem, config).end >= std::uint64_t{1} << 30)
    return "counts scratch memory to 2^32 floats, and the call takes more";
  return rejects_recurrence(problem, profile);
}

Pass backward_pass(const RecurrenceSlots& slots) {
  Pass pass;
  pass.name = "backward";
  pass.opencl = {.file = "recurrence/cpu/backward.cl", .entry = "recurrence_backward_cpu"};
  pass.bindings = {slots.query,
                   slots.key,
                   slots.value,
                   slots.g,
                   slots.gamma,
                   slots.gk,
                   slots.initial_state,
                   slots.grad_output,
                   slots.grad_final_state,
                   slots.grad_query,
                   slots.grad_key,
                   slots.grad_value,
                   slots.grad_g,
                   slots.grad_gk,
                   slots.grad_initial_state,
                   kScratch};
  pass.constants = [](const Problem& problem, const Config&) {
    return std::vector<Define>{{"KEY_BLOCK", cpu_key_block(problem)}};
  };
  pass.groups = [](const Problem& problem, const Config& config) {
    const std::int64_t items = items_of(problem, config);
    return items == 0 ? Dim3{0, 0, 0} : Dim3{static_cast<std::uint32_t>(items)};
  };
  pass.args = arguments;
  return pass;
}

// Blocks of columns have shares where there are several.
Pass combine_shares_pass(const RecurrenceSlots& slots) {
  Pass pass = combine_pass(slots, arguments);
  pass.groups = [](const Problem& problem, const Config& config) {
    if (call_of(problem).value_dim <= cpu_columns(config)) return Dim3{0, 0, 0};
    return groups_of(rows_of(call_of(problem)));
  };
  return pass;
}

}  // namespace

std::optional<Way> cpu_backward_way(const RecurrenceSlots& slots) {
  if (slots.delta()) return std::nullopt;
  Variant variant;
  variant.name = "cpu";
  variant.idea = "a state and its gradient in the caches, chunks of 16 tokens by products";
  variant.needs = opencl_cpu();
  variant.dtypes = {DType::kF32, DType::kF16, DType::kBF16};
  variant.tunables = tunables();
  variant.space = space;
  variant.rejects = rejects;
  variant.passes =
      list_of(boundaries_pass(slots,
                              [](const Problem& problem, const Config& config) -> std::uint64_t {
                                return 16 * scratch_of(problem, config).boundaries;
                              }),
              backward_pass(slots), combine_shares_pass(slots), gamma_pass(slots, arguments));
  variant.scratch_bytes = [](const Problem& problem, const Config& config) {
    return 16 * scratch_of(problem, config).end;
  };
  const auto prefers = [slots](const Problem& problem, const DeviceProfile& profile) {
    return is_opencl_cpu(profile) && !problem.has(slots.gv);
  };
  return Way{.variant = std::move(variant),
             .rule = {.why = "processors want whole vectors in one item, and no local memory",
                      .when = prefers}};
}

}  // namespace tessera::operations::recurrence
