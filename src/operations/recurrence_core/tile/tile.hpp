// SPDX-License-Identifier: Apache-2.0
// What the passes of the variant "tile" share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/gradients.hpp"
#include "operations/recurrence_core/problem.hpp"

namespace tessera::operations::recurrence {

std::int64_t columns_of(const Config& config);  // of a work-group

// The pass that takes all steps forward, and what it begins with where nothing is tuned.
Pass tile_forward_pass(const RecurrenceSlots& slots);
Config first_tile_config(const Problem& problem, const DeviceProfile& profile);

// Spans of each sequence that are taken at once, and the passes that do so: "spans" says what each
// makes of nothing, "carry" puts them together.
std::int64_t spans_of(const Problem& problem, const Config& config);
std::uint64_t span_bytes(const Problem& problem, const Config& config);
// `begin`: of both in scratch, in vectors of four floats.
void add_span_arguments(const Problem& problem, const Config& config, std::uint64_t begin,
                        abi::RecurArgs& args);
std::vector<Pass> span_passes(const RecurrenceSlots& slots);
Pass gradient_spans_pass(const RecurrenceSlots& slots);  // "back": the same of the state's gradient
Dim3 span_groups(const Problem& problem, const Config& config);
// The launches of "spans" or "back", and of "carry".
void add_span_steps(const Problem& problem, const Config& config, const std::string& pass,
                    const abi::RecurArgs& args, std::vector<Step>& steps);

// Scratch of a backward call: where each part begins, in vectors of four floats.
struct BackwardScratch {
  std::uint64_t kept = 0, inner = 0, dquery_shares = 0, dkey_shares = 0, decay_shares = 0;
  std::uint64_t sums = 0, beta_shares = 0, spans = 0, gradient_spans = 0, boundaries = 0, end = 0;
  std::uint64_t bytes() const { return 16 * end; }
};
BackwardScratch scratch_of(const Problem& problem, const Config& config);

abi::RecurArgs tile_backward_arguments(const Problem& problem, const Config& config);
// "states" and "gradients", or those of delta rules, which take all steps forward and back; then
// the last two.
std::vector<Pass> tile_gradient_passes(const RecurrenceSlots& slots);
Pass tile_combine_pass(const RecurrenceSlots& slots);
Pass tile_gamma_pass(const RecurrenceSlots& slots, PassArguments arguments);

std::vector<Pass> backward_passes(const RecurrenceSlots& slots);
std::vector<Step> backward_steps(const Problem& problem, const Config& config);

}  // namespace tessera::operations::recurrence
