// SPDX-License-Identifier: Apache-2.0
// What the checks of the attention operations share.
#pragma once

#include <algorithm>
#include <string>

#include "operations/attention_core/problem.hpp"
#include "operations/common/validate.hpp"
#include "tessera/error.hpp"

namespace tessera::operations::attention {

// Operands of masks, biases, lengths, segments: checks them, and sets features, policies, packed
// and sequences.
void check_policies(const Problem& problem, AttentionProblem& call);

}  // namespace tessera::operations::attention
