// SPDX-License-Identifier: Apache-2.0
// What the backward kernels are launched with, and the passes that variants share.
#pragma once

#include "operations/attention_core/core/backward_args.h"
#include "operations/attention_core/launch.hpp"

namespace tessera::operations::attention {

// How a configuration of a backward variant cuts up a problem.
struct BackwardTiling {
  AttentionTiling map{};             // tiles of the map
  std::uint32_t splits = 1;          // work-groups that share the keys of a head
  std::uint64_t partial_floats = 0;  // the kernels' own partial sums
};
using BackwardTilingOf = std::function<BackwardTiling(const Problem&, const Config&)>;

abi::AttentionBackwardCall backward_arguments(const Problem& problem, const BackwardTiling& tiling);
std::uint64_t backward_scratch_bytes(const Problem& problem, const BackwardTiling& tiling);

// A pass of one kernel with AttentionBackwardCall as its arguments, for calls with or without
// policies; the caller adds bindings and groups.
Pass backward_pass(const std::string& name, const BackwardTilingOf& tiling, bool policies);
// Nothing where the call needs the other kind of pass.
bool is_for(const Problem& problem, bool policies);

Pass delta_pass(const AttentionSlots& slots, const BackwardTilingOf& tiling);
// What scores of every row are compared with, where log_sum_exp is not enough; after the rows.
Pass peaks_pass(const AttentionSlots& slots, const BackwardTilingOf& tiling);
// dbias from ds and dsinks from delta, where they are wanted.
std::vector<Pass> policy_gradient_passes(const AttentionSlots& slots,
                                         const BackwardTilingOf& tiling);

}  // namespace tessera::operations::attention
