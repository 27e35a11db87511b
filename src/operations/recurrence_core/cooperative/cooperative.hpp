// SPDX-License-Identifier: Apache-2.0
// What the ways of the variant "cooperative" share, forward and back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/problem.hpp"

namespace tessera::operations::recurrence {

// Chunks of all sequences, with one to spare for each.
std::int64_t cooperative_chunks(const RecurrenceProblem& call, const Config& config);

// Where passes leave each other things in scratch, in bytes, one part behind the other. Of delta
// rules the first three are rows, squares and numbers of chunks.
struct CooperativeScratch {
  std::uint64_t states = 0, kept = 0, factors = 0;
  std::uint64_t last = 0, chunk_marks = 0, end = 0;
  std::uint64_t add(std::int64_t bytes);  // one more part
  // The last ones: last states, and marks, which lie before boundaries.
  void add_last(const Problem& problem, const Config& config);
};
abi::RecurArgs cooperative_arguments(const Problem& problem, const Config& config,
                                     const CooperativeScratch& scratch);

// What a way needs: rows of these operands by eights; local memory, 0 where its kernels have no
// such geometry; scratch; rounds of loops.
struct CooperativeNeeds {
  std::vector<std::size_t> rows;
  std::uint64_t local_bytes, scratch_bytes;
  std::int64_t rounds;
};
// Why matrices can't take the call, or this configuration of it.
Refusal rejects_cooperative(const Problem& problem, const Config& config,
                            const DeviceProfile& profile, const CooperativeNeeds& needs);

// Configurations of one kernel, long chunks first: an item has eight key dims of so many tokens.
struct CooperativeSpace {
  std::int64_t part;
  std::uint32_t most_tokens;  // of a chunk
  std::int64_t least_items;
  Refusal (*rejects)(const Problem&, const Config&, const DeviceProfile&);
  std::uint64_t (*local_bytes)(const Problem&, const Config&);
};
std::vector<Config> cooperative_configs(const Problem& problem, const DeviceProfile& profile,
                                        const CooperativeSpace& space);

using CooperativeArguments = abi::RecurArgs (*)(const Problem&, const Config&);
// A pass over chunks; over states of sequences, an item for `elements` of them.
Pass cooperative_pass(const std::string& name, std::vector<std::size_t> bindings,
                      CooperativeArguments arguments);
Pass cooperative_states_pass(const std::string& name, std::vector<std::size_t> bindings,
                             CooperativeArguments arguments, std::int64_t elements);
void go_back(Pass& pass);  // of gradients: GOES_BACK is 1
// The last states, where they are wanted; all steps of sequences that are marked.
Pass cooperative_final_pass(const RecurrenceSlots& slots, CooperativeArguments arguments);
Pass cooperative_steps_pass(const RecurrenceSlots& slots, CooperativeArguments arguments);
// Gradients step by step: how recurrence/tile takes sequences that are marked, and its passes.
Config cooperative_step_config(const Problem& problem, const Config& config);
std::vector<Pass> cooperative_gradient_steps(const RecurrenceSlots& slots,
                                             CooperativeArguments arguments);
// What the passes over states bind.
std::vector<std::size_t> cooperative_bindings(const RecurrenceSlots& slots);

// A way of the variant, with what all have in common.
Way cooperative_way_of(Variant variant);
std::optional<Way> cooperative_backward_way(const RecurrenceSlots& slots);
std::optional<Way> cooperative_delta_way(const RecurrenceSlots& slots);
std::optional<Way> cooperative_delta_backward_way(const RecurrenceSlots& slots);

}  // namespace tessera::operations::recurrence
