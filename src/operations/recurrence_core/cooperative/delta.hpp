// SPDX-License-Identifier: Apache-2.0
// What the ways of delta rules share, forward and back.
#pragma once

#include <cstdint>
#include <vector>

#include "operations/recurrence_core/cooperative/cooperative.hpp"

namespace tessera::operations::recurrence {

// Of a work-group, of all passes of a way; 0 where the kernels have no such geometry.
std::uint64_t cooperative_delta_bytes(const Problem& problem, const Config& config);
// Work-groups over columns: sequences, heads and sixteens of them.
std::int64_t delta_columns(const RecurrenceProblem& call);
// What chunks leave for all columns.
void add_delta_chunks(const Problem& problem, const Config& config, CooperativeScratch& scratch);
// What both ways need of a call: rows of its operands are added to `needs`.
Refusal rejects_cooperative_delta(const Problem& problem, const Config& config,
                                  const DeviceProfile& profile, CooperativeNeeds needs);
using CooperativeRejects = Refusal (*)(const Problem&, const Config&, const DeviceProfile&);
std::vector<Config> cooperative_delta_configs(const Problem& problem, const DeviceProfile& profile,
                                              CooperativeRejects rejects);
// The pass that leaves that in scratch.
Pass cooperative_delta_chunks_pass(const RecurrenceSlots& slots, CooperativeArguments arguments);

}  // namespace tessera::operations::recurrence
