// SPDX-License-Identifier: Apache-2.0
// mma_decode's kernel as a pass of variants whose tiles sequences of few rows would not fill.
#pragma once

#include "operations/attention_core/launch.hpp"

namespace tessera::operations::attention {

// Query rows of a sequence from which it is no business of such a pass.
inline constexpr std::uint32_t kNoFewRows = 16;

// Whether the kernel takes the sequences of few rows of a call. It needs mma.sync.
bool takes_few_rows(const Problem& problem);

// How they are cut up, where the list of all other sequences is cut up as `others` says.
AttentionTiling few_rows_tiling(const Problem& problem, const AttentionTiling& others);

// The constants that the pass is specialised on, numbered from `id` on, but those of `has`.
std::vector<Tunable> few_rows_tunables(std::uint32_t id, const std::vector<Tunable>& has);

// The work list and the kernel. They launch nothing where takes_few_rows() says no.
std::vector<Pass> few_rows_passes(const AttentionSlots& slots, const Tiling& others);

}  // namespace tessera::operations::attention
