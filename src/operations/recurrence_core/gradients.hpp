// SPDX-License-Identifier: Apache-2.0
// What the ways of gradients share: their last passes, which add up what work-groups have left in
// scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "operations/recurrence_core/args.h"
#include "operations/recurrence_core/problem.hpp"

namespace tessera::operations::recurrence {

std::int64_t rows_of(const RecurrenceProblem& call);  // tokens of all batch entries, times heads
// Whether one of the gradients RECUR_GRAD_… is wanted.
bool wants(const Problem& problem, abi::u32 gradients);

using PassArguments = std::vector<std::byte> (*)(const Problem&, const Config&);
// Of shares of blocks of columns.
Pass combine_pass(const RecurrenceSlots& slots, PassArguments arguments);
// Of decays' gradients over tokens.
Pass gamma_pass(const RecurrenceSlots& slots, PassArguments arguments);

}  // namespace tessera::operations::recurrence
