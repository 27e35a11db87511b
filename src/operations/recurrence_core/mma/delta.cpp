// SPDX-License-Identifier: Apache-2.0
// Delta rules by chunks of 64 tokens: what all columns share of each chunk, all at once, and then
// columns of the state from chunk to chunk.
#include "operations/recurrence_core/mma/delta.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "kernel/gpu.hpp"
#include "kernel/tunable_list.inc"
#include "operations/common/launch.hpp"
#include "operations/recurrence_core/mma/delta.hpp"

namespace tessera::operations::recurrence {
std::vector<Tunable> delta_tunables() {
  return {
#include "operations/recurrence_core/mma/delta.def"
  };
}

namespace {

constexpr std::uint32_t kItems = 128;  // of recurrence/mma/delta_chunks

const RecurrenceProblem& call_of(const Problem& problem) { return problem.as<RecurrenceProblem>(); }

// That go over a sequence together.
std::uint32_t items_of(const RecurrenceProblem& call, const Config& config) {
  return call.slots.backward() ? RECUR_DELTA_STATES_ITEMS : config.group().x;
}

std::uint64_t chunk_bytes(const Problem& problem, const Config& /*config*/) {
  return delta_chunk_bytes(problem);
}

std::uint32_t local_bytes(const Problem& problem, const Config& config) {
  using Number = std::uint32_t;
#include "kernel/tunable_locals.inc"
#include "operations/recurrence_core/mma/delta.def"
  const std::uint32_t TOKENS = RECUR_DELTA_CHUNK,
                      KEY_DIM = static_cast<std::uint32_t>(call_of(problem).key_dim),
                      RECUR_DELTA_ITEMS = items_of(call_of(problem), config);
  if (!RECUR_DELTA_VALID) return 0;
  const std::uint32_t scan = call_of(problem).slots.backward()
                                 ? RECUR_DELTA_STATES_BYTES
                                 : RECUR_DELTA_LOCAL_BYTES(STAGES, 1U);
  return std::max(scan, RECUR_DELTA_SOLVE_BYTES);
}

Refusal rejects(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = rejects_delta(problem, config, profile)) return no;
  if (delta_chunk_bytes(problem) >= std::uint64_t{1} << 33)
    return "counts scratch memory to 2^33 bytes, and the call takes more";
  return rejects_recurrence(problem, profile);
}

std::vector<Config> space(const Problem& problem, const DeviceProfile& profile) {
  return delta_space(problem, profile, rejects);
}

std::vector<std::byte> arguments(const Problem& problem, const Config& /*config*/) {
  abi::RecurArgs args = arguments_of(problem);
  args.segment = static_cast<abi::u32>(delta_chunks(call_of(problem)));
  args.boundaries = static_cast<abi::u32>(delta_chunk_bytes(problem) / 4);
  return argument_bytes(args);
}

Pass forward_pass(const RecurrenceSlots& slots) {
  Pass pass;
  pass.name = "forward";
  pass.opencl = {.file = "recurrence/mma/delta_forward.cl", .entry = "recurrence_delta_mma"};
  pass.bindings = forward_bindings(slots);
  pass.axes = dtype_axes;
  pass.constants = delta_constants;
  pass.groups = [](const Problem& problem, const Config& config) {
    return groups_of(delta_units(problem, config));
  };
  pass.args = arguments;
  return pass;
}

}  // namespace

std::vector<Define> delta_constants(const Problem& problem, const Config& /*config*/) {
  return {{"KEY_DIM", static_cast<std::uint32_t>(call_of(problem).key_dim)}};
}

std::int64_t delta_chunks(const RecurrenceProblem& call) {
  return call.batch * call.tokens / RECUR_DELTA_CHUNK + call.sequences + 1;
}

std::uint64_t delta_chunk_bytes(const Problem& problem) {
  const RecurrenceProblem& call = call_of(problem);
  return static_cast<std::uint64_t>(delta_chunks(call) * call.heads) * RECUR_DELTA_CHUNK_BYTES;
}

std::int64_t delta_units(const Problem& problem, const Config& config) {
  const std::uint32_t RECUR_DELTA_ITEMS = items_of(call_of(problem), config);
  return units_of(call_of(problem), RECUR_DELTA_COLUMNS);
}

Refusal rejects_delta(const Problem& problem, const Config& config, const DeviceProfile& profile) {
  if (Refusal no = rejects_mma_call(problem)) return no;
  if (call_of(problem).key_gate) return "takes decays that all key dims share";
  const std::uint32_t bytes = local_bytes(problem, config);
  if (bytes == 0) return "has no such work-groups (operations/recurrence_core/mma/delta.h)";
  return kernel::rejects_nvidia_bytes(bytes, profile);
}

// Forward, thirty-two columns take half as many copies of keys as sixteen, and leave half as many
// work-groups.
std::vector<Config> delta_space(const Problem& problem, const DeviceProfile& profile,
                                DeltaRejects rejects) {
  const RecurrenceProblem& call = call_of(problem);
  const std::int64_t units = units_of(call, 16), together = kernel::compute_units_of(profile);
  const bool many =
      (call.slots.backward() ? 2 * units > together : units > 2 * together && call.value_dim > 16);
  std::vector<Config> list;
  for (const std::uint32_t items : {many ? 512U : 256U, many ? 256U : 512U}) {
    for (const std::uint32_t stages : {2U, 1U}) {
      Config config{{"WG_X", items}, {"STAGES", stages}};
      if (!rejects(problem, config, profile)) list.push_back(std::move(config));
    }
  }
  return list;
}

Pass delta_chunks_pass(const RecurrenceSlots& slots, DeltaArguments arguments) {
  Pass pass;
  pass.name = "chunks";
  pass.opencl = {.file = "recurrence/mma/delta_chunks.cl", .entry = "recurrence_delta_chunks"};
  pass.bindings = {slots.query, slots.key, slots.beta, slots.g, kScratch};
  pass.axes = dtype_axes;
  pass.specialized_on = std::vector<std::string>{"KEY_DIM"};
  pass.group_size = [](const Config&) { return Dim3{kItems}; };
  pass.constants = delta_constants;
  pass.groups = [](const Problem& problem, const Config&) {
    return groups_of(delta_chunks(call_of(problem)) * call_of(problem).heads);
  };
  pass.args = arguments;
  return pass;
}

std::optional<Way> mma_delta_way(const RecurrenceSlots& slots) {
  if (slots.backward()) return mma_delta_backward_way(slots);
  Variant variant;
  variant.idea = "chunks of 64 tokens by mma.sync: each is a triangle of equations, solved once";
  variant.dtypes = {DType::kF16, DType::kBF16};
  variant.tunables = delta_tunables();
  variant.rejects = rejects;
  variant.passes = list_of(boundaries_pass(slots, chunk_bytes), delta_chunks_pass(slots, arguments),
                           forward_pass(slots));
  variant.scratch_bytes = [](const Problem& problem, const Config&) {
    return delta_chunk_bytes(problem) + boundaries_bytes(problem);
  };
  return new_mma_way(std::move(variant), space);
}

}  // namespace tessera::operations::recurrence
