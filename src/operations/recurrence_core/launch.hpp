// SPDX-License-Identifier: Apache-2.0
// What the kernels of recurrences are launched with.
#pragma once

#include <cstdint>

#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/problem.hpp"

namespace tessera::operations::recurrence {

// Whether every four columns and key dims of the operands start at a multiple of four elements.
bool is_aligned(const Problem& problem);

// Of one launch that takes all tokens; what scratch holds backward is the way's.
abi::RecurArgs arguments_of(const Problem& problem);

// Bytes of a state of every sequence and head, in scratch.
std::uint64_t state_bytes(const RecurrenceProblem& call);

// Sequences, heads and blocks of `columns` of the value dim: each is a work-group's.
std::int64_t units_of(const RecurrenceProblem& call, std::int64_t columns);
// Work-groups for so many units: more than an axis takes continue along the next.
Dim3 groups_of(std::int64_t units);

// Why no kernel can run the call.
Refusal rejects_recurrence(const Problem& problem, const DeviceProfile& profile);
// The operand that has a decay for each key dim, if any.
std::size_t key_decays(const Problem& problem);
// Why matrix units can't take chunks of its tokens.
Refusal rejects_chunks_by_matrices(const Problem& problem);

// The pass that leaves the boundaries of packed sequences in scratch, behind what else is there.
using ScratchBytes = std::uint64_t (*)(const Problem&, const Config&);
Pass boundaries_pass(const RecurrenceSlots& slots, ScratchBytes before);
std::uint64_t boundaries_bytes(const Problem& problem);

// What every pass over a forward call binds, in the order of the kernels' parameters.
std::vector<std::size_t> forward_bindings(const RecurrenceSlots& slots);

}  // namespace tessera::operations::recurrence
