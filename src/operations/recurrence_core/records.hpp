// SPDX-License-Identifier: Apache-2.0
// What the records of recurrent, gla and lightning_attention have in common.
#pragma once

#include <string>

#include "operations/recurrence_core/problem.hpp"

namespace tessera::operations::recurrence {

// Operands, the options reverse and softmax_scale, errors, validation, reference, ways, workload.
Operation new_record(const std::string& name, const RecurrenceSlots& slots);

}  // namespace tessera::operations::recurrence
