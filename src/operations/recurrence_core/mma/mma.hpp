// SPDX-License-Identifier: Apache-2.0
// What the ways of the variant "mma" share, forward and back.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/problem.hpp"

namespace tessera::operations::recurrence {

std::vector<Tunable> mma_tunables();
std::vector<Define> mma_constants(const Problem& problem, const Config& config);
std::int64_t mma_columns(const Config& config);  // of a work-group
std::int64_t mma_spans(const Config& config);
// Bytes of local memory that a work-group takes.
std::uint32_t mma_local_bytes(const Problem& problem, const Config& config, bool outputs);

// Scratch of spans: bytes, and how a launch finds it behind `begin` floats.
std::uint64_t mma_span_bytes(const Problem& problem, const Config& config);
void add_mma_spans(const Problem& problem, const Config& config, std::uint64_t begin,
                   abi::RecurArgs& args);

// A block of tokens, and how many work-groups each compute unit gets.
struct MmaCut {
  std::uint32_t columns, tokens, stages, busy;
};
Config mma_config(const Problem& problem, const DeviceProfile& profile, const MmaCut& cut);

Refusal rejects_rows(const Problem& problem, std::size_t slot);
// Dims, decays and rows that no configuration takes, and blocks that are none.
Refusal rejects_mma_call(const Problem& problem);
Refusal rejects_mma_blocks(const Problem& problem, const Config& config,
                           const DeviceProfile& profile, bool outputs);

// Work-groups for all spans, or for all but the last one, of which nobody asks what it makes.
Dim3 mma_span_groups(const Problem& problem, const Config& config, bool last);

// A way of the variant "mma", with what all have in common; its configurations, of which the first
// is chosen untuned.
using MmaSpace = std::vector<Config> (*)(const Problem&, const DeviceProfile&);
Way new_mma_way(Variant variant, MmaSpace space);
std::optional<Way> mma_backward_way(const RecurrenceSlots& slots);
std::optional<Way> mma_delta_way(const RecurrenceSlots& slots);

}  // namespace tessera::operations::recurrence
