// SPDX-License-Identifier: Apache-2.0
// What the ways of delta rules share, forward and back.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "operations/recurrence_core/launch.hpp"
#include "operations/recurrence_core/mma/mma.hpp"

namespace tessera::operations::recurrence {

std::vector<Tunable> delta_tunables();
std::vector<Define> delta_constants(const Problem& problem, const Config& config);
using DeltaRejects = Refusal (*)(const Problem&, const Config&, const DeviceProfile&);
std::vector<Config> delta_space(const Problem& problem, const DeviceProfile& profile,
                                DeltaRejects rejects);
std::int64_t delta_units(const Problem& problem, const Config& config);  // tiles of columns
// Of all sequences, with one to spare for each.
std::int64_t delta_chunks(const RecurrenceProblem& call);
// Bytes of scratch that delta_chunks fills.
std::uint64_t delta_chunk_bytes(const Problem& problem);
// Dims, decays, rows and blocks that no pass over columns takes.
Refusal rejects_delta(const Problem& problem, const Config& config, const DeviceProfile& profile);

// The pass that leaves in scratch what all columns share.
using DeltaArguments = std::vector<std::byte> (*)(const Problem&, const Config&);
Pass delta_chunks_pass(const RecurrenceSlots& slots, DeltaArguments arguments);

std::optional<Way> mma_delta_backward_way(const RecurrenceSlots& slots);

}  // namespace tessera::operations::recurrence
