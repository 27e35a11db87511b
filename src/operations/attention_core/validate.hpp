// SPDX-License-Identifier: Apache-2.0
// What the checks of the attention operations share.
#pragma once

#include <algorithm>
#include <string>

#include "operations/attention_core/problem.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::attention {

// Throws InvalidArgument, naming the operation, unless `condition` holds.
void require(const Problem& problem, bool condition, const std::string& sentence);
std::string operand_text(const Problem& problem, std::size_t slot);  // "bias f32[1, 8, 16, 16]"

// Operands of masks, biases, lengths, segments: checks them, and sets features, policies, packed
// and sequences.
void check_policies(const Problem& problem, AttentionProblem& call);

}  // namespace tessera::operations::attention
